#include "formats/dial9/read/field_reader.h"

#include <algorithm>

#include "formats/core/encoding/leb128.h"
#include "formats/core/text/utf8.h"

namespace collect::dial9 {
namespace {

// The smallest element of a list: its type and one byte of value.
constexpr uint64_t kMinElementBytes = 2;

bool skip_string_map(FrameReader& reader, uint64_t behind) {
  if (!reader.require(4, behind)) return false;
  const uint32_t pairs = reader.take<uint32_t>();
  for (uint64_t left = uint64_t{2} * pairs; left != 0; --left) {
    const uint64_t rest = 4 * (left - 1) + behind;
    if (!reader.require(4, rest)) return false;
    const uint32_t size = reader.take<uint32_t>();
    if (!reader.require(size, rest)) return false;
    reader.skip(size);
  }
  return true;
}

// Bytes of a value whose size follows from its type; 0 for the others.
constexpr uint32_t fixed_bytes(FieldType type) {
  constexpr uint8_t kBytes[] = {0, 8, 8, 1, 0, 0, 4, 4, 0, 0, 0, 1, 2, 4, 0, 0};
  return kBytes[static_cast<uint8_t>(type) & 0x0f];
}

// A value that is no list or map of dynamic elements.
bool skip_flat(FrameReader& reader, FieldType type, uint64_t behind) {
  if (const uint32_t fixed = fixed_bytes(type); fixed != 0) {
    if (!reader.require(fixed, behind)) return false;
    reader.skip(fixed);
    return true;
  }
  if (type == FieldType::kVarint) {
    uint64_t value;
    return reader.varint(value, behind);
  }
  if (type == FieldType::kStringMap) return skip_string_map(reader, behind);
  if (!reader.require(4, behind)) return false;
  uint64_t size = reader.take<uint32_t>();
  if (type == FieldType::kStackFrames) size *= 8;
  if (!reader.require(size, behind)) return false;
  reader.skip(size);
  return true;
}

// A list or map with everything in it. The open ones are counted on an array of limited size, not
// on the call stack, and no count takes memory. `deepest`: how many were open at once.
bool skip_dynamic(FrameReader& reader, bool is_map, uint64_t behind, size_t* deepest = nullptr) {
  uint64_t left[kMaxNestingDepth];
  size_t depth = 0;
  uint64_t least = behind;  // bytes that must still come for what is open
  const auto open = [&](bool map) {
    if (depth == kMaxNestingDepth) return reader.fail(Rule::kNesting);
    if (!reader.require(4, least)) return false;
    left[depth] = uint64_t{reader.take<uint32_t>()} * (map ? 2 : 1);
    least += kMinElementBytes * left[depth++];
    if (deepest != nullptr) *deepest = std::max(*deepest, depth);
    return reader.require(least - behind, behind);
  };
  if (!open(is_map)) return false;
  while (depth != 0) {
    if (left[depth - 1] == 0) {
      --depth;
      continue;
    }
    --left[depth - 1];
    least -= kMinElementBytes;
    if (!reader.require(1, least + 1)) return false;
    const uint8_t type = *reader.at();
    if (!is_field_type(type)) return reader.fail(Rule::kElementType, type);
    reader.skip(1);
    const FieldType field_type = static_cast<FieldType>(type);
    if (field_type == FieldType::kDynamicList || field_type == FieldType::kDynamicMap) {
      if (!open(field_type == FieldType::kDynamicMap)) return false;
    } else if (!skip_flat(reader, field_type, least)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool FrameReader::varint(uint64_t& out, uint64_t behind) {
  if (rule_ != Rule::kNone) return false;
  const Leb128<uint64_t> read = read_uleb128({at_, end_});
  if (read) {
    out = read.value;
    at_ += read.size;
    return true;
  }
  if (!read.truncated) return fail(Rule::kVarint);
  return require(left() + 1, behind);
}

bool FrameReader::name(std::string_view& out, uint64_t behind) {
  if (!require(2, behind)) return false;
  const uint16_t size = load_le<uint16_t>(at_);
  at_ += 2;
  if (!require(size, behind)) return false;
  out = {reinterpret_cast<const char*>(at_), size};
  if (!is_utf8(out)) return fail(Rule::kName);
  at_ += size;
  return true;
}

bool read_value(FrameReader& reader, FieldType type, Value& out, uint64_t behind) {
  const uint8_t* const begin = reader.at();
  switch (type) {
    case FieldType::kVarint: {
      uint64_t value = 0;
      if (!reader.varint(value, behind)) return false;
      out = Value::number(type, value);
      return true;
    }
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      if (!skip_dynamic(reader, type == FieldType::kDynamicMap, behind)) return false;
      out = Value::borrowed(type, begin, static_cast<uint32_t>(reader.at() - begin));
      return true;
    default:
      break;
  }
  if (!skip_flat(reader, type, behind)) return false;
  switch (type) {
    case FieldType::kString:
    case FieldType::kBytes:
    case FieldType::kStackFrames:
      out = Value::borrowed(type, begin + 4, load_le<uint32_t>(begin));
      return true;
    case FieldType::kStringMap:
      out = Value::borrowed(type, begin, static_cast<uint32_t>(reader.at() - begin));
      return true;
    default:
      break;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, begin, fixed_bytes(type));
  out = Value::number(type, type == FieldType::kBool ? uint64_t{bits != 0} : bits);
  return true;
}

bool read_fields(FrameReader& reader, Bytes types, Value* out) {
  uint64_t behind = 0;
  for (const uint8_t type : types) {
    const bool optional = (type & kOptionalBit) != 0;
    behind += optional ? 1 : min_value_bytes(static_cast<FieldType>(type));
  }
  for (const uint8_t type_byte : types) {
    const bool optional = (type_byte & kOptionalBit) != 0;
    const FieldType type = static_cast<FieldType>(type_byte & ~kOptionalBit);
    behind -= optional ? 1 : min_value_bytes(type);
    if (optional) {
      if (!reader.require(1, behind)) return false;
      if (reader.take<uint8_t>() == 0) {
        *out++ = Value::absent(type);
        continue;
      }
    }
    if (!read_value(reader, type, *out++, behind)) return false;
  }
  return true;
}

const uint8_t* skip_nested(FieldType type, const uint8_t* at, const uint8_t* end) {
  FrameReader reader(Bytes(at, end));
  const bool good = type == FieldType::kStringMap
                        ? skip_string_map(reader, 0)
                        : skip_dynamic(reader, type == FieldType::kDynamicMap, 0);
  return good ? reader.at() : nullptr;
}

size_t Value::nesting() const {
  if (!present_ || (type_ != FieldType::kDynamicList && type_ != FieldType::kDynamicMap)) return 0;
  FrameReader reader(Bytes(data(), size_));
  size_t deepest = 0;
  (void)skip_dynamic(reader, type_ == FieldType::kDynamicMap, 0, &deepest);
  return deepest;
}

DynamicView::DynamicView(Bytes content, bool is_map) {
  if (content.size() < 4) return;
  left_ = uint64_t{load_le<uint32_t>(content.data())} * (is_map ? 2 : 1);
  rest_ = content.subspan(4);
}

bool DynamicView::next(Value& out) {
  if (left_ == 0 || rest_.empty()) return false;
  --left_;
  FrameReader reader(rest_.subspan(1));
  if (!is_field_type(rest_[0]) || !read_value(reader, static_cast<FieldType>(rest_[0]), out)) {
    left_ = 0;
    return false;
  }
  rest_ = rest_.subspan(1 + static_cast<size_t>(reader.offset()));
  return true;
}

}  // namespace collect::dial9
