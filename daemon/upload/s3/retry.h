// Trying again: when, and how often. UPLOAD.md "What is tried again".
//
// Each object is used on one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>

#include "formats/core/result.h"

namespace collect::upload {

inline constexpr uint64_t kNsPerMs = 1'000'000;

struct RetrySettings {
  uint64_t first_ms = 100;
  uint64_t most_ms = 20'000;
  uint32_t attempts = 10;  // of one request; then the caller decides when to begin again
  uint64_t seed = 0;       // of the pauses; 0: drawn
};

// Waiting as a parameter, so that tests need not wait.
class Pauses {
 public:
  virtual ~Pauses() = default;
  // False: what waits is to end.
  virtual bool pause(uint64_t ns) = 0;
};

// Full jitter: each pause is random between nothing and a bound that doubles. Clients that were cut
// off together do not come back together.
class Backoff {
 public:
  Backoff(const RetrySettings& settings, std::mt19937_64& random)
      : settings_(settings), random_(random), bound_ns_(settings.first_ms * kNsPerMs) {}

  uint64_t next_ns() {
    const uint64_t pause = std::uniform_int_distribution<uint64_t>(0, bound_ns_)(random_);
    bound_ns_ = std::min(bound_ns_ * 2, settings_.most_ms * kNsPerMs);
    return pause;
  }

 private:
  const RetrySettings settings_;
  std::mt19937_64& random_;
  uint64_t bound_ns_;
};

class Retries {
 public:
  // `failed` is called for each attempt that will be made again. `pauses` outlives it.
  Retries(const RetrySettings& settings, Pauses& pauses, uint64_t seed,
          std::function<void(const Error&)> failed)
      : settings_(settings), pauses_(pauses), random_(seed), failed_(std::move(failed)) {}

  // Whether the last request failed: distinguishes errors of a server from those of this machine.
  bool last_failed() const { return last_failed_; }
  void forget_failure() { last_failed_ = false; }

  // The first result that is not kUnavailable, or the last one.
  template <class Request>
  auto run(Request&& request) -> decltype(request()) {
    Backoff backoff(settings_, random_);
    for (uint32_t attempt = 1;; ++attempt) {
      auto result = request();
      last_failed_ = !result.ok();
      if (result.ok() || result.error().code != Code::kUnavailable ||
          attempt >= settings_.attempts) {
        return result;
      }
      failed_(result.error());
      if (!pauses_.pause(backoff.next_ns())) return Error{Code::kCancelled, "cancelled"};
    }
  }

 private:
  const RetrySettings settings_;
  Pauses& pauses_;
  std::mt19937_64 random_;
  const std::function<void(const Error&)> failed_;
  bool last_failed_ = false;
};

}  // namespace collect::upload
