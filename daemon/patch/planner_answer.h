// What collect-planner writes to its standard output: a plan, which begins with its magic, or why
// there is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::patch {

inline constexpr char kRefusalMagic[8] = {'C', 'P', 'L', 'A', 'N', 'E', 'R', 'R'};
inline constexpr size_t kMaxRefusalText = 1024;
inline constexpr uint64_t kMaxPlannedFile = uint64_t{2} << 30;

// kRefusalMagic, u8 code, text.
std::vector<uint8_t> refusal_bytes(const Error& error);
// An answer of the other kind; kDamaged: of neither.
Error refusal_of(Bytes answer);
bool is_plan(Bytes answer);

}  // namespace collect::patch
