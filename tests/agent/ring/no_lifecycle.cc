// The recorder asks for this in a forked child only; these tests do not fork.
#include <cstdlib>

#include "agent/lifecycle.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/run_records.h"

namespace collect::agent {

void note_run_recorded() {}

bool starts_by_early_event() {
  return false;
}
void start_early() {}

bool restart_in_child() {
  std::abort();
}

}  // namespace collect::agent
