// A call as the pairing gives it to a sink. CALLS.md "Ends of a call" and "Gaps" say what the
// fields mean. All times are nanoseconds of the device's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "formats/atf/layout.h"

namespace collect::calls {

inline constexpr uint64_t kNoEvent = std::numeric_limits<uint64_t>::max();

// When something happened: on the clock, and on the clock that stops in stalls
// (RunningTime). `seq` is the number of the event in its thread, from 0; `detail_seq` its detail
// record's, atf::kNoDetail without one.
struct Moment {
  uint64_t ns = 0;
  uint64_t running_ns = 0;
  uint64_t seq = kNoEvent;
  uint64_t detail_seq = atf::kNoDetail;
};

enum class EndReason : uint8_t {
  kReturned,     // by its own return
  kUnwound,      // an exception left it: by its own exception event
  kSkipped,      // the end of an outer call ended it: a longjmp, or a writer that lost its return
  kCutByGap,     // it ended while events were lost: counted up to the last event before the gap
  kOpenAtEnd,    // open behind the last event: a crash, or the end of the recording
  kCutByWindow,  // open where the window that was asked for ends
};
inline constexpr size_t kEndReasons = 6;

// "returned", "unwound", "skipped", "cut_by_gap", "open_at_end", "cut_by_window".
constexpr const char* to_text(EndReason reason) {
  constexpr const char* kTexts[kEndReasons] = {"returned",   "unwound",     "skipped",
                                               "cut_by_gap", "open_at_end", "cut_by_window"};
  return kTexts[static_cast<size_t>(reason)];
}

struct Call {
  uint32_t slot = 0;   // FunctionSlots::function_of(slot) is the function
  uint32_t depth = 0;  // how many calls are open around it; at most OpenCalls::kMaxDepth - 1
  // With a window, begin.ns may be before the window: the call was open where it begins.
  Moment begin;
  // The calls below were open before a gap, and nothing has said yet which of them still are: the
  // caller is one of them, or one whose call was lost.
  bool is_caller_in_doubt = false;
  uint32_t certain_from = 0;  // the calls at smaller depths are in such doubt
};

struct EndedCall {
  uint32_t slot = 0;
  uint32_t depth = 0;  // as at its begin
  EndReason reason{};
  bool is_outermost = false;  // no other call of this function is known to be open on the thread
  bool spans_gap = false;     // events were lost while it was open
  bool is_whole =
      false;  // total_ns is all of it: it has an end of its own, and began in the window
  Moment begin;
  // Its own event for kReturned and kUnwound; else `seq` and `detail_seq` are empty.
  Moment end;
  uint64_t total_ns = 0;     // running time, in the window: without stalls
  uint64_t self_ns = 0;      // the same without the calls made from it
  uint64_t function_ns = 0;  // what it adds to the total of its function, which is in no call twice

  bool has_own_end() const { return reason <= EndReason::kUnwound; }
  uint64_t clock_ns() const { return end.ns > begin.ns ? end.ns - begin.ns : 0; }
};

// Events that were lost, in the place where they are missing.
struct Gap {
  uint64_t before_seq = 0;  // number of the first event behind it
  uint64_t lost = 0;        // events
  uint64_t first_ns = 0;    // of the first and the last event that is missing; 0: not known
  uint64_t last_ns = 0;
};

// A sink of ThreadCalls: derive from it and hide what is wanted. The calls are resolved at compile
// time. All of one thread come in order; the next thread begins with another ThreadCalls.
// - on_call_begin: `call.depth` calls were given and have not ended.
// - on_call_end: always the innermost call that was given and has not ended; each call ends once.
//   `end.ns` never is before the begin, but of a call cut by a gap it may be before ends that
//   were given earlier, where no one knew at the gap which calls survived it (CALLS.md "Gaps").
// - on_lone_end: a return (kReturned) or an exception (kUnwound) of a function of which no call is
//   open.
// - on_untimed: a call deeper than OpenCalls::kMaxDepth, or the end of one.
// - on_wait: since the event before, the thread was off the processor for `ns`, without stalls;
//   `depth` calls were open then.
// - on_gap: events are missing here; `last` is the last event before them. What is known to have
//   ended in the gap ends before this, with kCutByGap.
struct CallSink {
  void on_call_begin(const Call&) {}
  void on_call_end(const EndedCall&) {}
  void on_lone_end(uint32_t /*slot*/, EndReason, const Moment&) {}
  void on_untimed(uint32_t /*slot*/, atf::EventKind) {}
  void on_wait(uint64_t /*ns*/, size_t /*depth*/) {}
  void on_gap(const Gap&, const Moment& /*last*/) {}
};

}  // namespace collect::calls
