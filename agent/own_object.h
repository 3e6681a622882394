// The loaded object (executable or library) that the agent's code is in.
#pragma once

#include <cstdint>

namespace collect::agent {

struct OwnObject {
  uintptr_t begin = 0;  // 0: not found
  uintptr_t end = 0;
  bool calls_are_bound = false;  // linked with -z now: no call enters the dynamic linker
  bool stays_loaded = false;     // the main executable, or linked with -z nodelete
};

// Asks the dynamic linker, which has a lock: not from a copy of a process.
OwnObject find_own_object();

}  // namespace collect::agent
