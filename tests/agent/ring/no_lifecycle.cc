// The recorder asks for this in a forked child only; these tests do not fork.
#include <cstdlib>

#include "agent/lifecycle.h"

namespace collect::agent {

bool restart_in_child() {
  std::abort();
}

}  // namespace collect::agent
