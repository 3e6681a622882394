// Each list of devices may cost a search of all of them, and lines of the log. No one plugs phones
// in as fast as a server can say so: the first lists pass at once, those of a flood at a steady
// pace, the newest each time; what came and went in between is left out. On the thread of the
// io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/attach/device_source.h"

namespace collect::attach {

inline constexpr int64_t kListsAtOnce = 16;
inline constexpr std::chrono::milliseconds kListPause{500};  // one more list for each

class ListPace : public std::enable_shared_from_this<ListPace> {
 public:
  ListPace(asio::io_context& io, DeviceSource::OnDevices pass_on)
      : timer_(io), pass_on_(std::move(pass_on)) {}

  void take(const std::vector<SourceDevice>& list,
            std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  asio::steady_timer timer_;
  const DeviceSource::OnDevices pass_on_;
  int64_t free_ = kListsAtOnce;
  std::chrono::steady_clock::time_point refilled_ = std::chrono::steady_clock::now();
  bool waiting_ = false;
  std::vector<SourceDevice> newest_;  // while waiting
};

}  // namespace collect::attach
