// Pages as containers hold them: blocks as storage/container/page_packing.h says, whole again for
// every size, refused where anything contradicts itself.
#include "storage/container/page_packing.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "proto/wire/page_codec.h"
#include "tests/storage/fake_stream.h"

namespace collect::storage::test {
namespace {

constexpr size_t kBlockHeader = 12;

std::vector<uint8_t> packed(const Page& page) {
  const Bytes bytes = pack_page(page).bytes;
  return {bytes.begin(), bytes.end()};
}

void expect_whole_again(const Page& page) {
  const PackedPage packed = pack_page(page);
  const std::vector<uint8_t> blocks(packed.bytes.begin(), packed.bytes.end());
  ASSERT_FALSE(blocks.empty());
  EXPECT_LT(blocks.size(), page.bytes.size());
  std::vector<uint8_t> records;
  PageHeader header = page;
  header.codec = packed.codec;
  header.raw_bytes = static_cast<uint32_t>(page.bytes.size());
  ASSERT_TRUE(unpack_page(header, blocks, records));
  EXPECT_EQ(records, std::vector<uint8_t>(page.bytes.begin(), page.bytes.end()));
}

TEST(PagePacking, KeepsEncodedPagesAsOneBlock) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    FakeStream stream(version, 1, 100);
    stream.add_many(2000, FakeStream::Detail::kNone);
    Page page = stream.index_page(0, 2000);
    std::vector<uint8_t> sent(page.bytes.size());
    const auto tuples = std::make_unique<wire::TupleEncoder>();
    sent.resize(tuples->encode(page.record_count, page.bytes, sent));
    ASSERT_FALSE(sent.empty());
    page.encoded = sent;
    page.encoded_by = Codec::kTuples;
    EXPECT_EQ(packed(page).size(), kBlockHeader + sent.size());
    expect_whole_again(page);
  }
}

TEST(PagePacking, PagesOfEverySizeAndVersionComeBack) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    for (const size_t events : {8u, 64u, 255u, 256u, 257u, 2048u, 2049u, 9000u}) {
      FakeStream stream(version, 1, 100);
      stream.add_many(events, FakeStream::Detail::kLinked);
      expect_whole_again(stream.index_page(0, events));
      expect_whole_again(stream.detail_page(0, events));
    }
  }
}

// Columns where a page has more kinds of records than a table of tuples, and for detail.
TEST(PagePacking, IndexPagesAreTuplesWhereTheyCanBe) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(2048, FakeStream::Detail::kLinked);
  EXPECT_EQ(pack_page(stream.detail_page(0, 2048)).codec, Codec::kColumns);
  EXPECT_EQ(pack_page(stream.index_page(0, 2048)).codec, Codec::kColumns);  // each has its own link
  FakeStream plain(atf::Version::kV2, 1, 100);
  plain.add_many(2048, FakeStream::Detail::kNone);
  EXPECT_EQ(pack_page(plain.index_page(0, 2048)).codec, Codec::kTuples);
}

TEST(PagePacking, BlockIsWhatTheFormatSays) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(3000);
  const Page page = stream.index_page(0, 3000);
  const std::vector<uint8_t> blocks = packed(page);
  ASSERT_GT(blocks.size(), 2 * kBlockHeader);
  EXPECT_EQ(load_le<uint32_t>(blocks.data()), 2048u);  // 64 KiB of events
  EXPECT_EQ(load_le<uint32_t>(blocks.data() + 4), 2048u * 32);
  const auto sent = load_le<uint32_t>(blocks.data() + 8);
  const uint8_t* second = blocks.data() + kBlockHeader + sent;
  EXPECT_EQ(load_le<uint32_t>(second), 952u);
  EXPECT_EQ(load_le<uint32_t>(second + 4), 952u * 32);
  EXPECT_EQ(blocks.size(), 2 * kBlockHeader + sent + load_le<uint32_t>(second + 8));
}

// A detail record that no encoder takes is in a block of its own, as it is.
TEST(PagePacking, RecordLargerThanABlockStaysAsItIs) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(100, FakeStream::Detail::kLinked);
  stream.add(FakeStream::Detail::kLinked, 65'500);
  stream.add_many(100, FakeStream::Detail::kLinked);
  expect_whole_again(stream.detail_page(0, 201));
}

TEST(PagePacking, DoesNotPackIncompressiblePages) {
  std::mt19937_64 random(3);
  std::vector<uint8_t> noise(256 * atf::kEventBytes);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  Page page;
  page.record_count = 256;
  page.bytes = noise;
  EXPECT_TRUE(pack_page(page).bytes.empty());
  page.bytes = {};
  page.record_count = 0;
  EXPECT_TRUE(pack_page(page).bytes.empty());
  // No whole records: nothing that was stored.
  page.bytes = Bytes(noise).first(100);
  page.record_count = 4;
  EXPECT_TRUE(pack_page(page).bytes.empty());
  // Nor what has fewer records than it says.
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(64, FakeStream::Detail::kLinked);
  Page detail = stream.detail_page(0, 64);
  EXPECT_FALSE(pack_page(detail).bytes.empty());
  detail.record_count = 65;
  EXPECT_TRUE(pack_page(detail).bytes.empty());
}

TEST(PagePacking, ContradictionsAreRefused) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(3000);
  const Page page = stream.index_page(0, 3000);
  const std::vector<uint8_t> blocks = packed(page);
  const auto raw = static_cast<uint32_t>(page.bytes.size());
  std::vector<uint8_t> records;
  const auto refused = [&](uint32_t count, uint32_t bytes, Bytes sent) {
    PageHeader header = page;
    header.codec = Codec::kTuples;
    header.record_count = count;
    header.raw_bytes = bytes;
    return !unpack_page(header, sent, records);
  };
  EXPECT_FALSE(refused(3000, raw, blocks));
  EXPECT_TRUE(refused(2999, raw - 32, blocks));
  EXPECT_TRUE(refused(3000, raw - 32, blocks));
  EXPECT_TRUE(refused(3001, raw + 32, blocks));
  EXPECT_TRUE(refused(3001, raw, blocks));
  EXPECT_TRUE(refused(3000, kMaxPageBytes + 1, blocks));
  EXPECT_TRUE(refused(3000, raw, Bytes(blocks).first(blocks.size() - 1)));
  EXPECT_TRUE(refused(3000, raw, {}));
  std::vector<uint8_t> longer = blocks;
  longer.push_back(0);
  EXPECT_TRUE(refused(3000, raw, longer));
  for (size_t at = 0; at < kBlockHeader; ++at) {
    std::vector<uint8_t> damaged = blocks;
    damaged[at] ^= 0x81;
    EXPECT_TRUE(refused(3000, raw, damaged)) << at;
  }
}

}  // namespace
}  // namespace collect::storage::test
