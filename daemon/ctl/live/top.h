// `collectctl top`: rates, the busiest functions and threads, losses and stalls of a recording, for
// a terminal.
#pragma once

#include <cstdint>

#include "daemon/ctl/live/tail.h"
#include "daemon/ctl/live/top_view.h"

namespace collect::ctl {

struct TopOptions {
  FollowedCalls followed;
  TopSort sort = TopSort::kSelf;
  bool shows_threads = false;
  uint64_t times = 0;  // so many tables, line by line; 0: until the session is sealed
};

int top(const Online& online, const TopOptions& options);

}  // namespace collect::ctl
