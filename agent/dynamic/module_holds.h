// Keeps libraries loaded while their code is read and changed, even if the program closes them
// meanwhile. Used by the one thread that attaches. Not for static programs, which have no dlopen().
#pragma once

#include <cstdint>

#include "agent/dynamic/plan_modules.h"

namespace collect::agent {

class ModuleHolds {
 public:
  ModuleHolds() = default;
  ModuleHolds(const ModuleHolds&) = delete;
  ModuleHolds& operator=(const ModuleHolds&) = delete;
  // Lets them go. What was closed meanwhile is unloaded here.
  ~ModuleHolds();

  // A HoldModule; `holds` is a ModuleHolds.
  static bool hold(void* holds, const PlannedModule& module);

 private:
  void* handles_[kMaxPlannedModules] = {};
  uint32_t count_ = 0;
};

}  // namespace collect::agent
