#include "proto/wire/page_codec.h"

#include <gtest/gtest.h>
#include <lz4.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/proto/wire/documented_bytes.h"
#include "tests/proto/wire/page_records.h"

namespace collect::wire {
namespace {

ByteVector encoded(Lane lane, uint32_t count, const ByteVector& records) {
  const auto encoder = std::make_unique<ColumnEncoder>();
  ByteVector out(records.size() + 64);
  out.resize(encoder->encode(lane, count, records, out));
  return out;
}

PageCodecError decoded(Lane lane, uint32_t count, const ByteVector& sent, ByteVector& records) {
  ByteVector scratch(records.size());
  return decode_columns(lane, count, sent, scratch, records);
}

ByteVector detail_records(uint32_t count, uint32_t seed, uint32_t longest) {
  std::mt19937 random(seed);
  ByteVector bytes;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = 24 + (longest == 0 ? 0 : static_cast<uint32_t>(random()) % longest);
    const size_t at = bytes.size();
    bytes.resize(at + length);
    store_le<uint32_t>(bytes.data() + at, length);
    store_le<uint16_t>(bytes.data() + at + 4, 3);
    store_le<uint64_t>(bytes.data() + at + 8, 1000 + i);
    store_le<uint64_t>(bytes.data() + at + 16, 5'000'000 + 70ull * i);
    for (uint32_t j = 24; j < length; ++j) bytes[at + j] = static_cast<uint8_t>(j / 8);
  }
  return bytes;
}

TEST(PageCodec, ReadsAndWritesTheDocumentsExample) {
  // The records, then the block.
  const ByteVector all = documented_bytes("Columns");
  ASSERT_EQ(all.size(), 128u + 47u);
  const ByteVector records(all.begin(), all.begin() + 128);
  const ByteVector block(all.begin() + 128, all.end());
  ByteVector out(128);
  ASSERT_EQ(decoded(Lane::kIndex, 4, block, out), PageCodecError::kNone);
  EXPECT_EQ(out, records);
  EXPECT_EQ(encoded(Lane::kIndex, 4, records), block);
}

TEST(PageCodec, EveryCountOfIndexRecordsComesBack) {
  for (const int version : {1, 2}) {
    for (uint32_t count = 3; count <= 2048; count += count < 140 ? 1 : 61) {
      const ByteVector records = index_records(count, version, count);
      const ByteVector sent = encoded(Lane::kIndex, count, records);
      ASSERT_FALSE(sent.empty()) << count;
      ASSERT_LT(sent.size(), records.size());
      ByteVector out(records.size());
      ASSERT_EQ(decoded(Lane::kIndex, count, sent, out), PageCodecError::kNone) << count;
      ASSERT_EQ(out, records) << count;
    }
  }
  // The last of the loop is not the largest.
  const ByteVector records = index_records(2048, 2, 1);
  ByteVector out(records.size());
  ASSERT_EQ(decoded(Lane::kIndex, 2048, encoded(Lane::kIndex, 2048, records), out),
            PageCodecError::kNone);
  EXPECT_EQ(out, records);
}

TEST(PageCodec, DetailRecordsOfAllLengthsComeBack) {
  for (uint32_t count = 4; count < 200; ++count) {
    const ByteVector records = detail_records(count, count, count % 5 == 0 ? 0 : 280);
    const ByteVector sent = encoded(Lane::kDetail, count, records);
    ASSERT_FALSE(sent.empty()) << count;
    ByteVector out(records.size());
    ASSERT_EQ(decoded(Lane::kDetail, count, sent, out), PageCodecError::kNone) << count;
    ASSERT_EQ(out, records) << count;
  }
}

TEST(PageCodec, DoesNotEncodeInvalidOrIncompressiblePages) {
  std::mt19937 random(1);
  ByteVector noise(64 * 32);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  EXPECT_TRUE(encoded(Lane::kIndex, 64, noise).empty());
  EXPECT_TRUE(encoded(Lane::kIndex, 0, {}).empty());
  EXPECT_TRUE(encoded(Lane::kIndex, 63, index_records(64, 2, 1)).empty());
  EXPECT_TRUE(encoded(Lane::kIndex, 2049, index_records(2049, 2, 1)).empty());
  const ByteVector details = detail_records(20, 1, 100);
  EXPECT_TRUE(encoded(Lane::kDetail, 19, details).empty());
  EXPECT_TRUE(encoded(Lane::kDetail, 21, details).empty());
  for (const uint32_t length : {0u, 23u, 5000u, UINT32_MAX}) {
    ByteVector wrong = details;
    store_le(wrong.data(), length);
    EXPECT_TRUE(encoded(Lane::kDetail, 20, wrong).empty()) << length;
  }
}

// The agent encodes pages that lie in its rings, one behind the other.
TEST(PageCodec, StaysWithinTheRecords) {
  const auto encoder = std::make_unique<ColumnEncoder>();
  for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
    for (uint32_t count = 4; count < 140; ++count) {
      const ByteVector records =
          lane == Lane::kIndex ? index_records(count, 2, count) : detail_records(count, count, 90);
      const GuardedBytes from(records);
      const ByteVector expected = encoded(lane, count, records);
      const GuardedBytes sent{ByteVector(expected.size())};
      ASSERT_EQ(encoder->encode(lane, count, from.bytes(), sent.bytes()), expected.size());
      EXPECT_TRUE(std::ranges::equal(sent.bytes(), expected));
      const GuardedBytes scratch{ByteVector(records.size())};
      const GuardedBytes back{ByteVector(records.size())};
      ASSERT_EQ(decode_columns(lane, count, sent.bytes(), scratch.bytes(), back.bytes()),
                PageCodecError::kNone);
      EXPECT_TRUE(std::ranges::equal(back.bytes(), records));
    }
  }
}

// A byte less is a gain; as many bytes as before are none, even where there is room for them.
TEST(PageCodec, OneByteLessIsAGain) {
  const auto encoder = std::make_unique<ColumnEncoder>();
  std::set<size_t> saved;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ByteVector records(3 * 32);
    for (uint8_t& byte : records) byte = static_cast<uint8_t>(random());
    // The columns from 8 on stand in the page as they are: some of them the same in all records.
    for (const size_t row : {1, 2}) {
      std::copy_n(records.begin() + 8, seed % 9,
                  records.begin() + static_cast<ptrdiff_t>(row * 32 + 8));
    }
    ByteVector out(records.size());
    const size_t size = encoder->encode(Lane::kIndex, 3, records, out);
    ASSERT_LT(size, records.size());
    if (size != 0) saved.insert(records.size() - size);
  }
  EXPECT_TRUE(saved.contains(1)) << saved.size();
}

// The transform is bijective, so a changed block that still is one decodes to other records; what
// may not happen is anything else.
TEST(PageCodec, EveryPrefixAndEveryChangedByteIsHandled) {
  const ByteVector records = detail_records(12, 3, 60);
  const ByteVector good = encoded(Lane::kDetail, 12, records);
  ByteVector out(records.size());
  for (size_t size = 0; size < good.size(); ++size) {
    const ByteVector prefix(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(decoded(Lane::kDetail, 12, prefix, out), PageCodecError::kBlock) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    ByteVector changed = good;
    changed[at] ^= 0x55;
    if (decoded(Lane::kDetail, 12, changed, out) != PageCodecError::kNone) continue;
    size_t sum = 0;
    for (int i = 0; i < 12; ++i) sum += load_le<uint32_t>(out.data() + sum);
    EXPECT_EQ(sum, out.size()) << at;
  }
}

ByteVector block_of(uint32_t mask, const ByteVector& columns) {
  ByteVector block(4 + columns.size() + 64);
  store_le(block.data(), mask);
  block.resize(4 + static_cast<size_t>(LZ4_compress_default(
                       reinterpret_cast<const char*>(columns.data()),
                       reinterpret_cast<char*>(block.data() + 4), static_cast<int>(columns.size()),
                       static_cast<int>(block.size() - 4))));
  return block;
}

// Lengths of our choice in a right block: bytes 0 to 3 vary.
TEST(PageCodec, LengthsThatContradictTheHeaderAreRefused) {
  const auto refused = [](const std::vector<uint32_t>& lengths, size_t raw_bytes) {
    const auto count = static_cast<uint32_t>(lengths.size());
    ByteVector columns(24 + 20);
    store_le(columns.data(), lengths[0]);
    for (uint32_t byte = 0; byte < 4; ++byte) {
      for (uint32_t i = 1; i < count; ++i) {
        columns.push_back(static_cast<uint8_t>(lengths[i] >> (8 * byte)));
      }
    }
    columns.resize(columns.size() + raw_bytes - 24 * count);
    ByteVector out(raw_bytes);
    return decoded(Lane::kDetail, count, block_of(0xF, columns), out) == PageCodecError::kRecords;
  };
  EXPECT_FALSE(refused({40, 24, 36}, 100));
  EXPECT_TRUE(refused({40, 24, 36}, 99));
  EXPECT_TRUE(refused({40, 24, 36}, 101));
  EXPECT_TRUE(refused({53, 23, 24}, 100));
  EXPECT_TRUE(refused({52, 0, 48}, 100));
  EXPECT_TRUE(refused({24, 24, UINT32_MAX}, 100));
  EXPECT_TRUE(refused({0x80000000u, 0x80000000u, 100}, 100));
}

TEST(PageCodec, MasksThatContradictTheBlockAreRefused) {
  const ByteVector records = index_records(4, 2, 1);
  const ByteVector good = encoded(Lane::kIndex, 4, records);
  ASSERT_FALSE(good.empty());
  ByteVector out(records.size());
  for (uint32_t bit = 0; bit < 32; ++bit) {
    ByteVector changed = good;
    changed[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    EXPECT_EQ(decoded(Lane::kIndex, 4, changed, out), PageCodecError::kBlock) << bit;
  }
  const ByteVector details = detail_records(4, 1, 0);
  ByteVector beyond = encoded(Lane::kDetail, 4, details);
  ByteVector back(details.size());
  ASSERT_EQ(decoded(Lane::kDetail, 4, beyond, back), PageCodecError::kNone);
  beyond[3] = 1;  // byte 24: there is none
  EXPECT_EQ(decoded(Lane::kDetail, 4, beyond, back), PageCodecError::kBlock);
}

TEST(PageCodec, ColumnThatDoesNotVaryMayBeWrittenOut) {
  ByteVector columns(32 + 31);
  columns.insert(columns.end(), {5, 5});
  ByteVector out(3 * 32);
  ASSERT_EQ(decoded(Lane::kIndex, 3, block_of(1u << 8, columns), out), PageCodecError::kNone);
  ByteVector expected(3 * 32);
  expected[32 + 8] = expected[64 + 8] = 5;
  EXPECT_EQ(out, expected);
}

TEST(PageCodec, OneRecordIsItselfAndEveryColumnMayVary) {
  ByteVector one(32);
  store_le<uint64_t>(one.data(), 77);
  ByteVector out(32);
  ASSERT_EQ(decoded(Lane::kIndex, 1, block_of(0, one), out), PageCodecError::kNone);
  EXPECT_EQ(out, one);
  // Nothing is the same in all of them: as long as the records are.
  ByteVector all(3 * 32);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  ByteVector three(3 * 32);
  ASSERT_EQ(decoded(Lane::kIndex, 3, block_of(UINT32_MAX, all), three), PageCodecError::kNone);
  EXPECT_EQ(load_le<uint64_t>(three.data()), 0x0706050403020100u);
  EXPECT_EQ(load_le<uint64_t>(three.data() + 32 + 8), 0x3e3c3a3836343230u) << "rows of word 1";
  EXPECT_EQ(load_le<uint64_t>(three.data() + 64 + 8), 0x3f3d3b3937353331u);
}

TEST(PageCodec, CallersBuffersAreTheLimit) {
  const ByteVector records = index_records(64, 2, 1);
  const ByteVector sent = encoded(Lane::kIndex, 64, records);
  ByteVector out(records.size());
  ByteVector scratch(records.size() - 1);
  EXPECT_NE(decode_columns(Lane::kIndex, 64, sent, scratch, out), PageCodecError::kNone);
  EXPECT_EQ(decoded(Lane::kIndex, 65, sent, out), PageCodecError::kRecords);
  EXPECT_EQ(decoded(Lane::kIndex, 63, sent, out), PageCodecError::kRecords);
  EXPECT_EQ(decoded(Lane::kIndex, UINT32_MAX, sent, out), PageCodecError::kRecords);
}

}  // namespace
}  // namespace collect::wire
