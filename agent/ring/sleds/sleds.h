// Sleds: the modules that were built with -fxray-instrument (XRAY.md) or that have a patch plan
// (DYNAMIC.md), and their code, which is patched in while a recording runs and out while none does.
//
// A lock of the agent's own guards the table of modules and all patching; nothing that could lead
// to another lock is called under it. Hooks never take it.
#pragma once

#include <cstdint>

struct collect_xray_module;

namespace collect::agent {

inline constexpr uint32_t kMaxSledModules = 512;

// A module came, or is about to go. Any thread; from its constructor and destructor.
using SledHandler = void (*)(uint64_t function, const uint64_t* registers, uint64_t frame_pointer);
void sleds_register(collect_xray_module& module, const SledHandler (&handlers)[3]);
void sleds_unregister(collect_xray_module& module);

// Registers a module that was not prepared, whose stubs are in place; it never goes. False: one
// module too many, and that is reported.
class PlannedSleds;
bool sleds_register(const PlannedSleds& planned, const char* path);
// A plan that is not used: the words of sleds_problem().
void sleds_report(const char* path, const char* what, const char* why);

// From now on the sleds of every module, also of those that come later, are patched in, as far as
// the function filter takes them; or out. In the process whose threads write; any thread. Again:
// what changed since is made good.
void sleds_in();
void sleds_out();
// Those that a filter takes, beside those that are in: before it holds.
void sleds_let_in(uint32_t generation);

struct SledCounts {
  uint32_t functions = 0;  // entry sleds that can be patched
  uint32_t patched = 0;    // of these, patched in now
};
SledCounts sled_counts();
// A static sentence about the last module that can't be traced, or not wholly; null: there is none.
// It names the module.
const char* sleds_problem();

// Around a fork, so that the child's lock is free. In the child, sleds that are out are patched in,
// so that its first call starts its agent.
void sleds_before_fork();
void sleds_after_fork();
void sleds_after_fork_in_child();

}  // namespace collect::agent
