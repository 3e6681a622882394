// When the agent starts and ends: with the library, with the process, in a forked child, or by the
// C API.
#pragma once

#include <cstdint>

#include "agent/settings.h"

namespace collect::agent {

enum class StartError : uint8_t { kNone, kSettings, kNoMemory, kNoThread, kPrivileged };

// Starts recorder and drain thread once per process. Any thread. In a program with raised
// privileges nothing is ever started.
StartError start_agent(const Settings& settings);
// Ships the rest and ends the drain thread; waits at most `timeout_ms`. Any thread, repeatable.
void stop_agent(uint32_t timeout_ms);
bool agent_running();

// Starts the agent before this library's constructor, without an event (hooks.h).
void start_early();

// The process is about to end, with `code` if that is known: the rest is shipped, unless a
// drain process does that, or this is a vfork child, which only borrows the parent's memory.
void before_exit(const int* code);

// A static sentence for collect_agent_status().
const char* agent_status();

}  // namespace collect::agent
