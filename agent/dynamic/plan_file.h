// Files of patch plans, as agents find them. DYNAMIC.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/dynamic/plan_modules.h"

namespace collect::agent {

// Memory with the plan's file, which is read once: what was checked is what is used. `wrong`: why
// it can't be.
struct PlanFile {
  const uint8_t* bytes = nullptr;
  size_t count = 0;
  const char* wrong = nullptr;
};

// The plan for a module: FOLDER/BUILD-ID.plan, or FOLDER/file-DEVICE-INODE.plan. Without one,
// `bytes` and `wrong` are null.
PlanFile read_plan(const char* folder, const PlannedModule& module);
void drop(const PlanFile& file);

}  // namespace collect::agent
