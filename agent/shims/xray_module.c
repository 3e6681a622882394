/* One half of collect_xray.o: finds the module's own sleds and registers them with the agent, if
 * there is one. Without it, the sleds stay as the compiler wrote them. XRAY.md. */
#include "agent/ring/sleds/xray_module.h"

#include <stddef.h>

_Static_assert(offsetof(struct collect_xray_module, handlers) == 56,
               "xray_trampolines.S: HANDLERS");

#define HIDDEN __attribute__((visibility("hidden")))
#define NOT_TRACED __attribute__((no_instrument_function))

/* The linker's, of this module alone; null where nothing was instrumented. */
extern const char __start_xray_instr_map[] __attribute__((weak)) HIDDEN;
extern const char __stop_xray_instr_map[] __attribute__((weak)) HIDDEN;

/* xray_trampolines.S */
extern const char collect_xray_enter[] HIDDEN;
extern const char collect_xray_exit[] HIDDEN;
extern const char collect_xray_tail[] HIDDEN;

extern struct collect_xray_module collect_xray_this_module HIDDEN;
struct collect_xray_module collect_xray_this_module = {
    COLLECT_XRAY_ABI,
    sizeof(struct collect_xray_module),
    __start_xray_instr_map,
    __stop_xray_instr_map,
    collect_xray_enter,
    collect_xray_exit,
    collect_xray_tail,
    collect_xray_enter,
    {0, 0, 0},
    0,
};

/* Two ways to the agent, for some linkers settle what is weak in an executable for good: by symbol,
 * as when the agent is linked in, and by name, as when it is preloaded. */
#pragma weak collect_xray_register
#pragma weak collect_xray_unregister
extern void* dlsym(void* handle, const char* name) __attribute__((weak));

typedef void (*agent_function)(struct collect_xray_module*);

NOT_TRACED static agent_function find(agent_function linked, const char* name) {
  if (linked != 0 || dlsym == 0) return linked;
  union {
    void* object;
    agent_function function;
  } found;
  found.object = dlsym(0 /* RTLD_DEFAULT */, name);
  return found.function;
}

/* Before the program's own constructors, which are functions like others. */
__attribute__((constructor(101))) NOT_TRACED static void register_module(void) {
  const agent_function register_sleds = find(collect_xray_register, "collect_xray_register");
  if (register_sleds != 0) register_sleds(&collect_xray_this_module);
}

__attribute__((destructor(101))) NOT_TRACED static void leave_agent(void) {
  if (collect_xray_this_module.agent == 0) return;
  const agent_function leave = find(collect_xray_unregister, "collect_xray_unregister");
  if (leave != 0) leave(&collect_xray_this_module);
}
