// The bytes of RTC (Ruler Trace Container): ids, fixed sizes, limits and the choices that the
// document leaves to the writer. FORMAT.md is the document. A "Unit" is a major division of the
// ruler, `unit_bytes` long; its minor divisions are `minor_bytes` long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::rtc {

// Frames that always exist; streams of the application follow from kFirstStreamId.
inline constexpr uint64_t kNulId = 0;
inline constexpr uint64_t kPaddingId = 1;
inline constexpr uint64_t kMarkerId = 2;
inline constexpr uint64_t kIndexId = 3;       // "Index", at the start of a Unit
inline constexpr uint64_t kMinorIndexId = 4;  // "index", at the start of a minor unit
inline constexpr uint64_t kMetaId = 5;        // "Meta", every stream, in every Unit
inline constexpr uint64_t kMetaDeltaId = 6;   // "meta", one stream that was opened inside a Unit
inline constexpr uint64_t kPlatformId = 7;
inline constexpr uint64_t kCrcId = 8;
inline constexpr uint64_t kFirstStreamId = 9;

inline constexpr size_t kMaxPayloadBytes = 1024;  // of a frame; no frame is longer than a Marker
inline constexpr uint8_t kMarkerFirstByte = kMarkerId << 1;  // 04
inline constexpr uint8_t kMarkerFill = 0xB9;                 // x 1024: magic and version at once
inline constexpr size_t kMarkerBytes = 1 + kMaxPayloadBytes;
inline constexpr uint8_t kIndexFirstByte = kIndexId
                                           << 1;  // 06, or 07 with more: what must follow a Marker
inline constexpr uint32_t kPlatformValue = 0x01020304;
inline constexpr size_t kPlatformPayloadBytes = 4;
inline constexpr size_t kCrcPayloadBytes = 4;
inline constexpr size_t kTimespecBytes = 12;

// Unit and unit are powers of two. Below the smallest, a frame of the maximum size finds no room.
inline constexpr uint64_t kMinUnitBytes = 2048;
inline constexpr uint64_t kMaxUnitBytes = uint64_t{1} << 40;
inline constexpr uint64_t kDefaultUnitBytes = uint64_t{1} << 20;
inline constexpr uint64_t kDefaultMinorBytes = uint64_t{1} << 17;

inline constexpr uint64_t kMaxStreamId = 0x7FFFFFFF;  // believed of a Meta
inline constexpr size_t kMaxStreams = 65536;          // of a session
inline constexpr size_t kMaxMetaBytes = size_t{4} << 20;
inline constexpr size_t kMaxMetaDepth = 32;
inline constexpr size_t kMaxIndexBytes = size_t{1} << 20;  // payload of an Index or index
inline constexpr size_t kMaxClockBytes = 64;               // payload of one value of a clock

// How the platform and Crc frames are laid out: published files leave out the length, the letter
// of the document has it.
enum class SpecialFrames : uint8_t { kFixed, kPrefixed };
// The writer's byte order: that of numbers whose format does not say, of timespec and of Crc.
enum class Endian : uint8_t { kLittle, kBig };
// Which of the two checksums in use; the published writer's is not CRC-32.
enum class Checksum : uint8_t { kIeee, kPublished };

struct Geometry {
  uint64_t unit_bytes = kDefaultUnitBytes;    // "Unit"
  uint64_t minor_bytes = kDefaultMinorBytes;  // "unit", at most a Unit
};

// kInvalidArgument, with a sentence, when the sizes are no powers of two or beyond the limits.
Status check_geometry(const Geometry& geometry);

// Whether any frame of this stream could be taken for a Marker that an Index follows: the id's
// bytes continue or complete a run of B9. Such ids are never given out. `fixed_length` is the
// stream's length, or -1.
bool id_may_forge_marker(uint64_t id, int fixed_length);

// "fixed", "prefixed"; "le", "be"; "ieee", "writer".
const char* to_text(SpecialFrames special);
const char* to_text(Endian endian);
const char* to_text(Checksum checksum);

}  // namespace collect::rtc
