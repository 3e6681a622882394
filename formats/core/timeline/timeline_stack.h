// Stacks that follow one another, as calls of a timeline: what two of them have in common
// continues, the rest ends and begins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/core/timeline/timeline_sink.h"

namespace collect {

class TimelineStack {
 public:
  TimelineStack(TimelineSink& sink, uint32_t track, int64_t start_ns)
      : sink_(sink), track_(track), now_ns_(start_ns) {}

  // This stack of functions, the outermost first, lasts so long.
  Status last(const std::vector<uint32_t>& stack, uint64_t duration_ns) {
    const auto [mine, theirs] =
        std::mismatch(open_.begin(), open_.end(), stack.begin(), stack.end());
    COLLECT_TRY(close_to(static_cast<size_t>(mine - open_.begin())));
    for (auto at = theirs; at != stack.end(); ++at) {
      COLLECT_TRY(sink_.begin(track_, now_ns_, *at));
      open_.push_back(*at);
    }
    constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
    const uint64_t room = static_cast<uint64_t>(kLast) - static_cast<uint64_t>(now_ns_);
    now_ns_ = duration_ns > room ? kLast : now_ns_ + static_cast<int64_t>(duration_ns);
    return {};
  }
  Status finish() { return close_to(0); }

 private:
  Status close_to(size_t size) {
    for (; open_.size() > size; open_.pop_back()) COLLECT_TRY(sink_.end(track_, now_ns_));
    return {};
  }

  TimelineSink& sink_;
  const uint32_t track_;
  int64_t now_ns_;
  std::vector<uint32_t> open_;
};

}  // namespace collect
