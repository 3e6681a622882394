// Reads Chrome trace events (FORMAT.md "Reading") into a timeline: an object with `traceEvents`, or
// the bare array, which may lack its end. Memory: the names of threads, up to the sink's limits.
#pragma once

#include <cstddef>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/core/timeline/timeline_sink.h"

namespace collect::chrome {

// The text of one name, or of a number: longer ones end the reading.
inline constexpr size_t kMaxReadTextBytes = size_t{1} << 20;
inline constexpr size_t kMaxReadDepth = 1024;  // of objects and arrays
inline constexpr size_t kMaxIdBytes = 256;     // of a pid or tid; the rest is cut

bool looks_like_chrome(Bytes file);

// kDamaged, kTruncated: it is no JSON, and nothing was read. What ends or breaks off later is
// missing(). Errors of the sink are handed on.
Status read_events(Bytes file, TimelineSink& sink);

}  // namespace collect::chrome
