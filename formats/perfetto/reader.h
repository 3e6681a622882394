// Reads Perfetto traces with track events (FORMAT.md "Reading") into a timeline. One packet at a
// time, and of compressed ones a run; in memory are names and tracks, up to the limits below.
#pragma once

#include <cstddef>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/core/timeline/timeline_sink.h"

namespace collect::perfetto {

inline constexpr size_t kMaxSequences = 65'536;
inline constexpr size_t kMaxInternedNames = size_t{1} << 20;   // of all sequences
inline constexpr size_t kMaxInternedBytes = size_t{64} << 20;  // of these together
inline constexpr size_t kMaxTrackDescriptors = size_t{1} << 18;
inline constexpr size_t kMaxDescriptorBytes = size_t{64} << 20;   // names of all tracks
inline constexpr size_t kMaxClocks = 65'536;                      // of all sequences
inline constexpr size_t kMaxUnpackedRunBytes = size_t{64} << 20;  // one compressed_packets
inline constexpr size_t kMaxTrackParents = 64;  // from a track up to that of its process

// The first packet is whole, and has fields of packets.
bool looks_like_perfetto(Bytes file);

// kDamaged, kTruncated: no packet is whole. What breaks off later is missing(). Errors of the sink
// are handed on.
Status read_packets(Bytes file, TimelineSink& sink);

}  // namespace collect::perfetto
