#include "daemon/ingest/clock/clock_fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

// Two points closer than this say nothing about drift: the round trip's noise is larger.
constexpr uint64_t kMinDriftSpanNs = 1'000'000'000;
constexpr double kMaxDriftPpb = 1'000'000;  // 0.1 %: no quartz is worse; beyond it a clock jumped

}  // namespace

uint64_t boottime_ns() {
  timespec now{};
  COLLECT_CHECK(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t unix_ns_at(uint64_t at_boottime_ns) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count()) -
         (boottime_ns() - at_boottime_ns);
}

const std::string& boot_id() {
  static const std::string id = [] {
    std::string line;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), line);
    return line;
  }();
  return id;
}

void ClockFit::add(const ClockSample& sample) {
  if (sample.t4_ns < sample.t1_ns || sample.t3_ns < sample.t2_ns) return;
  const uint64_t there_and_back = sample.t4_ns - sample.t1_ns;
  const uint64_t inside = sample.t3_ns - sample.t2_ns;
  if (inside > there_and_back || sample.t3_ns > INT64_MAX || sample.t4_ns > INT64_MAX) return;
  const uint64_t round_trip = there_and_back - inside;
  if (best_ && best_->round_trip_ns <= round_trip) return;
  // Middle of the device's two times minus middle of ours.
  const int64_t device = static_cast<int64_t>(sample.t2_ns / 2 + sample.t3_ns / 2);
  const int64_t ours = static_cast<int64_t>(sample.t1_ns / 2 + sample.t4_ns / 2);
  best_ = Point{static_cast<uint64_t>(ours), device - ours, round_trip};
}

std::optional<storage::ClockSync> ClockFit::end_burst() {
  if (!best_) return std::nullopt;
  const Point latest = *best_;
  best_.reset();
  points_.push_back(latest);
  if (points_.size() > kFittedBursts) points_.pop_front();

  storage::ClockSync sync;
  sync.at_ns = latest.at_ns;
  sync.offset_ns = latest.offset_ns;
  sync.uncertainty_ns = latest.round_trip_ns / 2 + 1;
  const Point& first = points_.front();
  if (latest.at_ns - std::min(first.at_ns, latest.at_ns) < kMinDriftSpanNs) return sync;

  // Least squares, relative to the latest point so that doubles hold nanoseconds exactly.
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (const Point& point : points_) {
    const double x = -static_cast<double>(latest.at_ns - std::min(point.at_ns, latest.at_ns));
    const double y = static_cast<double>(point.offset_ns - latest.offset_ns);
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  const double count = static_cast<double>(points_.size());
  const double spread = count * sum_xx - sum_x * sum_x;
  if (spread <= 0) return sync;
  const double slope = (count * sum_xy - sum_x * sum_y) / spread;
  const double drift_ppb = slope * 1e9;
  if (std::abs(drift_ppb) > kMaxDriftPpb) {
    points_ = {latest};  // the clock was set or the device slept: begin again from here
    return sync;
  }
  sync.drift_ppb = drift_ppb;
  sync.offset_ns = latest.offset_ns + std::llround((sum_y - slope * sum_x) / count);
  return sync;
}

}  // namespace collect::ingest
