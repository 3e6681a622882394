// Reads speedscope files (FORMAT.md "Reading") into a timeline: evented and sampled profiles, one
// track each. Memory: a number for each frame, and the stack of one sample.
#pragma once

#include <cstddef>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/core/timeline/timeline_sink.h"

namespace collect::speedscope {

inline constexpr size_t kMaxReadTextBytes = size_t{1} << 20;  // of one name; longer ones end it
inline constexpr size_t kMaxReadDepth = 1024;                 // of objects and arrays
inline constexpr size_t kMaxFrames = size_t{1} << 22;
inline constexpr size_t kMaxStackFrames = size_t{1} << 20;  // of a sample, the outermost

bool looks_like_speedscope(Bytes file);

// kDamaged, kTruncated, kLimit: no profile was read. What breaks off later is missing(). Errors of
// the sink are handed on.
Status read_profiles(Bytes file, TimelineSink& sink);

}  // namespace collect::speedscope
