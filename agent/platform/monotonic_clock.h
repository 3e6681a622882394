// The system's monotonic clock, for deadlines and pauses of the drain. Events have a clock of their
// own: agent/ring/clock.h.
#pragma once

#include <cstdint>

namespace collect::agent {

uint64_t monotonic_ns();
uint64_t monotonic_ms();

}  // namespace collect::agent
