#include "formats/core/crc32.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

namespace collect {
namespace {

constexpr uint32_t kCastagnoli = 0x82F63B78;  // reflected
constexpr uint32_t kIeee = 0xEDB88320;        // reflected

// Polynomials over GF(2) modulo the CRC polynomial, reflected: bit 31 is x^0.
constexpr uint32_t multiply(uint32_t a, uint32_t b, uint32_t polynomial) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ polynomial : b >> 1;
  }
  return product;
}

// powers[k] = x^(8 * 2^k): shifting by 2^k zero bytes.
constexpr std::array<uint32_t, 64> byte_shift_powers(uint32_t polynomial) {
  std::array<uint32_t, 64> powers{};
  uint32_t power = 1u << 23;  // x^8
  for (auto& entry : powers) {
    entry = power;
    power = multiply(power, power, polynomial);
  }
  return powers;
}

constexpr auto kCastagnoliPowers = byte_shift_powers(kCastagnoli);
constexpr auto kIeeePowers = byte_shift_powers(kIeee);

uint32_t shift(uint32_t crc, uint64_t bytes, const std::array<uint32_t, 64>& powers,
               uint32_t polynomial) {
  for (size_t k = 0; bytes != 0; ++k, bytes >>= 1) {
    if (bytes & 1) crc = multiply(powers[k], crc, polynomial);
  }
  return crc;
}

constexpr size_t kChunk = size_t{1} << 30;  // ISA-L takes an int length

// ISA-L's kernels return with the upper halves of the vector registers in use. Until they are
// cleared, SSE code of this thread, which is nearly all code, pays for it at every instruction: a
// write of 16 bytes took 200 ns instead of 24. No inlining: here no vector register is live.
[[gnu::noinline]] void release_vector_registers() {
#if defined(__x86_64__)
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) __asm__ volatile("vzeroupper" ::: "memory");
#endif
}

}  // namespace

uint32_t crc32c(Bytes bytes, uint32_t previous) {
  uint32_t state = ~previous;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kChunk);
    // The signature lacks const; the function only reads.
    state = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(count), state);
    bytes = bytes.subspan(count);
  }
  release_vector_registers();
  return ~state;
}

uint32_t crc32_ieee(Bytes bytes, uint32_t previous) {
  const uint32_t crc = crc32_gzip_refl(previous, bytes.data(), bytes.size());
  release_vector_registers();
  return crc;
}

uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t b_bytes) {
  return shift(a, b_bytes, kCastagnoliPowers, kCastagnoli) ^ b;
}

uint32_t crc32_ieee_combine(uint32_t a, uint32_t b, uint64_t b_bytes) {
  return shift(a, b_bytes, kIeeePowers, kIeee) ^ b;
}

}  // namespace collect
