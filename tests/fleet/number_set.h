// A set of record numbers, as ranges that do not touch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "daemon/upload/commit.h"

namespace collect::fleet {

class NumberSet {
 public:
  using Range = upload::NumberRange;

  // How many of them were not there.
  uint64_t add(const Range& range) {
    if (range.from >= range.to) return 0;
    uint64_t from = range.from;
    uint64_t to = range.to;
    uint64_t covered = 0;
    auto at = ranges_.upper_bound(from);
    if (at != ranges_.begin() && std::prev(at)->second >= from) --at;
    while (at != ranges_.end() && at->first <= to) {
      covered += overlap(range, {at->first, at->second});
      from = std::min(from, at->first);
      to = std::max(to, at->second);
      at = ranges_.erase(at);
    }
    ranges_[from] = to;
    return range.to - range.from - covered;
  }
  uint64_t count() const {
    uint64_t numbers = 0;
    for (const auto& [from, to] : ranges_) numbers += to - from;
    return numbers;
  }
  uint64_t count_within(const Range& range) const {
    uint64_t numbers = 0;
    for (const auto& [from, to] : ranges_) numbers += overlap(range, {from, to});
    return numbers;
  }
  uint64_t end() const { return ranges_.empty() ? 0 : ranges_.rbegin()->second; }

 private:
  static uint64_t overlap(const Range& a, const Range& b) {
    const uint64_t from = std::max(a.from, b.from);
    const uint64_t to = std::min(a.to, b.to);
    return from < to ? to - from : 0;
  }

  std::map<uint64_t, uint64_t> ranges_;  // from, to
};

}  // namespace collect::fleet
