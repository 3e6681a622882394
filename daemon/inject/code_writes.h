// Writes jumps into the code of a running process while none of its threads runs, and moves those
// out of the way that are where a jump is written.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "daemon/inject/process_memory.h"
#include "daemon/inject/traced_thread.h"
#include "formats/core/result.h"
#include "formats/patch/attach_request.h"

namespace collect::inject {

inline constexpr uint64_t kMaxJumps = 1u << 24;
inline constexpr int kMaxSteps = 10'000;  // of a thread out of one window

struct StopOutcome {
  size_t threads = 0;
  size_t moved = 0;
  std::chrono::nanoseconds stopped{};  // from the first that stopped until all were let go
};

// Stops every thread of the process, steps those on that are inside a window, compares and writes
// all jumps, and lets all continue. `state_at`: address of AttachRequest::state, which says before
// the first jump that there may be some, and after the last that all are there. kUnavailable: a
// thread did not stop, or stays in a window, or the agent waits no longer. kDamaged: the code is
// not what the jumps are for.
Result<StopOutcome> write_jumps(pid_t pid, const ProcessMemory& memory,
                                const std::vector<patch::AttachJump>& jumps, uint64_t state_at,
                                Deadline deadline);

// The jump into whose window, behind its first byte, `address` points; null: none.
const patch::AttachJump* window_at(const std::vector<patch::AttachJump>& jumps, uint64_t address);

}  // namespace collect::inject
