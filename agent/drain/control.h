// What the drain and the threads of the program tell each other. With a drain process it lies in
// shared memory. Fields are atomics: any side, any time.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/shared_memory.h"

namespace collect::agent {

// Who drains: the first to claim it. A drain process that comes up too late finds a thread at work.
enum class Drainer : uint32_t { kNone, kThread, kDrainProcess };

inline constexpr uint64_t kExitCodeKnown = uint64_t{1} << 32;

struct alignas(kSharedPage) DrainControl {
  // To the drain.
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> stop_deadline_ms{0};
  std::atomic<uint64_t> exit_code{0};  // kExitCodeKnown | what exit() or _exit() was called with
  // From the drain.
  std::atomic<bool> connected{false};
  std::atomic<uint32_t> listen_port{0};
  std::atomic<bool> ended{false};  // its last act
  // The program is held until there is a function filter, which the collector was asked for; when
  // it was released without one, on the clock of events (0: it was not).
  std::atomic<bool> holds{false};
  std::atomic<bool> filter_asked{false};
  std::atomic<uint64_t> released_ns{0};
  std::atomic<Drainer> drainer{Drainer::kNone};
  std::atomic<int32_t> drain_pid{0};  // of the drain process
};
extern DrainControl g_control;

}  // namespace collect::agent
