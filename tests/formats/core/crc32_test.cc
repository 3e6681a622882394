#include "formats/core/crc32.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace collect {
namespace {

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Bit by bit, from the definition: the independent answer.
uint32_t by_definition(Bytes bytes, uint32_t polynomial) {
  uint32_t crc = 0xFFFFFFFF;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? polynomial : 0);
  }
  return ~crc;
}

// The check values of the CRC catalogue and of zlib.
TEST(Crc32, CheckValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32_ieee(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32_ieee({}), 0u);
}

// RFC 3720, appendix B.4.
TEST(Crc32, Rfc3720Vectors) {
  EXPECT_EQ(crc32c(std::vector<uint8_t>(32, 0x00)), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<uint8_t>(32, 0xFF)), 0x62A8AB43u);
  std::vector<uint8_t> rising(32);
  std::iota(rising.begin(), rising.end(), uint8_t{0});
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
}

TEST(Crc32, EveryShortLengthAndAlignmentAgreesWithTheDefinition) {
  std::vector<uint8_t> data(300);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 31 + 7);
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; start + length <= data.size(); ++length) {
      const Bytes part = Bytes(data).subspan(start, length);
      ASSERT_EQ(crc32c(part), by_definition(part, 0x82F63B78)) << start << " " << length;
      ASSERT_EQ(crc32_ieee(part), by_definition(part, 0xEDB88320)) << start << " " << length;
    }
  }
}

TEST(Crc32, ContinuesAndCombines) {
  std::vector<uint8_t> data(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * i >> 3);
  for (const size_t cut : {0u, 1u, 7u, 64u, 2500u, 4999u, 5000u}) {
    const Bytes a = Bytes(data).first(cut);
    const Bytes b = Bytes(data).subspan(cut);
    EXPECT_EQ(crc32c(b, crc32c(a)), crc32c(data)) << cut;
    EXPECT_EQ(crc32_ieee(b, crc32_ieee(a)), crc32_ieee(data)) << cut;
    EXPECT_EQ(crc32c_combine(crc32c(a), crc32c(b), b.size()), crc32c(data)) << cut;
    EXPECT_EQ(crc32_ieee_combine(crc32_ieee(a), crc32_ieee(b), b.size()), crc32_ieee(data)) << cut;
  }
}

// Combining over a length that no one would hash in a test, checked by splitting it another way.
TEST(Crc32, CombinesOverLengthsBeyond32Bits) {
  const uint32_t a = crc32c(bytes_of("left"));
  const uint64_t half = (uint64_t{1} << 35) + 3;
  const uint32_t once = crc32c_combine(a, 0, 2 * half);
  const uint32_t twice = crc32c_combine(crc32c_combine(a, 0, half), 0, half);
  EXPECT_EQ(once, twice);
  EXPECT_NE(once, a);
}

}  // namespace
}  // namespace collect
