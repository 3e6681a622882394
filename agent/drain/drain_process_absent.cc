// Systems without a drain process: iOS starts no processes, an app's sandbox on Android kills who
// asks for a pidfd, and macOS has neither pidfds nor seals. A thread drains, and the status says
// so.
#include "agent/drain/drain_process.h"
#include "agent/drain/drain_process_memory.h"
#include "agent/drain/ship/traced_process.h"

namespace collect::agent {

const char* start_drain_process(DrainThread&) {
  return "this system has none";
}

// No process is ever watched: TracedProcess is the drain process's.
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
