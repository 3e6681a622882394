#include "storage/session/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "storage/manifest/manifest_file.h"
#include "storage/session/session_budget.h"

namespace collect::storage {
namespace {

ManifestThread new_thread(uint32_t id, const StreamInfo& stream, const std::string& name) {
  ManifestThread thread;
  thread.id = id;
  thread.stream_id = stream.stream_id;
  thread.thread_id = stream.thread_id;
  thread.name = name;
  if (stream.named_ns != 0) thread.names = {{stream.named_ns, name}};
  thread.start_ns = stream.start_ns;
  return thread;
}

bool is_disk_error(Code code) {
  return code != Code::kDamaged && code != Code::kLimit && code != Code::kInvalidArgument;
}

}  // namespace

Session::Session(Fs& fs, const SessionOptions& options, SessionPath session_path)
    : fs_(fs),
      options_(options),
      session_path_(std::move(session_path)),
      reserve_(fs, session_path_.directory),
      space_(fs, session_path_.directory,
             {options.max_session_bytes, options.keep_free_bytes, options.keep_free_files}),
      roller_(fs, session_path_.directory, options.capture, options.durability, clock()),
      live_(roller_, clock()),
      threads_(options.budget, durable()),
      stalls_(live_, threads_, roller_),
      symbols_(live_, options.symbolize),
      passthrough_(fs, session_path_.directory) {}

Status Session::fail(Status status) {
  // Our own machine's: nothing is broken, and the caller comes again.
  if (!status.ok() && status.code() == Code::kExhausted) return status;
  if (failure_.ok()) failure_ = status;
  // What is left of a full disk is for footers and the manifest.
  if (!status.ok()) roller_.abandon();
  return status;
}

Status Session::open_stream(const StreamInfo& stream) {
  std::string thread_name = stream.thread_name;
  bound_text(thread_name);
  if (const auto known = threads_.slot_of(stream.stream_id)) {
    ManifestThread& ours = manifest_.threads[*known];
    if (ours.thread_id != stream.thread_id) {
      return Error{Code::kDamaged, fmt::format("{}: stream {} was opened for another thread",
                                               name(), stream.stream_id)};
    }
    if (!thread_name.empty() && ours.name != thread_name) {
      rename_thread(ours, thread_name, stream.named_ns);
      live_.change();
      roller_.change({.threads = {ours}});
    }
    return {};
  }
  if (!failure_.ok()) return failure_;
  if (threads_.size() == kMaxThreads) {
    return Error{Code::kLimit, fmt::format("{}: more than {} threads", name(), kMaxThreads)};
  }
  COLLECT_TRY(fail(space_.admit_files(kFilesPerThread)));
  const uint32_t id = manifest_.threads.empty() ? 0 : manifest_.threads.back().id + 1;
  COLLECT_TRY(
      fail(reserve_.grow_to(kReserveBytes + (threads_.size() + 1) * kReserveBytesPerThread)));
  const StreamIdentity identity{stream.stream_id, stream.start_ns, thread_name};
  auto writer = threads_.with_descriptors(nullptr, [&] {
    return ThreadWriter::create(fs_, options_.durability,
                                fmt::format("{}/{}", directory(), thread_directory_name(id)),
                                thread_format(manifest_.identity, stream.thread_id), identity);
  });
  if (!writer.ok()) return fail(writer.error());
  ManifestThread thread = new_thread(id, stream, thread_name);
  roller_.change({.threads = {thread}});
  manifest_.threads.push_back(std::move(thread));
  threads_.set_stream(threads_.add(std::move(*writer)), stream.stream_id);
  directory_unsynced_ = true;
  live_.change();
  if (threads_.size() <= kThreadsNamedAtOnce) live_.change_before_page();
  return fail(threads_.limit_open_files());
}

Status Session::append_pages(std::span<const Page> pages) {
  if (!failure_.ok()) return failure_;
  Status admitted;
  pages = pages.first(space_.room_for(stored_bytes_ + roller_.bytes(), pages, copies(), admitted));
  // All of it: records that a manifest counts are on the disk before it is, or no one sends them
  // again.
  if (live_.is_due_before_page()) COLLECT_TRY(commit());
  // Before anything is stored, so that the container misses nothing when it can't be opened now.
  COLLECT_TRY(make_capture_room());
  while (!pages.empty()) {
    const Page& first = pages.front();
    size_t run = 1;
    while (run < pages.size() && pages[run].stream_id == first.stream_id &&
           pages[run].lane == first.lane) {
      ++run;
    }
    COLLECT_TRY(append_run(pages.first(run)));
    pages = pages.subspan(run);
  }
  return fail(admitted);
}

Status Session::append_run(std::span<const Page> pages) {
  const Page& first = pages.front();
  const auto slot = threads_.slot_for(first.stream_id, "page", name());
  if (!slot.ok()) return slot.error();
  ThreadWriter& writer = *threads_.writer(*slot);
  const size_t open_before = writer.open_files();
  const uint64_t position_before = writer.position(first.lane);
  const uint64_t bytes_before = writer.summary(first.lane).bytes;
  const uint64_t lost_before = writer.lost(first.lane);
  const bool had_detail = writer.has_detail();
  const Status status = threads_.with_descriptors(&writer, [&] { return writer.append(pages); });
  const uint64_t stored = writer.summary(first.lane).bytes - bytes_before;
  stored_bytes_ += stored;
  live_.count_data(stored);
  if (options_.budget != nullptr) options_.budget->data_written(stored);
  threads_.written(*slot);
  live_.change();
  if (writer.lost(first.lane) != lost_before || writer.has_detail() != had_detail) {
    live_.change_before_ack();
  }
  const bool moved = writer.position(first.lane) != position_before;
  if (status.ok() || moved) {
    // If not all pages were stored, the file knows which were.
    if (first.lane == Lane::kIndex && status.ok()) symbols_.add(pages);
    if (first.lane == Lane::kIndex && !status.ok()) symbols_.add_stored(writer);
    capture_pages(pages, position_before, writer);
  }
  if (!status.ok() && is_disk_error(status.code())) return fail(status);
  if (status.ok() && writer.open_files() > open_before) return fail(threads_.limit_open_files());
  return status;
}

Status Session::make_capture_room() {
  if (!roller_.wants_room()) return roller_.hold_file();
  refresh_manifest();
  return roller_.make_room(manifest_);
}

// Every page of which something was stored now: also those in front of one that was refused.
void Session::capture_pages(std::span<const Page> pages, uint64_t from,
                            const ThreadWriter& writer) {
  if (!roller_.enabled()) return;
  (void)make_capture_room();  // one was closed just now, so another can be opened
  threads_.hold_others(roller_.open_files());
  const uint64_t position = writer.position(pages.front().lane);
  for (const Page& page : pages) {
    const uint64_t end = page.first_seq + page.record_count;
    const bool stored = end <= position && (end > from || page.record_count == 0);
    if (stored) roller_.page(page);
  }
  note_capture_problem();
}

void Session::note_capture_problem() {
  if (const auto problem = roller_.take_problem()) (void)note(*problem);
}

// The file is made at the first bytes, and the manifest that names it is written before them: of a
// stream of others nothing else says where it is from.
Result<PassthroughFile*> Session::passthrough_file(PassthroughKind kind) {
  auto known = passthrough_.find(kind);
  if (!known.ok() || *known != nullptr) return known;
  auto made = passthrough_.create(kind, manifest_);
  if (!made.ok()) return made;
  live_.change_before_page();
  directory_unsynced_ = true;
  return made;
}

Status Session::append_passthrough(PassthroughKind kind, std::span<const Bytes> parts) {
  if (!failure_.ok()) return failure_;
  uint64_t bytes = 0;
  for (const Bytes part : parts) bytes += part.size();
  COLLECT_TRY(fail(space_.admit(stored_bytes_ + roller_.bytes(), copies() * bytes)));
  auto file = passthrough_file(kind);
  if (!file.ok()) return fail(file.error());
  if (live_.is_due_before_page()) COLLECT_TRY(commit());
  // Before the bytes are counted: a container's first manifest says where its part begins.
  COLLECT_TRY(make_capture_room());
  const Status appended = (*file)->append(parts);
  live_.change();
  if (!appended.ok()) return fail(appended);
  stored_bytes_ += bytes;
  live_.count_data(bytes);
  if (options_.budget != nullptr) options_.budget->data_written(bytes);
  roller_.passthrough(kind, parts);
  note_capture_problem();
  return {};
}

Status Session::end_passthrough(PassthroughKind kind, uint64_t refused_bytes,
                                const std::string& problem) {
  if (!failure_.ok()) return failure_;
  auto file = passthrough_file(kind);
  if (!file.ok()) return fail(file.error());
  passthrough_.end(kind, refused_bytes, problem, manifest_);
  live_.change_before_ack();
  return {};
}

Status Session::add_stalls(std::span<const StreamStall> arrived) {
  std::vector<Stall> switches;
  const Status added = stalls_.add(arrived, name(), failure_, switches);
  if (!added.ok()) return is_disk_error(added.code()) ? fail(added) : added;
  if (switches.empty()) return {};
  const std::vector<uint8_t> frames = stalls_.frames_of(switches);
  const Bytes part = frames;
  if (!frames.empty()) COLLECT_TRY(append_passthrough(PassthroughKind::kSwitches, {&part, 1}));
  stalls_.adopt(switches);
  symbols_.add(switches);
  live_.change();
  return {};
}

Status Session::close_stream(const StreamEnd& end) {
  const auto slot = threads_.slot_of(end.stream_id);
  if (!slot) {
    return Error{Code::kDamaged,
                 fmt::format("{}: end of stream {}, which was not opened", name(), end.stream_id)};
  }
  // Sent again after a reconnect: what it says is counted once.
  ManifestThread& thread = manifest_.threads[*slot];
  ThreadWriter* writer = threads_.writer(*slot);
  Status index;
  Status detail;
  if (writer != nullptr) {
    const size_t open_before = writer->open_files();
    index =
        writer->expect(Lane::kIndex, end.index_count, end.index_lost, kLostUnavailable, end.end_ns);
    detail = writer->expect(Lane::kDetail, end.detail_count, end.detail_lost, kLostUnavailable,
                            end.end_ns);
    for (const Status& status : {index, detail}) {
      if (!status.ok() && !is_disk_error(status.code())) return status;
    }
    const Status committed = writer->commit();
    if (!committed.ok() && committed.code() == Code::kExhausted) return committed;
    writer->close_files();
    threads_.closed(open_before);
    if (!committed.ok()) return fail(committed);
  }
  threads_.close(*slot, end);
  thread.ended = true;
  thread.end_ns = end.end_ns;
  thread.calls_left_out = end.calls_left_out;
  if (!end.thread_name.empty()) {
    std::string name = end.thread_name;
    bound_text(name);
    rename_thread(thread, name, end.end_ns);
  }
  threads_.describe(*slot, thread);
  roller_.change({.threads = {thread}});
  live_.change_before_ack();
  // Without a descriptor for the journal, the manifest has the gap: it is written before the ack.
  for (const Status& status : {index, detail}) {
    if (!status.ok() && status.code() != Code::kExhausted) return fail(status);
  }
  return {};
}

Status Session::commit() {
  if (!failure_.ok()) return failure_;
  if (roller_.unflushed()) COLLECT_TRY(roller_.hold_file());
  roller_.flush();
  note_capture_problem();
  COLLECT_TRY(fail(threads_.limit_open_files()));  // others may need them more by now
  if (durable()) {
    COLLECT_TRY(fail(passthrough_.sync()));
    COLLECT_TRY(fail(threads_.commit()));
    if (directory_unsynced_) COLLECT_TRY(fail(fs_.sync_directory(directory())));
    directory_unsynced_ = false;
  }
  if (!live_.must_write()) return {};
  return fail(write_manifest_now(durable()));
}

Result<std::string> Session::roll_container() {
  refresh_manifest();
  auto rolled = roller_.roll(manifest_);
  live_.change_before_ack();
  note_capture_problem();
  return rolled;
}

SessionTotals Session::totals() const {
  SessionTotals totals;
  totals.stalls = stalls_.of_process().totals();
  for (const ManifestThread& thread : manifest_.threads) {
    totals.calls_left_out += thread.calls_left_out;
  }
  threads_.add_to(totals);
  totals.stored_bytes += passthrough_.bytes();
  totals.container_bytes = roller_.bytes();
  return totals;
}

// ---- the manifest in memory made true, and written

void Session::refresh_manifest() {
  manifest_.totals = totals();
  manifest_.time_start_ns = manifest_.totals.first_ns;
  manifest_.time_end_ns = manifest_.totals.last_ns;
  manifest_.gaps.clear();
  manifest_.stalls.clear();
  stalls_.of_process().append_to(manifest_.stalls, std::nullopt);
  threads_.describe(manifest_);
  passthrough_.refresh(manifest_);
  refresh_containers();
}

void Session::refresh_containers() {
  manifest_.containers = roller_.containers();
  manifest_.containers_removed = roller_.removed();
}

Status Session::write_manifest_now(bool durable) {
  refresh_manifest();
  const uint64_t before = clock().monotonic_ns();
  uint64_t bytes = 0;
  COLLECT_TRY(threads_.with_descriptors(
      nullptr, [&] { return write_manifest(fs_, directory(), manifest_, durable, &bytes); }));
  live_.written(bytes, before);
  if (options_.budget != nullptr) options_.budget->manifest_written(bytes + kManifestFixedBytes);
  space_.look_again();
  return {};
}

Status Session::release_files() {
  if (!failure_.ok()) return failure_;
  COLLECT_TRY(fail(threads_.close_files()));
  roller_.release_file();
  note_capture_problem();
  threads_.hold_others(roller_.open_files());
  return {};
}

}  // namespace collect::storage
