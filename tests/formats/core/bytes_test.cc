#include "formats/core/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace collect {
namespace {

TEST(ByteReader, ReadsLittleEndianAtAnyAlignment) {
  const std::vector<uint8_t> bytes = {0xAA, 0x34, 0x12, 0x78, 0x56, 0x34, 0x12, 8,
                                      7,    6,    5,    4,    3,    2,    1};
  ByteReader in(bytes);
  EXPECT_EQ(in.u8(), 0xAA);
  EXPECT_EQ(in.u16(), 0x1234);
  EXPECT_EQ(in.u32(), 0x12345678u);
  EXPECT_EQ(in.u64(), 0x0102030405060708ull);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(ByteReader, EveryShortReadGivesZeroAndStaysFailed) {
  const std::vector<uint8_t> bytes(8, 0xFF);
  for (size_t length = 0; length < 8; ++length) {
    ByteReader in(Bytes(bytes).first(length));
    EXPECT_EQ(in.u64(), 0u) << length;
    EXPECT_FALSE(in.ok());
    // One byte would be there, but a reader that failed once never reads misplaced fields.
    EXPECT_EQ(in.u8(), 0u) << length;
    EXPECT_EQ(in.offset(), 0u);
  }
}

TEST(ByteReader, BytesBeyondTheEndAreRefusedWithoutOverflow) {
  const std::vector<uint8_t> bytes(4);
  ByteReader in(bytes);
  in.skip(3);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.bytes(SIZE_MAX).empty());
  EXPECT_FALSE(in.ok());
}

TEST(ByteWriter, WritesWhatTheReaderReads) {
  std::array<uint8_t, 18> buffer;
  buffer.fill(0xEE);
  ByteWriter out(buffer);
  out.u8(1);
  out.u16(0x0203);
  out.u32(0x04050607);
  out.u64(0x08090A0B0C0D0E0F);
  out.zeros(3);
  EXPECT_TRUE(out.ok());
  const std::array<uint8_t, 18> expected = {1,    3,    2,    7,    6, 5, 4, 0x0F, 0x0E,
                                            0x0D, 0x0C, 0x0B, 0x0A, 9, 8, 0, 0,    0};
  EXPECT_EQ(buffer, expected);
}

TEST(ByteWriter, WriteBeyondTheEndChangesNothing) {
  std::array<uint8_t, 4> buffer{};
  ByteWriter out(MutableBytes(buffer).first(3));
  out.u32(0xFFFFFFFF);
  EXPECT_FALSE(out.ok());
  out.u8(0xFF);
  EXPECT_EQ(out.offset(), 0u);
  EXPECT_EQ(buffer, (std::array<uint8_t, 4>{}));
}

TEST(ByteWriter, NumberBehindOthersMayNotReachOverTheEnd) {
  std::array<uint8_t, 8> buffer{};
  ByteWriter out(MutableBytes(buffer).first(4));
  out.u16(0x1111);
  out.u32(0xFFFFFFFF);
  EXPECT_FALSE(out.ok());
  EXPECT_EQ(out.offset(), 2u);
  EXPECT_EQ(buffer, (std::array<uint8_t, 8>{0x11, 0x11}));
  ByteWriter exact(MutableBytes(buffer).first(4));
  exact.u16(0x2222);
  exact.u16(0x3333);
  EXPECT_TRUE(exact.ok());
  EXPECT_EQ(buffer, (std::array<uint8_t, 8>{0x22, 0x22, 0x33, 0x33}));
}

TEST(ByteWriter, BytesStandBehindEachOther) {
  std::array<uint8_t, 4> buffer{};
  ByteWriter out(buffer);
  out.bytes(std::array<uint8_t, 2>{1, 2});
  out.bytes({});
  out.bytes(std::array<uint8_t, 2>{3, 4});
  EXPECT_TRUE(out.ok());
  EXPECT_EQ(out.offset(), 4u);
  EXPECT_EQ(buffer, (std::array<uint8_t, 4>{1, 2, 3, 4}));
}

TEST(ByteWriter, ZerosAndBytesBeyondTheEndAreRefused) {
  std::array<uint8_t, 4> buffer{1, 2, 3, 4};
  for (const bool zeros : {false, true}) {
    ByteWriter out(MutableBytes(buffer).first(3));
    zeros ? out.zeros(4) : out.bytes(std::array<uint8_t, 4>{});
    EXPECT_FALSE(out.ok());
    // What failed once writes no misplaced fields.
    zeros ? out.zeros(1) : out.bytes(std::array<uint8_t, 1>{});
    EXPECT_EQ(out.offset(), 0u);
    EXPECT_EQ(buffer, (std::array<uint8_t, 4>{1, 2, 3, 4}));
  }
  for (const bool zeros : {false, true}) {
    ByteWriter behind(MutableBytes(buffer).first(3));
    behind.u8(1);
    zeros ? behind.zeros(3) : behind.bytes(std::array<uint8_t, 3>{});
    EXPECT_FALSE(behind.ok());
    EXPECT_EQ(behind.offset(), 1u);
    EXPECT_EQ(buffer, (std::array<uint8_t, 4>{1, 2, 3, 4}));
  }
  ByteWriter exact(MutableBytes(buffer).first(3));
  exact.u8(9);
  exact.zeros(2);
  EXPECT_TRUE(exact.ok());
  EXPECT_EQ(buffer, (std::array<uint8_t, 4>{9, 0, 0, 4}));
}

TEST(LoadStore, AreInverse) {
  uint8_t at[9] = {};
  store_le<uint64_t>(at + 1, 0x1122334455667788);
  EXPECT_EQ(at[1], 0x88);
  EXPECT_EQ(load_le<uint64_t>(at + 1), 0x1122334455667788u);
}

}  // namespace
}  // namespace collect
