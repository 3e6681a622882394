// CRC-32C (Castagnoli, RFC 3720) and CRC-32 (IEEE 802.3, as zlib), by ISA-L, with combination.
// Both start from and return the finished value: crc32c({}, 0) == 0, and
// crc32c(b, crc32c(a)) == crc32c(a ++ b). Thread-safe: no state.
#pragma once

#include <cstdint>

#include "formats/core/bytes.h"

namespace collect {

uint32_t crc32c(Bytes bytes, uint32_t previous = 0);
uint32_t crc32_ieee(Bytes bytes, uint32_t previous = 0);

// The checksum of a ++ b from those of a and of b, where b has `b_bytes` bytes. About 30 ns.
uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t b_bytes);
uint32_t crc32_ieee_combine(uint32_t a, uint32_t b, uint64_t b_bytes);

}  // namespace collect
