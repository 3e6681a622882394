// The end of a round of a session's writer: what was written is committed, and then reported. On
// the writer thread.
#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "daemon/ingest/session_pipe.h"
#include "daemon/ingest/writer_pool.h"

namespace collect::ingest {

// False: not now; what is not committed is acknowledged by a later round.
bool SessionPipe::finish_round() {
  if (sealing_) return true;
  if (must_wait_for_manifest()) return false;
  if (writer_ && !failed_) {
    Status committed = writer_->commit();
    if (!committed.ok() && committed.code() == Code::kExhausted) {
      retry_later(kExhaustedPause);
      return false;
    }
    if (!committed.ok()) {
      touched_.clear();  // nothing may be acknowledged that is not there
      stalls_next_ = 0;
      fail(committed.error());
      if (sealing_) return true;
    }
  }
  if (writer_) count_totals();
  for (const uint32_t stream : touched_) news_.stored[stream] = positions_[stream];
  touched_.clear();
  news_.stalls_next = std::exchange(stalls_next_, 0);
  answer_tickets();
  publish();
  return true;
}

void SessionPipe::answer_tickets() {
  if (writer_ == nullptr && !failed_) return;  // not opened yet: that waits for something
  for (const uint64_t ticket : tickets_) {
    std::vector<storage::StreamPosition> all;
    all.reserve(positions_.size());
    for (const auto& [stream, position] : positions_) all.push_back(position);
    news_.positions.emplace_back(ticket, std::move(all));
  }
  tickets_.clear();
}

void SessionPipe::fail(const Error& error) {
  if (failed_) return;
  failed_ = true;
  news_.failed = error;
  if (is_storage_fault(error.code) || !writer_ || writer_->failed()) {
    begin_seal({storage::SessionState::kFailed, to_string(error)});
    return;
  }
  Status noted = writer_->note("the agent's data was refused: " + to_string(error));
  if (!noted.ok()) begin_seal({storage::SessionState::kFailed, to_string(noted.error())});
}

void SessionPipe::begin_seal(SessionSeal seal) {
  sealing_ = true;
  publish();
  world_.writers->schedule_seal(principal(), [self = shared_from_this(), seal = std::move(seal)] {
    self->finish_seal(seal);
  });
}

void SessionPipe::count_totals() {
  const storage::SessionTotals totals = writer_->totals();
  const auto grow = [](std::atomic<uint64_t>& counter, uint64_t now, uint64_t before) {
    if (now > before) counter.fetch_add(now - before, std::memory_order_relaxed);
  };
  grow(world_.counters->bytes_stored, totals.stored_bytes, counted_.stored_bytes);
  grow(world_.counters->events_stored, totals.events, counted_.events);
  grow(world_.counters->events_lost, totals.lost_events, counted_.lost_events);
  grow(world_.counters->detail_records_stored, totals.detail_records, counted_.detail_records);
  counted_ = totals;
  news_.totals = totals;
}

// Merges the news into the report that waits for the io thread, and sends one if none is under way.
void SessionPipe::publish() {
  bool send = false;
  {
    std::lock_guard lock(mutex_);
    if (news_.opened) report_.opened = std::move(news_.opened);
    if (news_.repeated) report_.repeated = std::move(news_.repeated);
    for (const auto& [stream, position] : news_.stored) report_.stored[stream] = position;
    report_.stalls_next = std::max(report_.stalls_next, news_.stalls_next);
    for (auto& answer : news_.positions) report_.positions.push_back(std::move(answer));
    report_.totals = counted_;
    if (news_.failed) report_.failed = std::move(news_.failed);
    if (news_.sealed) report_.sealed = std::move(news_.sealed);
    report_.suspended |= news_.suspended;
    send = !report_on_its_way_;
    report_on_its_way_ = true;
  }
  news_ = {};
  if (send) send_report();
}

void SessionPipe::send_report() {
  asio::post(io_, [self = shared_from_this()] { self->deliver(); });
}

}  // namespace collect::ingest
