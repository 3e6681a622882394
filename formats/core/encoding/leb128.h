// LEB128: seven bits a byte, low bits first, the top bit says that more follow; the signed form
// repeats the sign bit (DWARF 5, section 7.6). Values have 64 bits, so at most ten bytes. Longer
// encodings than needed are read, as every decoder does; bits beyond the 64th are refused.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"

namespace collect {

inline constexpr size_t kLeb128MaxBytes = 10;

// What one read found. `size` is the bytes taken; 0 says why there is no value.
template <class T>
struct Leb128 {
  T value = 0;
  uint8_t size = 0;
  bool truncated = false;  // size == 0: the bytes ended first; false: over 64 bits, or an 11th byte

  explicit operator bool() const { return size != 0; }
};

namespace leb128_detail {

// The value's 64 bits and the bytes taken; the tenth byte holds one bit of value, whose copies may
// fill it in the signed form.
template <bool kSigned>
inline Leb128<uint64_t> read(Bytes bytes) {
  uint64_t value = 0;
  const size_t limit = bytes.size() < kLeb128MaxBytes ? bytes.size() : kLeb128MaxBytes;
  for (size_t i = 0; i < limit; ++i) {
    const uint8_t byte = bytes[i];
    if (i == kLeb128MaxBytes - 1 && byte > 1 && !(kSigned && byte == 0x7f)) return {};
    if (kSigned && i == kLeb128MaxBytes - 1 && byte == 1) return {};
    value |= uint64_t{byte & 0x7fU} << (7 * i);
    if ((byte & 0x80) != 0) continue;
    if (kSigned && (byte & 0x40) != 0 && i + 1 < kLeb128MaxBytes)
      value |= ~uint64_t{0} << (7 * (i + 1));
    return {value, static_cast<uint8_t>(i + 1), false};
  }
  return {0, 0, limit < kLeb128MaxBytes};
}

}  // namespace leb128_detail

inline Leb128<uint64_t> read_uleb128(Bytes bytes) {
  if (!bytes.empty() && bytes[0] < 0x80) return {bytes[0], 1, false};
  return leb128_detail::read<false>(bytes);
}

inline Leb128<int64_t> read_sleb128(Bytes bytes) {
  const auto raw = leb128_detail::read<true>(bytes);
  return {static_cast<int64_t>(raw.value), raw.size, raw.truncated};
}

// Bytes that write_uleb128 takes: 1 to 10.
constexpr size_t uleb128_size(uint64_t value) {
  return value == 0 ? 1 : (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
}

// Writes the shortest form and returns its bytes; `out` has room for kLeb128MaxBytes.
inline size_t write_uleb128(uint8_t* out, uint64_t value) {
  size_t size = 0;
  while (value >= 0x80) {
    out[size++] = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  out[size++] = static_cast<uint8_t>(value);
  return size;
}

inline size_t write_sleb128(uint8_t* out, int64_t value) {
  size_t size = 0;
  while (value < -64 || value > 63) {
    out[size++] = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  out[size++] = static_cast<uint8_t>(value & 0x7f);
  return size;
}

}  // namespace collect
