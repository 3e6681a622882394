// The time of one thread without its stalls: what the calls that were open then are measured by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collect::calls {

// The thread did not run, though the program had not asked for it, or it was off the processor; or
// several such times that were joined: then it ran in a part of them.
struct Stall {
  uint64_t first_ns = 0;  // device clock
  uint64_t last_ns = 0;
  uint64_t stalled_ns = 0;        // at most last - first
  uint64_t count = 1;             // how many were joined
  bool is_of_process = false;     // every thread stood still, not this one alone
  bool is_off_processor = false;  // blocked or preempted, which is the program's own time
};

class RunningTime {
 public:
  RunningTime() = default;
  // Where a stall of the process meets one of the thread, time counts as stalled once. Of joined
  // ones, every part counts as stalled in the same proportion. Any order; a stall that ends before
  // it begins is none.
  explicit RunningTime(const std::vector<Stall>& stalls);

  // Behind those that are there; of one that meets them, what is behind them.
  void append(const Stall& stall);
  // What was stalled before `ns` stays counted, and needs no memory. Earlier times are not asked
  // any more.
  void forget_before(uint64_t ns);

  // A time on a clock that stops in stalls. Cheap where times grow, correct where they
  // don't.
  uint64_t at(uint64_t ns) { return pieces_.empty() ? ns : ns - stalled_until(ns); }
  // How much of the time before `ns` was stalled.
  uint64_t stalled_until(uint64_t ns);
  // From `ns` up to the time that this gives, nothing is stalled; it may be before `ns`.
  uint64_t next_stall(uint64_t ns) {
    (void)stalled_until(ns);
    return next_ < pieces_.size() ? pieces_[next_].first_ns : UINT64_MAX;
  }

 private:
  struct Piece {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t stalled_ns = 0;
    uint64_t before_ns = 0;  // stalled, in the pieces before
  };
  void add(uint64_t first_ns, uint64_t last_ns, const Stall& stall);

  std::vector<Piece> pieces_;  // in order of time, none overlaps another
  size_t next_ = 0;            // the first that ends behind the time that was asked last
};

}  // namespace collect::calls
