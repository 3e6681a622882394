// The modules of this process that may have a patch plan. Of the one thread that applies plans, or
// that attaches.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

#include "agent/ring/recorder.h"
#include "formats/patch/plan_view.h"

namespace collect::agent {

inline constexpr uint32_t kMaxPlannedModules = 256;

struct PlannedModule {
  uint64_t base = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  const ElfW(Phdr) * segments = nullptr;
  size_t segment_count = 0;
  uint8_t build_id[patch::kMaxPlanBuildId] = {};
  uint32_t build_id_bytes = 0;
  uint64_t device = 0;  // of its file, where it has no build id
  uint64_t inode = 0;
  bool is_program = false;
  char path[kMaxModulePath] = {};
};

// Finds those that are loaded now and have a build id or a file.
void list_planned_modules();
uint32_t planned_modules();
const PlannedModule& planned_module(uint32_t index);  // holds until the next list_planned_modules()

// Whether it still is where it was found.
bool is_loaded(const PlannedModule& module);

// Null, or why the plan is not this module's. The module must stay loaded meanwhile.
const char* why_not_of(const PlannedModule& module, const patch::PlanView& plan);

}  // namespace collect::agent
