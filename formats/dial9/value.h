// One field of an event as the decoder hands it out: 16 bytes that point into the decoded bytes and
// live as long as these do. What is inside lists, maps and stacks is read on demand; the decoder
// has checked it, so these walks cannot fail. No allocation; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/encoding/leb128.h"
#include "formats/dial9/layout.h"

namespace collect::dial9 {

class DynamicView;
class StringMapView;

// Addresses, leaf first, at any alignment.
class StackView {
 public:
  StackView() = default;
  StackView(const uint8_t* addresses, uint32_t count) : addresses_(addresses), count_(count) {}

  uint32_t size() const { return count_; }
  uint64_t operator[](size_t i) const { return load_le<uint64_t>(addresses_ + 8 * i); }
  Bytes bytes() const { return {addresses_, size_t{8} * count_}; }

 private:
  const uint8_t* addresses_ = nullptr;
  uint32_t count_ = 0;
};

// The accessors read what the type says; asking a value for another type's content is a mistake of
// the caller that gives a wrong number, or nothing, but touches no foreign byte.
class Value {
 public:
  Value() = default;
  static Value absent(FieldType type) { return {0, 0, type, false}; }
  static Value number(FieldType type, uint64_t bits) { return {bits, 0, type, true}; }
  // `size`: bytes of a String, Bytes, StringMap, DynamicList or DynamicMap, addresses of a stack.
  static Value borrowed(FieldType type, const uint8_t* data, uint32_t size) {
    return {reinterpret_cast<uintptr_t>(data), size, type, true};
  }

  FieldType type() const { return type_; }
  bool present() const { return present_; }  // false: an optional field without value

  // Varint, U8, U16, U32, Bool as 0 or 1, pool ids; the bit pattern of I64 and F64.
  uint64_t u64() const { return is_borrowed() ? 0 : bits_; }
  int64_t i64() const { return static_cast<int64_t>(u64()); }
  double f64() const { return std::bit_cast<double>(u64()); }
  bool boolean() const { return u64() != 0; }
  uint32_t pool_id() const { return static_cast<uint32_t>(u64()); }

  // String and Bytes. Text may be anything but UTF-8: see append_utf8.
  Bytes bytes() const {
    if (type_ != FieldType::kString && type_ != FieldType::kBytes) return {};
    return {data(), size_};
  }
  std::string_view text() const {
    const Bytes own = bytes();
    return {reinterpret_cast<const char*>(own.data()), own.size()};
  }
  StackView stack() const {
    return type_ == FieldType::kStackFrames ? StackView(data(), size_) : StackView();
  }
  StringMapView string_map() const;
  DynamicView dynamic() const;  // DynamicList: elements; DynamicMap: key, value, key, value ...
  // How many lists and maps are nested, this one included; 0 for other types.
  size_t nesting() const;

 private:
  Value(uint64_t bits, uint32_t size, FieldType type, bool present)
      : bits_(bits), size_(size), type_(type), present_(present) {}

  bool is_borrowed() const {
    switch (type_) {
      case FieldType::kString:
      case FieldType::kBytes:
      case FieldType::kStackFrames:
      case FieldType::kStringMap:
      case FieldType::kDynamicList:
      case FieldType::kDynamicMap:
        return true;
      default:
        return false;
    }
  }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(uintptr_t(bits_)); }

  uint64_t bits_ = 0;  // the number, or the address of the first byte
  uint32_t size_ = 0;
  FieldType type_{};
  bool present_ = false;
};
static_assert(sizeof(Value) == 16);

// The pairs in the file's order, equal keys included.
class StringMapView {
 public:
  struct Pair {
    std::string_view key;
    std::string_view value;
  };
  explicit StringMapView(Bytes content) : rest_(content), left_(rest_.u32()) {}

  uint32_t left() const { return left_; }  // pairs that next() still gives
  bool next(Pair& out) {
    if (left_ == 0) return false;
    --left_;
    out = {};
    out.key = text();
    out.value = text();
    return true;
  }

 private:
  std::string_view text() {
    const Bytes own = rest_.bytes(rest_.u32());
    return {reinterpret_cast<const char*>(own.data()), own.size()};
  }

  ByteReader rest_;
  uint32_t left_;  // none of no content
};

// The elements of a list; of a map the keys and values by turns. An element that is a list or a map
// itself is a Value with its own dynamic().
class DynamicView {
 public:
  DynamicView() = default;
  // Takes one encoded list or map, with its count.
  DynamicView(Bytes content, bool is_map);

  uint64_t left() const { return left_; }  // values that next() still gives; of a map two per entry
  bool next(Value& out);

 private:
  Bytes rest_;
  uint64_t left_ = 0;
};

inline StringMapView Value::string_map() const {
  return StringMapView(type_ == FieldType::kStringMap ? Bytes(data(), size_) : Bytes());
}

inline DynamicView Value::dynamic() const {
  if (!present_ || (type_ != FieldType::kDynamicList && type_ != FieldType::kDynamicMap)) return {};
  return DynamicView(Bytes(data(), size_), type_ == FieldType::kDynamicMap);
}

}  // namespace collect::dial9
