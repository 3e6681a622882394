#include "daemon/upload/segment_upload.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "daemon/upload/object_lists.h"
#include "daemon/upload/part_keys.h"
#include "formats/core/crc32.h"
#include "storage/manifest.h"

namespace collect::upload {
namespace {

constexpr std::string_view kEnd = ".end";
constexpr size_t kCopyDigits = 6;
constexpr size_t kNumberDigits = 8;

template <class Number>
bool read_digits(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number != 0;
}

}  // namespace

std::string SegmentName::text() const {
  char words[48];
  std::snprintf(words, sizeof words, "%06u/%08llu%s", copy, static_cast<unsigned long long>(number),
                is_end ? kEnd.data() : "");
  return words;
}

std::optional<SegmentName> SegmentName::parse(std::string_view text) {
  SegmentName name;
  name.is_end = text.ends_with(kEnd);
  if (name.is_end) text.remove_suffix(kEnd.size());
  if (text.size() != kCopyDigits + 1 + kNumberDigits || text[kCopyDigits] != '/' ||
      !read_digits(text.substr(0, kCopyDigits), name.copy) ||
      !read_digits(text.substr(kCopyDigits + 1), name.number)) {
    return std::nullopt;
  }
  return name;
}

Result<std::vector<SegmentName>> list_segments(S3Client& client, Retries& retries,
                                               const std::string& prefix) {
  std::vector<SegmentName> names;
  const std::string below = prefix + kSegmentsName;
  COLLECT_TRY(
      read_objects(client, retries, below, kMaxSegments, [&](const ObjectInfo& object) -> Status {
        const auto name = SegmentName::parse(std::string_view(object.key).substr(below.size()));
        if (name) names.push_back(*name);
        return {};
      }));
  return names;
}

Status remove_segments(S3Client& client, Retries& retries, const std::string& prefix) {
  const auto names = list_segments(client, retries, prefix);
  if (!names.ok()) return names.error();
  for (const SegmentName& name : *names) {
    const std::string key = prefix + kSegmentsName + name.text();
    COLLECT_TRY(retries.run([&] { return client.remove(key); }));
  }
  return {};
}

std::optional<SegmentPositions::Position> SegmentPositions::find(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  const auto found = positions_.find(session);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

void SegmentPositions::put(const std::string& session, Position position) {
  const std::lock_guard lock(mutex_);
  positions_[session] = std::move(position);
}

void SegmentPositions::remove(const std::string& session) {
  const std::lock_guard lock(mutex_);
  positions_.erase(session);
}

// A run of this program that ended knows no place: what it brought is listed. A new copy is begun
// where there is none to go on from.
Result<SegmentPositions::Position> SegmentUpload::position_of(const SegmentRequest& request,
                                                              const storage::SessionPath& session) {
  const auto known = positions_.find(request.session);
  if (known && !request.is_first) return *known;
  const auto manifest = storage::read_manifest(fs_, session.directory);
  if (!manifest.ok()) return manifest.error();
  const auto prefix = part_prefix(manifest->identity, part_name_of(manifest->identity.collector));
  if (!prefix.ok()) return prefix.error();
  const auto there = list_segments(client_, retries_, *prefix);
  if (!there.ok()) return there.error();
  SegmentPositions::Position position{*prefix};
  if (!there->empty()) {
    position.copy = there->back().copy;
    position.next = there->back().number + 1;
  }
  const bool goes_on = std::ranges::any_of(
      *there, [&](const SegmentName& name) { return name.copy == position.copy && name.is_end; });
  if (request.is_first || !goes_on) {
    ++position.copy;
    position.next = 1;
  }
  return position;
}

Result<bool> SegmentUpload::is_committed(const std::string& prefix) {
  const auto there = retries_.run([&] { return client_.head(prefix + kCommitName); });
  if (there.ok()) return true;
  if (there.code() == Code::kNotFound) return false;
  return there.error();
}

Status SegmentUpload::send(const SegmentRequest& request) {
  const auto session = storage::parse_session_path(root_, request.session);
  if (!session) {
    return Error{Code::kInvalidArgument, request.session + " is no session's name"};
  }
  if (request.is_last && !fs_.exists(session->directory)) {
    positions_.remove(request.session);
    return {};  // nothing was recorded, and it was removed
  }
  auto position = position_of(request, *session);
  if (!position.ok()) return position.error();
  if (request.is_last) {
    const auto committed = is_committed(position->prefix);
    if (!committed.ok()) return committed.error();
    if (*committed) {
      positions_.remove(request.session);
      return {};
    }
  }
  const bool is_new = position->next == 1;
  const Status sent = send_to(*position, *session, request);
  if (request.is_last && sent.ok()) {
    positions_.remove(request.session);
  } else if (sent.ok() || !is_new) {
    positions_.put(request.session, *position);  // what came to the store keeps its number
  }
  COLLECT_TRY(sent);
  if (!request.is_last) return {};
  // Its upload may have ended meanwhile, and found no segments, or not all of them.
  const auto committed = is_committed(position->prefix);
  if (!committed.ok()) return committed.error();
  return *committed ? remove_segments(client_, retries_, position->prefix) : Status();
}

Status SegmentUpload::send_to(SegmentPositions::Position& position,
                              const storage::SessionPath& session, const SegmentRequest& request) {
  builder_.begin();
  const bool is_new = position.next == 1;
  Result<storage::ChangedFiles> all = storage::ChangedFiles();
  if (is_new) {
    builder_.add({SegmentKind::kName, session.name});
    all = storage::all_files(fs_, session);
    if (!all.ok()) return all.error();
  }
  for (const auto& [path, file] : is_new ? *all : request.files) {
    COLLECT_TRY(add_file(session.directory, path, file, position));
  }
  return put(position, true);
}

Status SegmentUpload::add_file(const std::string& directory, const std::string& path,
                               const storage::ChangedFile& file,
                               SegmentPositions::Position& position) {
  if (file.is_removed) {
    COLLECT_TRY(make_room(position));
    builder_.add({SegmentKind::kRemove, path});
    return {};
  }
  auto opened = fs_.open(directory + "/" + path, storage::OpenMode::kRead);
  if (!opened.ok() && opened.code() == Code::kNotFound) return {};  // a later request says so
  if (!opened.ok()) return opened.error();
  if (file.is_whole || file.cut_to) {
    COLLECT_TRY(make_room(position));
    builder_.add({SegmentKind::kCut, path, file.is_whole ? 0 : *file.cut_to});
  }
  if (file.is_whole) {
    const auto size = (*opened)->size();
    return size.ok() ? add_bytes(**opened, path, 0, *size, position) : size.error();
  }
  for (const auto& [from, to] : file.ranges) {
    COLLECT_TRY(add_bytes(**opened, path, from, to, position));
  }
  return {};
}

Status SegmentUpload::add_bytes(storage::File& file, const std::string& path, uint64_t from,
                                uint64_t to, SegmentPositions::Position& position) {
  while (from < to) {
    COLLECT_TRY(make_room(position));
    const size_t wanted = std::min<uint64_t>(to - from, builder_.room());
    const auto got = file.read_at(from, builder_.add_write(path, from, wanted));
    if (!got.ok()) return got.error();
    builder_.take_back(wanted - *got);
    if (*got < wanted) return {};  // it was cut meanwhile; a later request says so
    from += wanted;
  }
  return {};
}

Status SegmentUpload::make_room(SegmentPositions::Position& position) {
  return builder_.room() == 0 ? put(position, false) : Status();
}

Status SegmentUpload::put(SegmentPositions::Position& position, bool is_end) {
  const Bytes body = builder_.finish();
  PutOptions options;
  options.crc32c = crc32c(body);
  const std::string key =
      position.prefix + kSegmentsName + SegmentName{position.copy, position.next, is_end}.text();
  const auto sent = retries_.run([&] { return client_.put(key, body, options); });
  if (!sent.ok()) return sent.error();
  ++position.next;
  builder_.begin();
  return {};
}

}  // namespace collect::upload
