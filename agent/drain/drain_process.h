// The drain process: a forked copy of the traced process, without exec, that drains the shared
// rings and outlives it. DRAIN_PROCESS.md.
#pragma once

#include "agent/drain/drain_thread.h"

namespace collect::agent {

inline constexpr uint64_t kMaxDrainProcessStartMs = 3000;

// Starts it, for a drain that is prepared; on the thread that starts the agent. Null, or a static
// sentence, and then nothing of it is left. The calling process never has a child to wait for.
const char* start_drain_process(DrainThread& drain);

}  // namespace collect::agent
