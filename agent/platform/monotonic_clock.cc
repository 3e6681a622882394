#include "agent/platform/monotonic_clock.h"

#include <time.h>

#include "agent/platform/system.h"

namespace collect::agent {

uint64_t monotonic_ns() {
  timespec now{};
  sys::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t monotonic_ms() {
  return monotonic_ns() / 1000000;
}

}  // namespace collect::agent
