// What the calls of one message add up to: of functions by slot, and which calls are sent. The
// longest ones stay where there are too many.
//
// One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/calls/call.h"

namespace collect::ctl::follow {

struct SeenCall {
  uint32_t slot = 0;
  uint32_t caller = 0;  // slot; kNoCaller without one
  uint32_t thread = 0;  // n of thread_N
  uint32_t depth = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t waited_ns = 0;  // of it, off the processor
  bool unwound = false;

  static constexpr uint32_t kNoCaller = UINT32_MAX;
  uint64_t duration_ns() const { return end_ns > start_ns ? end_ns - start_ns : 0; }
  uint64_t cpu_ns() const { return duration_ns() - std::min(duration_ns(), waited_ns); }
};

// At most so many calls, the longest.
class LongestCalls {
 public:
  explicit LongestCalls(size_t most) : most_(most) {}

  void add(const SeenCall& call);
  // How many there was no room for, since the last take().
  uint64_t skipped() const { return skipped_; }
  std::vector<SeenCall> take();  // in the order of their ends

 private:
  const size_t most_;
  std::vector<SeenCall> heap_;  // the shortest first
  uint64_t skipped_ = 0;
};

struct FunctionSums {
  uint64_t calls = 0;
  uint64_t total_ns = 0;
  uint64_t self_ns = 0;
  uint64_t waited_self_ns = 0;  // of self_ns, off the processor
  uint64_t longest_ns = 0;

  uint64_t cpu_self_ns() const { return self_ns - std::min(self_ns, waited_self_ns); }
};

// By slot; remembers which have been touched.
class ActivityTable {
 public:
  FunctionSums& at(uint32_t slot);
  const std::vector<uint32_t>& touched() const { return touched_; }
  void clear();

 private:
  std::vector<FunctionSums> sums_;
  std::vector<bool> is_touched_;
  std::vector<uint32_t> touched_;
};

}  // namespace collect::ctl::follow
