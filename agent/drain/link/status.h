// The one sentence that says what the agent does, and the lines of COLLECT_LOG.
#pragma once

#include <sys/types.h>

#include "agent/text.h"

namespace collect::agent {

inline constexpr size_t kStatusBytes = 384;

// Makes the parts, joined, the agent's status; logs it when it changed and logging is on. One
// thread at a time: the one that starts or stops the agent while no drain thread runs, else the
// drain thread.
void set_status(const char* first, const char* second = "", const char* third = "",
                const char* fourth = "");

// Any thread. The sentence stays readable for the next several changes.
const char* status();

// Puts the sentence where the drain process can write it. Before it is started. False: no memory.
bool share_status();

void enable_log(bool enabled);
// The drain process speaks for the process that it drains for.
void log_as(pid_t process);
// One line to standard error, if logging is on. Any thread.
void log_line(const char* text);

}  // namespace collect::agent
