#include "daemon/upload/object_upload.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "daemon/upload/object_lists.h"
#include "formats/core/crc32.h"
#include "formats/core/text/hex.h"

namespace collect::upload {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;

std::string content_type(const CommittedFile& file) {
  if (file.is_compressed) return "application/zstd";
  return file.path.ends_with(".json") ? "application/json" : "application/octet-stream";
}

}  // namespace

// Not value-initialised: memory that no object needs is never touched.
ObjectUpload::ObjectUpload(const UploadSizes& sizes, SendingTo to)
    : sizes_(sizes), to_(std::move(to)), buffer_(new uint8_t[sizes.multipart_bytes]) {
  COLLECT_CHECK(sizes.part_bytes > 0 && sizes.part_bytes <= sizes.multipart_bytes);
}

Result<CommittedFile> ObjectUpload::upload(storage::Fs& fs, const std::string& directory,
                                           const std::string& path, const std::string& prefix,
                                           const FoundObjects& found) {
  CommittedFile file;
  file.path = path;
  const ObjectName object = object_name(path);
  file.object = object.name;
  file.is_compressed = object.is_compressed;
  const std::string key = prefix + object.name;
  const std::string type = content_type(file);
  const auto there = found.objects.find(key);
  const ObjectInfo* const present = there == found.objects.end() ? nullptr : &there->second;

  // An object of parts that is there already is known by its parts' checksums: looked for first.
  for (const bool only_measure : {true, false}) {
    if (only_measure && (present == nullptr || present->etag.find('-') == std::string::npos))
      continue;
    auto source =
        ObjectSource::open(fs, fmt::format("{}/{}", directory, path), object.is_compressed);
    if (!source.ok()) return source.error();
    const Result<size_t> filled = (*source)->read({buffer_.get(), sizes_.multipart_bytes});
    if (!filled.ok()) return filled.error();
    Result<Measured> sent = Measured{};
    if (*filled < sizes_.multipart_bytes) {
      if (only_measure) continue;
      sent = send_whole(key, {buffer_.get(), *filled}, present, type);
    } else {
      const Result<uint64_t> part_bytes = part_bytes_of(fs, fmt::format("{}/{}", directory, path));
      if (!part_bytes.ok()) return part_bytes.error();
      sent = only_measure ? send_in_parts(**source, *filled, *part_bytes,
                                          [](PartInfo&, Bytes) { return Status(); })
                          : send_multipart(**source, *filled, *part_bytes, key, type, found);
    }
    if (!sent.ok()) return sent.error();
    if (only_measure && (sent->etag != present->etag || sent->bytes != present->bytes)) continue;
    file.bytes = (*source)->file_bytes();
    file.crc32c = (*source)->file_crc32c();
    file.object_bytes = sent->bytes;
    file.object_crc32c = sent->crc32c;
    break;
  }
  return file;
}

Result<uint64_t> ObjectUpload::part_bytes_of(storage::Fs& fs, const std::string& path) const {
  const auto file = fs.open(path, storage::OpenMode::kRead);
  if (!file.ok()) return file.error();
  const Result<uint64_t> bytes = (*file)->size();
  if (!bytes.ok()) return bytes;
  const uint64_t wanted = std::max(sizes_.part_bytes, *bytes / kPlannedParts + 1);
  if (wanted <= sizes_.multipart_bytes) return wanted;
  return Error{Code::kLimit,
               fmt::format("{}: {} bytes; at most {} can be uploaded: raise multipart_bytes", path,
                           *bytes, kPlannedParts * sizes_.multipart_bytes)};
}

Result<ObjectUpload::Measured> ObjectUpload::send_whole(const std::string& key, Bytes body,
                                                        const ObjectInfo* present,
                                                        const std::string& type) {
  Measured object;
  object.bytes = body.size();
  object.crc32c = crc32c(body);
  object.etag = hex_bytes(md5(body));
  if (present != nullptr && present->bytes == object.bytes && present->etag == object.etag) {
    return object;
  }
  PutOptions options;
  options.content_type = type;
  options.crc32c = object.crc32c;
  const uint64_t began = to_.clock.monotonic_ns();
  const auto put = to_.retries.run([&] { return to_.client.put(key, body, options); });
  if (!put.ok()) return put.error();
  COLLECT_TRY(keep_pace(body.size(), began));
  return object;
}

// The first `filled` bytes are in the buffer.
Result<ObjectUpload::Measured> ObjectUpload::send_in_parts(ObjectSource& source, size_t filled,
                                                           uint64_t part_bytes,
                                                           const SendPart& send) {
  Measured object;
  size_t at = 0;
  bool ended = filled < sizes_.multipart_bytes;
  while (true) {
    if (filled - at < part_bytes && !ended) {
      std::memmove(buffer_.get(), buffer_.get() + at, filled - at);
      filled -= at;
      at = 0;
      const MutableBytes rest(buffer_.get() + filled, sizes_.multipart_bytes - filled);
      const Result<size_t> more = source.read(rest);
      if (!more.ok()) return more.error();
      ended = *more < rest.size();
      filled += *more;
    }
    const size_t bytes = std::min<size_t>(part_bytes, filled - at);
    if (bytes == 0) break;
    if (object.parts.size() == kMaxParts) {
      return Error{Code::kLimit, fmt::format("more than {} parts", kMaxParts)};
    }
    const Bytes body(buffer_.get() + at, bytes);
    const Md5 digest = md5(body);
    PartInfo part{static_cast<uint32_t>(object.parts.size() + 1), bytes, hex_bytes(digest),
                  crc32c(body)};
    object.crc32c = crc32c_combine(object.crc32c, part.crc32c, bytes);
    object.bytes += bytes;
    object.digests.insert(object.digests.end(), digest.begin(), digest.end());
    COLLECT_TRY(send(part, body));
    object.parts.push_back(std::move(part));
    at += bytes;
  }
  object.etag = fmt::format("{}-{}", hex_bytes(md5(object.digests)), object.parts.size());
  return object;
}

Result<std::map<uint32_t, PartInfo>> ObjectUpload::parts_there(const std::string& key,
                                                               const std::string& id) {
  std::map<uint32_t, PartInfo> parts;
  COLLECT_TRY(read_pages(
      to_.retries, "the list of parts of " + key, kMaxParts,
      [&](const std::string& token) { return to_.client.list_parts(key, id, token); },
      [&](PartInfo part) -> Status {
        parts[part.number] = std::move(part);
        return {};
      }));
  return parts;
}

Result<ObjectUpload::OpenParts> ObjectUpload::best_open(const std::string& key,
                                                        const FoundObjects& found) {
  OpenParts best;
  const auto open = found.uploads.find(key);
  if (open == found.uploads.end()) return best;
  for (size_t i = 0; i < std::min(open->second.size(), kMaxOpenUploads); ++i) {
    const std::string& id = open->second[i];
    auto parts = parts_there(key, id);
    if (!parts.ok() && parts.code() == Code::kNotFound) continue;  // it has just gone
    if (!parts.ok()) return parts.error();
    if (best.id.empty() || parts->size() > best.parts.size()) best = {id, std::move(*parts)};
  }
  return best;
}

Result<ObjectUpload::Measured> ObjectUpload::send_multipart(ObjectSource& source, size_t filled,
                                                            uint64_t part_bytes,
                                                            const std::string& key,
                                                            const std::string& type,
                                                            const FoundObjects& found) {
  Result<OpenParts> open = best_open(key, found);
  if (!open.ok()) return open.error();
  const std::map<uint32_t, PartInfo>& there = open->parts;
  std::string& id = open->id;
  if (id.empty()) {
    auto created = to_.retries.run([&] { return to_.client.create_upload(key, type); });
    if (!created.ok()) return created.error();
    id = std::move(*created);
  }
  const auto send = [&](PartInfo& part, Bytes body) -> Status {
    const auto same = there.find(part.number);
    if (same != there.end() && same->second.bytes == part.bytes && same->second.etag == part.etag) {
      return {};
    }
    const uint64_t began = to_.clock.monotonic_ns();
    const auto sent = to_.retries.run(
        [&] { return to_.client.upload_part(key, id, part.number, body, part.crc32c); });
    if (!sent.ok()) return sent.error();
    part.etag = sent->etag;  // not the MD5 where the server encrypts
    return keep_pace(body.size(), began);
  };
  Result<Measured> object = send_in_parts(source, filled, part_bytes, send);
  if (!object.ok()) return lost_upload(object.error());
  COLLECT_TRY(complete(key, id, *object));
  return object;
}

// A server that does not know the upload any more: the next try begins a new one.
Error ObjectUpload::lost_upload(const Error& error) {
  return {error.code == Code::kNotFound ? Code::kUnavailable : error.code, error.message};
}

Status ObjectUpload::complete(const std::string& key, const std::string& id,
                              const Measured& object) {
  const auto done = to_.retries.run(
      [&] { return to_.client.complete_upload(key, id, object.parts, object.crc32c); });
  if (done.ok()) return {};
  if (done.code() != Code::kNotFound) return done.error();
  // An earlier try was received, and its answer was lost.
  const auto there = to_.retries.run([&] { return to_.client.head(key); });
  if (there.ok() && there->bytes == object.bytes && there->etag == object.etag) return {};
  return lost_upload(there.ok() ? done.error() : there.error());
}

// libcurl bounds the rate within a request; this is for many small ones.
Status ObjectUpload::keep_pace(uint64_t bytes, uint64_t began_ns) {
  to_.sent(bytes);
  if (to_.max_bytes_per_s == 0) return {};
  const uint64_t due_ns = began_ns + bytes * kNsPerS / to_.max_bytes_per_s;
  const uint64_t now = to_.clock.monotonic_ns();
  if (now >= due_ns || to_.pauses.pause(due_ns - now)) return {};
  return Error{Code::kCancelled, "cancelled"};
}

}  // namespace collect::upload
