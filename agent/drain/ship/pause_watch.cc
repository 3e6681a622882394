#include "agent/drain/ship/pause_watch.h"

#include <time.h>

#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/ring/clock.h"

namespace collect::agent {
namespace {

// A stop between the reads of the two clocks must not look like a sleep of the machine.
constexpr int kReadTries = 3;
#if defined(CLOCK_UPTIME_RAW)
constexpr clockid_t kAwakeClock = CLOCK_UPTIME_RAW;
#else
constexpr clockid_t kAwakeClock = CLOCK_MONOTONIC;
#endif

uint64_t read_clock(clockid_t clock) {
  timespec now;
  sys::clock_gettime(clock, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

// `now` may be behind where two clocks were not read at once.
uint64_t passed(uint64_t before, uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

PauseReadings read_pauses() {
  PauseReadings now;
  uint64_t span_ns = 0;
  for (int tries = 0; tries < kReadTries; ++tries) {
    now.monotonic_ns = read_clock(kAwakeClock);
    now.continuous_ns = read_system_clock();
    span_ns = read_clock(kAwakeClock) - now.monotonic_ns;
    if (span_ns < kLeastSuspendNs / 2) break;
  }
  now.cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
  now.voluntary_switches = voluntary_switches();
  return now;
}

Pause PauseWatch::look(const PauseReadings& now, uint64_t may_sleep_ns) {
  const PauseReadings last = last_;
  last_ = now;
  if (!has_looked_) {
    has_looked_ = true;
    return {};
  }
  Pause pause;
  const uint64_t awake_ns = passed(last.monotonic_ns, now.monotonic_ns);
  const uint64_t all_ns = passed(last.continuous_ns, now.continuous_ns);
  if (passed(awake_ns, all_ns) >= kLeastSuspendNs) pause.suspended_ns = all_ns - awake_ns;
  const uint64_t own_ns = may_sleep_ns + passed(last.cpu_ns, now.cpu_ns);
  const uint64_t own_switches = may_sleep_ns != 0 ? 1 : 0;
  if (passed(own_ns, awake_ns) >= kLeastStopNs &&
      passed(last.voluntary_switches, now.voluntary_switches) > own_switches) {
    pause.stopped_ns = awake_ns - own_ns;
  }
  return pause;
}

}  // namespace collect::agent
