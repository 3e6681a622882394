// How often refusals are logged: the first at once, then one line in each period, with the number
// of those since the line before. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace collect::control {

class RefusalLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RefusalLog(std::chrono::seconds period) : period_(period) {}

  // Someone was refused. How many were since the last line, this one included; 0: no line now.
  uint64_t count(Time now) {
    ++refused_;
    if (now < next_) return 0;
    next_ = now + period_;
    return std::exchange(refused_, 0);
  }

 private:
  const std::chrono::seconds period_;
  Time next_ = Time::min();
  uint64_t refused_ = 0;
};

}  // namespace collect::control
