// Reads folded stacks (FORMAT.md "Reading") into a timeline of one track. Memory: one stack.
#pragma once

#include <cstddef>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/core/timeline/timeline_sink.h"

namespace collect::folded {

inline constexpr size_t kSniffBytes = size_t{1} << 16;      // that looks_like_folded() reads
inline constexpr size_t kMaxStackFrames = size_t{1} << 20;  // of a line, the outermost

// Each line of the beginning is a stack and a weight.
bool looks_like_folded(Bytes file);

// kDamaged: no line is. Errors of the sink are handed on.
Status read_stacks(Bytes file, TimelineSink& sink);

}  // namespace collect::folded
