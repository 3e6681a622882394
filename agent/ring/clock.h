// The device clock, in nanoseconds, from the CPU's counter.
//
// A line (base, slope) maps counter ticks to the platform's continuous clock. The drain thread fits
// a new line now and then; lines join without a step, so that a thread's times never run backwards,
// and each thread keeps its own copy, refreshed when the recorder's epoch changes. Where the
// counter can't be trusted (not invariant), the system's clock is asked each time.
#pragma once

#include <time.h>

#include <cstdint>

#include "agent/platform/system.h"

namespace collect::agent {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

struct ClockLine {
  uint64_t base_ticks = 0;
  uint64_t base_ns = 0;
  uint64_t ns_per_tick = 0;  // 32.32 fixed point; 0: the counter is not used
};

inline uint64_t read_counter() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // <x86intrin.h> takes longer to compile than most files here
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "no CPU counter known for this architecture"
#endif
}

// The platform's continuous clock itself: CLOCK_BOOTTIME; CLOCK_MONOTONIC_RAW on Apple is
// mach_continuous_time in nanoseconds.
inline uint64_t read_system_clock() {
  struct timespec now;
#if defined(__APPLE__)
  sys::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
#else
  sys::clock_gettime(CLOCK_BOOTTIME, &now);
#endif
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

// Signed, because another core's counter may be a few ticks behind the one that fitted the line.
inline uint64_t line_ns(const ClockLine& line, uint64_t ticks) {
  const auto delta = static_cast<int64_t>(ticks - line.base_ticks);
  const Int128 scaled = Int128{delta} * static_cast<int64_t>(line.ns_per_tick);
  return line.base_ns + static_cast<uint64_t>(static_cast<int64_t>(scaled >> 32));
}

// First fit; takes about a millisecond. After a fork the line still holds. False: no memory.
bool clock_init();
// Fits a new line. [drain] True when it was published: the recorder's epoch must change.
bool clock_fit();
// The newest line, consistent; any thread, wait-free for all practical purposes.
ClockLine clock_line();
inline uint64_t clock_now(const ClockLine& line) {
  return line.ns_per_tick != 0 ? line_ns(line, read_counter()) : read_system_clock();
}

}  // namespace collect::agent
