// dlclose of the host program, because another library may be loaded at the same addresses at
// once. (dlopen is left alone: the C library looks at who calls it.) Apart from other wraps, so
// that a static program, which has no dlclose, does not take it from the archive.
#include <dlfcn.h>

#include "agent/lifecycle.h"
#include "agent/ring/modules.h"
#include "agent/ring/state.h"

namespace {

using DlcloseFunction = int (*)(void*);

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

}  // extern "C"
