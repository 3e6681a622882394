// Parquet's DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"): integers as differences, in
// blocks of 128 with the smallest difference, in miniblocks of 32 with a width of their own. Pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/parquet/layout.h"

namespace collect::parquet {

inline constexpr size_t kDeltaBlockValues = 128;
inline constexpr size_t kDeltaMiniblocks = 4;  // of a block
inline constexpr size_t kDeltaMiniblockValues = kDeltaBlockValues / kDeltaMiniblocks;

// Appends the header and all blocks. `type` is kInt32 or kInt64: differences wrap at its width, so
// unsigned values and values in any order come back as they were. Of kInt32, the low 32 bits of
// each value count.
void append_delta_binary_packed(std::span<const uint64_t> values, PhysicalType type,
                                std::vector<uint8_t>& out);

}  // namespace collect::parquet
