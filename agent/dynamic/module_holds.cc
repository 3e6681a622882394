#include "agent/dynamic/module_holds.h"

#include <dlfcn.h>

namespace collect::agent {

ModuleHolds::~ModuleHolds() {
  while (count_ > 0) (void)dlclose(handles_[--count_]);
}

bool ModuleHolds::hold(void* holds, const PlannedModule& module) {
  if (module.is_program) return true;
  auto& self = *static_cast<ModuleHolds*>(holds);
  void* const handle =
      self.count_ < kMaxPlannedModules ? dlopen(module.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (handle == nullptr) return false;
  self.handles_[self.count_++] = handle;
  return is_loaded(module);
}

}  // namespace collect::agent
