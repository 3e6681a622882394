// Streams of other formats in a session: one file each, and one stream each of the container.
#include <algorithm>

#include "storage/session.h"
#include "storage/session_budget.h"

namespace collect::storage {

// The file is made at the first bytes, and the manifest that names it is written before them.
Result<ForeignFile*> Session::foreign_file(ForeignKind kind) {
  for (const Foreign& known : foreign_) {
    if (known.kind != kind) continue;
    if (known.file) return known.file.get();
    return Error{Code::kIo, name() + ": " + foreign_file_name(kind) + " cannot be read"};
  }
  auto file = std::make_unique<ForeignFile>(fs_, kind, directory() + "/" + foreign_file_name(kind));
  const Status created = file->create();
  if (!created.ok()) return created.error();
  foreign_.push_back({kind, std::move(file)});
  manifest_.foreign_streams.push_back({.kind = kind});
  manifest_needed_ = true;
  directory_unsynced_ = true;
  return foreign_.back().file.get();
}

Status Session::append_foreign(ForeignKind kind, std::span<const Bytes> parts) {
  if (!failure_.ok()) return failure_;
  uint64_t bytes = 0;
  for (const Bytes part : parts) bytes += part.size();
  COLLECT_TRY(fail(admit(bytes)));
  auto file = foreign_file(kind);
  if (!file.ok()) return fail(file.error());
  if (manifest_needed_) COLLECT_TRY(fail(write_manifest_now(durable())));
  // Before the bytes are counted: a container's first manifest says where its part begins.
  COLLECT_TRY(make_capture_room());
  const Status appended = (*file)->append(parts);
  manifest_dirty_ = true;
  if (!appended.ok()) return fail(appended);
  stored_bytes_ += bytes;
  manifest_pace_.data(bytes);
  if (options_.budget != nullptr) options_.budget->data_written(bytes);
  roller_.foreign(kind, parts);
  note_capture_problem();
  return {};
}

Status Session::end_foreign(ForeignKind kind, uint64_t refused_bytes, const std::string& problem) {
  if (!failure_.ok()) return failure_;
  auto file = foreign_file(kind);
  if (!file.ok()) return fail(file.error());
  for (ForeignStream& stream : manifest_.foreign_streams) {
    if (stream.kind != kind) continue;
    stream.refused_bytes = refused_bytes;
    stream.problem = problem;
    bound_text(stream.problem);
  }
  manifest_dirty_ = manifest_urgent_ = true;
  return {};
}

// A file that no manifest names yet is taken up as well; one that is named may be gone.
Status Session::reopen_foreign(std::vector<std::string>* problems) {
  for (const ForeignKind kind : kForeignKinds) {
    auto& streams = manifest_.foreign_streams;
    auto stream = std::find_if(streams.begin(), streams.end(),
                               [kind](const ForeignStream& one) { return one.kind == kind; });
    const bool is_there = fs_.exists(directory() + "/" + foreign_file_name(kind));
    if (stream == streams.end() && !is_there) continue;
    if (stream == streams.end()) stream = streams.insert(streams.end(), {.kind = kind});
    foreign_.push_back({kind, nullptr});
    std::vector<std::string> found;
    COLLECT_TRY(reopen_foreign_file(foreign_.back(), *stream, &found));
    for (const std::string& problem : found) {
      stream->problem += (stream->problem.empty() ? "" : "; ") + problem;
      problems->push_back(std::string(foreign_file_name(kind)) + ": " + problem);
    }
    bound_text(stream->problem);
  }
  return {};
}

// kExhausted alone is an error: it says nothing of the file.
Status Session::reopen_foreign_file(Foreign& foreign, ForeignStream& stream,
                                    std::vector<std::string>* problems) {
  auto file = std::make_unique<ForeignFile>(fs_, foreign.kind,
                                            directory() + "/" + foreign_file_name(foreign.kind));
  const Status opened = file->reopen();
  if (!opened.ok() && opened.code() == Code::kExhausted) return opened;
  if (!opened.ok()) {
    stream.bytes = 0;
    problems->push_back(to_string(opened.error()));
    return {};
  }
  if (file->cut_bytes() != 0) {
    stream.refused_bytes += file->cut_bytes();
    problems->push_back(std::to_string(file->cut_bytes()) +
                        " bytes behind the last whole frame were cut off: " + file->cut_reason());
  }
  if (file->bytes() + file->cut_bytes() < stream.bytes) {
    problems->push_back(std::to_string(stream.bytes - file->bytes() - file->cut_bytes()) +
                        " bytes that were stored are not there any more");
  }
  foreign.file = std::move(file);
  return {};
}

Status Session::commit_foreign() {
  for (const Foreign& foreign : foreign_) {
    if (foreign.file) COLLECT_TRY(foreign.file->sync());
  }
  return {};
}

Status Session::seal_foreign() {
  Status first_error;
  for (const Foreign& foreign : foreign_) {
    if (!foreign.file) continue;
    const Status sealed = foreign.file->seal(durable());
    if (first_error.ok()) first_error = sealed;
  }
  return first_error;
}

uint64_t Session::foreign_bytes() const {
  uint64_t bytes = 0;
  for (const Foreign& foreign : foreign_) bytes += foreign.file ? foreign.file->bytes() : 0;
  return bytes;
}

void Session::refresh_foreign() {
  for (size_t at = 0; at < foreign_.size(); ++at) {
    if (foreign_[at].file) manifest_.foreign_streams[at].bytes = foreign_[at].file->bytes();
  }
}

}  // namespace collect::storage
