// How long recorded threads were on a processor, and waited for one, as the scheduler counts it:
// where the switches themselves cannot be had. What was between two looks is reported as times off
// the processor that were joined, so reports spread it over the calls of that time. Drain thread
// only; part of DrainThread.
#pragma once

#include <cstdint>

#include "agent/drain/link/stream_table.h"
#include "agent/drain/ship/stall_log.h"
#include "agent/platform/threads.h"

namespace collect::agent {

inline constexpr uint64_t kClockLookNs = 10'000'000;
// Threads that are looked at then, in turn. On Apple's systems each look searches all of them.
#if defined(__APPLE__)
inline constexpr uint32_t kClockLooks = 4;
#else
inline constexpr uint32_t kClockLooks = 32;
#endif
// Less is kept for the next look.
inline constexpr int64_t kLeastOffNs = 200'000;

class ThreadClocks {
 public:
  ThreadClocks(StreamTable& streams, StallLog& stalls) : streams_(streams), stalls_(stalls) {}

  // Whether the system counts it.
  bool watch(int32_t process);
  void look(uint64_t now_ns, bool is_running);

 private:
  struct Clock {
    uint32_t stream_id;  // 0: none yet
    uint64_t since_ns;
    ThreadTimes then;
    // Off the processor before that, and not reported. The scheduler's figure of a thread that runs
    // is as old as its last tick, so what is reported may be too much; then this is negative, and
    // the sum is never wrong by more than a tick.
    int64_t kept_ns;
  };

  void look_at(Clock& clock, const StreamSlot& slot, uint64_t now_ns);
  // False: there is no room for it now.
  bool report(const Clock& clock, uint64_t now_ns, uint64_t blocked_ns, uint64_t preempted_ns,
              uint32_t count);

  StreamTable& streams_;
  StallLog& stalls_;
  int32_t process_ = 0;  // 0: nothing is watched
  uint64_t next_ns_ = 0;
  uint32_t turn_ = 0;
  bool was_running_ = false;
  Clock clocks_[kMaxStreams];  // by the slots of the table
};

}  // namespace collect::agent
