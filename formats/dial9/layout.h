// dial9 on the wire: tags, field types and limits; FORMAT.md "Grammar". Everything is little-endian
// and unaligned, so there are no structs: fields are read and written one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/core/bytes.h"

namespace collect::dial9 {

// A header is at the start and at every place where someone appended another stream.
inline constexpr uint8_t kMagic[4] = {'T', 'R', 'C', 0};
inline constexpr uint8_t kFormatVersion = 1;
inline constexpr size_t kHeaderBytes = 5;

enum class FrameTag : uint8_t {
  kSchema = 0x01,
  kEvent = 0x02,
  kStringPool = 0x03,
  kStackPool = 0x04,
  kTimestampReset = 0x05,
  kAnnotations = 0x06,
  kHeader = 'T',  // the first byte of the magic; it can be no other frame's tag
};

enum class FieldType : uint8_t {
  kI64 = 1,
  kF64 = 2,
  kBool = 3,
  kString = 4,             // u32 length, bytes
  kBytes = 5,              // u32 length, bytes
  kPooledStackFrames = 6,  // u32 id in the stack pool
  kPooledString = 7,       // u32 id in the string pool
  kStackFrames = 8,        // u32 count, count x u64, leaf first
  kVarint = 9,             // unsigned LEB128
  kStringMap = 10,         // u32 count, count x (u32 length, bytes, u32 length, bytes)
  kU8 = 11,
  kU16 = 12,
  kU32 = 13,
  kDynamicList = 14,  // u32 count, count x (u8 type, value)
  kDynamicMap = 15,   // u32 count, count x (u8 type, key, u8 type, value)
};

// In a schema's type byte: the value follows a presence byte, and only when that is not zero. It
// has no meaning for the elements of lists and maps.
inline constexpr uint8_t kOptionalBit = 0x80;

constexpr bool is_field_type(uint8_t type) {
  return type >= uint8_t(FieldType::kI64) && type <= uint8_t(FieldType::kDynamicMap);
}

// "i64", "pooled-string" and so on, for people.
constexpr std::string_view to_text(FieldType type) {
  constexpr std::string_view kNames[] = {"none",         "i64",    "f64",          "bool",
                                         "string",       "bytes",  "pooled-stack", "pooled-string",
                                         "stack-frames", "varint", "string-map",   "u8",
                                         "u16",          "u32",    "dynamic-list", "dynamic-map"};
  return is_field_type(uint8_t(type)) ? kNames[uint8_t(type)] : kNames[0];
}

// The bytes that a value of this type has at least; the lower bound behind every check of a count
// against the bytes that are left.
constexpr uint32_t min_value_bytes(FieldType type) {
  constexpr uint8_t kBytes[] = {0, 8, 8, 1, 4, 4, 4, 4, 4, 1, 4, 1, 2, 4, 4, 4};
  return kBytes[uint8_t(type) & 0x0f];
}

inline constexpr uint64_t kMaxTimestampDelta = 0xFFFFFF;  // u24
inline constexpr size_t kEventHeadBytes = 3;              // tag, type_id
inline constexpr size_t kTimedEventHeadBytes = 6;         // and the delta
inline constexpr size_t kResetBytes = 9;
inline constexpr size_t kPoolHeadBytes = 5;       // tag, count
inline constexpr size_t kPoolEntryHeadBytes = 8;  // id, length
inline constexpr size_t kMaxNameBytes = 0xFFFF;   // of a type, a field, an annotation's key
inline constexpr size_t kMaxFields = 0xFFFF;      // of one type
inline constexpr size_t kMaxTypes = 0x10000;      // of one sub-stream
inline constexpr size_t kMaxNestingDepth = 256;   // lists and maps within each other, read
inline constexpr uint64_t kMaxFrameBytes = 0xFFFFFFFF;
// What is written: published decoders stop at more.
inline constexpr size_t kMaxWrittenNesting = 32;
inline constexpr size_t kMaxWrittenElements = 1'000'000;  // of a stack, a list or a map

// Where a header of the known version is at or behind `from`; for reading on behind damage,
// since frames carry no length. The five bytes may also occur inside a value by chance.
std::optional<size_t> find_header(Bytes bytes, size_t from);

// By content: true when the first bytes of a file are a dial9 header of any version.
bool looks_like_dial9(Bytes head);

}  // namespace collect::dial9
