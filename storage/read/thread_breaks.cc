#include "storage/read/thread_breaks.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace collect::read {

calls::Stall call_stall_of(const storage::Stall& stall) {
  return {stall.first_ns,
          stall.last_ns,
          stall.stalled_ns,
          stall.count,
          !stall.thread.has_value(),
          storage::is_off_processor(stall.kind)};
}

std::vector<storage::Stall> idle_times_of(const SessionManifest& manifest, uint32_t thread) {
  std::vector<storage::Stall> stalls;
  for (const std::optional<uint32_t> whose : {std::optional<uint32_t>(), std::optional(thread)}) {
    const auto first = std::lower_bound(
        manifest.stalls.begin(), manifest.stalls.end(), whose,
        [](const storage::Stall& stall, const auto& wanted) { return stall.thread < wanted; });
    for (auto at = first; at != manifest.stalls.end() && at->thread == whose; ++at) {
      if (at->kind < storage::StallKind::kLock) stalls.push_back(*at);
    }
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const auto& a, const auto& b) { return a.first_ns < b.first_ns; });
  return stalls;
}

std::vector<storage::Stall> times_of(const SessionManifest& manifest, uint32_t thread,
                                     storage::StallKind kind) {
  std::vector<storage::Stall> times;
  const auto of_thread =
      std::ranges::equal_range(manifest.stalls, std::optional(thread), {}, &storage::Stall::thread);
  std::ranges::copy_if(of_thread, std::back_inserter(times),
                       [kind](const storage::Stall& stall) { return stall.kind == kind; });
  return times;
}

std::vector<storage::Stall> stalls_of(const SessionManifest& manifest, uint32_t thread) {
  std::vector<storage::Stall> stalls = idle_times_of(manifest, thread);
  std::erase_if(stalls, [](const auto& stall) { return storage::is_off_processor(stall.kind); });
  return stalls;
}

std::vector<calls::Stall> call_stalls_of(const SessionManifest& manifest, uint32_t thread) {
  const std::vector<storage::Stall> idle = idle_times_of(manifest, thread);
  std::vector<calls::Stall> stalls(idle.size());
  std::ranges::transform(idle, stalls.begin(), call_stall_of);
  return stalls;
}

std::vector<storage::Gap> event_gaps_of(const SessionManifest& manifest, uint32_t thread) {
  std::vector<storage::Gap> gaps;
  auto gap = std::lower_bound(
      manifest.gaps.begin(), manifest.gaps.end(), thread,
      [](const storage::Gap& each, uint32_t wanted) { return each.thread < wanted; });
  for (; gap != manifest.gaps.end() && gap->thread == thread; ++gap) {
    if (gap->lane == Lane::kDetail || gap->lost == 0 || !gap->has_place) continue;
    gaps.push_back(*gap);
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const auto& a, const auto& b) { return a.before_seq < b.before_seq; });
  return gaps;
}

std::vector<calls::Gap> call_gaps_of(const SessionManifest& manifest, uint32_t thread) {
  std::vector<calls::Gap> gaps;
  for (const storage::Gap& gap : event_gaps_of(manifest, thread)) {
    gaps.push_back({gap.before_seq, gap.lost, gap.first_ns, gap.last_ns});
  }
  return gaps;
}

}  // namespace collect::read
