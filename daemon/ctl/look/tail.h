// `collectctl dump --follow`: the calls of a recording as they end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/ctl/control/online.h"

namespace collect::control::v1 {
class WatchCallsRequest;
}

namespace collect::ctl {

// What of a recording is followed, of `dump --follow` and `top`.
struct FollowedCalls {
  std::string session;                      // empty: the newest that records
  std::vector<std::string> functions;       // formats/core/text/function_pattern.h
  std::vector<std::string> threads;         // storage/model/thread_pattern.h
  std::chrono::nanoseconds interval{0};     // between two messages; 0: the collector's default
  std::chrono::nanoseconds slower_than{0};  // only calls that took at least this long
  std::chrono::nanoseconds duration{0};     // 0: until the session is sealed
  uint32_t limit = 0;                       // calls of a message; 0: the collector's default

  control::v1::WatchCallsRequest request() const;
};

int tail(const Online& online, const FollowedCalls& followed);

}  // namespace collect::ctl
