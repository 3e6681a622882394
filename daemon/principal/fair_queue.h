// Work of many principals for one thread, in an order by which no one waits for what others have
// much of: the principal that has had least time comes next, and within it first come, first
// served.
//
// A principal that comes new, or comes back, starts level with those who wait: what it did not use
// before is not saved up. Not thread-safe: its owner locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "daemon/principal/principal.h"

namespace collect::principal {

// Principals without work that are kept; more are dropped as far as they have nothing to make up.
inline constexpr size_t kMaxIdleLines = 64;

class FairQueue {
 public:
  using Work = std::function<void()>;

  void push(const Principal& principal, Work work);
  bool empty() const { return turns_.empty(); }
  // The next one, and whose it is. Not of an empty queue.
  std::pair<Principal, Work> pop();
  // How long it took.
  void charge(const Principal& principal, std::chrono::nanoseconds spent);
  void clear();
  // Principals that are known.
  size_t lines() const { return lines_.size(); }

 private:
  struct Line {
    std::deque<Work> work;
    uint64_t used_ns = 0;
  };

  std::map<Principal, Line> lines_;
  std::set<std::pair<uint64_t, Principal>> turns_;  // of lines that have work, by used_ns
  uint64_t level_ns_ = 0;                           // what the last one to come next had used
};

}  // namespace collect::principal
