#include "formats/calls/thread_calls.h"

namespace collect::calls {

void ThreadCounts::add(const ThreadCounts& other) {
  events += other.events;
  calls += other.calls;
  for (size_t i = 0; i < kEndReasons; ++i) ended[i] += other.ended[i];
  lone_ends += other.lone_ends;
  too_deep += other.too_deep;
  unknown_kinds += other.unknown_kinds;
  gaps += other.gaps;
  lost_events += other.lost_events;
  stalls += other.stalls;
  stalled_ns += other.stalled_ns;
  clock_ns += other.clock_ns;
  running_ns += other.running_ns;
  waited_ns += other.waited_ns;
}

}  // namespace collect::calls
