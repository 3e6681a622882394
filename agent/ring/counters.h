// Counters of the program: a name and a number each, set by collect_counter, sent by the drain when
// they have changed. With a drain process they are in shared memory.
#pragma once

#include <cstdint>

#include "proto/wire/layout.h"

namespace collect::agent {

struct CounterReading {
  char name[wire::kMaxCounterName + 1];
  int64_t value;
  int64_t highest;  // since the last reading
};

// Once per process, before any other call, and in a forked child again. False: no memory.
bool counters_init();
// Before that, while the child has one thread: it has none of its parent's counters.
void counters_after_fork_in_child();
// Any thread, signal handlers too. Nothing happens for an empty name, one that is longer than
// wire::kMaxCounterName, a new one when there are wire::kMaxCounters, and while no agent runs.
void set_counter(const char* name, int64_t value);

// [drain] Another number whenever a counter was set.
uint32_t counter_changes();
// [drain] Fills `reading` if counter `index` (below wire::kMaxCounters) was set since its last
// reading.
bool read_counter(uint32_t index, CounterReading& reading);
// [drain] Every counter counts as not read yet.
void forget_counter_readings();

}  // namespace collect::agent
