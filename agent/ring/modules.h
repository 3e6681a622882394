// Which code belongs to which loaded object. Ids count up in load order and are never reused; 0 is
// the main executable.
#pragma once

#include <cstdint>

#include "agent/ring/recorder.h"

namespace collect::agent {

struct ModuleRange {
  uint64_t base = 0;   // load bias: what symbol indices are relative to
  uint64_t bytes = 0;  // from base to the end of its last segment
  uint32_t module_id = kUnknownModule;
};

bool modules_init();
// Looks again at what is loaded; cheap when nothing changed. True when something did. Any thread;
// takes the loader's own lock for a moment, as dl_iterate_phdr does, and no other.
bool modules_scan();
// The object that holds `address`; looks again when none is known. False: none does.
bool module_find(uint64_t address, ModuleRange& range);
// Without looking again: never takes the loader's lock.
bool module_find_known(uint64_t address, ModuleRange& range);

}  // namespace collect::agent
