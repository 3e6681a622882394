#include "storage/export/capture_walk.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/calls/function_seconds.h"
#include "formats/calls/sinks.h"
#include "formats/core/text/hex.h"
#include "storage/manifest/record_ranges.h"
#include "storage/manifest/session_health.h"
#include "storage/model/collector_identity.h"
#include "storage/read/lod_files.h"

namespace collect::exports {
namespace {

std::string id_of(const ExportedSession& session) {
  const storage::SessionIdentity& identity = session.manifest.identity;
  const bool is_known =
      std::ranges::any_of(identity.process_id, [](uint8_t byte) { return byte != 0; });
  if (is_known) return fmt::format("{}-{}", hex_bytes(identity.process_id), identity.recording);
  return session.trace.path;
}

std::string part_of(const ExportedSession& session) {
  const storage::CollectorIdentity& collector = session.manifest.identity.collector;
  return collector.is_known() ? storage::collector_name(collector) : "local";
}

// A thread's calls as rows, in the order in which they end.
class CallsOfThread : public calls::CallSink {
 public:
  CallsOfThread(ExportedSession& session, uint32_t thread, const calls::FunctionSlots& slots,
                const storage::RecordNumbers& numbers, CaptureRows& rows)
      : session_(session), thread_(thread), slots_(slots), numbers_(numbers), rows_(rows) {}

  void on_call_begin(const calls::Call& call) {
    open_.resize(call.depth);
    open_.push_back(call.slot);
  }
  void on_call_end(const calls::EndedCall& call) {
    const calls::WaitedTimes waited = waits_.end(call.depth);
    const uint64_t function = slots_.function_of(call.slot);
    if (!status_.ok() || !session_.functions.wants(function)) return;
    CallRow row{thread_, call.begin.seq, call, function, waited};
    if (call.begin.seq != calls::kNoEvent) row.seq = numbers_.number_of(call.begin.seq);
    if (call.depth != 0 && call.depth <= open_.size()) {
      row.caller = slots_.function_of(open_[call.depth - 1]);
    }
    status_ = rows_.call(row);
    ++count_;
  }
  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }
  const Status& status() const { return status_; }
  uint64_t count() const { return count_; }

 private:
  ExportedSession& session_;
  const uint32_t thread_;
  const calls::FunctionSlots& slots_;
  const storage::RecordNumbers& numbers_;
  CaptureRows& rows_;
  std::vector<uint32_t> open_;  // slots of the open calls, by depth
  calls::WaitStack waits_;
  uint64_t count_ = 0;
  Status status_;
};

}  // namespace

CaptureSession::CaptureSession(ExportedSession& exported)
    : session(exported), id(id_of(exported)), part(part_of(exported)) {
  for (const storage::ModuleInfo& module : session.manifest.modules) {
    modules[module.module_id] = &module;
  }
}

FunctionLocation::FunctionLocation(const CaptureSession& of, uint64_t function_id)
    : function(function_id), offset(function_id & UINT32_MAX) {
  const auto found = of.modules.find(static_cast<uint32_t>(function_id >> 32));
  if (found == of.modules.end()) return;
  module = found->second->path;
  build_id = hex_bytes(found->second->build_id);
}

Status CaptureWalk::run(ExportedSessions& sessions) {
  for (const auto& session : sessions) all_ += session->reader.threads().size();
  for (const auto& session : sessions) COLLECT_TRY(add(CaptureSession(*session)));
  return {};
}

Status CaptureWalk::add(const CaptureSession& session) {
  COLLECT_TRY(rows_.begin(session));
  calls::FunctionSlots slots;
  calls::FunctionTotals totals;
  SessionRow row;
  for (const atf::SessionThread& thread : session.session.reader.threads()) {
    log_.progress(done_++, all_);
    if (!thread.index) continue;
    COLLECT_TRY(add_thread(session, thread, slots, totals));
    row.events += thread.index->size();
    session.session.drop_pages(thread.n);
  }
  if (what_ == WalkedRows::kEventsOnly) return {};
  COLLECT_TRY(add_functions(session, slots, totals));
  if (const auto range = session.session.time_range({})) {
    row.first_ns = range->first_ns;
    row.last_ns = range->last_ns;
  }
  if (const auto health = session.session.manifest.health()) {
    row.state = storage::session_state_name(health->state);
    row.lost_events = health->lost_events;
    row.missing = health->missing;
  }
  return rows_.end(row);
}

Status CaptureWalk::add_thread(const CaptureSession& of, const atf::SessionThread& thread,
                               calls::FunctionSlots& slots, calls::FunctionTotals& totals) {
  ExportedSession& session = of.session;
  const storage::RecordNumbers numbers(storage::record_ranges(
      session.manifest.gaps, thread.n, Lane::kIndex, thread.index ? thread.index->size() : 0));
  const calls::Window& window = session.window();
  if (what_ != WalkedRows::kEventsOnly) {
    const storage::SessionIdentity& identity = session.manifest.identity;
    Status second_status;
    const auto emit = [&](uint64_t second, uint32_t slot, const calls::FunctionTimes& times) {
      const uint64_t function = slots.function_of(slot);
      if (!second_status.ok() || !session.functions.wants(function)) return;
      second_status = rows_.second({thread.n, second, FunctionLocation(of, function), times});
    };
    calls::FunctionSeconds<decltype(emit)> seconds({identity.start_ns, identity.start_unix_ns},
                                                   emit);
    CallsOfThread ended(session, thread.n, slots, numbers, rows_);
    calls::Sinks<CallsOfThread, calls::FunctionTotals, decltype(seconds)> sink(ended, totals,
                                                                               seconds);
    std::vector<uint32_t> reasons;
    const auto gaps = session.gaps_of(thread.n, reasons);
    const auto stalls = session.stalls_of(thread.n);
    calls::ThreadCalls<decltype(sink)> calls(slots, sink, stalls, window);
    read::read_calls(session.trace.thread(thread.n), *thread.index, gaps, stalls, window, calls);
    seconds.finish_thread();
    COLLECT_TRY(ended.status());
    COLLECT_TRY(second_status);
    counts_.calls += ended.count();
    counts_.paired.add(calls.counts());
    if (thread.detail) counts_.detail_records += thread.detail->size();
  }
  uint64_t events = thread.index->size();
  if (what_ != WalkedRows::kWithoutEvents) {
    events = 0;
    Status status;
    thread.index->events(0, thread.index->size()).for_each([&](uint64_t seq, const auto& event) {
      if (!status.ok() || event.timestamp_ns < window.first_ns ||
          event.timestamp_ns > window.last_ns || !session.functions.wants(event.function_id)) {
        return;
      }
      ++events;
      status = rows_.event(
          {thread.n, numbers.number_of(seq), event.timestamp_ns, event.function_id, event.kind});
    });
    COLLECT_TRY(status);
  }
  counts_.events += events;
  if (what_ == WalkedRows::kEventsOnly) return {};
  const read::ManifestThread* said = session.manifest.thread(thread.n);
  ThreadRow row{thread.n, thread.index->header().thread_id, session.name_of_thread(thread.n),
                events, said == nullptr ? 0 : said->lost_events};
  counts_.lost_events += row.lost_events;
  return rows_.thread(row);
}

Status CaptureWalk::add_functions(const CaptureSession& session, const calls::FunctionSlots& slots,
                                  const calls::FunctionTotals& totals) {
  for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
    const calls::FunctionTimes& times = totals.times()[slot];
    const uint64_t function = slots.function_of(slot);
    if (!times.is_seen() || !session.session.functions.wants(function)) continue;
    COLLECT_TRY(rows_.function(FunctionLocation(session, function), times));
    ++counts_.functions;
  }
  return {};
}

}  // namespace collect::exports
