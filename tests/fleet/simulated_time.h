// The clocks of this process: from begin() on every one of them says simulated time, which passes
// only where the simulation lets it. The daemon's code asks std::chrono, clock_gettime() and Asio's
// timers; all of these end in functions of libc that this file puts itself in front of. CPU clocks
// stay real.
#pragma once

#include <cstdint>

#include "storage/fs/clock.h"

namespace collect::fleet {

inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr uint64_t kNsPerS = 1'000'000'000;

class SimulatedTime {
 public:
  // Before any thread is started. `unix_ns` is the true time of day at now_ns() 0.
  static void begin(uint64_t unix_ns);
  static uint64_t now_ns();
  static uint64_t unix_ns();                // true time of day
  static void advance_to(uint64_t now_ns);  // never back
  // How wrong the time of day is that this thread's calls get.
  static void set_wall_error(int64_t ns);
};

uint64_t real_wall_ns();
uint64_t real_cpu_ns();  // of this thread

// A machine's clock for what takes one as a parameter. Any thread.
class MachineClock final : public storage::Clock {
 public:
  uint64_t unix_ns() override;
  uint64_t monotonic_ns() override { return kBootNs + SimulatedTime::now_ns(); }

  // Read by others while it is set: a plain number would do on every machine of ours.
  void set_wall_error(int64_t ns) { __atomic_store_n(&wall_error_ns_, ns, __ATOMIC_RELAXED); }
  int64_t wall_error() const { return __atomic_load_n(&wall_error_ns_, __ATOMIC_RELAXED); }

  static constexpr uint64_t kBootNs = 1'000 * kNsPerS;  // machines are up for so long at now_ns() 0

 private:
  int64_t wall_error_ns_ = 0;
};

}  // namespace collect::fleet
