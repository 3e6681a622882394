// The calls that are open on one thread, rebuilt from its events: the one place where calls meet
// their returns. Real traces lose returns (longjmp, ring overflow) and begin in the middle, so a
// return, or an exception, may close several calls or none. Nothing here trusts the input: depth
// and the number of functions have limits, and a return costs constant time, or a call that it
// closes. Used on one thread. CALLS.md "Pairing" and "Gaps".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/nesting.h"

namespace collect::calls {

enum class Leave : uint8_t {
  kClosed,   // the call ended
  kTooDeep,  // the end of a call deeper than OpenCalls::kMaxDepth
  kNoCall,
};

class OpenCalls {
 public:
  static constexpr size_t kMaxDepth = size_t{1} << 20;  // deeper calls are counted, not timed

  // With those that are too deep.
  size_t depth() const { return frames_.size() + too_deep_; }
  size_t timed_depth() const { return frames_.size(); }

  // The call that would be given at this position, outermost first; position < timed_depth().
  Call at(size_t position) const {
    const Frame& frame = frames_[position];
    const auto doubt = doubt_of(position);
    const size_t certain_from = doubt == doubts_.begin() ? 0 : (doubt - 1)->depth;
    return {frame.slot, static_cast<uint32_t>(position), frame.begin,
            certain_from != 0 && certain_from == position, static_cast<uint32_t>(certain_from)};
  }

  // Whether a call of this function is open that is not too deep.
  bool is_open(uint32_t slot) const { return nesting_.is_open(slot); }

  // Position of the newest open call of this function; is_open(slot).
  size_t innermost(uint32_t slot) const { return nesting_.newest(slot); }

  // False beyond kMaxDepth: then nothing was opened, and at(timed_depth() - 1) is another call.
  bool call(uint32_t slot, const Moment& now) {
    if (frames_.size() >= kMaxDepth) {
      ++too_deep_;
      return false;
    }
    nesting_.begin(slot, certain_from_);
    frames_.push_back({now, now.running_ns, 0, slot});
    return true;
  }

  Call newest() const {
    const size_t position = frames_.size() - 1;
    return {frames_.back().slot, static_cast<uint32_t>(position), frames_.back().begin,
            position != 0 && position == certain_from_, static_cast<uint32_t>(certain_from_)};
  }

  // Gives ended(EndedCall) for every call that this closes, innermost first. kNoCall when no call
  // of this function is open: then nothing is closed. No return searches the stack, which a hostile
  // file could make deep.
  template <class F>
  Leave leave(uint32_t slot, const Moment& now, EndReason own, F&& ended) {
    if (too_deep_ != 0) {
      --too_deep_;
      return Leave::kTooDeep;
    }
    if (!is_open(slot)) return Leave::kNoCall;
    // Nearly always the newest call, which is in no doubt.
    if (frames_.back().slot != slot || frames_.size() <= certain_from_) {
      close_above(innermost(slot), now, EndReason::kSkipped, ended);
    }
    pop(now, own, ended);
    return Leave::kClosed;
  }

  // Events are missing behind `last`. `survivors`: so many calls, from the outermost on, are known
  // to be open behind the gap, and the others have ended in it. Without: no one knows.
  template <class F>
  void gap(const Moment& last, std::optional<size_t> survivors, F&& ended) {
    too_deep_ = 0;
    gap_seq_ = last.seq == kNoEvent ? 0 : last.seq + 1;
    has_gap_ = true;
    if (survivors && *survivors == 0) {
      while (!frames_.empty()) pop_passed(last, EndReason::kCutByGap, ended);
      forget_doubts();
    } else if (survivors) {
      close_above(std::min(*survivors, frames_.size()) - 1, last, EndReason::kCutByGap, ended);
    } else if (frames_.size() > certain_from_) {
      doubts_.push_back({frames_.size(), last.ns, last.running_ns, 0});
      certain_from_ = frames_.size();
    }
  }

  // A gap that was read before, behind which `depth` calls were open, or, in doubt, may have been.
  // Those that are open now are the ones of them that have not ended since.
  void resume_gap(const Moment& last, size_t depth, bool is_doubt) {
    if (frames_.size() == depth) {
      const auto nothing = [](const EndedCall&) {};
      gap(last, is_doubt ? std::nullopt : std::optional(depth), nothing);
    } else {
      gap_seq_ = last.seq == kNoEvent ? 0 : last.seq + 1;
      has_gap_ = true;
    }
  }

  // Closes what is still open. Ready for the next thread afterwards.
  template <class F>
  void finish(const Moment& now, EndReason reason, F&& ended) {
    while (!frames_.empty()) pop_passed(now, reason, ended);
    forget_doubts();
    too_deep_ = 0;
    has_gap_ = false;
  }

  // From here on the calls that are open are measured again: what came before is outside the
  // window.
  void restart_times(uint64_t running_ns) {
    for (Frame& frame : frames_) {
      frame.begin_running_ns = running_ns;
      frame.callees_ns = 0;
    }
    for (Doubt& doubt : doubts_) doubt.callees_ns = 0;
    nesting_.restart();
  }

 private:
  struct Frame {
    Moment begin;
    uint64_t begin_running_ns = 0;  // begin.running_ns, or later where a window begins
    uint64_t callees_ns = 0;        // running time of the calls made from here
    uint32_t slot = 0;
  };
  // The calls below `depth` were open before a gap, and may have ended in it.
  struct Doubt {
    size_t depth = 0;
    uint64_t ns = 0;  // of the last event before the gap
    uint64_t running_ns = 0;
    uint64_t callees_ns = 0;  // of the calls behind the gap that one of them has made
  };

  // The doubt whose calls are those below `depth`, if there is one.
  const Doubt* doubt_below(size_t depth) const {
    const auto doubt =
        std::lower_bound(doubts_.begin(), doubts_.end(), depth,
                         [](const Doubt& each, size_t at) { return each.depth < at; });
    return doubt != doubts_.end() && doubt->depth == depth ? &*doubt : nullptr;
  }

  // The first doubt that the call at this position is in, or none of them.
  std::vector<Doubt>::const_iterator doubt_of(size_t position) const {
    return std::upper_bound(doubts_.begin(), doubts_.end(), position,
                            [](size_t at, const Doubt& doubt) { return at < doubt.depth; });
  }

  void forget_doubts() {
    doubts_.clear();
    certain_from_ = 0;
  }

  // The call at `position` is known to be open now: those within it are not. What was called behind
  // the gaps that it outlived was called from it.
  template <class F>
  void close_above(size_t position, const Moment& now, EndReason reason, F& ended) {
    while (frames_.size() > position + 1) pop_passed(now, reason, ended);
    while (!doubts_.empty() && doubts_.back().depth > position) {
      frames_[position].callees_ns += doubts_.back().callees_ns;
      doubts_.pop_back();
    }
    certain_from_ = doubts_.empty() ? 0 : doubts_.back().depth;
  }

  // Pops one that has no end of its own. Where a gap explains that, it ended there.
  template <class F>
  void pop_passed(const Moment& now, EndReason reason, F& ended) {
    const auto doubt = doubt_of(frames_.size() - 1);
    Moment end;
    if (doubt == doubts_.end()) {
      end.ns = now.ns;
      end.running_ns = now.running_ns;
    } else {
      end.ns = doubt->ns;
      end.running_ns = doubt->running_ns;
      reason = EndReason::kCutByGap;
    }
    pop(end, reason, ended);
  }

  template <class F>
  void pop(const Moment& end, EndReason reason, F& ended) {
    const Frame frame = frames_.back();
    frames_.pop_back();
    const size_t position = frames_.size();
    // Times that step back make no negative durations.
    const uint64_t total =
        end.running_ns > frame.begin_running_ns ? end.running_ns - frame.begin_running_ns : 0;
    const uint64_t self = total > frame.callees_ns ? total - frame.callees_ns : 0;
    if (position > certain_from_) {
      frames_[position - 1].callees_ns += total;
    } else {
      charge_caller(position, total);
    }
    EndedCall call;
    call.slot = frame.slot;
    call.depth = static_cast<uint32_t>(position);
    call.reason = reason;
    const Nesting::Ended ended_in = nesting_.end(total, reason == EndReason::kCutByGap);
    call.is_outermost = ended_in.is_outermost;
    call.function_ns = ended_in.added_ns;
    call.spans_gap = has_gap_ && frame.begin.seq < gap_seq_;
    call.is_whole =
        reason <= EndReason::kUnwound && frame.begin_running_ns == frame.begin.running_ns;
    call.begin = frame.begin;
    call.end = end;
    call.total_ns = total;
    call.self_ns = self;
    ended(call);
  }

  void charge_caller(size_t position, uint64_t total) {
    if (position == 0) return;
    if (const Doubt* doubt = doubt_below(position); doubt != nullptr) {
      doubts_[static_cast<size_t>(doubt - doubts_.data())].callees_ns += total;
    } else {
      frames_[position - 1].callees_ns += total;
    }
  }

  std::vector<Frame> frames_;
  Nesting nesting_;  // by slot; of the same calls as `frames_`
  uint64_t too_deep_ = 0;
  std::vector<Doubt> doubts_;  // depths ascend
  size_t certain_from_ = 0;    // depth of the last doubt: the calls from here on are in none
  uint64_t gap_seq_ = 0;       // of the first event behind the last gap
  bool has_gap_ = false;
};

}  // namespace collect::calls
