// LZ4's block format, in and out. Pure: no allocation, any thread. The format is public, and two
// small functions are all that pages need of it: the agent links nothing but libc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"

namespace collect::wire {

inline constexpr size_t kLz4MaxInput = 64 * 1024;  // every position fits the table's 16 bits
inline constexpr uint32_t kLz4TableBits = 12;

struct Lz4Table {
  uint16_t positions[1u << kLz4TableBits];  // by hash of 4 bytes: where they were last seen
};

// One block of `input`, which is at most kLz4MaxInput bytes; its size, or 0 when it does not fit
// `output`. `table` is scratch.
size_t lz4_compress(Bytes input, MutableBytes output, Lz4Table& table);

// True when `input` is a block of exactly `output.size()` bytes. Anything may be in `input`;
// nothing outside of `output` is written.
bool lz4_decompress(Bytes input, MutableBytes output);

}  // namespace collect::wire
