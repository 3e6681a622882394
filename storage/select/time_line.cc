#include "storage/select/time_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace collect::select {
namespace {

// Two comparisons closer than this say nothing about drift.
constexpr uint64_t kMinDriftSpanNs = 1'000'000'000;
constexpr double kMaxRate = 1.001;  // no quartz is worse: beyond it a clock was set

// `ns` of something that takes `ratio` as long, from 0 on either side. What is before 0, or
// beyond the largest number, is there.
uint64_t moved(uint64_t from, int64_t by, double ratio) {
  const auto distance =
      static_cast<uint64_t>(std::llround(std::abs(static_cast<double>(by) * ratio)));
  if (by < 0) return from - std::min(from, distance);
  return from + std::min(UINT64_MAX - from, distance);
}

uint64_t share(uint64_t at, uint64_t from, uint64_t span, uint64_t of) {
  if (span == 0) return 0;
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{at - from} * of / span);
}

}  // namespace

uint64_t DeviceClock::line_ns(uint64_t device_ns) const {
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), device_ns,
                       [](uint64_t time, const Point& point) { return time < point.device_ns; });
  if (after == points_.begin() || after == points_.end()) {
    const Point& edge = after == points_.begin() ? points_.front() : points_.back();
    return moved(edge.line_ns, static_cast<int64_t>(device_ns - edge.device_ns), 1 / rate_);
  }
  const Point& a = *(after - 1);
  return a.line_ns +
         share(device_ns, a.device_ns, after->device_ns - a.device_ns, after->line_ns - a.line_ns);
}

uint64_t DeviceClock::device_ns(uint64_t line_ns) const {
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), line_ns,
                       [](uint64_t time, const Point& point) { return time < point.line_ns; });
  if (after == points_.begin() || after == points_.end()) {
    const Point& edge = after == points_.begin() ? points_.front() : points_.back();
    return moved(edge.device_ns, static_cast<int64_t>(line_ns - edge.line_ns), rate_);
  }
  const Point& a = *(after - 1);
  return a.device_ns +
         share(line_ns, a.line_ns, after->line_ns - a.line_ns, after->device_ns - a.device_ns);
}

uint64_t DeviceClock::uncertainty_ns(uint64_t device_ns) const {
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), device_ns,
                       [](uint64_t time, const Point& point) { return time < point.device_ns; });
  if (after != points_.begin() && after != points_.end()) {
    return std::max((after - 1)->uncertainty_ns, after->uncertainty_ns);
  }
  const Point& edge = after == points_.begin() ? points_.front() : points_.back();
  const uint64_t distance =
      device_ns > edge.device_ns ? device_ns - edge.device_ns : edge.device_ns - device_ns;
  return edge.uncertainty_ns +
         static_cast<uint64_t>(static_cast<double>(distance) * drift_ppm_ * 1e-6);
}

uint64_t DeviceClock::best_uncertainty_ns() const {
  return std::min_element(
             points_.begin(), points_.end(),
             [](const Point& a, const Point& b) { return a.uncertainty_ns < b.uncertainty_ns; })
      ->uncertainty_ns;
}

std::string DeviceClock::sentence() const {
  if (!is_compared_) {
    return "placed by the device's own time of day: its clock was not compared";
  }
  return fmt::format("{} with the collector's clock, the best within {} us",
                     comparisons() == 1 ? std::string("1 comparison")
                                        : fmt::format("{} comparisons", comparisons()),
                     (best_uncertainty_ns() + 999) / 1000);
}

Result<DeviceClock> TimeLine::add(const storage::Manifest& manifest) {
  DeviceClock clock;
  std::vector<DeviceClock::Point>& points = clock.points_;
  for (const storage::ClockSync& sync : manifest.clock_syncs) {
    if (sync.at_unix_ns == 0) continue;  // of a collector that did not say
    const uint64_t to_unix =
        boots_.try_emplace(sync.boot_id, sync.at_unix_ns - sync.at_ns).first->second;
    points.push_back({sync.at_ns + static_cast<uint64_t>(sync.offset_ns), sync.at_ns + to_unix,
                      sync.uncertainty_ns});
  }
  const storage::SessionIdentity& identity = manifest.identity;
  if (points.empty()) {
    if (identity.start_unix_ns == 0) {
      return Error{
          Code::kInvalidArgument,
          "its clock was not compared with a collector's, and it has no start time of day"};
    }
    points.push_back({identity.start_ns, identity.start_unix_ns, 0});
    clock.is_compared_ = false;
    return clock;
  }
  // A comparison that its neighbours bound more closely than it says itself only adds its noise.
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.device_ns < b.device_ns; });
  const std::vector<DeviceClock::Point> all = points;
  std::erase_if(points, [&](const DeviceClock::Point& point) {
    return std::any_of(all.begin(), all.end(), [&](const DeviceClock::Point& other) {
      const uint64_t distance = other.device_ns > point.device_ns
                                    ? other.device_ns - point.device_ns
                                    : point.device_ns - other.device_ns;
      return static_cast<double>(other.uncertainty_ns) +
                 static_cast<double>(distance) * kUnknownDriftPpm * 1e-6 <
             static_cast<double>(point.uncertainty_ns);
    });
  });
  // Within the uncertainty two close ones may contradict each other: time continues all the same.
  for (size_t i = 1; i < points.size(); ++i) {
    points[i].line_ns = std::max(points[i].line_ns, points[i - 1].line_ns);
  }
  const uint64_t line_span = points.back().line_ns - points.front().line_ns;
  if (line_span >= kMinDriftSpanNs) {
    const double rate = static_cast<double>(points.back().device_ns - points.front().device_ns) /
                        static_cast<double>(line_span);
    if (rate < kMaxRate && rate > 1 / kMaxRate) {
      clock.rate_ = rate;
      clock.drift_ppm_ = kResidualDriftPpm;
    }
  }
  return clock;
}

}  // namespace collect::select
