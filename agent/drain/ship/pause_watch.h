// Finds the times in which this process did not run, or the whole machine did not, from what the
// drain thread sees of itself. Drain thread only.
//
// Stopped (SIGSTOP, a debugger, a frozen control group): more time has passed than the thread slept
// and computed for, and it gave the CPU up once more than it did by itself. A thread that the
// system merely does not let run gives nothing up. Suspended: the clock that continues while the
// machine sleeps has run ahead of the one that does not.
#pragma once

#include <cstdint>

namespace collect::agent {

// A stop that is shorter is not distinguished from the drain's own work.
inline constexpr uint64_t kLeastStopNs = 100'000'000;
// A sleep that is shorter is not distinguished from the noise of two clocks.
inline constexpr uint64_t kLeastSuspendNs = 10'000'000;

struct PauseReadings {
  uint64_t monotonic_ns = 0;        // stops while the machine sleeps
  uint64_t continuous_ns = 0;       // continues
  uint64_t cpu_ns = 0;              // of this thread
  uint64_t voluntary_switches = 0;  // of this thread: how often it gave the CPU up
};
PauseReadings read_pauses();

struct Pause {
  uint64_t stopped_ns = 0;  // until now; 0: it was not
  uint64_t suspended_ns = 0;
};

class PauseWatch {
 public:
  // What has passed since the last look. `may_sleep_ns`: the thread has slept once, at most so
  // long; 0: it has not.
  Pause look(const PauseReadings& now, uint64_t may_sleep_ns);

 private:
  bool has_looked_ = false;
  PauseReadings last_;
};

}  // namespace collect::agent
