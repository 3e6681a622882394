#include "daemon/upload/part_upload.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/object_lists.h"
#include "daemon/upload/s3/digests.h"
#include "formats/core/crc32.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_files.h"

namespace collect::upload {
namespace {

constexpr size_t kMaxPartObjects = kMaxCommitFiles + 32;  // COMMIT, and tables

Status check_sealed(const storage::Manifest& manifest, const storage::SessionPath& session_path) {
  if (manifest.state == storage::SessionState::kRecording || manifest.sealing) {
    return Error{Code::kInvalidArgument, session_path.name + " is not sealed"};
  }
  return {};
}

bool is_same_list(const std::vector<storage::SessionFileInfo>& a,
                  const std::vector<storage::SessionFileInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.path == other.path && one.bytes == other.bytes;
  });
}

}  // namespace

Result<FoundObjects> PartUpload::look(const std::string& prefix) {
  FoundObjects found;
  COLLECT_TRY(read_objects(to_.client, to_.retries, prefix, kMaxPartObjects,
                           [&](ObjectInfo object) -> Status {
                             std::string key = object.key;
                             found.objects[std::move(key)] = std::move(object);
                             return {};
                           }));
  return found;
}

Result<std::vector<OpenUpload>> PartUpload::open_uploads(const std::string& prefix) {
  std::vector<OpenUpload> open;
  COLLECT_TRY(read_pages(
      to_.retries, "the list of uploads below " + prefix, kMaxPartObjects,
      [&](const std::string& token) { return to_.client.list_uploads(prefix, token); },
      [&](OpenUpload upload) -> Status {
        open.push_back(std::move(upload));
        return {};
      }));
  return open;
}

// What is still open belongs to no one, and is paid for.
Status PartUpload::abort_open(const std::string& prefix) {
  const auto open = open_uploads(prefix);
  if (!open.ok()) return open.error();
  for (const OpenUpload& upload : *open) {
    COLLECT_TRY(to_.retries.run([&] { return to_.client.abort_upload(upload.key, upload.id); }));
  }
  return {};
}

Result<UploadedPart> PartUpload::compare(const storage::SessionPath& session_path,
                                         const std::string& prefix) {
  const auto text = read_commit_text(to_.client, to_.retries, prefix);
  if (!text.ok()) return text.error();
  auto there = commit_from_json(*text);
  if (!there.ok()) {
    // What is no COMMIT at all may be an answer of something on the way there.
    const bool is_other = there.code() == Code::kUnsupported;
    return Error{is_other ? Code::kAlreadyExists : Code::kDamaged,
                 fmt::format("{}: {}", prefix, there.error().message)};
  }
  if (there->session != session_path.name) {
    return Error{Code::kAlreadyExists,
                 fmt::format("{} holds {} and not {}: give each its own epoch", prefix,
                             there->session, session_path.name)};
  }
  if (const Status same = covers(*there, fs_, session_path); !same.ok()) {
    return Error{Code::kAlreadyExists,
                 fmt::format("{} was committed, and differs from this disk: {}", prefix,
                             same.error().message)};
  }
  UploadedPart part{PartOutcome::kPresent, prefix, std::move(*there)};
  for (const CommittedFile& file : part.commit.files) part.file_bytes += file.bytes;
  return part;
}

Status PartUpload::commit(const std::string& prefix, const std::string& json) {
  PutOptions options;
  options.only_new = true;
  options.content_type = "application/json";
  options.crc32c = crc32c(bytes_of(json));
  const auto put = to_.retries.run(
      [&] { return to_.client.put(prefix + kCommitName, bytes_of(json), options); });
  if (put.ok() || put.code() != Code::kAlreadyExists) return put.ok() ? Status() : put.error();
  // It is from an earlier try whose answer was lost, or from another writer.
  const auto there = read_commit_text(to_.client, to_.retries, prefix);
  if (!there.ok()) return there.error();
  if (*there == json) return {};
  const auto other = commit_from_json(*there);
  if (!other.ok() && other.code() == Code::kDamaged) return other.error();
  return Error{Code::kAlreadyExists,
               fmt::format("{}{} was written by someone else", prefix, kCommitName)};
}

bool PartUpload::has_tables(const std::string& prefix, const FoundObjects& found) const {
  return std::ranges::all_of(tables_.names, [&](const std::string& name) {
    return found.objects.contains(prefix + kTablesBelow + name);
  });
}

Result<UploadedPart> PartUpload::run(const storage::SessionPath& session_path,
                                     const PartName& part) {
  to_.retries.forget_failure();
  const auto manifest = storage::read_manifest(fs_, session_path.directory);
  if (!manifest.ok()) return manifest.error();
  COLLECT_TRY(check_sealed(*manifest, session_path));
  const Result<std::string> prefix = part_prefix(manifest->identity, part);
  if (!prefix.ok()) return prefix.error();

  auto found = look(*prefix);
  if (!found.ok()) return found.error();
  const bool is_committed = found->objects.contains(*prefix + kCommitName);
  const bool is_complete = is_committed && has_tables(*prefix, *found);
  if (!is_complete) {
    const auto open = open_uploads(*prefix);
    if (!open.ok()) return open.error();
    for (const OpenUpload& upload : *open) found->uploads[upload.key].push_back(upload.id);
  }
  auto uploaded = is_committed ? compare(session_path, *prefix)
                               : send(session_path, part, *manifest, *prefix, *found);
  if (!uploaded.ok()) return uploaded.error();
  if (!is_complete) COLLECT_TRY(send_tables(session_path, *prefix, *found));
  uploaded->ended_unix_ns = manifest->finished_unix_ns;
  return uploaded;
}

Result<UploadedPart> PartUpload::send(const storage::SessionPath& session_path,
                                      const PartName& part, const storage::Manifest& manifest,
                                      const std::string& prefix, const FoundObjects& found) {
  const auto files = storage::list_session_files(fs_, session_path);
  if (!files.ok()) return files.error();
  bool had_parts = !found.uploads.empty();
  UploadedPart uploaded{PartOutcome::kCommitted, prefix,
                        commit_of(manifest, session_path.name, part)};
  for (const storage::SessionFileInfo& file : *files) {
    auto sent = objects_.upload(fs_, session_path.directory, file.path, prefix, found);
    if (!sent.ok()) return sent.error();
    had_parts |= objects_.goes_in_parts(sent->object_bytes);
    uploaded.file_bytes += sent->bytes;
    uploaded.commit.files.push_back(std::move(*sent));
  }
  // What changed meanwhile, as a manifest does that gets names, is committed by a later run.
  const auto after = storage::list_session_files(fs_, session_path);
  if (!after.ok()) return after.error();
  bool is_same = is_same_list(*files, *after);
  for (size_t i = 0; is_same && i < files->size(); ++i) {
    is_same = uploaded.commit.files[i].bytes == (*files)[i].bytes;
  }
  if (!is_same) {
    return Error{Code::kUnavailable, session_path.name + " changed while it was uploaded"};
  }
  if (had_parts) COLLECT_TRY(abort_open(prefix));
  COLLECT_TRY(commit(prefix, commit_to_json(uploaded.commit)));
  return uploaded;
}

Status PartUpload::send_tables(const storage::SessionPath& session_path, const std::string& prefix,
                               const FoundObjects& found) {
  if (tables_.names.empty()) return {};
  const auto tables = tables_.make(session_path);
  if (!tables.ok()) return tables.error();
  storage::PosixFs fs(tables->directory);
  const std::string below = prefix + kTablesBelow;
  bool had_parts = !found.uploads.empty();
  for (const std::string& name : tables_.names) {
    const auto sent = objects_.upload(fs, tables->directory, name, below, found);
    if (!sent.ok()) return sent.error();
    had_parts |= objects_.goes_in_parts(sent->object_bytes);
  }
  return had_parts ? abort_open(prefix) : Status();
}

Status covers(const Commit& commit, storage::Fs& fs, const storage::SessionPath& session_path) {
  const auto files = storage::list_session_files(fs, session_path);
  if (!files.ok()) return files.error();
  for (const storage::SessionFileInfo& file : *files) {
    const auto named =
        std::find_if(commit.files.begin(), commit.files.end(),
                     [&](const CommittedFile& one) { return one.path == file.path; });
    if (named == commit.files.end()) {
      if (file.path.ends_with(std::string("/") + storage::kLodFile))
        continue;  // made of the others
      return Error{Code::kUnavailable, file.path + " is not in COMMIT"};
    }
    auto source =
        ObjectSource::open(fs, fmt::format("{}/{}", session_path.directory, file.path), false);
    if (!source.ok()) return source.error();
    std::vector<uint8_t> block(kReadBytes);
    while (true) {
      const auto got = (*source)->read(block);
      if (!got.ok()) return got.error();
      if (*got < block.size()) break;
    }
    if ((*source)->file_bytes() != named->bytes || (*source)->file_crc32c() != named->crc32c) {
      return Error{Code::kUnavailable, file.path + " differs from what COMMIT names"};
    }
  }
  return {};
}

}  // namespace collect::upload
