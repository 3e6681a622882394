// Bytes by hand. The first two are the examples of Encodings.md, "Delta Encoding", in our block
// size.
#include "formats/parquet/delta_encoder.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace collect::parquet {
namespace {

using Raw = std::vector<uint8_t>;

Raw encoded(const std::vector<uint64_t>& values, PhysicalType type = PhysicalType::kInt64) {
  Raw out;
  append_delta_binary_packed(values, type, out);
  return out;
}

// Blocks of 128 values in 4 miniblocks, then what is given.
Raw with_header(const Raw& rest) {
  Raw wanted = {0x80, 0x01, 0x04};
  wanted.insert(wanted.end(), rest.begin(), rest.end());
  return wanted;
}
Raw joined(Raw first, const Raw& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(ParquetDeltaEncoder, EqualDifferencesNeedNoBits) {
  EXPECT_EQ(encoded({1, 2, 3, 4, 5}), with_header({5, 2, 2, 0, 0, 0, 0}));
}

TEST(ParquetDeltaEncoder, DifferencesAreRelativeToTheSmallest) {
  EXPECT_EQ(encoded({7, 5, 3, 1, 2, 3, 4, 5}),
            with_header({8, 14, 3, 2, 0, 0, 0, 0xC0, 0x3F, 0, 0, 0, 0, 0, 0}));
}

TEST(ParquetDeltaEncoder, OneValueIsInTheHeader) {
  EXPECT_EQ(encoded({300}), with_header({1, 0xD8, 0x04}));
  EXPECT_EQ(encoded({}), with_header({0, 0}));
}

TEST(ParquetDeltaEncoder, BlockHas128Differences) {
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 129; ++i) values.push_back(i);
  EXPECT_EQ(encoded(values), with_header({0x81, 0x01, 0, 2, 0, 0, 0, 0}));
  values.push_back(129 + 4);  // 5 more than before
  EXPECT_EQ(encoded(values), with_header({0x82, 0x01, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0}));
}

TEST(ParquetDeltaEncoder, EachMiniblockHasItsWidth) {
  std::vector<uint64_t> values = {0};
  for (int i = 0; i < 32; ++i) values.push_back(values.back());       // width 0
  values.push_back(values.back() + 1);                                // width 1
  for (int i = 0; i < 31; ++i) values.push_back(values.back());       //
  for (int i = 0; i < 2; ++i) values.push_back(values.back() + 255);  // width 8
  EXPECT_EQ(encoded(values),
            with_header(joined({67, 0, 0, 0, 1, 8, 0, 1, 0, 0, 0, 255, 255}, Raw(30, 0))));
}

TEST(ParquetDeltaEncoder, DifferencesWrapAt64Bits) {
  // 0, 2^64 - 1, 0: differences -1 and 1.
  EXPECT_EQ(encoded({0, std::numeric_limits<uint64_t>::max(), 0}),
            with_header(joined({3, 0, 1, 2, 0, 0, 0, 0x08}, Raw(7, 0))));
  // 0, 2^63, 0: twice the smallest difference.
  EXPECT_EQ(
      encoded({0, uint64_t{1} << 63, 0}),
      with_header({3, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0, 0, 0, 0}));
  // Differences 2^63 - 1 and -2^63: all 64 bits.
  EXPECT_EQ(
      encoded({0, (uint64_t{1} << 63) - 1, std::numeric_limits<uint64_t>::max()}),
      with_header(joined({3, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01,  //
                          64, 0, 0, 0},
                         joined(Raw(8, 0xFF), Raw(31 * 8, 0)))));
}

TEST(ParquetDeltaEncoder, DifferencesOfInt32WrapAt32Bits) {
  // 0, 2^32 - 1, 0: differences -1 and 1. A reader of INT32 takes no width over 32.
  EXPECT_EQ(encoded({0, 0xFFFFFFFF, 0}, PhysicalType::kInt32),
            with_header(joined({3, 0, 1, 2, 0, 0, 0, 0x08}, Raw(7, 0))));
  EXPECT_EQ(encoded({0, 0x7FFFFFFF, 0xFFFFFFFF}, PhysicalType::kInt32),
            with_header(joined({3, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 32, 0, 0, 0},
                               joined(Raw(4, 0xFF), Raw(31 * 4, 0)))));
  // The first value as a signed one.
  EXPECT_EQ(encoded({0xFFFFFFFF}, PhysicalType::kInt32), with_header({1, 1}));
}

}  // namespace
}  // namespace collect::parquet
