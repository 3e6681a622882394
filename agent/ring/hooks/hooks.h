// The hot path: one call or return becomes one record in the calling thread's ring.
#pragma once

#include <cstdint>

#include "formats/atf/layout.h"

namespace collect::agent {

// Of a call that waits for a lock of the program: what is known of the lock before it, and when the
// call was recorded.
struct LockWait {
  uint64_t lock = 0;     // its address; 0: the call waits for none
  uint64_t call_ns = 0;  // 0: it was not recorded
  uint64_t owner = 0;    // number of the thread that has it; 0: not known
};

// What a shim knows about the instrumented function's frame at the time of the hook; zero when it
// does not. Used for detail records only.
struct HookFrame {
  uint64_t call_site = 0;      // where the function returns to
  uint64_t frame_pointer = 0;  // the register's value in the function
  uint64_t stack_pointer = 0;
  const uint64_t* registers = nullptr;  // x0-x7, or the argument registers in order
  uint16_t valid = 0;                   // atf::DetailFlags; of `registers` no others are read
  // The hook's own frame, if it is well above that of general_event; 0: it is not.
  uint64_t hook = 0;
  // Where the call is built on the stack: open_calls.h. 0: it is not followed, as those of the C
  // API, whose programs say themselves what an exception ended.
  uint64_t place = 0;
  bool by_sled = false;  // of XRay: the function may be in the middle of being patched
  // Of a library function (shims/library_calls.h): its id, which is not looked up; 0: it is none.
  uint64_t library_function = 0;
  bool is_left_out_if_brief = false;
  LockWait* lock_wait = nullptr;  // of a library function: at its call and at its return
};

// Async-signal-safe; keeps errno. Costs one predictable branch while nothing is recorded.
void on_event(uint64_t function, atf::EventKind kind, const HookFrame& frame);

// ---- of the lifecycle (agent/lifecycle.cc), as hooks ask for it
// Events that come before this library's constructor, from those of other libraries: the first one
// starts the agent, if the environment asks for it. From hooks that find g_state 0. True: it
// records now. What it could not record is counted, and is a loss of the recording.
[[gnu::cold]] bool starts_by_early_event();
// First event in a forked child: the parent's rings and thread are not here, so begin again, as a
// process of its own. Called from a hook.
// False: it is not ready for this event.
bool restart_in_child();

}  // namespace collect::agent
