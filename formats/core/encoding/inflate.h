// Decompression of one piece in memory by ISA-L (RFC 1950, 1951, 1952).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect {

// `packed` is a zlib stream, or one member of a gzip file. kDamaged: it is neither, or it is not
// whole. kLimit: it holds more than `max_bytes`.
Result<std::vector<uint8_t>> inflate_piece(Bytes packed, size_t max_bytes);

}  // namespace collect
