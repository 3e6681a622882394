// The events of one thread in, its calls out: gaps, stalls and a window of time are applied here.
// Constant memory but for the open calls. CALLS.md has the picture and an example.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/open_calls.h"
#include "formats/calls/running_time.h"

namespace collect::calls {

// Both ends belong to it. Of a call that is partly in it, that part is measured.
struct Window {
  uint64_t first_ns = 0;  // device clock
  uint64_t last_ns = std::numeric_limits<uint64_t>::max();

  bool is_everything() const {
    return first_ns == 0 && last_ns == std::numeric_limits<uint64_t>::max();
  }
};

// Counts of one thread, or of several added up; in the window alone.
struct ThreadCounts {
  uint64_t events = 0;
  uint64_t calls = 0;                // timed ones that were given to the sink
  uint64_t ended[kEndReasons] = {};  // of these, by EndReason
  uint64_t lone_ends = 0;            // returns and exceptions without a call
  uint64_t too_deep = 0;             // calls
  uint64_t unknown_kinds = 0;        // events, which count for nothing else
  uint64_t gaps = 0;
  uint64_t lost_events = 0;  // in these gaps
  uint64_t stalls = 0;
  uint64_t stalled_ns = 0;
  uint64_t clock_ns = 0;    // from the first event to the last
  uint64_t running_ns = 0;  // the same without stalls
  uint64_t waited_ns = 0;   // of these, off the processor

  uint64_t ended_by(EndReason reason) const { return ended[static_cast<size_t>(reason)]; }
  void add(const ThreadCounts& other);
};

// One thread. `slots` may be shared by threads that are read one after another; it and `sink`
// outlive this. Times within a thread should ascend; where they step back, durations are 0 rather
// than negative, and behind the end of the window nothing is read any more.
template <class Sink>
class ThreadCalls {
 public:
  ThreadCalls(FunctionSlots& slots, Sink& sink, std::vector<Stall> stalls = {}, Window window = {})
      : slots_(slots),
        sink_(sink),
        processor_(has_waits(stalls) ? RunningTime(stalls) : RunningTime()),
        next_wait_ns_(has_waits(stalls) ? 0 : kNever),
        stalls_(without_waits(std::move(stalls))),
        clock_(stalls_),
        window_(window),
        state_(window.first_ns == 0 ? State::kInside : State::kBefore) {}

  // `event` is an atf::IndexEvent, or has its timestamp_ns, function_id, detail_seq and kind. `seq`
  // is its number in the thread.
  template <class Event>
  void event(uint64_t seq, const Event& event) {
    if (state_ != State::kInside || event.timestamp_ns > window_.last_ns) {
      if (!is_admitted(seq, event)) return;
    }
    ++counts_.events;
    if (event.timestamp_ns > next_wait_ns_) give_waits(event.timestamp_ns);
    first_ns_ = std::min(first_ns_, event.timestamp_ns);
    last_ns_ = std::max(last_ns_, event.timestamp_ns);
    move<true>(seq, event);
  }

  // Before the event with the number `gap.before_seq`. `survivors` as in OpenCalls::gap();
  // survivors_of_gap() finds it where the events behind can be read ahead.
  void gap(const Gap& gap, std::optional<size_t> survivors = std::nullopt) {
    if (state_ != State::kBehind && gap.first_ns > window_.last_ns) leave_window();
    if (state_ == State::kBehind) return;
    const bool is_inside = state_ == State::kInside;
    open_.gap(newest_, survivors, [&](const EndedCall& call) {
      if (is_inside) give_end(call);
    });
    if (is_inside) {
      give_gap(gap);
    } else if (gap.last_ns == 0 || gap.last_ns >= window_.first_ns) {
      reaching_in_.push_back(gap);
    }
  }

  // Times off the processor that became known later, in their order, behind those that are there.
  // What they say of the time before the newest event comes too late, and is left out.
  void add_waits(std::span<const Stall> waits) {
    if (waits.empty()) return;
    for (const Stall& wait : waits) processor_.append(wait);
    if (newest_.seq == kNoEvent) {
      next_wait_ns_ = 0;
      return;
    }
    processor_.forget_before(newest_.ns);
    waited_before_ns_ = processor_.stalled_until(newest_.ns);
    has_begun_ = true;
    next_wait_ns_ = processor_.next_stall(newest_.ns);
  }

  // Calls and gaps before the window that need not be read again, in their order: resume_thread().
  template <class Event>
  void resume_call(uint64_t seq, const Event& event) {
    move<false>(seq, event);
  }
  template <class Event>
  void resume_at(uint64_t seq, const Event& event) {  // the event that was read last
    newest_ = {event.timestamp_ns, clock_.at(event.timestamp_ns), seq, event.detail_seq};
  }
  void resume_gap(size_t depth, bool is_doubt) { open_.resume_gap(newest_, depth, is_doubt); }

  // Behind the last event, once.
  void finish() {
    if (state_ == State::kInside) end(EndReason::kOpenAtEnd, last_ns_);
    for (const Gap& gap : std::exchange(reaching_in_, {})) give_gap(gap);
    state_ = State::kBehind;
    for (const Stall& stall : stalls_) {
      if (stall.first_ns < last_ns_ && stall.last_ns > first_ns_) counts_.stalls += stall.count;
    }
    if (first_ns_ >= last_ns_) return;
    counts_.clock_ns = last_ns_ - first_ns_;
    counts_.stalled_ns = clock_.stalled_until(last_ns_) - clock_.stalled_until(first_ns_);
    counts_.running_ns = counts_.clock_ns - counts_.stalled_ns;
  }

  // What follows the window is not needed any more.
  bool is_behind_window() const { return state_ == State::kBehind; }
  const OpenCalls& open_calls() const { return open_; }
  FunctionSlots& slots() { return slots_; }
  const ThreadCounts& counts() const { return counts_; }  // whole after finish()

 private:
  enum class State : uint8_t { kBefore, kInside, kBehind };
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  static bool has_waits(const std::vector<Stall>& stalls) {
    return std::any_of(stalls.begin(), stalls.end(),
                       [](const Stall& stall) { return stall.is_off_processor; });
  }
  static std::vector<Stall> without_waits(std::vector<Stall> stalls) {
    std::erase_if(stalls, [](const Stall& stall) { return stall.is_off_processor; });
    return stalls;
  }

  template <bool kGiven, class Event>
  void move(uint64_t seq, const Event& event) {
    const uint32_t slot = slots_.slot_of(event.function_id);
    newest_ = {event.timestamp_ns, clock_.at(event.timestamp_ns), seq, event.detail_seq};
    switch (event.kind) {
      case atf::EventKind::kCall:
        if (open_.call(slot, newest_)) {
          if constexpr (kGiven) give_begin(open_.newest());
        } else if constexpr (kGiven) {
          ++counts_.too_deep;
          sink_.on_untimed(slot, event.kind);
        }
        break;
      case atf::EventKind::kReturn:
        leave<kGiven>(slot, EndReason::kReturned, event.kind);
        break;
      case atf::EventKind::kException:  // the end of its call, as a return
        leave<kGiven>(slot, EndReason::kUnwound, event.kind);
        break;
      default:
        if constexpr (kGiven) ++counts_.unknown_kinds;
    }
  }

  template <bool kGiven>
  void leave(uint32_t slot, EndReason own, atf::EventKind kind) {
    const Leave left = open_.leave(slot, newest_, own, [&](const EndedCall& call) {
      if constexpr (kGiven) give_end(call);
    });
    if constexpr (kGiven) {
      if (left == Leave::kTooDeep) sink_.on_untimed(slot, kind);
      if (left == Leave::kNoCall) {
        ++counts_.lone_ends;
        sink_.on_lone_end(slot, own, newest_);
      }
    }
  }

  // Whether the event is in the window; one before it moves the open calls alone.
  template <class Event>
  bool is_admitted(uint64_t seq, const Event& event) {
    if (state_ == State::kBehind) return false;
    if (state_ == State::kBefore && event.timestamp_ns < window_.first_ns) {
      move<false>(seq, event);
      reaching_in_.clear();
      return false;
    }
    if (state_ == State::kBefore) enter();
    if (event.timestamp_ns <= window_.last_ns) return true;
    leave_window();
    return false;
  }

  void enter() {
    state_ = State::kInside;
    if (next_wait_ns_ != kNever) give_waits(window_.first_ns);
    open_.restart_times(clock_.at(window_.first_ns));
    if (newest_.seq != kNoEvent) first_ns_ = last_ns_ = window_.first_ns;
    for (size_t i = 0; i < open_.timed_depth(); ++i) give_begin(open_.at(i));
    for (const Gap& gap : std::exchange(reaching_in_, {})) give_gap(gap);
  }

  void leave_window() {
    if (state_ == State::kBefore) enter();
    last_ns_ = std::max(last_ns_, window_.last_ns);
    end(EndReason::kCutByWindow, window_.last_ns);
  }

  void end(EndReason reason, uint64_t ns) {
    if (next_wait_ns_ != kNever) give_waits(ns);
    Moment moment;
    moment.ns = ns;
    moment.running_ns = clock_.at(ns);
    open_.finish(moment, reason, [&](const EndedCall& call) { give_end(call); });
    state_ = State::kBehind;
  }

  // Up to `ns`; what was before the first time is not given.
  void give_waits(uint64_t ns) {
    const uint64_t idle_ns = processor_.stalled_until(ns);
    const uint64_t waited_ns = idle_ns - std::min(idle_ns, clock_.stalled_until(ns));
    if (has_begun_ && waited_ns > waited_before_ns_) {
      counts_.waited_ns += waited_ns - waited_before_ns_;
      sink_.on_wait(waited_ns - waited_before_ns_, open_.timed_depth());
    }
    has_begun_ = true;
    waited_before_ns_ = std::max(waited_before_ns_, waited_ns);
    next_wait_ns_ = processor_.next_stall(ns);
  }

  void give_begin(const Call& call) {
    ++counts_.calls;
    sink_.on_call_begin(call);
  }
  void give_end(const EndedCall& call) {
    ++counts_.ended[static_cast<size_t>(call.reason)];
    sink_.on_call_end(call);
  }
  void give_gap(const Gap& gap) {
    ++counts_.gaps;
    counts_.lost_events += gap.lost;
    sink_.on_gap(gap, newest_);
  }

  FunctionSlots& slots_;
  Sink& sink_;
  RunningTime
      processor_;  // stops where the thread stalled or was off the processor; empty: not known
  uint64_t next_wait_ns_;  // events up to this time have no wait before them that was not given
  uint64_t waited_before_ns_ =
      0;                    // from the thread's beginning to the last time that was looked at
  bool has_begun_ = false;  // such a time is there
  const std::vector<Stall> stalls_;  // without times off the processor
  RunningTime clock_;                // stops in these
  const Window window_;
  State state_;
  OpenCalls open_;
  Moment newest_;                                             // the last event that was read
  uint64_t first_ns_ = std::numeric_limits<uint64_t>::max();  // in the window
  uint64_t last_ns_ = 0;
  std::vector<Gap> reaching_in_;  // from before the window, behind the last event there
  ThreadCounts counts_;
};

}  // namespace collect::calls
