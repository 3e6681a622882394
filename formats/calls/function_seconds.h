// Totals of each function in each second, as a sink of ThreadCalls: for one thread
// after another, with finish_thread() behind each. A call counts, with all of its time, in the
// second in which it ended. Memory grows with the functions of one second. Used on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/function_totals.h"

namespace collect::calls {

// Seconds of the time of day, or of the device's clock where no one knows the time of day (both 0).
struct SecondClock {
  static constexpr uint64_t kSecondNs = 1'000'000'000;

  uint64_t start_ns = 0;       // on the device's clock
  uint64_t start_unix_ns = 0;  // the same moment

  // Never wraps: the times of a damaged file end at 0 and at the largest number.
  uint64_t second_of(uint64_t ns) const { return unix_ns(ns) / kSecondNs; }
  uint64_t unix_ns(uint64_t ns) const {
    if (ns < start_ns) {
      const uint64_t before = start_ns - ns;
      return before < start_unix_ns ? start_unix_ns - before : 0;
    }
    const uint64_t behind = ns - start_ns;
    const uint64_t room = std::numeric_limits<uint64_t>::max() - start_unix_ns;
    return behind < room ? start_unix_ns + behind : std::numeric_limits<uint64_t>::max();
  }
};

// `Emit` is called with (second, slot, const FunctionTimes&) for each function that had calls in a
// second. Within a thread seconds ascend, and each function comes once in a second, unless the
// clock of the device steps back.
template <class Emit>
class FunctionSeconds : public CallSink {
 public:
  FunctionSeconds(SecondClock clock, Emit emit) : clock_(clock), emit_(std::move(emit)) {}

  void on_call_end(const EndedCall& call) {
    move_to(call.end.ns, call.reason == EndReason::kCutByGap);
    FunctionTimes& times = at(call.slot);
    ++times.calls;
    times.add(call, waits_.end(call.depth), octaves_left_);
  }
  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }
  // Its time is not given: it belongs to the second that is being counted.
  void on_untimed(uint32_t slot, atf::EventKind kind) {
    if (kind == atf::EventKind::kCall) ++at(slot).calls;
  }

  // Behind the last event of a thread.
  void finish_thread() {
    emit_second();
    second_ = 0;
    first_ns_ = 1;
    last_ns_ = 0;
  }

 private:
  // `is_late`: the call was found to have ended earlier, when its second may have been given. It
  // counts in the one that is being counted.
  void move_to(uint64_t ns, bool is_late) {
    if (ns >= first_ns_ && ns <= last_ns_) return;
    const uint64_t second = clock_.second_of(ns);
    if (second == second_ || (is_late && second < second_)) return;
    emit_second();
    second_ = second;
    const uint64_t within = clock_.unix_ns(ns) % SecondClock::kSecondNs;
    first_ns_ = last_ns_ = ns;
    if (within > ns || clock_.second_of(ns - within) != second) return;
    first_ns_ = ns - within;
    const uint64_t end_ns = first_ns_ + (SecondClock::kSecondNs - 1);
    if (end_ns > ns && clock_.second_of(end_ns) == second) last_ns_ = end_ns;
  }

  FunctionTimes& at(uint32_t slot) {
    if (slot >= positions_.size()) positions_.resize(slot + 1, kNone);
    if (positions_[slot] == kNone) {
      positions_[slot] = static_cast<uint32_t>(times_.size());
      times_.emplace_back(slot, FunctionTimes{});
    }
    return times_[positions_[slot]].second;
  }

  void emit_second() {
    for (const auto& [slot, times] : times_) {
      emit_(second_, slot, times);
      positions_[slot] = kNone;
    }
    times_.clear();
    octaves_left_ = FunctionTotals::kMaxOctaves;
  }

  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  const SecondClock clock_;
  Emit emit_;
  uint64_t second_ = 0;
  uint64_t first_ns_ = 1;  // what is known to be in it, on the device's clock; at first nothing
  uint64_t last_ns_ = 0;
  std::vector<uint32_t> positions_;                        // in times_, by slot
  std::vector<std::pair<uint32_t, FunctionTimes>> times_;  // of this second
  WaitStack waits_;
  size_t octaves_left_ = FunctionTotals::kMaxOctaves;
};

}  // namespace collect::calls
