// Systems without a companion: iOS starts no processes, an app's sandbox on Android kills who asks
// for a pidfd, and macOS has neither pidfds nor seals. A thread drains, and the status says so.
#include "agent/drain/companion.h"
#include "agent/drain/companion_memory.h"
#include "agent/drain/traced_process.h"

namespace collect::agent {

const char* start_companion(DrainThread&) {
  return "this system has none";
}

// No process is ever watched: TracedProcess is the companion's.
TracedProcess::Life TracedProcess::look(uint64_t, uint64_t) {
  return life_;
}

bool TracedProcess::is_stopped() const {
  return false;
}

bool is_process_over(pid_t) {
  return false;
}

void drop_errors() {}

}  // namespace collect::agent
