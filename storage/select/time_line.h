// Sessions of several devices on one time line: the collector's clock, as nanoseconds since the
// epoch. Each session's manifest has comparisons of its device's clock with the collector's
// (STORAGE.md `clock_sync`), each with an uncertainty; between them the clocks are taken to run
// evenly. Sessions that one collector stored without a restart of its machine are related by its
// continuous clock alone; others by its time of day, too. Pure arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/core/result.h"
#include "storage/manifest/manifest.h"

namespace collect::select {

// Beyond the outermost comparisons clocks may run apart this much faster than is known of them.
inline constexpr double kUnknownDriftPpm = 100;  // with one comparison: what a quartz may do
inline constexpr double kResidualDriftPpm = 10;  // with several: what temperature does to it

// One device's clock on the time line. Times never run backwards through it.
class DeviceClock {
 public:
  uint64_t line_ns(uint64_t device_ns) const;
  uint64_t device_ns(uint64_t line_ns) const;
  // How far line_ns() may be off, either way; meaningless unless is_compared().
  uint64_t uncertainty_ns(uint64_t device_ns) const;

  // False: no one compared it, and the device's own time of day had to do.
  bool is_compared() const { return is_compared_; }
  size_t comparisons() const { return points_.size(); }
  uint64_t best_uncertainty_ns() const;
  std::string sentence() const;  // for people: how the clock is known

 private:
  friend class TimeLine;
  struct Point {
    uint64_t device_ns = 0;
    uint64_t line_ns = 0;
    uint64_t uncertainty_ns = 0;
  };

  std::vector<Point> points_;  // at least one; both times ascend
  double rate_ = 1;            // of the device's clock, beyond the outermost points
  double drift_ppm_ = kUnknownDriftPpm;
  bool is_compared_ = true;
};

class TimeLine {
 public:
  // kInvalidArgument: nothing in the manifest says when its events happened.
  Result<DeviceClock> add(const storage::Manifest& manifest);

 private:
  // Time of day minus the collector's clock, by boot; the first comparison of a boot decides.
  std::unordered_map<std::string, uint64_t> boots_;
};

}  // namespace collect::select
