// The jumps of a patch plan, as this processor has them (formats/patch/plan_layout.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "agent/ring/sleds/sled_code.h"
#include "formats/patch/plan_layout.h"

namespace collect::agent {

#if defined(__x86_64__)

inline constexpr patch::Processor kPlanProcessor = patch::Processor::kX86_64;
inline constexpr size_t kPlanJumpBytes = patch::kJumpBytes;
inline constexpr uint64_t kPlanReach = 1u << 30;  // how far from a module its region may begin
inline constexpr uint64_t kPlanPlaceStep = 16u << 20;

// Corrects the distance at `place` from a stub to its module, when the stubs' region is `away` from
// the load bias. False: too far.
inline bool move_distance(uint8_t* place, int64_t away) {
  int32_t distance;
  memcpy(&distance, place, sizeof distance);
  const int64_t moved = distance - away;
  distance = static_cast<int32_t>(moved);
  memcpy(place, &distance, sizeof distance);
  return fits(moved, 32);
}

// What is at `from` then. False: too far.
inline bool make_jump(uint64_t from, uint64_t stub, uint8_t* jump) {
  const auto away = static_cast<int64_t>(stub - (from + kPlanJumpBytes));
  const auto distance = static_cast<int32_t>(away);
  jump[0] = 0xE9;
  memcpy(jump + 1, &distance, sizeof distance);
  return fits(away, 32);
}

#else

inline constexpr patch::Processor kPlanProcessor = patch::Processor::kArm64;
inline constexpr size_t kPlanJumpBytes = patch::kArm64JumpBytes;
inline constexpr uint64_t kPlanReach = patch::kArm64Reach;
inline constexpr uint64_t kPlanPlaceStep = 1u << 20;

inline bool write_branch(int64_t away, uint8_t* place) {
  const uint32_t word =
      patch::kArm64Branch | (static_cast<uint32_t>(away / 4) & ~patch::kArm64BranchMask);
  memcpy(place, &word, sizeof word);
  return fits(away, 28);
}

inline bool move_distance(uint8_t* place, int64_t away) {
  uint32_t word;
  memcpy(&word, place, sizeof word);
  const int64_t distance = static_cast<int32_t>(word << 6) / 16;  // 26 bits, of words
  return write_branch(distance - away, place);
}

inline bool make_jump(uint64_t from, uint64_t stub, uint8_t* jump) {
  return write_branch(static_cast<int64_t>(stub - from), jump);
}

#endif

}  // namespace collect::agent
