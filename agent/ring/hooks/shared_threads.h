// Threads without thread-local memory of their own: clone() with CLONE_VM and neither CLONE_SETTLS
// nor CLONE_VFORK gives one that has its parent's, so both would write to one stream at once. While
// there is such a thread, neither is recorded: their calls are counted as lost, without a stream.
// The parent continues with a new stream when the last of them is gone, which the drain finds out.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace collect::agent {

inline constexpr uint32_t kMaxSharedThreads = 64;  // with more, the rest of the process's life

bool shared_threads_init();
// By the parent, around the call that makes it. `number`: of the new thread; -1: there is none.
void begin_shared_thread();
void end_begin_shared_thread(pid_t number);
// Whether one of them may still run.
bool has_shared_threads();
void poll_shared_threads();  // [drain]

}  // namespace collect::agent
