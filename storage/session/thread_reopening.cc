#include "storage/session/thread_reopening.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/container/container_pages.h"
#include "storage/model/session_layout.h"

namespace collect::storage {

Status ThreadReopening::run(std::vector<std::string>& problems) {
  std::map<uint32_t, std::vector<Gap>> gaps;
  for (const Gap& gap : manifest_.gaps) gaps[gap.thread].push_back(gap);
  for (size_t place = 0; place < manifest_.threads.size(); ++place) {
    auto opened = open_found(place, gaps[manifest_.threads[place].id]);
    if (!opened.ok()) return opened.error();
    found_.push_back(std::move(*opened));
  }
  COLLECT_TRY(restore_from_containers());
  for (FoundThread& thread : found_) COLLECT_TRY(end_reopen(thread, problems));
  return append_from_containers();
}

// kExhausted says nothing of the thread.
Result<ThreadReopening::FoundThread> ThreadReopening::open_found(size_t place,
                                                                 std::span<const Gap> gaps) {
  ManifestThread& thread = manifest_.threads[place];
  std::optional<ThreadFormat> format;
  if (!thread.unlisted) format = thread_format(manifest_.identity, thread.thread_id);
  auto writer = ThreadWriter::reopen(
      fs_, options_.durability, fmt::format("{}/{}", directory_, thread_directory_name(thread.id)),
      format, manifest_.sealing, gaps);
  if (!writer.ok() && writer.code() == Code::kExhausted) return writer.error();
  FoundThread found;
  found.place = place;
  for (const Gap& gap : gaps) {
    const uint64_t numbered = std::min(gap.lost, gap.numbered_lost);
    found.known_dropped[static_cast<size_t>(gap.lane)] += gap.lost - numbered;
  }
  if (!writer.ok()) {
    found.problem = writer.error();
    return found;
  }
  found.writer = std::move(*writer);
  thread.thread_id = found.writer->format().thread_id;
  manifest_.identity.version = found.writer->format().version;
  if (!thread.unlisted) {  // the header's, where the manifest had none
    manifest_.identity.arch = found.writer->format().arch;
    manifest_.identity.os = found.writer->format().os;
    manifest_.identity.clock = found.writer->format().clock;
  }
  if (thread.unlisted) {
    COLLECT_TRY(found.writer->read_identity());
    if (const StreamIdentity* identity = found.writer->identity()) {
      thread.stream_id = identity->stream_id;
      thread.name = identity->thread_name;
      thread.start_ns = identity->start_ns;
      thread.unlisted = false;
    }
  }
  found.writer->close_files();
  return found;
}

// By a daemon's start only where something is missing in the files: containers are as large as
// these, and an agent waits. By recover always: what a record says of functions and registers is
// compared with nothing else.
Status ThreadReopening::restore_from_containers() {
  std::map<uint32_t, FoundThread*> by_stream;
  for (FoundThread& thread : found_) {
    if (thread.writer == nullptr || manifest_.threads[thread.place].unlisted) continue;
    by_stream[manifest_.threads[thread.place].stream_id] = &thread;
  }
  // A seal drops records of lost events.
  const bool is_short = std::ranges::any_of(by_stream, [&](const auto& one) {
    const ManifestThread& known = manifest_.threads[one.second->place];
    const ThreadWriter& writer = *one.second->writer;
    return writer.is_damaged() || (!manifest_.sealing && writer.is_shorter_than(known));
  });
  const bool is_compared = !may_come_again_ && !manifest_.sealing;
  if (!is_short && !is_compared) return {};
  COLLECT_TRY(read_container_pages(fs_, directory_, [&](const Page& page) -> Status {
    const auto stream = by_stream.find(page.stream_id);
    if (stream == by_stream.end()) return {};
    FoundThread& thread = *stream->second;
    if (thread.restore == nullptr) thread.restore = thread.writer->restore_pages();
    return thread.restore->put(page);
  }));
  for (const auto& [stream, thread] : by_stream) {
    if (thread->restore == nullptr) continue;
    COLLECT_TRY(thread->writer->end_restore(*thread->restore));
    thread->writer->close_files();
    if (thread->restore->restored() == 0) continue;
    restored_records_ += thread->restore->restored();
    notes_.push_back(fmt::format("{}: {} damaged records were restored from the containers",
                                 thread_directory_name(manifest_.threads[thread->place].id),
                                 thread->restore->restored()));
  }
  return {};
}

// A thread that cannot be read is left out alone; the others continue. kNoSpace: it could be, with
// more space.
Status ThreadReopening::end_reopen(FoundThread& found, std::vector<std::string>& problems) {
  ManifestThread& thread = manifest_.threads[found.place];
  const std::string where = thread_directory_name(thread.id);
  const uint64_t next[] = {thread.index_next, thread.detail_next};
  if (found.problem.ok()) {
    found.problem = may_come_again_ ? found.writer->end_reopen(thread.events, thread.detail_records)
                                    : found.writer->end_reopen(UINT64_MAX, UINT64_MAX);
  }
  if (!found.problem.ok()) {
    if (found.problem.code() == Code::kExhausted || found.problem.code() == Code::kNoSpace) {
      return found.problem;
    }
    problems.push_back(fmt::format("{}: {}", where, to_string(found.problem.error())));
    found.restore.reset();
    const uint32_t slot = threads_.add(nullptr, next[0], next[1]);
    if (!thread.unlisted) threads_.set_stream(slot, thread.stream_id);
    return {};
  }
  ThreadWriter& writer = *found.writer;
  if (writer.cut_bytes() != 0) {
    problems.push_back(fmt::format("{}: {} bytes behind the last whole record were cut off", where,
                                   writer.cut_bytes()));
  }
  if (writer.damaged_records() != 0) {
    problems.push_back(fmt::format("{}: {} damaged records were left out, and are counted as lost",
                                   where, writer.damaged_records()));
  }
  if (writer.had_damaged_journal()) {
    problems.push_back(where +
                       ": the journal is damaged; what was lost since the last "
                       "manifest is not known");
  }
  symbols_.add_stored(writer);
  writer.close_files();
  const uint32_t slot = threads_.add(std::move(found.writer), next[0], next[1]);
  threads_.set_known_dropped(slot, found.known_dropped[0], found.known_dropped[1]);
  if (!thread.unlisted) threads_.set_stream(slot, thread.stream_id);
  return {};
}

// What only the containers have, behind the end of the files. A page that does not fit is none of
// theirs.
Status ThreadReopening::append_from_containers() {
  if (manifest_.sealing) return {};
  const bool is_wanted = std::ranges::any_of(found_, [](const FoundThread& thread) {
    return thread.restore != nullptr && thread.restore->has_more();
  });
  if (!is_wanted) return {};
  return read_container_pages(fs_, directory_, [&](const Page& page) -> Status {
    const auto slot = threads_.slot_of(page.stream_id);
    ThreadWriter* const writer = slot ? threads_.writer(*slot) : nullptr;
    if (writer == nullptr || writer->sealed()) return {};
    const Status stored =
        threads_.with_descriptors(writer, [&] { return writer->append({&page, 1}); });
    threads_.written(*slot);
    if (stored.ok() && page.lane == Lane::kIndex) symbols_.add({&page, 1});
    if (stored.ok()) return {};
    return stored.code() == Code::kDamaged || stored.code() == Code::kLimit ? Status() : stored;
  });
}

}  // namespace collect::storage
