// How much work the clients of one principal may begin: an allowance that refills with time.
#pragma once

#include <algorithm>
#include <chrono>

namespace collect::control {

class CallRate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  CallRate(double per_second, double burst, Time now)
      : per_second_(per_second), burst_(burst), allowance_(burst), refilled_(now) {}

  // What was done already. The allowance may go below nothing.
  void take(double amount, Time now) {
    refill(now);
    allowance_ -= amount;
  }
  void give(double amount) { allowance_ = std::min(burst_, allowance_ + amount); }
  // When there is an allowance again; not later than now: there is one.
  Time free_at(Time now) {
    refill(now);
    if (allowance_ >= 0) return now;
    return now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                     std::chrono::duration<double>(-allowance_ / per_second_));
  }

 private:
  void refill(Time now) {
    give(per_second_ * std::chrono::duration<double>(now - refilled_).count());
    refilled_ = now;
  }

  double per_second_;
  double burst_;
  double allowance_;
  Time refilled_;
};

}  // namespace collect::control
