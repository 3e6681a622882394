#include "tests/agent/shims/lifecycle_stub.h"

#include <unistd.h>

#include <cstdlib>

#include "agent/lifecycle.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/run_records.h"

namespace collect::agent {

void note_run_recorded() {}

bool agent_running() {
  return running;
}

void before_exit(const int* code) {
  if (exit_report < 0) return;
  if (write(exit_report, code, sizeof *code) != sizeof *code) std::abort();
}

bool starts_by_early_event() {
  return false;
}
void start_early() {}

bool restart_in_child() {
  std::abort();
}

}  // namespace collect::agent
