// Totals of each function, as a sink of ThreadCalls: for one thread, or for several one after
// another with the same FunctionSlots. Used on one thread; add() puts the results of several
// together. Memory grows with the functions, up to FunctionSlots::kMaxFunctions of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/duration_histogram.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/wait_stack.h"

namespace collect::calls {

struct FunctionTimes {
  uint64_t calls = 0;     // with those too deep to be timed
  uint64_t total_ns = 0;  // running time; recursive calls count once, in the outermost
  uint64_t self_ns = 0;
  WaitedTimes waited{};     // of these times, off the processor
  uint64_t exceptions = 0;  // that left it, with those that no open call belongs to
  uint64_t skipped = 0;     // calls by how they ended, where not by an end of their own
  uint64_t cut_by_gap = 0;
  uint64_t open_at_end = 0;
  uint64_t cut_by_window = 0;
  uint64_t shortest_ns = std::numeric_limits<uint64_t>::max();  // of whole calls
  uint64_t longest_ns = 0;
  DurationHistogram durations;  // of whole calls

  bool is_seen() const { return calls != 0 || exceptions != 0; }
  // The times of a call, of which it was off the processor for `off`. Takes from `octaves_left`
  // what the histogram needs.
  void add(const EndedCall& call, const WaitedTimes& off, size_t& octaves_left) {
    self_ns += call.self_ns;
    total_ns += call.function_ns;
    if (off.total_ns != 0) waited.add({call.is_outermost ? off.total_ns : 0, off.self_ns});
    if (!call.is_whole) return;
    shortest_ns = call.total_ns < shortest_ns ? call.total_ns : shortest_ns;
    longest_ns = call.total_ns > longest_ns ? call.total_ns : longest_ns;
    durations.add(call.total_ns, octaves_left);
  }
  // A percentile of whole calls; nullopt where there are none, or where not all of them were kept.
  std::optional<uint64_t> percentile(uint32_t per_mille) const {
    if (longest_ns < shortest_ns || !durations.is_complete()) return std::nullopt;
    return std::clamp(durations.percentile(per_mille), shortest_ns, longest_ns);
  }
};

class FunctionTotals : public CallSink {
 public:
  // For all functions together: 128 MiB of histograms.
  static constexpr size_t kMaxOctaves = size_t{1} << 20;

  void on_call_begin(const Call& call) { ++at(call.slot).calls; }
  void on_call_end(const EndedCall& call) {
    FunctionTimes& times = times_[call.slot];
    times.add(call, waits_.end(call.depth), octaves_left_);
    if (call.reason != EndReason::kReturned) count_end(times, call.reason);
  }
  void on_lone_end(uint32_t slot, EndReason reason, const Moment&) {
    at(slot).exceptions += reason == EndReason::kUnwound ? 1 : 0;
  }
  void on_untimed(uint32_t slot, atf::EventKind kind) {
    at(slot).calls += kind == atf::EventKind::kCall ? 1 : 0;
    at(slot).exceptions += kind == atf::EventKind::kException ? 1 : 0;
  }

  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }

  // By slot; functions that had no event in the window may be missing at the end.
  const std::vector<FunctionTimes>& times() const { return times_; }

  // What was kept elsewhere.
  void put(uint32_t slot, FunctionTimes times) { at(slot) = std::move(times); }
  size_t& octaves_left() { return octaves_left_; }

  // `slots` are this one's, `other_slots` the other's.
  void add(FunctionSlots& slots, const FunctionTotals& other, const FunctionSlots& other_slots);

 private:
  FunctionTimes& at(uint32_t slot) {
    if (slot >= times_.size()) times_.resize(slot + 1);
    return times_[slot];
  }
  static void count_end(FunctionTimes& times, EndReason reason);

  std::vector<FunctionTimes> times_;
  WaitStack waits_;
  size_t octaves_left_ = kMaxOctaves;
};

}  // namespace collect::calls
