#include "formats/core/encoding/leb128.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace collect {
namespace {

std::vector<uint8_t> encoded(uint64_t value) {
  std::vector<uint8_t> bytes(kLeb128MaxBytes);
  bytes.resize(write_uleb128(bytes.data(), value));
  return bytes;
}

std::vector<uint8_t> encoded_signed(int64_t value) {
  std::vector<uint8_t> bytes(kLeb128MaxBytes);
  bytes.resize(write_sleb128(bytes.data(), value));
  return bytes;
}

// The examples of DWARF 5, figures in section 7.6.
TEST(Leb128, UnsignedExamplesOfDwarf) {
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(encoded(2), Bytes({2}));
  EXPECT_EQ(encoded(127), Bytes({127}));
  EXPECT_EQ(encoded(128), Bytes({0x80, 1}));
  EXPECT_EQ(encoded(129), Bytes({0x81, 1}));
  EXPECT_EQ(encoded(12857), Bytes({0xb9, 0x64}));
}

TEST(Leb128, SignedExamplesOfDwarf) {
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(encoded_signed(2), Bytes({2}));
  EXPECT_EQ(encoded_signed(-2), Bytes({0x7e}));
  EXPECT_EQ(encoded_signed(127), Bytes({0xff, 0}));
  EXPECT_EQ(encoded_signed(-127), Bytes({0x81, 0x7f}));
  EXPECT_EQ(encoded_signed(128), Bytes({0x80, 1}));
  EXPECT_EQ(encoded_signed(-128), Bytes({0x80, 0x7f}));
  EXPECT_EQ(encoded_signed(-129), Bytes({0xff, 0x7e}));
}

TEST(Leb128, EveryBoundaryComesBack) {
  std::mt19937_64 random(7);
  for (int bits = 0; bits < 64; ++bits) {
    for (int64_t around = -2; around <= 2; ++around) {
      const uint64_t value = (uint64_t{1} << bits) + static_cast<uint64_t>(around);
      for (uint64_t one : {value, random() >> bits}) {
        const auto bytes = encoded(one);
        EXPECT_EQ(bytes.size(), uleb128_size(one));
        const auto read = read_uleb128(bytes);
        EXPECT_EQ(read.value, one);
        EXPECT_EQ(read.size, bytes.size());
        for (int64_t sign : {static_cast<int64_t>(one), static_cast<int64_t>(0 - one)}) {
          const auto signed_bytes = encoded_signed(sign);
          const auto back = read_sleb128(signed_bytes);
          EXPECT_EQ(back.value, sign);
          EXPECT_EQ(back.size, signed_bytes.size());
        }
      }
    }
  }
}

TEST(Leb128, EveryPrefixIsTruncated) {
  for (uint64_t value : {uint64_t{128}, uint64_t{1} << 40, ~uint64_t{0}}) {
    const auto bytes = encoded(value);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto read = read_uleb128(Bytes(bytes).first(size));
      EXPECT_FALSE(read);
      EXPECT_TRUE(read.truncated);
    }
  }
}

TEST(Leb128, ReadsPaddingAndRejectsTooManyBytes) {
  const std::vector<uint8_t> padded = {0x81, 0x80, 0x80, 0x00};
  EXPECT_EQ(read_uleb128(padded).value, 1U);
  EXPECT_EQ(read_uleb128(padded).size, 4);

  std::vector<uint8_t> bytes(9, 0x80);
  bytes.push_back(2);  // the 65th bit
  EXPECT_FALSE(read_uleb128(bytes));
  EXPECT_FALSE(read_uleb128(bytes).truncated);
  EXPECT_FALSE(read_sleb128(bytes));
  bytes.back() = 0x80;  // an 11th byte
  EXPECT_FALSE(read_uleb128(bytes));
  EXPECT_FALSE(read_uleb128(bytes).truncated);
  bytes.back() = 1;
  EXPECT_EQ(read_uleb128(bytes).value, uint64_t{1} << 63);
  EXPECT_FALSE(read_sleb128(bytes)) << "bit 64 of a signed value must equal bit 63";
  EXPECT_EQ(read_sleb128(encoded_signed(std::numeric_limits<int64_t>::min())).value,
            std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace collect
