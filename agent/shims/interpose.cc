// Calls of the host program that the agent must know about. The library stands before the C library
// in the search order when it is preloaded or linked.
//
// dlclose, because another library may come to lie at the same addresses at once. (dlopen is left
// alone: the C library looks at who calls it.) _exit and _Exit, because they run no destructors.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/lifecycle.h"
#include "agent/ring/modules.h"
#include "agent/ring/stream.h"

namespace {

using DlcloseFunction = int (*)(void*);

[[noreturn]] void exit_now(int code) {
  collect::agent::before_exit(&code);
  for (;;) syscall(SYS_exit_group, code);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"), no_instrument_function)) int dlclose(void* handle) {
  static const auto real = reinterpret_cast<DlcloseFunction>(dlsym(RTLD_NEXT, "dlclose"));
  if (!collect::agent::agent_running()) return real(handle);
  collect::agent::change_state(collect::agent::kStateModulesChanging, 0);
  const int result = real(handle);
  (void)collect::agent::modules_scan();
  collect::agent::change_state(0, collect::agent::kStateModulesChanging);
  return result;
}

__attribute__((visibility("default"), no_instrument_function, noreturn)) void _exit(int code) {
  exit_now(code);
}

__attribute__((visibility("default"), no_instrument_function, noreturn)) void _Exit(int code) {
  exit_now(code);
}

}  // extern "C"
