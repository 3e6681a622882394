// Where there are no XRay sleds of ours: sleds.cc knows ELF.
#include "agent/ring/sleds/sleds.h"

namespace collect::agent {

void sleds_in() {}
void sleds_out() {}
void sleds_let_in(uint32_t) {}
SledCounts sled_counts() {
  return {};
}
const char* sleds_problem() {
  return nullptr;
}
void sleds_before_fork() {}
void sleds_after_fork() {}
void sleds_after_fork_in_child() {}

}  // namespace collect::agent
