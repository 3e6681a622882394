// Relates a device's clock to ours from probes with four timestamps. The probe with the smallest
// round trip of a burst counts; offset and drift are fitted over the last bursts. Pure arithmetic.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "storage/model/session_types.h"

namespace collect::ingest {

// t1 and t4 on the collector's clock, t2 and t3 on the device's.
struct ClockSample {
  uint64_t t1_ns = 0;
  uint64_t t2_ns = 0;
  uint64_t t3_ns = 0;
  uint64_t t4_ns = 0;
};

// The collector's clock in clock sync: continuous, like the devices'.
uint64_t boottime_ns();
// The time of day at a moment of that clock, by both clocks as they are now.
uint64_t unix_ns_at(uint64_t at_boottime_ns);
// The boot that this clock belongs to; empty where the system does not say.
const std::string& boot_id();

class ClockFit {
 public:
  void begin_burst() { best_.reset(); }
  // Samples whose times contradict each other are ignored: the device may say anything.
  void add(const ClockSample& sample);
  // Closes the burst; empty when it had no usable sample.
  std::optional<storage::ClockSync> end_burst();

 private:
  struct Point {
    uint64_t at_ns = 0;  // collector's clock, middle of the round trip
    int64_t offset_ns = 0;
    uint64_t round_trip_ns = 0;
  };

  std::optional<Point> best_;
  std::deque<Point> points_;  // the best of each burst, oldest first, at most kFittedBursts
};

}  // namespace collect::ingest
