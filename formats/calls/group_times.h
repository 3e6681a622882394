// What is added up for a group of calls: a pair of functions, a module, a node of the call tree.
#pragma once

#include <cstdint>

#include "formats/calls/wait_stack.h"

namespace collect::calls {

struct GroupTimes {
  uint64_t calls = 0;
  uint64_t total_ns = 0;  // running time; while several calls of the group are open it counts once
  uint64_t self_ns = 0;
  WaitedTimes waited{};  // of these times, off the processor

  void add(const GroupTimes& other) {
    calls += other.calls;
    total_ns += other.total_ns;
    self_ns += other.self_ns;
    waited.add(other.waited);
  }
};

}  // namespace collect::calls
