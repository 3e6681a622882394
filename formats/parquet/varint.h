// Numbers as Parquet and Thrift write them: ULEB128, and zigzag for signed ones (0, -1, 1, -2 …
// become 0, 1, 2, 3 …). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/core/encoding/leb128.h"

namespace collect::parquet {

inline void append_varint(uint64_t value, std::vector<uint8_t>& out) {
  uint8_t encoded[kLeb128MaxBytes];
  out.insert(out.end(), encoded, encoded + write_uleb128(encoded, value));
}

inline void append_zigzag(int64_t value, std::vector<uint8_t>& out) {
  append_varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63), out);
}

}  // namespace collect::parquet
