// sigaltstack() of the host program, so that hooks know without a system call where its signal
// handlers run (ring/alternate_stack.h). Not in the archive.
#include <signal.h>

#include "agent/platform/system.h"
#include "agent/ring/hooks/alternate_stack.h"

namespace {

void note(const stack_t& stack) {
  const bool is_off = (stack.ss_flags & SS_DISABLE) != 0;
  collect::agent::tls_alternate_stack = {reinterpret_cast<uint64_t>(stack.ss_sp),
                                         is_off ? 0 : stack.ss_size};
}

// What the thread that loads the library has set up before.
__attribute__((constructor)) void begin_to_see() {
  stack_t stack{};
  if (collect::agent::sys::sigaltstack(nullptr, &stack) != 0) return;
  note(stack);
  collect::agent::g_alternate_stacks_are_seen = true;
}

}  // namespace

extern "C" __attribute__((visibility("default"), no_instrument_function)) int sigaltstack(
    const stack_t* wanted, stack_t* before) {
  const int result = collect::agent::sys::sigaltstack(wanted, before);
  if (result == 0 && wanted != nullptr) note(*wanted);
  return result;
}
