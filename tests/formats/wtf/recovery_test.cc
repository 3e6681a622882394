// What is left of truncated and damaged files, which the published viewer refuses whole.
#include <gtest/gtest.h>

#include "formats/wtf/binary/chunks.h"
#include "formats/wtf/check.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::wtf {
namespace {

struct Place {
  size_t offset;
  size_t length;
};

std::vector<Place> chunks_of(const std::vector<uint8_t>& file) {
  std::vector<Place> places;
  for (size_t at = kFileHeaderBytes; at < file.size();) {
    places.push_back({at, load_le<uint32_t>(&file[at + 8])});
    at += places.back().length;
  }
  return places;
}

class Recovery : public ::testing::Test {
 protected:
  testing::RandomFile made = testing::random_file(11, 2000, 4000);
  std::vector<Place> chunks = chunks_of(made.bytes);
  Findings findings;
};

TEST_F(Recovery, TruncatedFileGivesItsWholeEvents) {
  ASSERT_GT(chunks.size(), 8u);
  const Place last = chunks[chunks.size() - 2];
  std::vector<uint8_t> cut(
      made.bytes.begin(),
      made.bytes.begin() + static_cast<ptrdiff_t>(last.offset + last.length - 500));
  const auto lines = testing::lines_of(cut, findings);
  ASSERT_GT(lines.size(), made.lines.size() / 2);
  EXPECT_TRUE(std::equal(lines.begin(), lines.end(), made.lines.begin()));
  EXPECT_TRUE(findings.has(Rule::kTruncated));
  const FileReport report = check_file(cut);
  EXPECT_EQ(report.grade, Grade::kRecovered);
  EXPECT_FALSE(report.viewer_loads);
  // Some of the events of the cut chunk are there.
  std::vector<uint8_t> without(cut.begin(), cut.begin() + static_cast<ptrdiff_t>(last.offset));
  Findings again;
  EXPECT_GT(lines.size(), testing::lines_of(without, again).size());
}

TEST_F(Recovery, DamagedChunkCostsOnlyItself) {
  const Place hit = chunks[5];
  for (const uint32_t length : {0u, 7u, 0xFFFFFFF0u}) {
    std::vector<uint8_t> bytes = made.bytes;
    store_le(&bytes[hit.offset + 8], length);
    Findings found;
    const auto lines = testing::lines_of(bytes, found);
    EXPECT_TRUE(found.has(Rule::kChunkHeader)) << length;
    EXPECT_GE(lines.size(), made.lines.size() * (chunks.size() - 2) / chunks.size() / 2) << length;
    EXPECT_EQ(lines.back(), made.lines.back()) << length;
    EXPECT_FALSE(check_file(bytes).viewer_loads);
  }
}

TEST_F(Recovery, ChunkOfAnOddLengthIsReadAndSaid) {
  for (const uint32_t more : {1u, 2u, 3u, 4u}) {
    std::vector<uint8_t> bytes = made.bytes;
    const Place hit = chunks[5];
    store_le(&bytes[hit.offset + 8], static_cast<uint32_t>(hit.length + more));
    bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(hit.offset + hit.length), more, uint8_t{0});
    Findings found;
    EXPECT_EQ(testing::lines_of(bytes, found), made.lines) << more;
    EXPECT_EQ(found.has(Rule::kChunkHeader), more != 4) << more;
  }
}

TEST_F(Recovery, BytesAfterTheLastChunkAreDamage) {
  for (const size_t more : {size_t{1}, size_t{4}, size_t{24}, size_t{100}}) {
    std::vector<uint8_t> bytes = made.bytes;
    bytes.resize(bytes.size() + more);
    Findings found;
    EXPECT_EQ(testing::lines_of(bytes, found), made.lines);
    EXPECT_TRUE(found.has(Rule::kTrailing)) << more;
    EXPECT_EQ(check_file(bytes).grade, Grade::kDamaged);
  }
}

// Seen: the start of a damaged chunk, and a whole one that begins within the 24 bytes of its
// header.
TEST_F(Recovery, SkipsAChunkWithinADamagedHeader) {
  for (const size_t inserted : {size_t{12}, size_t{16}, size_t{20}}) {
    std::vector<uint8_t> start(inserted, 0xF0);
    std::vector<uint8_t> bytes = made.bytes;
    bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(chunks[8].offset), start.begin(),
                 start.end());
    Findings found;
    const auto lines = testing::lines_of(bytes, found);
    EXPECT_TRUE(found.has(Rule::kChunkHeader)) << inserted;
    ASSERT_GT(lines.size(), made.lines.size() / 2) << inserted;
    EXPECT_EQ(lines.back(), made.lines.back()) << inserted;
  }
}

TEST_F(Recovery, UndefinedWireIdCostsTheRestOfItsBuffer) {
  std::vector<uint8_t> bytes = made.bytes;
  const Place hit = chunks[4];
  Chunk chunk;
  Findings again;
  ChunkCursor cursor(bytes, again);
  while (cursor.next(chunk) && chunk.offset != hit.offset) {
  }
  const Part* const buffer = chunk.find(PartType::kBinaryEventBuffer);
  ASSERT_NE(buffer, nullptr);
  store_le(&bytes[buffer->offset], 60000u);
  const auto lines = testing::lines_of(bytes, findings);
  EXPECT_TRUE(findings.has(Rule::kWireId));
  EXPECT_LT(lines.size(), made.lines.size());
  EXPECT_EQ(lines.back(), made.lines.back());
}

TEST_F(Recovery, LostHeaderChunkCostsTheTimebaseOnly) {
  std::vector<uint8_t> bytes(made.bytes.begin(), made.bytes.begin() + kFileHeaderBytes);
  bytes.insert(bytes.end(), made.bytes.begin() + static_cast<ptrdiff_t>(chunks[1].offset),
               made.bytes.end());
  EXPECT_EQ(testing::lines_of(bytes, findings), made.lines);
  EXPECT_TRUE(findings.has(Rule::kHeaderMissing));
  EXPECT_EQ(findings.errors(), 0u);
}

TEST_F(Recovery, HeaderChunkMayComeLast) {
  std::vector<uint8_t> bytes(made.bytes.begin(), made.bytes.begin() + kFileHeaderBytes);
  const auto header_begin = made.bytes.begin() + kFileHeaderBytes;
  const auto header_end = made.bytes.begin() + static_cast<ptrdiff_t>(chunks[1].offset);
  bytes.insert(bytes.end(), header_end, made.bytes.end());
  bytes.insert(bytes.end(), header_begin, header_end);
  auto reader = Reader::open(bytes, findings);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->header().has_value());
  EXPECT_TRUE(findings.has(Rule::kHeaderOrder));
}

}  // namespace
}  // namespace collect::wtf
