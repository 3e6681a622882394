// Stalls of one thread: the times in which it waited for a page. And its waits for locks of the
// program, which go the same way. Its own lines of the stream; the short path never looks at them.
//
// A wait begins and continues in page_wait.cc, and is added when the hook that waited has written
// its event: so the waits of one event are one stall, which is behind that event and before the
// next. The thread adds, the drain takes out; when the drain is behind, the stalls that have no
// room are joined, so that their number and their sum stay exact. What is under way can be seen by
// the drain all the time, for the thread may be killed in it.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/ring/recorder.h"

namespace collect::agent {

struct StallRing {
  // Producer's.
  ThreadStall* entries = nullptr;  // `held` of them; null: of no thread
  uint32_t held = 0;
  ThreadStall few[kFewStallsHeld];         // where they have no other place
  std::atomic<uint32_t> added{0};          // released when an entry is written
  ThreadStall joined[2];                   // for pages, for locks: that found no room; of none when
                                           // its count is 0
  std::atomic<uint64_t> wait_first_ns{0};  // under way; 0: no wait is
  std::atomic<uint64_t> wait_last_ns{0};
  // Waits of signal handlers inside a hook: their interrupted hook adds them.
  std::atomic<uint64_t> nested_first_ns{0};
  std::atomic<uint64_t> nested_last_ns{0};
  std::atomic<uint64_t> nested_ns{0};
  std::atomic<uint32_t> nested_count{0};

  // Drain's.
  std::atomic<uint32_t> taken{0};

  bool is_pending() const {
    return wait_first_ns.load(std::memory_order_relaxed) != 0 ||
           (joined[0].count | joined[1].count) != 0 ||
           nested_count.load(std::memory_order_relaxed) != 0;
  }
};

// Producer's; `now_ns` is not before the thread's last event. A wait that is under way continues.
void begin_wait(StallRing& stalls, uint64_t now_ns);
void continue_wait(StallRing& stalls, uint64_t now_ns);
// A wait for a lock that is over, in the order of time.
void add_lock_wait(StallRing& stalls, const ThreadStall& wait);
// By a handler that interrupts the producer.
void add_nested_wait(StallRing& stalls, uint64_t first_ns, uint64_t last_ns);
// Adds all that is pending.
void add_stalls(StallRing& stalls);
// Adds all that is pending of a thread that writes no more. [drain]
void add_last_stalls(StallRing& stalls);

}  // namespace collect::agent
