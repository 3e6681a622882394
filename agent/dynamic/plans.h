// Patch plans: code of modules that were not prepared is made to call the recorder. DYNAMIC.md.
#pragma once

#include <cstdint>

namespace collect::agent {

struct PlannedModule;
// Sees to it that the module stays loaded. False: it is no longer there.
using HoldModule = bool (*)(void* holds, const PlannedModule& module);

// Applies the plans in `folder` to the modules that are loaded and have one, by their build ids.
// Once, before the agent starts, in the only thread of the process. What can't be used is reported
// by sleds_problem() and left alone, whole.
void apply_plans(const char* folder);

// For a process that runs, whose jumps another process writes while this one is stopped. One thread
// at a time. prepare_plans() puts stubs in place and lists the jumps to them, of modules that are
// not traced yet: `*jumps_at` is the address of patch::AttachJump[*count], by ascending address.
// Null, or why nothing can be traced. Then either they are written, use_prepared(), or none of them
// is, drop_prepared(). Modules are held (module_holds.h) until after that. Where no one can stop
// the process, write_prepared() writes them while its threads run, on arm64 alone: there a window
// is one instruction. Null: use_prepared() is next; or why no jump is there.
const char* prepare_plans(const char* folder, HoldModule hold, void* holds, uint64_t* jumps_at,
                          uint64_t* count);
const char* write_prepared();
void use_prepared();
void drop_prepared();

}  // namespace collect::agent
