// CRC-32C by the CPU's own instruction, for the agent, which brings no library. Same contract as
// collect::crc32c: starts from and returns the finished value, so that crc32c(b, crc32c(a)) is that
// of a ++ b. Any thread; no allocation. Three lanes run side by side, because the instruction takes
// three cycles and one can start in each; a table without it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace collect::agent {
namespace crc_detail {

inline constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected
inline constexpr size_t kLongBlock = 2048;           // bytes per lane
inline constexpr size_t kShortBlock = 256;

constexpr uint32_t step_bits(uint32_t crc, int bits) {
  for (int i = 0; i < bits; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
  return crc;
}

// a * b modulo the polynomial, both reflected.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = step_bits(b, 1);
  }
  return product;
}

using ByteTable = std::array<uint32_t, 256>;

// table[k][v] is v << 8k, moved on over `zero_bytes` zero bytes: the lanes of a block are joined
// with four look-ups.
constexpr std::array<ByteTable, 4> shift_tables(size_t zero_bytes) {
  uint32_t power = 1u << 31;         // x^0
  uint32_t square = 1u << (31 - 8);  // x^8: one byte
  for (size_t n = zero_bytes; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = multiply(power, square);
    square = multiply(square, square);
  }
  std::array<ByteTable, 4> tables{};
  for (size_t k = 0; k < 4; ++k) {
    for (uint32_t bit = 1; bit < 256; bit <<= 1) {
      const uint32_t moved = multiply(power, bit << (8 * k));
      for (uint32_t low = 0; low < bit; ++low) tables[k][bit + low] = tables[k][low] ^ moved;
    }
  }
  return tables;
}

constexpr ByteTable byte_table() {
  ByteTable table{};
  for (uint32_t v = 0; v < 256; ++v) table[v] = step_bits(v, 8);
  return table;
}

inline constexpr std::array<ByteTable, 4> kLongShift = shift_tables(kLongBlock);
inline constexpr std::array<ByteTable, 4> kShortShift = shift_tables(kShortBlock);
inline constexpr ByteTable kByteTable = byte_table();

inline uint32_t shifted(const std::array<ByteTable, 4>& tables, uint32_t crc) {
  return tables[0][crc & 0xFF] ^ tables[1][(crc >> 8) & 0xFF] ^ tables[2][(crc >> 16) & 0xFF] ^
         tables[3][crc >> 24];
}

inline uint32_t by_table(const uint8_t* at, size_t count, uint32_t state) {
  for (; count != 0; --count) state = kByteTable[(state ^ *at++) & 0xFF] ^ (state >> 8);
  return state;
}

#if defined(__x86_64__)
#define COLLECT_CRC_TARGET __attribute__((target("sse4.2")))
COLLECT_CRC_TARGET inline uint64_t step8(uint64_t state, uint64_t word) {
  return _mm_crc32_u64(state, word);
}
COLLECT_CRC_TARGET inline uint64_t step1(uint64_t state, uint8_t byte) {
  return _mm_crc32_u8(static_cast<uint32_t>(state), byte);
}
inline bool cpu_has_crc() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(1, a, b, c, d);
  return (c & bit_SSE4_2) != 0;
}
#define COLLECT_CRC_INSTRUCTION 1
#elif defined(__aarch64__)
#define COLLECT_CRC_TARGET
inline uint64_t step8(uint64_t state, uint64_t word) {
  auto crc = static_cast<uint32_t>(state);
  __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  return crc;
}
inline uint64_t step1(uint64_t state, uint8_t byte) {
  auto crc = static_cast<uint32_t>(state);
  __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
  return crc;
}
inline bool cpu_has_crc() {
#if defined(__linux__)
  constexpr unsigned long kHwcapCrc32 = 1ul << 7;
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
#else
  return true;  // every Apple arm64
#endif
}
#define COLLECT_CRC_INSTRUCTION 1
#endif

#if defined(COLLECT_CRC_INSTRUCTION)
// One block of three lanes of `kBlock` bytes.
template <size_t kBlock>
COLLECT_CRC_TARGET inline uint64_t three_lanes(const uint8_t* at, uint64_t state,
                                               const std::array<ByteTable, 4>& shift) {
  uint64_t second = 0;
  uint64_t third = 0;
  for (size_t i = 0; i < kBlock; i += 8) {
    state = step8(state, load_le<uint64_t>(at + i));
    second = step8(second, load_le<uint64_t>(at + kBlock + i));
    third = step8(third, load_le<uint64_t>(at + 2 * kBlock + i));
  }
  state = shifted(shift, static_cast<uint32_t>(state)) ^ second;
  return shifted(shift, static_cast<uint32_t>(state)) ^ third;
}

COLLECT_CRC_TARGET inline uint32_t by_instruction(const uint8_t* at, size_t count, uint32_t start) {
  uint64_t state = start;
  for (; count >= 3 * kLongBlock; at += 3 * kLongBlock, count -= 3 * kLongBlock) {
    state = three_lanes<kLongBlock>(at, state, kLongShift);
  }
  for (; count >= 3 * kShortBlock; at += 3 * kShortBlock, count -= 3 * kShortBlock) {
    state = three_lanes<kShortBlock>(at, state, kShortShift);
  }
  for (; count >= 8; at += 8, count -= 8) state = step8(state, load_le<uint64_t>(at));
  for (; count != 0; --count) state = step1(state, *at++);
  return static_cast<uint32_t>(state);
}

inline bool use_instruction() {
  static std::atomic<uint8_t> known{0};  // 1 no, 2 yes: asking twice does no harm
  uint8_t answer = known.load(std::memory_order_relaxed);
  if (answer == 0) {
    answer = cpu_has_crc() ? 2 : 1;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 2;
}
#endif

}  // namespace crc_detail

inline uint32_t crc32c(Bytes bytes, uint32_t previous) {
#if defined(COLLECT_CRC_INSTRUCTION)
  if (crc_detail::use_instruction()) {
    return ~crc_detail::by_instruction(bytes.data(), bytes.size(), ~previous);
  }
#endif
  return ~crc_detail::by_table(bytes.data(), bytes.size(), ~previous);
}

}  // namespace collect::agent
