// Values side by side in `width` bits each, the first in the lowest bits (Parquet Encodings.md,
// "RLE/Bit-Packing Hybrid"). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::parquet {

// Appends `padded_count` values of `width` bits (0 to 64): `values`, which fit into `width` bits,
// and zeros. `padded_count` is a multiple of 8 and at least the number of values.
template <class T>
inline void append_bit_packed(std::span<const T> values, size_t padded_count, uint32_t width,
                              std::vector<uint8_t>& out) {
  const size_t begin = out.size();
  const size_t bytes = padded_count / 8 * width;
  if (width == 0) return;
  out.resize(begin + bytes + sizeof(uint64_t));  // the last word may be written past the end
  uint8_t* at = out.data() + begin;
  uint64_t word = 0;
  uint32_t filled = 0;  // bits of the word; less than 64
  for (const T value : values) {
    const auto wide = static_cast<uint64_t>(value);
    word |= wide << filled;
    filled += width;
    if (filled >= 64) {
      store_le(at, word);
      at += sizeof word;
      filled -= 64;
      word = filled == 0 ? 0 : wide >> (width - filled);
    }
  }
  store_le(at, word);
  out.resize(begin + bytes);
}

}  // namespace collect::parquet
