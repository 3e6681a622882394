#include "proto/wire/lz4_block.h"

#include <gtest/gtest.h>
#include <lz4.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace collect::wire {

using ByteVector = std::vector<uint8_t>;

namespace {

const char* chars(const ByteVector& bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(ByteVector& bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

ByteVector compressed(const ByteVector& input, size_t room) {
  const auto table = std::make_unique<Lz4Table>();
  ByteVector out(room);
  out.resize(lz4_compress(input, out, *table));
  return out;
}

ByteVector compressed_by_liblz4(const ByteVector& input) {
  ByteVector out(static_cast<size_t>(LZ4_compressBound(static_cast<int>(input.size()))));
  out.resize(static_cast<size_t>(LZ4_compress_default(
      chars(input), chars(out), static_cast<int>(input.size()), static_cast<int>(out.size()))));
  return out;
}

// Bytes with runs, repeats at all distances and noise, in proportions that differ by `seed`.
ByteVector mixed(uint32_t seed, size_t size) {
  std::mt19937 random(seed);
  ByteVector bytes;
  while (bytes.size() < size) {
    const size_t count = 1 + random() % (seed % 7 == 0 ? 400 : 40);
    const auto kind = random() % 3;
    const size_t back = bytes.empty() ? 0 : 1 + random() % bytes.size();
    const auto same = static_cast<uint8_t>(random());
    for (size_t i = 0; i < count && bytes.size() < size; ++i) {
      const uint8_t byte = kind == 0   ? static_cast<uint8_t>(random())
                           : kind == 1 ? same
                           : back == 0 ? uint8_t{0}
                                       : bytes[bytes.size() - back];
      bytes.push_back(byte);
    }
  }
  return bytes;
}

TEST(Lz4Block, Liblz4AndWeReadOurBlocks) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const size_t size = seed < 40 ? seed : 1 + (seed * 7919u) % kLz4MaxInput;
    const ByteVector input = mixed(seed, seed == 399 ? kLz4MaxInput : size);
    const ByteVector block = compressed(input, input.size() + input.size() / 255 + 16);
    ASSERT_FALSE(block.empty()) << seed;
    ByteVector out(input.size() + 1);
    ASSERT_EQ(LZ4_decompress_safe(chars(block), chars(out), static_cast<int>(block.size()),
                                  static_cast<int>(out.size())),
              static_cast<int>(input.size()))
        << seed;
    out.resize(input.size());
    ASSERT_EQ(out, input) << seed;
    ByteVector again(input.size());
    ASSERT_TRUE(lz4_decompress(block, again)) << seed;
    ASSERT_EQ(again, input) << seed;
  }
}

TEST(Lz4Block, ReadsBlocksOfLiblz4) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    // Longer than our own encoder takes, too.
    const ByteVector input = mixed(seed, seed % 50 == 49 ? 1u << 20 : (seed * 104729u) % 70'000);
    ByteVector out(input.size());
    ASSERT_TRUE(lz4_decompress(compressed_by_liblz4(input), out)) << seed;
    ASSERT_EQ(out, input) << seed;
  }
}

ByteVector noise(uint32_t seed, size_t size) {
  std::mt19937 random(seed);
  ByteVector bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(Lz4Block, ReturnsZeroWithoutRoomAndStaysInBounds) {
  std::vector<ByteVector> inputs = {mixed(3, 5000)};
  // Literals and matches whose lengths take a byte more from there on: 15, and each 255 behind it.
  for (const size_t length : {14u, 15u, 16u, 269u, 270u, 271u, 524u, 525u}) {
    inputs.push_back(noise(1, length));
    inputs.push_back(ByteVector(1 + 4 + length + 5, 1));
  }
  for (const ByteVector& input : inputs) {
    const size_t need = compressed(input, 6000).size();
    const auto table = std::make_unique<Lz4Table>();
    for (size_t room = 0; room <= need + 3; ++room) {
      ByteVector out(room + 8, 0xEE);
      const size_t size = lz4_compress(input, MutableBytes(out).first(room), *table);
      EXPECT_EQ(size, room < need ? 0 : need) << input.size();
      for (size_t i = room; i < out.size(); ++i) ASSERT_EQ(out[i], 0xEE) << room;
    }
  }
}

// The format's rules at the end of a block: the last match begins at least 12 bytes before it, and
// the last 5 bytes are literals.
TEST(Lz4Block, LastMatchLeavesTheBytesThatTheFormatWants) {
  const ByteVector once = noise(2, 20);
  for (size_t again = 4; again <= 16; ++again) {
    ByteVector input = once;
    input.insert(input.end(), once.begin(), once.begin() + static_cast<ptrdiff_t>(again));
    const ByteVector block = compressed(input, 64);
    // A token and a length of literals, then either all of them, or 20, an offset and the end.
    const size_t literals_only = 1 + 1 + input.size();
    const size_t with_match = 1 + 1 + once.size() + 2 + 1 + 5;
    EXPECT_EQ(block.size(), again < 12 ? literals_only : with_match) << again;
  }
}

TEST(Lz4Block, TakesNoMoreThanItsPositionsReach) {
  EXPECT_NE(compressed(ByteVector(kLz4MaxInput, 1), 4096).size(), 0u);
  EXPECT_EQ(compressed(ByteVector(kLz4MaxInput + 1, 1), 4096).size(), 0u);
}

TEST(Lz4Block, EveryPrefixIsNoBlockOfThatLength) {
  const ByteVector input = mixed(5, 3000);
  const ByteVector block = compressed(input, 4000);
  ByteVector out(input.size());
  for (size_t size = 0; size < block.size(); ++size) {
    EXPECT_FALSE(lz4_decompress(Bytes(block).first(size), out)) << size;
  }
  for (const size_t size : {size_t{0}, input.size() - 1, input.size() + 1}) {
    ByteVector other(size);
    EXPECT_FALSE(lz4_decompress(block, other)) << size;
  }
}

// Whether some match is 0 bytes back: the format does not allow it, and liblz4 1.9 takes it.
bool has_offset_zero(const ByteVector& block) {
  size_t at = 0;
  const auto length = [&block, &at](size_t nibble) {
    if (nibble != 15) return nibble;
    while (at < block.size() && block[at] == 255) nibble += block[at++];
    return at < block.size() ? nibble + block[at++] : nibble;
  };
  while (at < block.size()) {
    const uint8_t token = block[at++];
    at += length(token >> 4);
    if (at + 2 > block.size()) return false;
    if (block[at] == 0 && block[at + 1] == 0) return true;
    at += 2;
    (void)length(token & 15);
  }
  return false;
}

// With one byte changed, or all of them random: the verdict of liblz4, and its bytes. Ours does not
// ask for the rules at a block's end, so it may take what liblz4 refuses, but not the reverse.
TEST(Lz4Block, ChangedBytesAreJudgedAsByLiblz4) {
  const ByteVector input = mixed(5, 1000);
  const ByteVector good = compressed(input, 2000);
  std::mt19937 random(11);
  uint64_t taken = 0;
  for (size_t i = 0; i < good.size() * 255; ++i) {
    ByteVector block = good;
    block[i / 255] = static_cast<uint8_t>(block[i / 255] + 1 + i % 255);
    ByteVector out(input.size());
    ByteVector theirs(input.size());
    const bool ok = lz4_decompress(block, out);
    const int size =
        LZ4_decompress_safe(chars(block), chars(theirs), static_cast<int>(block.size()),
                            static_cast<int>(theirs.size()));
    const bool theirs_ok = size == static_cast<int>(theirs.size());
    ASSERT_TRUE(ok || !theirs_ok || has_offset_zero(block)) << i;
    if (ok && theirs_ok) {
      ASSERT_EQ(out, theirs) << i;
      ++taken;
    }
  }
  EXPECT_GT(taken, 0u);
  for (int i = 0; i < 20'000; ++i) {
    ByteVector block(1 + random() % 60);
    for (uint8_t& byte : block) byte = static_cast<uint8_t>(random() % (i % 2 == 0 ? 256 : 8));
    ByteVector out(random() % 200);
    (void)lz4_decompress(block, out);  // the sanitizers look on
  }
}

TEST(Lz4Block, LengthThatNeverEndsIsRefused) {
  ByteVector block(1u << 20, 255);
  ByteVector out(1u << 20);
  EXPECT_FALSE(lz4_decompress(block, out));
  // A megabyte of zeros out of 4 KiB is right, a byte more is not.
  block = compressed_by_liblz4(ByteVector(1u << 20, 0));
  EXPECT_LT(block.size(), 4200u);
  EXPECT_TRUE(lz4_decompress(block, out));
  out.pop_back();
  EXPECT_FALSE(lz4_decompress(block, out));
}

}  // namespace
}  // namespace collect::wire
