// The three cases of every decoder: each prefix of a valid input, each single-byte flip, each
// declared limit plus one. Every input is copied into a buffer of its own length, so that under the
// sanitizers a read outside it ends the test.
#include <gtest/gtest.h>

#include "formats/dial9/check.h"
#include "tests/formats/dial9/random_stream.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using testing::random_stream;
using testing::RandomStream;
using testing::record;
using testing::record_pieces;
using testing::Recorder;

// Everything a reader offers, on these bytes. What must hold of any input is asserted here.
Recorder read_everything(const std::vector<uint8_t>& stream) {
  Recorder seen = record(stream);
  const Report report = check_stream(stream);
  EXPECT_EQ(report.events, seen.events.size());
  EXPECT_EQ(report.problem.has_value(), seen.rule != Rule::kNone);
  EXPECT_LE(report.whole_bytes, stream.size());
  EXPECT_EQ(report.grade == Grade::kOk, seen.rule == Rule::kNone);
  if (report.problem) {
    EXPECT_EQ(report.problem->frame_offset, report.whole_bytes);
    EXPECT_LE(report.problem->offset, stream.size());
    EXPECT_FALSE(report.problem->sentence.empty());
  }
  const std::string lines = testing::json_lines(stream);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n') > 0, true);
  return seen;
}

TEST(DecoderCases, EveryPrefix) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const RandomStream made = random_stream(seed + 100, 2, 10);
    const Recorder whole = record(made.bytes);
    for (size_t length = 0; length < made.bytes.size(); ++length) {
      const std::vector<uint8_t> prefix(made.bytes.begin(),
                                        made.bytes.begin() + static_cast<ptrdiff_t>(length));
      const Recorder seen = read_everything(prefix);
      ASSERT_TRUE(seen.rule == Rule::kNone || seen.rule == Rule::kTruncated) << length;
      // Exactly the events that end within the prefix.
      const auto expected = std::count_if(whole.ends.begin(), whole.ends.end(),
                                          [&](uint64_t e) { return e <= length; });
      ASSERT_EQ(seen.events.size(), static_cast<size_t>(expected)) << length;
      ASSERT_TRUE(std::equal(seen.events.begin(), seen.events.end(), whole.events.begin()));
    }
  }
}

TEST(DecoderCases, EverySingleByteFlip) {
  const RandomStream made = random_stream(202, 2, 12);
  const Recorder whole = record(made.bytes);
  for (size_t at = 0; at < made.bytes.size(); ++at) {
    for (const uint8_t flip : {uint8_t{0x01}, uint8_t{0x80}, uint8_t{0xFF}}) {
      std::vector<uint8_t> bytes = made.bytes;
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ flip);
      const Recorder seen = read_everything(bytes);
      // What ends before the flip is not touched by it.
      for (size_t i = 0; i < whole.ends.size() && whole.ends[i] <= at; ++i) {
        ASSERT_LT(i, seen.events.size()) << at;
        ASSERT_EQ(seen.events[i], whole.events[i]) << at;
      }
      Recorder pieces =
          record_pieces(bytes, {16}, {PoolStorage::kCopy, kMaxFrameBytes, kDefaultMaxStateBytes});
      if (pieces.rule == Rule::kFrameSize) pieces.rule = seen.rule;
      ASSERT_TRUE(pieces == seen) << at;
    }
  }
}

std::vector<uint8_t> with_field(uint8_t type, const std::vector<uint8_t>& payload) {
  std::vector<uint8_t> bytes = {'T', 'R', 'C', 0, 1,    1, 0, 0, 0, 0, 1,
                                1,   0,   0,   0, type, 2, 0, 0, 0, 0, 0};
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

// A length or count that is one more than what is there, and the largest one, at each place that
// has one; memory is never taken for it.
TEST(DecoderCases, EveryLengthPlusOne) {
  const std::vector<std::pair<std::vector<uint8_t>, size_t>> cases = {
      {with_field(4, {2, 0, 0, 0, 'a', 'b'}), 22},
      {with_field(5, {2, 0, 0, 0, 'a', 'b'}), 22},
      {with_field(8, {1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}), 22},
      {with_field(10, {1, 0, 0, 0, 1, 0, 0, 0, 'k', 1, 0, 0, 0, 'v'}), 22},
      {with_field(10, {1, 0, 0, 0, 1, 0, 0, 0, 'k', 1, 0, 0, 0, 'v'}), 31},
      {with_field(14, {1, 0, 0, 0, 9, 1}), 22},
      {with_field(15, {1, 0, 0, 0, 9, 1, 9, 1}), 22},
      {{'T', 'R', 'C', 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'x'}, 6},
      {{'T', 'R', 'C', 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'x'}, 14},
      {{'T', 'R', 'C', 0, 1, 4, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 6},
      {{'T', 'R', 'C', 0, 1, 4, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 14},
      {{'T', 'R', 'C', 0, 1, 6, 9, 1, 0, 0, 0, 1, 0, 'k', 1, 0, 0, 0, 'v'}, 14},
  };
  for (const auto& [good, at] : cases) {
    ASSERT_EQ(read_everything(good).rule, Rule::kNone) << at;
    const uint32_t count = load_le<uint32_t>(good.data() + at);
    for (const uint32_t more : {count + 1, UINT32_MAX}) {
      std::vector<uint8_t> bytes = good;
      store_le(bytes.data() + at, more);
      const Recorder seen = read_everything(bytes);
      EXPECT_TRUE(seen.rule == Rule::kTruncated || seen.rule == Rule::kFrameSize) << at;
      EXPECT_TRUE(seen.events.empty());
    }
  }
  // Counts and lengths of 16 bits: name, fields, field name, entries and key of annotations.
  const std::vector<uint8_t> schema = {'T', 'R', 'C', 0, 1, 1, 0, 0,   1,
                                       0,   'A', 1,   1, 0, 1, 0, 'v', 9};
  for (const size_t at : {size_t{8}, size_t{12}, size_t{14}}) {
    std::vector<uint8_t> bytes = schema;
    store_le(bytes.data() + at, uint16_t{0xFFFF});
    EXPECT_EQ(read_everything(bytes).rule, Rule::kTruncated) << at;
  }
  const std::vector<uint8_t> note = {'T', 'R', 'C', 0, 1, 6, 9, 1, 0, 0, 0, 1, 0, 'k', 0, 0, 0, 0};
  for (const size_t at : {size_t{7}, size_t{11}}) {
    std::vector<uint8_t> bytes = note;
    store_le(bytes.data() + at, uint16_t{0xFFFF});
    EXPECT_EQ(read_everything(bytes).rule, Rule::kTruncated) << at;
  }
}

TEST(DecoderCases, NestingLimitPlusOne) {
  for (const size_t depth : {kMaxNestingDepth, kMaxNestingDepth + 1, size_t{200000}}) {
    for (const uint8_t type : {uint8_t{14}, uint8_t{15}}) {
      std::vector<uint8_t> payload;
      for (size_t i = 1; i < depth; ++i) {
        payload.insert(payload.end(), {1, 0, 0, 0});
        if (type == 15) payload.insert(payload.end(), {11, 0});
        payload.push_back(type);
      }
      payload.insert(payload.end(), {0, 0, 0, 0});
      const Recorder seen = read_everything(with_field(type, payload));
      EXPECT_EQ(seen.rule, depth <= kMaxNestingDepth ? Rule::kNone : Rule::kNesting);
    }
  }
}

TEST(DecoderCases, FrameAndStateLimitsPlusOne) {
  const std::vector<uint8_t> stream = with_field(4, {2, 0, 0, 0, 'a', 'b'});
  const uint64_t schema_bytes = 11;
  const uint64_t event_bytes = 12;
  EXPECT_EQ(record(stream, {PoolStorage::kBorrow, event_bytes, 1 << 20}).rule, Rule::kNone);
  EXPECT_EQ(record(stream, {PoolStorage::kBorrow, event_bytes - 1, 1 << 20}).rule,
            Rule::kFrameSize);
  EXPECT_EQ(record(stream, {PoolStorage::kBorrow, schema_bytes - 1, 1 << 20}).rule,
            Rule::kFrameSize);
  // The same event with bytes behind it, which is read the fast way.
  std::vector<uint8_t> twice = stream;
  twice.insert(twice.end(), stream.end() - event_bytes, stream.end());
  twice.insert(twice.end(), stream.end() - event_bytes, stream.end());
  EXPECT_EQ(record(twice, {PoolStorage::kBorrow, event_bytes - 1, 1 << 20}).rule, Rule::kFrameSize);
  EXPECT_EQ(record(twice, {PoolStorage::kBorrow, event_bytes, 1 << 20}).events.size(), 3u);
  EXPECT_EQ(record(stream, {PoolStorage::kBorrow, event_bytes, 10}).rule, Rule::kState);
}

// Floods of the smallest frames: nothing recurses, and each costs what it is.
TEST(DecoderCases, Floods) {
  std::vector<uint8_t> headers;
  for (int i = 0; i < 200000; ++i) headers.insert(headers.end(), {'T', 'R', 'C', 0, 1});
  EXPECT_EQ(record(headers).headers.size(), 200000u);
  // A type with the highest id in each sub-stream, and a pool id far away.
  std::vector<uint8_t> sparse;
  for (int i = 0; i < 20000; ++i) {
    sparse.insert(sparse.end(), {'T', 'R', 'C', 0, 1, 1, 0xFF, 0xFF, 0, 0, 0, 0, 0});
    sparse.insert(sparse.end(), {3, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0});
    sparse.insert(sparse.end(), {2, 0xFF, 0xFF});
  }
  const Recorder seen = record(sparse);
  EXPECT_EQ(seen.rule, Rule::kNone);
  EXPECT_EQ(seen.events.size(), 20000u);
}

}  // namespace
}  // namespace collect::dial9
