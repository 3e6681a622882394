#include "storage/session/session_threads.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace collect::storage {

uint32_t SessionThreads::add(std::unique_ptr<ThreadWriter> writer, uint64_t known_index_next,
                             uint64_t known_detail_next) {
  const auto slot = static_cast<uint32_t>(threads_.size());
  const bool is_readable = writer != nullptr;
  if (is_readable) count_open_files(0, writer->open_files());
  threads_.push_back({std::move(writer), 0, false, {known_index_next, known_detail_next}, {}});
  if (is_readable) written(slot);
  return slot;
}

std::optional<uint32_t> SessionThreads::slot_of(uint32_t stream_id) const {
  const auto known = by_stream_.find(stream_id);
  return known == by_stream_.end() ? std::nullopt : std::optional(known->second);
}

Result<uint32_t> SessionThreads::slot_for(uint32_t stream_id, const char* what,
                                          const std::string& name) const {
  const auto slot = slot_of(stream_id);
  if (!slot) {
    return Error{Code::kDamaged,
                 fmt::format("{}: {} of stream {}, which was not opened", name, what, stream_id)};
  }
  if (writer(*slot) == nullptr) {
    return Error{Code::kIo, fmt::format("{}: the files of thread {} cannot be read", name, *slot)};
  }
  return *slot;
}

// Where the files cannot be read, the end is all that is known.
void SessionThreads::close(uint32_t slot, const StreamEnd& end) {
  Thread& thread = threads_[slot];
  thread.closed = true;
  if (thread.writer != nullptr) return;
  thread.known_next[0] = std::max(thread.known_next[0], end.index_count);
  thread.known_next[1] = std::max(thread.known_next[1], end.detail_count);
}

void SessionThreads::written(uint32_t slot) {
  Thread& thread = threads_[slot];
  thread.last_use = ++use_counter_;
  if (!durable_ || thread.uncommitted) return;
  thread.uncommitted = true;
  uncommitted_.push_back(slot);
}

Status SessionThreads::commit() {
  while (!uncommitted_.empty()) {
    Thread& thread = threads_[uncommitted_.back()];
    COLLECT_TRY(thread.writer->commit());
    thread.uncommitted = false;
    uncommitted_.pop_back();
  }
  return {};
}

SessionThreads::Sealed SessionThreads::seal() {
  Sealed sealed;
  for (const Thread& thread : threads_) {
    if (thread.writer == nullptr) continue;
    const Status status = thread.writer->seal();
    thread.writer->close_files();
    const bool is_sealed = thread.writer->sealed();
    sealed.is_whole = sealed.is_whole && is_sealed;
    if (status.ok()) continue;
    if (status.code() == Code::kExhausted) return {status, {}, false};
    if (is_sealed) sealed.unsynced.push_back(status);
    if (sealed.error.ok()) sealed.error = status;
  }
  return sealed;
}

Status SessionThreads::remove_journals() {
  Status first_error;
  for (const Thread& thread : threads_) {
    if (thread.writer == nullptr) continue;
    const Status removed = thread.writer->remove_journal();
    if (first_error.ok()) first_error = removed;
  }
  return first_error;
}

// ---- which files are open

void SessionThreads::count_open_files(size_t before, size_t after) {
  open_files_ += after - before;
  if (budget_ != nullptr) budget_->hold_open_files(open_files_ + other_files_);
}

void SessionThreads::hold_others(size_t files) {
  other_files_ = files;
  count_open_files(0, 0);
}

// A quarter is closed at once, so that the search for the oldest is paid rarely. What is closed is
// synced before: a file that is opened again may not report an error in between.
Status SessionThreads::limit_open_files() {
  const size_t limit =
      budget_ == nullptr ? kMaxOpenFiles : std::min(kMaxOpenFiles, budget_->open_files());
  if (open_files_ <= limit) return {};
  const size_t target = limit - limit / 4;
  std::vector<std::pair<uint64_t, ThreadWriter*>> by_use;
  for (Thread& thread : threads_) {
    if (thread.writer != nullptr && thread.writer->open_files() != 0) {
      by_use.emplace_back(thread.last_use, thread.writer.get());
    }
  }
  std::sort(by_use.begin(), by_use.end());
  for (const auto& [last_use, writer] : by_use) {
    if (open_files_ <= target) break;
    COLLECT_TRY(writer->sync_files());
    const size_t before = writer->open_files();
    writer->close_files();
    closed(before);
  }
  return {};
}

// Here no descriptor may be free: names of new files are synced by the next commit.
Status SessionThreads::close_files_of_others(const ThreadWriter* but) {
  for (Thread& thread : threads_) {
    ThreadWriter* const writer = thread.writer.get();
    if (writer == nullptr || writer == but || writer->open_files() == 0) continue;
    COLLECT_TRY(writer->sync_files());
    const size_t before = writer->open_files();
    writer->close_files();
    closed(before);
  }
  return {};
}

// ---- what they add up to

StreamPosition SessionThreads::position(uint32_t stream_id) const {
  const auto slot = slot_of(stream_id);
  if (!slot) return {.stream_id = stream_id};
  const Thread& thread = threads_[*slot];
  const ThreadWriter* const one = thread.writer.get();
  if (one == nullptr) return {stream_id, thread.known_next[0], thread.known_next[1], thread.closed};
  return {stream_id, one->position(Lane::kIndex), one->position(Lane::kDetail), thread.closed};
}

std::vector<StreamPosition> SessionThreads::positions() const {
  std::vector<StreamPosition> positions;
  positions.reserve(by_stream_.size());
  for (const auto& [stream_id, slot] : by_stream_) {
    const bool is_known = writer(slot) != nullptr || threads_[slot].closed;
    if (is_known) positions.push_back(position(stream_id));
  }
  std::sort(positions.begin(), positions.end(),
            [](const auto& a, const auto& b) { return a.stream_id < b.stream_id; });
  return positions;
}

void SessionThreads::add_to(SessionTotals& totals) const {
  totals.threads += static_cast<uint32_t>(threads_.size());
  for (const Thread& thread : threads_) {
    if (thread.writer == nullptr) continue;
    const LaneSummary& index = thread.writer->summary(Lane::kIndex);
    const LaneSummary& detail = thread.writer->summary(Lane::kDetail);
    totals.events += index.records;
    totals.detail_records += detail.records;
    totals.lost_events += thread.writer->lost(Lane::kIndex);
    totals.lost_detail_records += thread.writer->lost(Lane::kDetail);
    totals.stored_bytes += index.bytes + detail.bytes;
    totals.stalls.add(thread.writer->stalls().totals());
    if (index.records == 0) continue;
    if (totals.first_ns == 0 || index.first_ns < totals.first_ns) totals.first_ns = index.first_ns;
    totals.last_ns = std::max(totals.last_ns, index.last_ns);
  }
}

void SessionThreads::describe(size_t slot, ManifestThread& thread) const {
  const ThreadWriter* one = writer(slot);
  if (one == nullptr) return;
  thread.has_detail = one->has_detail();
  thread.events = one->summary(Lane::kIndex).records;
  thread.detail_records = one->summary(Lane::kDetail).records;
  thread.lost_events = one->lost(Lane::kIndex);
  thread.lost_detail_records = one->lost(Lane::kDetail);
  // What is missing after a crash stays known until it was sent again, or counted at the seal.
  thread.index_next = std::max(threads_[slot].known_next[0], one->position(Lane::kIndex));
  thread.detail_next = std::max(threads_[slot].known_next[1], one->position(Lane::kDetail));
  thread.stalls = one->stalls().totals();
  thread.first_ns = one->summary(Lane::kIndex).first_ns;
  thread.last_ns = one->summary(Lane::kIndex).last_ns;
}

void SessionThreads::describe(Manifest& manifest) const {
  for (size_t slot = 0; slot < threads_.size(); ++slot) {
    ManifestThread& thread = manifest.threads[slot];
    describe(slot, thread);
    const ThreadWriter* one = writer(slot);
    if (one == nullptr) continue;
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      for (Gap gap : one->gaps(lane).gaps()) {
        gap.thread = thread.id;
        manifest.gaps.push_back(gap);
      }
    }
    one->stalls().append_to(manifest.stalls, thread.id);
  }
}

void SessionThreads::account_for_damage(bool was_sealing) {
  for (const Thread& thread : threads_) {
    ThreadWriter* const one = thread.writer.get();
    if (one == nullptr) continue;
    // A seal that was interrupted may have dropped records of lost events, or all of them.
    const bool dropped_by_seal = one->detail_was_sealed() || (was_sealing && !one->has_detail());
    const uint32_t detail_reason = dropped_by_seal ? kLostUnlinked : kLostDamaged;
    // The gap is counted even where its journal entry cannot be written, and sealing comes next.
    (void)one->expect(Lane::kIndex, thread.known_next[0], thread.known_dropped[0], kLostDamaged, 0);
    (void)one->expect(Lane::kDetail, thread.known_next[1], thread.known_dropped[1], detail_reason,
                      0);
  }
}

size_t SessionThreads::stalls_per_thread() const {
  return std::clamp(kMaxStallsListed / std::max<size_t>(threads_.size(), 1), kLeastStallsPerThread,
                    kMaxStallsPerThread);
}

}  // namespace collect::storage
