// The drain, a thread or the drain process, from outside: start, stop, fork, and what it says of
// itself. AGENT.md "Drain".
#pragma once

#include <cstdint>

#include "agent/settings.h"

namespace collect::agent {

// Starts the thread, after recorder_init(). Begins the first recording on the calling thread, if
// the settings say so: events count from here on. May ask the system's resolver for a host's name.
// False: drain_status() says why. A second call while it runs changes nothing and returns true.
bool drain_start(const Settings& settings);

// Behind drain_start: returns when there is a filter, if the settings ask for one and for a
// recording, after kMaxFilterHoldMs in any case.
void drain_hold_for_filter();

// Ends the recording, ships what is left, waits until the collector has sealed it, and ends the
// thread; at most about `timeout_ms`, and not at all when no collector is there. Repeatable. Not
// from two threads at once.
void drain_stop(uint32_t timeout_ms);

// For a thread that ends the process, with a drain thread: whether it may make system calls,
// because no filter of the program refuses them. Asks the drain, and not the system: takes until
// its next round. False where there is no answer.
bool drain_may_call_at_exit();
// drain_stop() by a thread that may not. The drain's memory is not given back.
void drain_stop_awake(uint32_t timeout_ms);

// What the process is about to exit with. Any thread; not from a process that only borrows memory.
void drain_note_exit(int code);
// A drain process ships what is left: the process need not wait.
bool drain_outlives_process();

// Any thread.
bool drain_connected();
const char* drain_status();
// The TCP port listened on; 0 when none is, or not yet.
uint16_t drain_listen_port();

// One line to standard error, if `enabled`. Any thread, also before the start.
void log_line(bool enabled, const char* text);

// Around fork, on the forking thread: between the first two no descriptor of ours is half-made. The
// last one, in the child, closes the child's copies without disturbing the parent's connection; the
// child begins again with drain_start(). Without the first two the last one works all the same, but
// a descriptor that was being made at that moment stays open in the child.
void drain_before_fork();
void drain_after_fork_in_parent();
// `apart` false: the control of the drain is still the parent's.
void drain_after_fork_in_child(bool apart);

}  // namespace collect::agent
