// Bytes by hand and from Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
#include "formats/parquet/rle_encoder.h"

#include <gtest/gtest.h>

#include <vector>

namespace collect::parquet {
namespace {

using Raw = std::vector<uint8_t>;

Raw encoded(const std::vector<uint32_t>& values, uint32_t width) {
  Raw out;
  append_rle_hybrid(values, width, out);
  return out;
}

std::vector<uint32_t> joined(std::vector<uint32_t> first, const std::vector<uint32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}
std::vector<uint32_t> repeated(size_t count, uint32_t value) {
  return {std::vector(count, value)};
}

const std::vector<uint32_t> kZeroToSeven = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(ParquetRleEncoder, BitPacksTheSpecificationsExample) {
  EXPECT_EQ(encoded(kZeroToSeven, 3), (Raw{0x03, 0b10001000, 0b11000110, 0b11111010}));
}

TEST(ParquetRleEncoder, NoValuesAreNoRuns) {
  EXPECT_EQ(encoded({}, 3), Raw{});
}

TEST(ParquetRleEncoder, EightEqualValuesAreARun) {
  EXPECT_EQ(encoded(repeated(8, 4), 3), (Raw{8 << 1, 4}));
  EXPECT_EQ(encoded(repeated(100, 4), 3), (Raw{0xC8, 0x01, 4}));
}

TEST(ParquetRleEncoder, SevenAreBitPackedWithAZeroBehind) {
  EXPECT_EQ(encoded(repeated(7, 1), 1), (Raw{0x03, 0x7F}));
}

TEST(ParquetRleEncoder, RunHasAsManyBytesAsItsWidthNeeds) {
  EXPECT_EQ(encoded(repeated(8, 0x1FF), 9), (Raw{16, 0xFF, 0x01}));
  EXPECT_EQ(encoded(repeated(8, 0x1FFFF), 17), (Raw{16, 0xFF, 0xFF, 0x01}));
  EXPECT_EQ(encoded(repeated(8, 0xFEDCBA98), 32), (Raw{16, 0x98, 0xBA, 0xDC, 0xFE}));
}

TEST(ParquetRleEncoder, WidthZeroHasNoValueBytes) {
  EXPECT_EQ(encoded(repeated(9, 0), 0), (Raw{9 << 1}));
  EXPECT_EQ(encoded(repeated(3, 0), 0), (Raw{0x03}));
}

TEST(ParquetRleEncoder, RunBehindPackedGroups) {
  EXPECT_EQ(encoded(joined(kZeroToSeven, repeated(10, 5)), 3),
            (Raw{0x03, 0x88, 0xC6, 0xFA, 10 << 1, 5}));
}

TEST(ParquetRleEncoder, RunThatBeginsWithinAGroupFillsItFirst) {
  // 1, 0, then 1 from the third value on: the group takes six of the sixteen.
  EXPECT_EQ(encoded(joined({1, 0}, repeated(16, 1)), 1), (Raw{0x03, 0b11111101, 10 << 1, 1}));
}

TEST(ParquetRleEncoder, PackedGroupsBehindARun) {
  EXPECT_EQ(encoded(joined(repeated(8, 5), joined(kZeroToSeven, {7})), 3),
            (Raw{8 << 1, 5, 0x05, 0x88, 0xC6, 0xFA, 0x07, 0x00, 0x00}));
}

TEST(ParquetRleEncoder, ManyGroupsHaveALongHeader) {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < 64 * 8; ++i) values.push_back(i % 2);
  Raw wanted = {0x81, 0x01};  // 64 groups
  wanted.insert(wanted.end(), 64, 0xAA);
  EXPECT_EQ(encoded(values, 1), wanted);
}

TEST(ParquetRleEncoder, LevelsAreBytes) {
  const Raw levels = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1};
  Raw out;
  append_rle_hybrid(levels, 1, out);
  EXPECT_EQ(out, (Raw{9 << 1, 1, 0x03, 0x02}));
}

}  // namespace
}  // namespace collect::parquet
