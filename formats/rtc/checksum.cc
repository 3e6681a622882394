#include "formats/rtc/checksum.h"

#include <array>

namespace collect::rtc {
namespace {

constexpr uint32_t kPolynomial = 0x04C11DB7;  // unreflected
constexpr size_t kSlices = 8;                 // bytes at once

using Table = std::array<uint32_t, 256>;

// tables[k][b]: what a byte b does to the state after k more bytes. The update is linear, odd as it
// is, so it can be sliced like a real CRC.
constexpr std::array<Table, kSlices> make_tables() {
  std::array<Table, kSlices> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte << 24;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 0x80000000u) != 0 ? (value << 1) ^ kPolynomial : value << 1;
    }
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < kSlices; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t value = tables[k - 1][byte];
      tables[k][byte] = (value >> 8) ^ tables[0][value & 0xFF];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

}  // namespace

uint32_t published_checksum(Bytes bytes, uint32_t previous) {
  uint32_t state = ~previous;
  size_t at = 0;
  static_assert(kSlices == sizeof(uint64_t));
  for (; bytes.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    const uint64_t word = load_le<uint64_t>(bytes.data() + at) ^ state;
    state = 0;
    for (size_t k = 0; k < kSlices; ++k) {
      state ^= kTables[kSlices - 1 - k][(word >> (8 * k)) & 0xFF];
    }
  }
  for (; at < bytes.size(); ++at) state = (state >> 8) ^ kTables[0][(state ^ bytes[at]) & 0xFF];
  return ~state;
}

}  // namespace collect::rtc
