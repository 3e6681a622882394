// CPU time of a thread, and of another process with all of its threads, in seconds.
#pragma once

#include <sys/types.h>
#include <time.h>

namespace collect::bench {

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double thread_cpu_seconds() {
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
inline double wall_seconds() {
  return seconds_of(CLOCK_MONOTONIC);
}

// User and system time, of threads that ended too.
inline double process_cpu_seconds(pid_t pid) {
  clockid_t clock{};
  return clock_getcpuclockid(pid, &clock) == 0 ? seconds_of(clock) : 0;
}

}  // namespace collect::bench
