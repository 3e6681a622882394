// Why decoding cannot continue, and where. dial9 frames carry no length, so behind such a place
// nothing can be read, except another stream's header (find_header).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::dial9 {

enum class Rule : uint8_t {
  kNone,
  kHeader,          // the magic is not there, or differs
  kVersion,         // a version that this build does not know
  kTruncated,       // the bytes end within a frame
  kTag,             // no frame has this tag
  kName,            // a name is not UTF-8
  kFieldType,       // a schema with a field type that does not exist
  kSchemaConflict,  // a type_id again, with another schema
  kUnknownType,     // an event of a type_id without schema
  kVarint,          // over 64 bits, or an eleventh byte
  kElementType,     // within a list or map
  kNesting,         // deeper than kMaxNestingDepth
  kTime,            // base + delta over 64 bits
  kFrameSize,       // longer than this decoder takes
  kState,           // schemas and pools take more memory than this decoder gives
};

// "schema-conflict" and so on, for programs.
std::string_view rule_name(Rule rule);

struct Problem {
  Rule rule = Rule::kNone;
  uint64_t frame_offset = 0;  // in the stream: what is before it holds
  uint64_t offset = 0;        // in the stream: where exactly, within the frame
  std::string sentence;       // without path and offsets
};

// kTruncated, kUnsupported, kLimit or kDamaged, with the offsets in the message.
Error to_error(const Problem& problem);

}  // namespace collect::dial9
