#include "storage/container/passthrough_streams.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace collect::storage {

Result<PassthroughFile*> PassthroughStreams::find(PassthroughKind kind) const {
  for (const Stream& known : streams_) {
    if (known.kind != kind) continue;
    if (known.file) return known.file.get();
    return Error{Code::kIo, path_of(kind) + " cannot be read"};
  }
  return static_cast<PassthroughFile*>(nullptr);
}

Result<PassthroughFile*> PassthroughStreams::create(PassthroughKind kind, Manifest& manifest) {
  auto file = std::make_unique<PassthroughFile>(fs_, kind, path_of(kind));
  const Status created = file->create();
  if (!created.ok()) return created.error();
  streams_.push_back({kind, std::move(file)});
  manifest.passthrough_streams.push_back({.kind = kind});
  return streams_.back().file.get();
}

void PassthroughStreams::end(PassthroughKind kind, uint64_t refused_bytes,
                             const std::string& problem, Manifest& manifest) {
  for (PassthroughStream& stream : manifest.passthrough_streams) {
    if (stream.kind != kind) continue;
    stream.refused_bytes = refused_bytes;
    stream.problem = problem;
    bound_text(stream.problem);
  }
}

// A file that no manifest names yet is taken up as well; one that is named may be gone.
Status PassthroughStreams::reopen(Manifest& manifest, std::vector<std::string>* problems) {
  for (const PassthroughKind kind : kPassthroughKinds) {
    auto& streams = manifest.passthrough_streams;
    auto stream = std::find_if(streams.begin(), streams.end(),
                               [kind](const PassthroughStream& one) { return one.kind == kind; });
    const bool is_there = fs_.exists(path_of(kind));
    if (stream == streams.end() && !is_there) continue;
    if (stream == streams.end()) stream = streams.insert(streams.end(), {.kind = kind});
    streams_.push_back({kind, nullptr});
    std::vector<std::string> found;
    COLLECT_TRY(reopen_file(streams_.back(), *stream, &found));
    for (const std::string& problem : found) {
      stream->problem += (stream->problem.empty() ? "" : "; ") + problem;
      problems->push_back(fmt::format("{}: {}", passthrough_file_name(kind), problem));
    }
    bound_text(stream->problem);
  }
  return {};
}

Status PassthroughStreams::reopen_file(Stream& stream, PassthroughStream& entry,
                                       std::vector<std::string>* problems) {
  auto file = std::make_unique<PassthroughFile>(fs_, stream.kind, path_of(stream.kind));
  Status opened = file->reopen();
  // Nothing of the threads hangs on it: what was in it is missing, and more can come.
  const bool is_gone = !opened.ok() && opened.code() == Code::kNotFound;
  if (is_gone && stream.kind == PassthroughKind::kSwitches) opened = file->create();
  if (!opened.ok() && opened.code() == Code::kExhausted) return opened;
  if (!opened.ok()) {
    entry.bytes = 0;
    problems->push_back(to_string(opened.error()));
    return {};
  }
  if (file->cut_bytes() != 0) {
    entry.refused_bytes += file->cut_bytes();
    problems->push_back(fmt::format("{} bytes behind the last whole frame were cut off: {}",
                                    file->cut_bytes(), file->cut_reason()));
  }
  if (file->bytes() + file->cut_bytes() < entry.bytes) {
    problems->push_back(fmt::format("{} bytes that were stored are not there any more",
                                    entry.bytes - file->bytes() - file->cut_bytes()));
  }
  stream.file = std::move(file);
  return {};
}

Status PassthroughStreams::sync() {
  for (const Stream& stream : streams_) {
    if (stream.file) COLLECT_TRY(stream.file->sync());
  }
  return {};
}

Status PassthroughStreams::seal(bool durable) {
  Status first_error;
  for (const Stream& stream : streams_) {
    if (!stream.file) continue;
    const Status sealed = stream.file->seal(durable);
    if (first_error.ok()) first_error = sealed;
  }
  return first_error;
}

uint64_t PassthroughStreams::bytes() const {
  uint64_t bytes = 0;
  for (const Stream& stream : streams_) bytes += stream.file ? stream.file->bytes() : 0;
  return bytes;
}

void PassthroughStreams::refresh(Manifest& manifest) const {
  for (size_t at = 0; at < streams_.size(); ++at) {
    if (streams_[at].file) manifest.passthrough_streams[at].bytes = streams_[at].file->bytes();
  }
}

}  // namespace collect::storage
