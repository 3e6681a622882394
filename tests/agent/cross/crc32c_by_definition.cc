// CRC-32C bit by bit, as RFC 3720 defines it: what the agent's is compared with where ISA-L is not
// there.
#include "formats/core/crc32.h"

namespace collect {

uint32_t crc32c(Bytes bytes, uint32_t previous) {
  constexpr uint32_t kCastagnoliReflected = 0x82F63B78;
  uint32_t remainder = ~previous;
  for (const uint8_t byte : bytes) {
    remainder ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = (remainder & 1) != 0;
      remainder = (remainder >> 1) ^ (carry ? kCastagnoliReflected : 0);
    }
  }
  return ~remainder;
}

}  // namespace collect
