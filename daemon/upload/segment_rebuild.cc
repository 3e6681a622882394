#include "daemon/upload/segment_rebuild.h"

#include <memory>
#include <vector>

#include "daemon/upload/segment.h"
#include "daemon/upload/segment_upload.h"
#include "storage/untrusted_file.h"

namespace collect::upload {
namespace {

using storage::OpenMode;

class BoundedBytes final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    if (bytes.size() > kMaxSegmentObjectBytes - object.size()) {
      return Error{Code::kLimit, "larger than a segment"};
    }
    object.insert(object.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::vector<uint8_t> object;
};

// Of the last copy in which a request came to its end; a later one is only begun.
Result<std::vector<SegmentName>> whole_requests(std::vector<SegmentName> names,
                                                const std::string& prefix) {
  while (!names.empty() && !names.back().is_end) names.pop_back();
  if (names.empty()) {
    return Error{Code::kNotFound, prefix + ": no segments that are whole"};
  }
  const uint32_t copy = names.back().copy;
  std::erase_if(names, [copy](const SegmentName& name) { return name.copy != copy; });
  // A number may be there twice, without an end and with one: the answer to the first was lost.
  uint64_t before = 0;
  for (const SegmentName& name : names) {
    if (name.number > before + 1) {
      return Error{Code::kDamaged, prefix + ": segment " + std::to_string(before + 1) + " of " +
                                       std::to_string(names.back().number) + " is missing"};
    }
    before = name.number;
  }
  return names;
}

Result<std::unique_ptr<storage::File>> open_or_make(storage::Fs& fs, const std::string& path) {
  if (fs.exists(path)) return fs.open(path, OpenMode::kReadWrite);
  COLLECT_TRY(fs.make_directories(path.substr(0, path.rfind('/'))));
  return fs.open(path, OpenMode::kCreate);
}

// The file is to end at `end` at least; a hole counts as what it claims to hold.
Status grow(storage::File& file, uint64_t end, storage::UntrustedSpace& space) {
  const auto size = file.size();
  if (!size.ok()) return size.error();
  return end > *size ? space.take(end - *size) : Status();
}

Status apply(const SegmentAction& action, storage::Fs& fs, storage::UntrustedSpace& space,
             const std::string& directory) {
  if (action.kind == SegmentKind::kName) return {};
  const std::string path = directory + "/" + std::string(action.path);
  if (action.kind == SegmentKind::kRemove) {
    return fs.exists(path) ? fs.remove_file(path) : Status();
  }
  auto file = open_or_make(fs, path);
  if (!file.ok()) return file.error();
  COLLECT_TRY(grow(**file, action.offset + action.data.size(), space));
  if (action.kind == SegmentKind::kCut) return (*file)->truncate(action.offset);
  return (*file)->write_at(action.offset, std::span<const Bytes>(&action.data, 1));
}

// The directory that the first action of a copy names.
Result<std::string> directory_of(const std::vector<SegmentAction>& actions, const std::string& key,
                                 storage::Fs& fs, const std::string& root) {
  if (actions.empty() || actions.front().kind != SegmentKind::kName) {
    return Error{Code::kDamaged, key + ": it does not name its session"};
  }
  const auto session_path = storage::parse_session_path(root, actions.front().path);
  COLLECT_CHECK(session_path.has_value());  // parse_segment has looked
  if (fs.exists(session_path->directory)) {
    return Error{Code::kAlreadyExists,
                 session_path->directory + " is there: rebuild the session elsewhere"};
  }
  COLLECT_TRY(fs.make_directories(session_path->directory));
  return session_path->directory;
}

}  // namespace

Result<RebuiltSession> rebuild_session(S3Client& client, Retries& retries,
                                       const std::string& prefix, storage::Fs& fs,
                                       const std::string& root) {
  auto listed = list_segments(client, retries, prefix);
  if (!listed.ok()) return listed.error();
  const auto names = whole_requests(std::move(*listed), prefix);
  if (!names.ok()) return names.error();
  RebuiltSession session;
  storage::UntrustedSpace space(fs, root);
  for (const SegmentName& name : *names) {
    const std::string key = prefix + kSegmentsName + name.text();
    BoundedBytes sink;
    const auto got = retries.run([&] {
      sink.object.clear();
      return client.get(key, sink);
    });
    if (!got.ok()) return got.error();
    const auto actions = parse_segment(sink.object);
    if (!actions.ok()) return Error{actions.code(), key + ": " + actions.error().message};
    if (session.directory.empty()) {
      auto directory = directory_of(*actions, key, fs, root);
      if (!directory.ok()) return directory.error();
      session.directory = std::move(*directory);
    }
    for (const SegmentAction& action : *actions) {
      COLLECT_TRY(apply(action, fs, space, session.directory));
    }
    ++session.segments;
    session.bytes += sink.object.size();
  }
  return session;
}

}  // namespace collect::upload
