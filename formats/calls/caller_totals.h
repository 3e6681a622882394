// Totals of each pair of caller and callee, as a sink of ThreadCalls. Used on one thread; add()
// puts the results of several together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/group_times.h"

namespace collect::calls {

// A recursive callee counts once in the totals, in its outermost call: the totals of all callers of
// a function add up to that of the function.
class CallerTotals : public CallSink {
 public:
  static constexpr size_t kMaxPairs = size_t{1} << 20;
  // In the place of a slot.
  static constexpr uint32_t kNoCaller = UINT32_MAX;           // the outermost call of its thread
  static constexpr uint32_t kCallerInDoubt = UINT32_MAX - 1;  // behind a gap
  static constexpr uint32_t kOther = UINT32_MAX - 2;          // both, of the pairs beyond the limit

  struct Pair {
    uint32_t caller = 0;
    uint32_t callee = 0;
    GroupTimes times;
  };

  void on_call_begin(const Call& call) {
    if (call.depth >= open_.size()) open_.resize(call.depth + 1);
    const uint32_t caller = call.depth == 0           ? kNoCaller
                            : call.is_caller_in_doubt ? kCallerInDoubt
                                                      : open_[call.depth - 1].slot;
    const size_t pair = find_or_add(caller, call.slot);
    open_[call.depth] = {pair, call.slot};
    ++pairs_[pair].times.calls;
  }
  void on_call_end(const EndedCall& call) {
    GroupTimes& times = pairs_[open_[call.depth].pair].times;
    times.self_ns += call.self_ns;
    times.total_ns += call.function_ns;
    const WaitedTimes waited = waits_.end(call.depth);
    times.waited.add({call.is_outermost ? waited.total_ns : 0, waited.self_ns});
  }
  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }

  const std::vector<Pair>& pairs() const { return pairs_; }
  // `slots` are this one's, `other_slots` the other's.
  void add(FunctionSlots& slots, const CallerTotals& other, const FunctionSlots& other_slots);

 private:
  struct Open {
    size_t pair = 0;
    uint32_t slot = 0;
  };
  size_t find_or_add(uint32_t caller, uint32_t callee);

  std::vector<Pair> pairs_;
  std::unordered_map<uint64_t, size_t> positions_;  // caller << 32 | callee
  std::vector<Open> open_;                          // by depth
  WaitStack waits_;
};

}  // namespace collect::calls
