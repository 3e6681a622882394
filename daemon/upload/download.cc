#include "daemon/upload/download.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/object_lists.h"
#include "daemon/upload/object_sink.h"
#include "daemon/upload/object_source.h"
#include "storage/model/session_layout.h"
#include "storage/model/untrusted_file.h"

namespace collect::upload {
namespace {

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

// The rest of the object after a connection that broke continues where it ended.
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
                     storage::UntrustedSpace& space, const std::string& directory,
                     const CommittedFile& wanted) {
  const std::string path = fmt::format("{}/{}", directory, wanted.path);
  const auto there = agrees(fs, path, wanted);
  if (there.ok() && *there) return {};
  if (there.ok()) {
    return Error{Code::kAlreadyExists, path + " is there, and differs: download elsewhere"};
  }
  if (there.code() != Code::kNotFound) return there.error();
  COLLECT_TRY(fs.make_directories(path.substr(0, path.rfind('/'))));
  auto file = storage::UntrustedFile::open(fs, path, wanted.bytes, space, false);
  if (!file.ok()) return file.error();
  ObjectSink sink(wanted, *file);
  Status status = fetch(client, retries, prefix + wanted.object, sink, wanted.object_bytes);
  if (status.ok()) status = sink.finish();
  if (status.ok()) status = file->finish(false);
  if (!status.ok()) file->discard();
  return status;
}

// What is still to come: numbers of a COMMIT, of which each may be up to 2^64.
uint64_t missing_bytes(storage::Fs& fs, const std::string& directory, const Commit& commit,
                       const std::function<bool(std::string_view path)>& wanted) {
  uint64_t bytes = 0;
  for (const CommittedFile& file : commit.files) {
    if (wanted && !wanted(file.path)) continue;
    if (fs.exists(fmt::format("{}/{}", directory, file.path))) continue;
    if (__builtin_add_overflow(bytes, file.bytes, &bytes)) return UINT64_MAX;
  }
  return bytes;
}

}  // namespace

Result<CommittedParts> list_committed_parts(S3Client& client, Retries& retries,
                                            const std::string& below) {
  CommittedParts parts;
  std::string current;
  bool is_committed = true;
  uint64_t count = 0;
  const auto end_part = [&] {
    if (!is_committed) ++parts.unfinished;
  };
  const auto take = [&](const ObjectInfo& object) -> Status {
    const std::string prefix = part_of_key(object.key);
    if (prefix.empty()) return {};
    if (prefix != current) {
      end_part();
      if (++count > kMaxListedParts) {
        return Error{
            Code::kLimit,
            fmt::format("more than {} parts: list what is below a longer prefix", kMaxListedParts)};
      }
      current = prefix;
      is_committed = false;
    }
    if (object.key != prefix + kCommitName) return {};
    is_committed = true;
    parts.prefixes.push_back(prefix);
    return {};
  };
  COLLECT_TRY(read_objects(client, retries, below, kMaxListedObjects, take));
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
  // A session without a manifest is known to be incomplete.
  std::stable_partition(commit->files.begin(), commit->files.end(), [](const CommittedFile& file) {
    return file.path != storage::kManifestFile;
  });
  storage::UntrustedSpace space(fs, root);
  COLLECT_TRY(space.expect(missing_bytes(fs, session_path->directory, *commit, wanted)));
  for (const CommittedFile& file : commit->files) {
    if (wanted && !wanted(file.path)) continue;
    COLLECT_TRY(download_file(client, retries, prefix, fs, space, session_path->directory, file));
  }
  return session_path->directory;
}

}  // namespace collect::upload
