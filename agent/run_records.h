// This process's record in the run that it belongs to (COLLECT_RUN, formats/core/run_file.h): by it
// collectctl knows the process also where it never reaches its collector. Outside of a run nothing
// here does anything. No output, no allocation; every failure leaves the process without a record.
#pragma once

#include <cstdint>

#include "agent/settings.h"

namespace collect::agent {

// A program image was loaded, before its agent starts. Once.
void enter_run(const Settings& settings);
// In a forked child: the only thread. Without `follows` it is not to be recorded. `why_off`: it
// makes no system call, and this is why its agent stays off.
void enter_run_in_child(bool follows, const char* why_off);
// The agent starts in this process.
void note_run_start();
// It did not start, or could not record. `reason`: null where the status says it.
void note_run_failure(const char* reason);
// A thread has something to record, or lost it. Hooks call it: one store, once.
void note_run_recorded();

// ---- the drain
void note_run_beat(uint64_t now_ms);
void note_run_outlives();
// Whether there is a link; each round.
void note_run_link(bool is_up);
void note_run_status(const char* sentence);
void note_run_ended();
// Within a run, whose process has recorded nothing yet.
bool run_waits_for_first_event();
// The run has ended, and its collector with it: the drain waits for no one.
bool is_run_over();

// The process is the first of a PID namespace, whose end kills the others: waits, up to `bound_ms`,
// for those of them that still ship.
void await_namespace(uint64_t bound_ms);

// Whether [begin, end) holds the record.
bool is_run_range(uintptr_t begin, uintptr_t end);

}  // namespace collect::agent
