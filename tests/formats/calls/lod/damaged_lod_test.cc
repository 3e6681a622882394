// index.lod with numbers that do not fit together and checksums that do: each is refused by name.
// The bytes are those of LOD.md "Header" and "Summary".
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/calls/lod/lod_reader.h"
#include "formats/calls/lod/lod_summary.h"
#include "formats/core/crc32.h"
#include "tests/formats/calls/built_lod.h"

namespace collect::calls {
namespace {

struct Field {
  size_t offset;
  size_t bytes;
  uint64_t value;
  std::string sentence;
};

TEST(DamagedLod, HeaderFieldsThatDoNotFitAreNamed) {
  const testing::BuiltLod built = testing::build(testing::random_thread(7), 4);
  const auto whole = LodReader::open(built.file);
  ASSERT_TRUE(whole.ok());
  const uint64_t summary_offset = load_le<uint64_t>(built.file.data() + 64);
  const std::vector<Field> fields = {
      {8, 4, 0, "offset 8: a leaf has no or too many events"},
      {8, 4, uint64_t{kMaxLeafEvents} + 1, "offset 8: a leaf has no or too many events"},
      {16, 8, uint64_t{1} << 40, "offset 16: more nodes than the file has"},
      {16, 8, 0, "offset 36: other levels than the events make"},
      {36, 4, whole->levels() + 1, "offset 36: other levels than the events make"},
      {56, 8, kLodHeaderBytes - 1, "offset 64: the parts of the file are out of order"},
      {56, 8, summary_offset + 1, "offset 64: the parts of the file are out of order"},
      {64, 8, built.file.size() + 1, "offset 64: the parts of the file are out of order"},
      {72, 8, built.file.size() - 1,
       "offset " + std::to_string(built.file.size() - 1) + ": bytes behind the end"},
      {72, 8, built.file.size() + 1, "the file ends before its end"},
  };
  for (const Field& field : fields) {
    std::vector<uint8_t> file = built.file;
    for (size_t i = 0; i < field.bytes; ++i) {
      file[field.offset + i] = static_cast<uint8_t>(field.value >> (8 * i));
    }
    store_le(file.data() + 124, crc32c(Bytes(file).first(124)));
    const auto lod = LodReader::open(file);
    ASSERT_FALSE(lod.ok()) << field.offset << ": " << field.value;
    EXPECT_EQ(lod.error().message, field.sentence) << field.offset << ": " << field.value;
  }
}

TEST(DamagedLod, LeafMayHaveTheMostEvents) {
  testing::MadeThread thread;
  thread.events = {{10, testing::kCall, 'a'}, {20, testing::kReturn, 'a'}};
  EXPECT_TRUE(LodReader::open(testing::build(thread, kMaxLeafEvents).file).ok());
}

// A summary of these functions, without gaps and paths; numbers below 128 have one byte each.
std::vector<uint8_t> summary_of(uint8_t functions, const std::vector<uint8_t>& times) {
  std::vector<uint8_t> bytes = encode_lod_summary([] {
    LodSummary nothing;
    nothing.paths.push_back({});
    return nothing;
  }());
  bytes.resize(bytes.size() - 3);  // no functions, none with times, no paths
  bytes.push_back(functions);
  for (uint8_t i = 0; i < functions; ++i) bytes.push_back(static_cast<uint8_t>(i + 1));
  bytes.push_back(functions);
  for (uint8_t i = 0; i < functions; ++i) bytes.insert(bytes.end(), times.begin(), times.end());
  bytes.push_back(0);  // paths
  return bytes;
}

// Eleven numbers, the shortest call, and a histogram: complete, so many buckets.
std::vector<uint8_t> times_with(const std::vector<uint8_t>& histogram) {
  std::vector<uint8_t> times(12, 0);
  times.insert(times.end(), histogram.begin(), histogram.end());
  return times;
}

TEST(DamagedLod, ShortestFunctionsHaveFourteenBytes) {
  const auto summary = decode_lod_summary(summary_of(100, times_with({1, 0})));
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ((*summary)->totals.times().size(), 100u);
}

TEST(DamagedLod, HistogramsThatCannotBeAreRefused) {
  ASSERT_TRUE(decode_lod_summary(summary_of(1, times_with({1, 1, 5, 9}))).ok());
  EXPECT_FALSE(decode_lod_summary(summary_of(1, times_with({1, 1, 5, 0}))).ok())
      << "an empty bucket";
  EXPECT_FALSE(decode_lod_summary(summary_of(1, times_with({1, 1, 0xFF, 0xFF, 0x7F, 9}))).ok())
      << "a bucket beyond the last";
  EXPECT_FALSE(decode_lod_summary(summary_of(1, times_with({2, 1, 5, 9}))).ok())
      << "neither yes nor no";
  EXPECT_FALSE(decode_lod_summary(summary_of(1, times_with({1, 2, 5, 9}))).ok())
      << "one is missing";
  auto twice = summary_of(2, times_with({1, 0}));
  const size_t second = twice.size() - 1 - 2 * 14 - 1 - 1;
  ASSERT_EQ(twice[second], 2u);
  twice[second] = 1;
  EXPECT_FALSE(decode_lod_summary(twice).ok()) << "one function has two slots";
}

}  // namespace
}  // namespace collect::calls
