// Whether a signal handler runs on a stack of its own, without asking the system: sigaltstack() of
// the host program is seen where the library is before the C library
// (shims/alternate_stack.cc).
#pragma once

#include <cstdint>

#include "agent/ring/stream.h"

namespace collect::agent {

struct AlternateStack {
  uint64_t begin = 0;
  uint64_t bytes = 0;  // 0: the thread has none
};
[[gnu::visibility("hidden")]] extern __thread AlternateStack tls_alternate_stack COLLECT_TLS_MODEL;
// False: in the archive, or when the library came into a program that runs already.
[[gnu::visibility("hidden")]] extern bool g_alternate_stacks_are_seen;

// `frame`: an address on the stack that the thread is on.
bool on_alternate_stack(uint64_t frame);

}  // namespace collect::agent
