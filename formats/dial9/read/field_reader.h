// Reads the values of one event. The fast way takes the bytes as they mostly are and gives up at
// anything unusual; the careful way then reads the same bytes again and says what is wrong.
#pragma once

#include <bit>
#include <cstdint>

#include "formats/core/bytes.h"
#include "formats/dial9/problem.h"
#include "formats/dial9/value.h"

namespace collect::dial9 {

// Reads one frame front to back and remembers the first thing that was wrong.
class FrameReader {
 public:
  explicit FrameReader(Bytes frame_and_rest)
      : begin_(frame_and_rest.data()), at_(begin_), end_(begin_ + frame_and_rest.size()) {}

  // False, and the problem noted, when fewer bytes are left. `behind`: what must follow them at
  // least, for need().
  bool require(uint64_t bytes, uint64_t behind = 0) {
    if (rule_ != Rule::kNone) return false;
    if (bytes <= static_cast<uint64_t>(end_ - at_)) return true;
    rule_ = Rule::kTruncated;
    need_ = offset() + bytes + behind;
    return false;
  }
  bool fail(Rule rule, uint64_t detail = 0) {
    if (rule_ == Rule::kNone) {
      rule_ = rule;
      detail_ = detail;
    }
    return false;
  }

  template <class T>
  T take() {  // after require()
    const T value = load_le<T>(at_);
    at_ += sizeof value;
    return value;
  }
  void skip(uint64_t bytes) { at_ += bytes; }
  bool varint(uint64_t& out, uint64_t behind = 0);
  // A name with its u16 length, which must be UTF-8.
  bool name(std::string_view& out, uint64_t behind = 0);

  const uint8_t* at() const { return at_; }
  uint64_t offset() const { return static_cast<uint64_t>(at_ - begin_); }
  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  bool ok() const { return rule_ == Rule::kNone; }
  Rule rule() const { return rule_; }
  uint64_t detail() const { return detail_; }
  uint64_t need() const { return need_; }  // kTruncated: bytes that the frame has at least

 private:
  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  Rule rule_ = Rule::kNone;
  uint64_t detail_ = 0;
  uint64_t need_ = 0;
};

// One value of a type without the optional bit. `behind`: as above.
bool read_value(FrameReader& reader, FieldType type, Value& out, uint64_t behind = 0);
// The values of `types` with their optional bits; `out` has a place for each.
bool read_fields(FrameReader& reader, Bytes types, Value* out);

// The end of a StringMap, DynamicList or DynamicMap whose count is at `at`; null when something
// is wrong with it.
const uint8_t* skip_nested(FieldType type, const uint8_t* at, const uint8_t* end);

// Within this distance of the end the fast way gives up: a presence byte and the longest value of
// fixed size fit in it.
inline constexpr ptrdiff_t kFastMargin = 16;

// A LEB128 number of at least two bytes, at least kFastMargin - 1 bytes before the end; null when
// it is too long.
inline const uint8_t* read_long_varint(const uint8_t* at, uint64_t& out) {
  const uint64_t word = load_le<uint64_t>(at);
  const uint64_t stops = ~word & 0x8080808080808080u;
  if (stops == 0) [[unlikely]] {
    const Leb128<uint64_t> read = read_uleb128({at, kLeb128MaxBytes});
    out = read.value;
    return read ? at + read.size : nullptr;
  }
  // The bytes up to the first without continuation bit (what stops - 1 has above that one are top
  // bits only), then seven bits of each pushed together.
  uint64_t bits = word & (stops - 1) & 0x7f7f7f7f7f7f7f7fu;
  bits = ((bits & 0x7f007f007f007f00u) >> 1) | (bits & 0x007f007f007f007fu);
  bits = ((bits & 0x3fff00003fff0000u) >> 2) | (bits & 0x00003fff00003fffu);
  out = ((bits & 0x0fffffff00000000u) >> 4) | (bits & 0x000000000fffffffu);
  return at + (std::countr_zero(stops) >> 3) + 1;
}

// The end of the event, or null: read it the careful way.
inline const uint8_t* read_fields_fast(Bytes types, const uint8_t* at, const uint8_t* end,
                                       Value* out) {
  for (uint8_t type_byte : types) {
    if (end - at < kFastMargin) [[unlikely]]
      return nullptr;
    if ((type_byte & kOptionalBit) != 0) {
      type_byte &= static_cast<uint8_t>(~kOptionalBit);
      if (*at++ == 0) {
        *out++ = Value::absent(static_cast<FieldType>(type_byte));
        continue;
      }
    }
    const FieldType type = static_cast<FieldType>(type_byte);
    switch (type) {
      case FieldType::kVarint: {
        uint64_t value = *at;
        if (value < 0x80) {
          ++at;
        } else {
          at = read_long_varint(at, value);
          if (at == nullptr) [[unlikely]]
            return nullptr;
        }
        *out++ = Value::number(type, value);
        break;
      }
      case FieldType::kU8:
        *out++ = Value::number(type, *at++);
        break;
      case FieldType::kBool:
        *out++ = Value::number(type, *at++ != 0);
        break;
      case FieldType::kU16:
        *out++ = Value::number(type, load_le<uint16_t>(at));
        at += 2;
        break;
      case FieldType::kU32:
      case FieldType::kPooledString:
      case FieldType::kPooledStackFrames:
        *out++ = Value::number(type, load_le<uint32_t>(at));
        at += 4;
        break;
      case FieldType::kI64:
      case FieldType::kF64:
        *out++ = Value::number(type, load_le<uint64_t>(at));
        at += 8;
        break;
      case FieldType::kString:
      case FieldType::kBytes: {
        const uint32_t size = load_le<uint32_t>(at);
        at += 4;
        if (size > static_cast<uint64_t>(end - at)) [[unlikely]]
          return nullptr;
        *out++ = Value::borrowed(type, at, size);
        at += size;
        break;
      }
      case FieldType::kStackFrames: {
        const uint32_t count = load_le<uint32_t>(at);
        at += 4;
        if (count > static_cast<uint64_t>(end - at) / 8) [[unlikely]]
          return nullptr;
        *out++ = Value::borrowed(type, at, count);
        at += size_t{8} * count;
        break;
      }
      case FieldType::kStringMap:
      case FieldType::kDynamicList:
      case FieldType::kDynamicMap: {
        const uint8_t* const behind = skip_nested(type, at, end);
        if (behind == nullptr) [[unlikely]]
          return nullptr;
        *out++ = Value::borrowed(type, at, static_cast<uint32_t>(behind - at));
        at = behind;
        break;
      }
    }
  }
  return at;
}

}  // namespace collect::dial9
