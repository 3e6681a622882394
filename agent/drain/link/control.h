// What the drain and the threads of the program exchange. With a drain process it is in
// shared memory. Fields are atomics: any side, any time.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/shared_memory.h"

namespace collect::agent {

// Who drains: the first to claim it. A drain process that comes up too late finds a thread at work.
enum class Drainer : uint32_t { kNone, kThread, kDrainProcess };

// Whether a filter of the program's (seccomp) may refuse calls of the thread that ends the process.
enum class AtExit : uint32_t { kNotKnown, kMayCall, kMustNotCall };

inline constexpr uint64_t kExitCodeKnown = uint64_t{1} << 32;

// Flags are numbers: of std::atomic<bool>, compiled for size, a copy is left that others could see.
struct alignas(kSharedPage) DrainControl {
  // To the drain.
  std::atomic<uint32_t> stop{0};
  std::atomic<uint64_t> stop_deadline_ms{0};
  std::atomic<uint64_t> exit_code{0};  // kExitCodeKnown | what exit() or _exit() was called with
  std::atomic<uint64_t> exit_ns{0};    // when, on the clock of events
  // A thread that ends the process asks the drain thread whether it may make system calls.
  std::atomic<uint32_t> exit_thread{0};
  // From the drain.
  std::atomic<AtExit> at_exit{AtExit::kNotKnown};
  std::atomic<bool> connected{false};
  std::atomic<uint32_t> listen_port{0};
  std::atomic<uint32_t> ended{0};  // its last act
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
