// _exit and _Exit of the host program, which run no destructors. The library is before the C
// library in the search order when it is preloaded or linked.
#include <unistd.h>

#include "agent/lifecycle.h"
#include "agent/platform/system.h"

namespace {

[[noreturn]] void exit_now(int code) {
  collect::agent::before_exit(&code);
  collect::agent::sys::end_process(code);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"), no_instrument_function, noreturn)) void _exit(int code) {
  exit_now(code);
}

__attribute__((visibility("default"), no_instrument_function, noreturn)) void _Exit(int code) {
  exit_now(code);
}

}  // extern "C"
