// WTF-trace: what is in the bytes, and our limits. FORMAT.md has the pictures. Everything is
// made of little-endian 32-bit words, except in legacy files (format version 3), which are
// big-endian and packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/core/bytes.h"

namespace collect::wtf {

inline constexpr uint32_t kMagic = 0xDEADBEEF;
// Low 32 bits of a build time in milliseconds. Any value is accepted by the published viewer; one
// other published reader wants exactly this one, so this is what we write.
inline constexpr uint32_t kToolVersion = 0xE8214400;
inline constexpr uint32_t kFormatVersion = 10;
inline constexpr uint32_t kLegacyFormatVersion = 3;

inline constexpr size_t kFileHeaderBytes = 12;   // magic, tool version, format version
inline constexpr size_t kChunkHeaderBytes = 24;  // id, type, length, start, end, part count
inline constexpr size_t kPartEntryBytes = 12;    // type, offset, length
inline constexpr size_t kEventHeaderBytes = 8;   // wire id, time
inline constexpr size_t kMinFileBytes = 48;      // less is refused by the published viewer

enum class ChunkType : uint32_t { kFileHeader = 1, kEventData = 2 };

enum class PartType : uint32_t {
  kFileHeader = 0x10000,         // JSON
  kJsonEventBuffer = 0x20000,    //
  kLegacyEventBuffer = 0x20001,  //
  kBinaryEventBuffer = 0x20002,  //
  kStringTable = 0x30000,        // UTF-8, NUL after each string
  kBinaryResource = 0x40000,     //
  kStringResource = 0x40001,     //
};

// "file_header", "event_data"; empty when unknown.
std::string_view chunk_type_name(uint32_t type);
// "string_table" and so on; empty when unknown.
std::string_view part_type_name(uint32_t type);
// The number for such a name; 0 when unknown.
uint32_t chunk_type_of(std::string_view name);
uint32_t part_type_of(std::string_view name);

// A chunk's start or end time when the writer does not know it.
inline constexpr uint32_t kNoTime = 0xFFFFFFFF;

// String ordinals with a meaning of their own; kNullOrdinal as an array's count is a null array.
inline constexpr uint32_t kNullOrdinal = 0xFFFFFFFF;
inline constexpr uint32_t kEmptyOrdinal = 0xFFFFFFFE;

// An event's class as the file has it, 16 bits. Other values count as instances.
inline constexpr uint16_t kClassInstance = 0;
inline constexpr uint16_t kClassScope = 1;

enum EventFlag : uint32_t {
  kFlagHighFrequency = 2,
  kFlagSystemTime = 4,
  kFlagInternal = 8,
  kFlagAppendScopeData = 16,
  kFlagBuiltin = 32,  // without it zone events have no effect
  kFlagAppendFlowData = 64,
};

// wtf.event#define, which every file knows without a definition.
inline constexpr uint32_t kDefineWireId = 1;

// --- Limits of the format ---
inline constexpr uint32_t kMaxWireId = 65535;       // uint16 in the definition
inline constexpr uint32_t kMaxZoneId = 65535;       // uint16
inline constexpr uint32_t kMaxTimeUs = 0xFFFFFFFF;  // 71 min 34.9 s after the timebase
inline constexpr uint32_t kMaxViewerDepth = 1024;   // scopes from this depth on are not built

// --- Limits of ours, on what a file may make us keep ---
inline constexpr size_t kMaxDefinitions = size_t{1} << 18;  // event types, redefinitions included
inline constexpr size_t kMaxArguments = 1024;               // of one event type
inline constexpr size_t kMaxSignatureBytes = size_t{64} << 10;
// Names and argument lists of all event types of a file; names of all zones: the same again.
inline constexpr size_t kMaxDefinitionBytes = size_t{64} << 20;
inline constexpr size_t kMaxZones = 65536 + 4096;
inline constexpr size_t kMaxStrings = size_t{16} << 20;  // indexed entries of one string table
inline constexpr size_t kMaxHeaderJsonBytes = size_t{1} << 20;

// The published viewer's library takes a file's form from its name.
inline constexpr std::string_view kBinarySuffix = ".wtf-trace";
inline constexpr std::string_view kJsonSuffix = ".wtf-json";

// Parts of a chunk begin at multiples of four bytes.
inline constexpr uint64_t padded(uint64_t length) {
  return (length + 3) / 4 * 4;
}

enum class FileKind : uint8_t { kUnknown, kBinary, kLegacy, kJson };

// Bytes of a file's start that file_kind() wants to see; fewer will do when the file is shorter.
inline constexpr size_t kSniffBytes = 4096;

// By content: the two magics with a version that we read, or a JSON object that names a WTF format
// version within its first kSniffBytes.
FileKind file_kind(Bytes head);
inline bool looks_like_wtf(Bytes head) {
  return file_kind(head) != FileKind::kUnknown;
}

}  // namespace collect::wtf
