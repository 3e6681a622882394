// The recording state that every hook looks at.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/shared_memory.h"

namespace collect::agent {

// The one word that hooks look at. Low byte: flags; above: the epoch, which changes with anything
// that a thread keeps a copy of (clock line, modules, recording, detail), so that one comparison
// tells a hook that its copies hold.
enum StateFlags : uint64_t {
  kStateRecording = 1u << 0,
  kStateDetailArmed = 1u << 1,
  kStateDetailOn = 1u << 2,
  kStateVersion1 = 1u << 3,
  kStateModulesChanging = 1u << 4,  // a dlclose is under way: look modules up without a cache
  kStateSlowClock = 1u << 5,        // no invariant counter
  kStateForked = 1u << 6,           // a forked child that has not started its own agent yet
  kStateSledsChanging = 1u << 7,    // XRay code is patched for another function filter
  kStateFlags = 0xFF,
  kStateEpoch = 0x100,
};
// Any of these means that the short path does not apply.
inline constexpr uint64_t kStateGeneral = kStateDetailArmed | kStateDetailOn | kStateVersion1 |
                                          kStateModulesChanging | kStateSlowClock | kStateForked |
                                          kStateSledsChanging;

// Hidden, so that hooks reach it without the offset table.
struct alignas(kSharedPage) StateWord {
  // A CPU that compares a load with earlier stores by the low 12 bits of their addresses must not
  // take it for one that waits for a store of the same hook: those lie elsewhere in 128 bytes.
  unsigned char apart[120] = {};
  std::atomic<uint64_t> word{0};
};
// 0 before the agent looked whether it is to start, and never again after that.
[[gnu::visibility("hidden")]] extern StateWord g_state_word;
inline constexpr std::atomic<uint64_t>& g_state = g_state_word.word;

// Sets and clears flags and begins a new epoch. Any thread. Returns the new state.
uint64_t change_state(uint64_t set, uint64_t clear);

// Returns when no hook that saw an older g_state than `state` is inside any more: each stream is
// idle, or waits for a page (a safe point), or has seen `state`. Gives up on a stream after
// kQuiesceMs; is_quiet then says so. [drain]
void quiesce(uint64_t state);
inline constexpr uint32_t kQuiesceMs = 1000;

}  // namespace collect::agent
