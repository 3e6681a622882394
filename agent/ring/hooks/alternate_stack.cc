#include "agent/ring/hooks/alternate_stack.h"

#include <signal.h>

#include "agent/platform/system.h"

namespace collect::agent {

__thread AlternateStack tls_alternate_stack COLLECT_TLS_MODEL;
bool g_alternate_stacks_are_seen = false;

bool on_alternate_stack(uint64_t frame) {
  if (g_alternate_stacks_are_seen) {
    return frame - tls_alternate_stack.begin < tls_alternate_stack.bytes;
  }
  stack_t stack{};
  return sys::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace collect::agent
