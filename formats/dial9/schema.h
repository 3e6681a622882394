// What an event type looks like, as the caller of the encoder says it and as a tool keeps it. The
// decoder's own form is known_schema.h. Plain values, no threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "formats/dial9/layout.h"

namespace collect::dial9 {

struct Field {
  std::string name;  // UTF-8, at most kMaxNameBytes; names may be equal or empty
  FieldType type = FieldType::kVarint;
  bool optional = false;

  bool operator==(const Field&) const = default;
};

struct Schema {
  uint16_t type_id = 0;
  std::string name;           // UTF-8, at most kMaxNameBytes
  bool has_timestamp = true;  // the time is in the event's head, not among the fields
  std::vector<Field> fields;  // at most kMaxFields

  bool operator==(const Schema&) const = default;
};

// Keys of annotations that viewers know.
inline constexpr std::string_view kUnitKey = "unit";  // of a number: ns, us, ms, s or bytes
inline constexpr std::string_view kOldUnitKey = "metrique.unit";  // what older recorders call it

// A remark on a field, for viewers. It is no part of the schema.
struct Annotation {
  uint16_t field_index = 0;
  std::string key;    // UTF-8, at most kMaxNameBytes
  std::string value;  // UTF-8

  bool operator==(const Annotation&) const = default;
};

// kInvalidArgument when a decoder would refuse the schema: a name that is too long or no UTF-8, too
// many fields, a type that is none.
Status validate(const Schema& schema);
Status validate(const Annotation& annotation);

// The frame's bytes, behind `out`. The schema is valid.
void append_schema_frame(const Schema& schema, std::vector<uint8_t>& out);
void append_annotations_frame(uint16_t type_id, const std::vector<Annotation>& annotations,
                              std::vector<uint8_t>& out);

}  // namespace collect::dial9
