// A rate with a burst that may go into debt: what was taken is always counted, and who has taken
// more than there was waits until the debt is paid. So the long-run rate is exact, however large
// the single pieces are.
//
// Not thread-safe: its owner locks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace collect::principal {

struct Rate {
  double per_second = 0;  // 0: no limit
  double burst = 0;
};

class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  TokenBucket(Rate rate, Clock::time_point now) : rate_(rate), credit_(rate.burst), at_(now) {}

  void take(double amount, Clock::time_point now) {
    refill(now);
    credit_ -= amount;
  }
  // Something that earns its taker more.
  void give(double amount) { credit_ = std::min(credit_ + amount, rate_.burst); }
  // Until there is credit again; 0: there is, or the rate has no limit.
  std::chrono::nanoseconds wait(Clock::time_point now) {
    refill(now);
    if (credit_ > 0 || rate_.per_second <= 0) return std::chrono::nanoseconds{0};
    const double seconds = (1 - credit_) / rate_.per_second;
    return std::chrono::nanoseconds{static_cast<int64_t>(seconds * 1e9) + 1};
  }

 private:
  void refill(Clock::time_point now) {
    if (now <= at_) return;
    const double passed = std::chrono::duration<double>(now - at_).count();
    credit_ = std::min(credit_ + passed * rate_.per_second, rate_.burst);
    at_ = now;
  }

  Rate rate_;
  double credit_;
  Clock::time_point at_;
};

}  // namespace collect::principal
