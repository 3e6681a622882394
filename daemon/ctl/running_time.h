// The time of one thread without its stalls: what the calls that were open then are measured by.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/ctl/names.h"
#include "storage/session_types.h"

namespace collect::ctl {

// The stalls of thread_N and those of the whole process, in order of time.
std::vector<storage::Stall> stalls_of(const SessionManifest& manifest, uint32_t thread);

class RunningTime {
 public:
  RunningTime() = default;
  // Where a stall of the process meets one of the thread, time counts as stalled once. Of joined
  // ones, every part counts as stalled in the same proportion.
  explicit RunningTime(const std::vector<storage::Stall>& stalls);

  // A time on a clock that stands still in stalls. Cheap where times grow, correct where they
  // don't.
  uint64_t at(uint64_t ns) { return ns - stalled_until(ns); }
  // How much of the time before `ns` was stalled.
  uint64_t stalled_until(uint64_t ns);

 private:
  struct Piece {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t stalled_ns = 0;
    uint64_t before_ns = 0;  // stalled, in the pieces before
  };
  void add(uint64_t first_ns, uint64_t last_ns, const storage::Stall& stall);

  std::vector<Piece> pieces_;  // in order of time, none overlaps another
  size_t next_ = 0;            // the first that ends behind the time that was asked last
};

}  // namespace collect::ctl
