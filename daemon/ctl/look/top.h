// `collectctl top`: rates, the busiest functions and threads, losses and stalls of a recording, for
// a terminal.
#pragma once

#include <cstdint>

#include "daemon/ctl/look/tail.h"

namespace collect::ctl {

// kCpu: by self time on a processor; where that is not known, by all self time.
enum class TopSort : uint8_t { kCpu, kSelf, kTotal, kCalls, kLongest };

struct TopOptions {
  FollowedCalls followed;
  TopSort sort = TopSort::kCpu;
  bool shows_threads = false;
  uint64_t times = 0;  // so many tables, line by line; 0: until the session is sealed
};

int top(const Online& online, const TopOptions& options);

}  // namespace collect::ctl
