// The recorder asks for this in a forked child only; these tests do not fork.
#include <cstdlib>

#include "agent/lifecycle.h"

namespace collect::agent {

void restart_in_child() {
  std::abort();
}

}  // namespace collect::agent
