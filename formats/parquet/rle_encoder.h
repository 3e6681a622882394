// Parquet's RLE/bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"):
// definition levels and indices of a dictionary. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace collect::parquet {

// Appends the runs, without a length before them. Values fit into `width` bits (0 to 32). The last
// run may be padded with zeros: a reader knows the number of values.
void append_rle_hybrid(std::span<const uint32_t> values, uint32_t width, std::vector<uint8_t>& out);
void append_rle_hybrid(std::span<const uint8_t> values, uint32_t width, std::vector<uint8_t>& out);

}  // namespace collect::parquet
