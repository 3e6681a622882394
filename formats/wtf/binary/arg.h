// One argument of an event to write. Borrows texts and arrays; hold it no longer than the call.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "formats/core/bytes.h"
#include "formats/wtf/binary/event_types.h"

namespace collect::wtf {

class Arg {
 public:
  enum class Kind : uint8_t { kNull, kInteger, kReal, kText, kArray };

  // Null: for texts, `any` and arrays.
  Arg() = default;
  Arg(std::nullptr_t) {}  // NOLINT: implicit, as all of these
  // Any integer, bool and character. One that does not fit its argument is refused, never cut.
  template <std::integral T>
  Arg(T value) : kind_(Kind::kInteger) {  // NOLINT
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      integer_ = value > INT64_MAX ? INT64_MAX : static_cast<int64_t>(value);
    } else {
      integer_ = static_cast<int64_t>(value);
    }
  }
  Arg(float value) : kind_(Kind::kReal), real_(value) {}             // NOLINT
  Arg(std::string_view text) : kind_(Kind::kText), text_(text) {}    // NOLINT
  Arg(const std::string& text) : kind_(Kind::kText), text_(text) {}  // NOLINT
  Arg(const char* text) : kind_(Kind::kText), text_(text) {}         // NOLINT
  Arg(const std::optional<std::string_view>& text)                   // NOLINT
      : kind_(text ? Kind::kText : Kind::kNull), text_(text.value_or(std::string_view())) {}

  // For arguments T[]: int8_t to uint32_t, float, char and uint8_t for char[], char16_t and
  // uint16_t for wchar[].
  template <class T>
  static Arg array(std::span<const T> elements) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 4 && !std::is_same_v<T, bool>);
    Arg arg;
    arg.kind_ = Kind::kArray;
    arg.element_ = element_type<T>();
    arg.elements_ = Bytes(reinterpret_cast<const uint8_t*>(elements.data()), elements.size_bytes());
    return arg;
  }
  // Elements of `type` as they are in the file.
  static Arg array(ArgType type, Bytes elements) {
    Arg arg;
    arg.kind_ = Kind::kArray;
    arg.element_ = type;
    arg.elements_ = elements;
    return arg;
  }

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  float real() const { return real_; }
  std::string_view text() const { return text_; }
  ArgType element() const { return element_; }
  Bytes elements() const { return elements_; }

 private:
  template <class T>
  static constexpr ArgType element_type() {
    if (std::is_same_v<T, float>) return ArgType::kFloat32;
    if (std::is_same_v<T, char>) return ArgType::kChar;
    if (std::is_same_v<T, char16_t>) return ArgType::kWchar;
    if (sizeof(T) == 1) return std::is_signed_v<T> ? ArgType::kInt8 : ArgType::kUint8;
    if (sizeof(T) == 2) return std::is_signed_v<T> ? ArgType::kInt16 : ArgType::kUint16;
    return std::is_signed_v<T> ? ArgType::kInt32 : ArgType::kUint32;
  }

  Kind kind_ = Kind::kNull;
  ArgType element_ = ArgType::kUint8;
  float real_ = 0;
  int64_t integer_ = 0;
  std::string_view text_;
  Bytes elements_;
};

}  // namespace collect::wtf
