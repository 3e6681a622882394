// Times off the processor, given to the calls that were open then: a part of each sink that adds up
// time. Used on one thread. Memory grows with the depth of the calls that waited.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collect::calls {

// Of one call, or of several added up.
struct WaitedTimes {
  uint64_t total_ns = 0;  // within it, also in calls made from it
  uint64_t self_ns = 0;

  void add(const WaitedTimes& other) {
    total_ns += other.total_ns;
    self_ns += other.self_ns;
  }
};

// On the processor, of times that are known by what was off it.
template <class Times>
uint64_t cpu_total_ns(const Times& times) {
  return times.total_ns - std::min(times.total_ns, times.waited.total_ns);
}
template <class Times>
uint64_t cpu_self_ns(const Times& times) {
  return times.self_ns - std::min(times.self_ns, times.waited.self_ns);
}

class WaitStack {
 public:
  // The innermost of `depth` open calls waited.
  void wait(uint64_t ns, size_t depth) {
    if (depth == 0) return;
    if (by_depth_.size() < depth) by_depth_.resize(depth);
    by_depth_.back().self_ns += ns;
    by_depth_.back().total_ns += ns;
  }
  // The innermost call ends, with `depth` others around it.
  WaitedTimes end(size_t depth) {
    if (by_depth_.size() <= depth) return {};
    const WaitedTimes ended = by_depth_.back();
    by_depth_.pop_back();
    if (depth != 0) by_depth_.back().total_ns += ended.total_ns;
    return ended;
  }

 private:
  std::vector<WaitedTimes> by_depth_;  // up to the innermost call in which there was one
};

}  // namespace collect::calls
