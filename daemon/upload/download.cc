#include "daemon/upload/download.h"

#include <algorithm>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/object_sink.h"
#include "daemon/upload/object_source.h"
#include "daemon/upload/segment_upload.h"
#include "storage/session_layout.h"

namespace collect::upload {
namespace {

constexpr char kUnnamedEnding[] = ".part";

// "v1/ab/device=D/session=S/part=P/" of a key below it; empty of another key.
std::string part_of_key(std::string_view key) {
  const size_t part = key.find("/part=");
  if (!key.starts_with(kKeyRoot) || part == std::string_view::npos) return {};
  const size_t end = key.find('/', part + 1);
  return end == std::string_view::npos ? std::string() : std::string(key.substr(0, end + 1));
}

// Whether the file at `path` is what COMMIT names; kNotFound: there is none.
Result<bool> agrees(storage::Fs& fs, const std::string& path, const CommittedFile& wanted) {
  auto source = ObjectSource::open(fs, path, false);
  if (!source.ok()) return source.error();
  std::vector<uint8_t> block(kReadBytes);
  while (true) {
    const auto got = (*source)->read(block);
    if (!got.ok()) return got.error();
    if (*got < block.size()) break;
  }
  return (*source)->file_bytes() == wanted.bytes && (*source)->file_crc32c() == wanted.crc32c;
}

// The rest of the object after a connection that broke goes on where it ended.
Status fetch(S3Client& client, Retries& retries, const std::string& key, ObjectSink& sink,
             uint64_t object_bytes) {
  const auto got = retries.run([&]() -> Result<uint64_t> {
    const uint64_t from = sink.object_bytes();
    if (from > 0 && from == object_bytes) return uint64_t{0};
    if (from == 0) return client.get(key, sink);
    return client.get(key, sink, ByteRange{from, {}});
  });
  return got.ok() ? Status() : Status(got.error());
}

Status download_file(S3Client& client, Retries& retries, const std::string& prefix, storage::Fs& fs,
                     const std::string& directory, const CommittedFile& wanted) {
  const std::string path = directory + "/" + wanted.path;
  const auto there = agrees(fs, path, wanted);
  if (there.ok() && *there) return {};
  if (there.ok()) {
    return Error{Code::kAlreadyExists, path + " is there, and differs: download elsewhere"};
  }
  if (there.code() != Code::kNotFound) return there.error();
  COLLECT_TRY(fs.make_directories(path.substr(0, path.rfind('/'))));
  const std::string unnamed = path + kUnnamedEnding;
  if (fs.exists(unnamed)) COLLECT_TRY(fs.remove_file(unnamed));  // of a download that was killed
  auto file = fs.open(unnamed, storage::OpenMode::kCreate);
  if (!file.ok()) return file.error();
  ObjectSink sink(wanted, **file);
  Status status = fetch(client, retries, prefix + wanted.object, sink, wanted.object_bytes);
  if (status.ok()) status = sink.finish();
  if (status.ok()) status = fs.rename(unnamed, path);
  if (!status.ok()) (void)fs.remove_file(unnamed);
  return status;
}

}  // namespace

Result<CommittedParts> list_committed_parts(S3Client& client, Retries& retries,
                                            const std::string& below) {
  CommittedParts parts;
  std::string current;
  std::string from;
  bool is_committed = true;
  bool has_segments = false;
  const auto end_part = [&] {
    if (is_committed) return;
    if (has_segments) {
      parts.recorded.push_back(current);
    } else {
      ++parts.unfinished;
    }
  };
  do {
    const auto page = retries.run([&] { return client.list(below, from); });
    if (!page.ok()) return page.error();
    for (const ObjectInfo& object : page->entries) {
      const std::string prefix = part_of_key(object.key);
      if (prefix.empty()) continue;
      if (prefix != current) {
        end_part();
        current = prefix;
        is_committed = false;
        has_segments = false;
      }
      has_segments |= std::string_view(object.key).substr(prefix.size()).starts_with(kSegmentsName);
      if (object.key != prefix + kCommitName) continue;
      is_committed = true;
      if (parts.prefixes.size() == kMaxListedParts) {
        return Error{Code::kLimit, "more than " + std::to_string(kMaxListedParts) +
                                       " parts: list what is below a longer prefix"};
      }
      parts.prefixes.push_back(prefix);
    }
    from = page->next;
  } while (!from.empty());
  end_part();
  return parts;
}

Result<std::string> download_part(S3Client& client, Retries& retries, const std::string& prefix,
                                  storage::Fs& fs, const std::string& root,
                                  const std::function<bool(std::string_view path)>& wanted) {
  auto commit = read_commit(client, retries, prefix);
  if (!commit.ok()) return commit.error();
  const auto session_path = storage::parse_session_path(root, commit->session);
  COLLECT_CHECK(session_path.has_value());  // commit_from_json has looked
  // Whoever finds a session without a manifest knows that it is not whole.
  std::stable_partition(commit->files.begin(), commit->files.end(), [](const CommittedFile& file) {
    return file.path != storage::kManifestFile;
  });
  for (const CommittedFile& file : commit->files) {
    if (wanted && !wanted(file.path)) continue;
    COLLECT_TRY(download_file(client, retries, prefix, fs, session_path->directory, file));
  }
  return session_path->directory;
}

}  // namespace collect::upload
