// The threads of a process, from /proc.
#pragma once

#include <sys/types.h>

#include <vector>

namespace collect::inject {

// Ids of those that have not ended.
std::vector<pid_t> threads_of(pid_t pid);

bool has_ended(pid_t tid);

// Whether it is the one that represents its process, whose end the parent waits for.
bool is_first_thread(pid_t tid);

// Waits for those that have ended and that this process traces. To be called from another thread
// than the tracer: an exec over there stops until it is done, and PTRACE_SEIZE of one more
// thread waits for the exec.
void reap_ended_threads(pid_t pid);

}  // namespace collect::inject
