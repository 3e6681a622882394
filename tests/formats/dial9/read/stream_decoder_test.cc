// Pushed in pieces, cut anywhere, a stream shows what it shows whole; and the work for a peer that
// sends byte by byte stays in proportion to the bytes.
#include "formats/dial9/read/stream_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/dial9/random_stream.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using testing::random_stream;
using testing::RandomContent;
using testing::record;
using testing::record_pieces;
using testing::Recorder;

constexpr DecoderOptions kAsStream{PoolStorage::kBorrow, kDefaultMaxStreamFrameBytes,
                                   kDefaultMaxStreamStateBytes};

TEST(StreamDecoder, EveryCutInTwo) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const std::vector<uint8_t> bytes = random_stream(seed, 3, 8).bytes;
    const Recorder whole = record(bytes, kAsStream);
    for (size_t cut = 0; cut <= bytes.size(); ++cut)
      ASSERT_TRUE(record_pieces(bytes, {cut, bytes.size()}) == whole) << seed << " at " << cut;
  }
}

TEST(StreamDecoder, PiecesOfEverySize) {
  const std::vector<uint8_t> bytes = random_stream(77, 3, 30).bytes;
  const Recorder whole = record(bytes, kAsStream);
  for (size_t size = 1; size < 300; ++size)
    ASSERT_TRUE(record_pieces(bytes, {size}) == whole) << size;
  ASSERT_TRUE(record_pieces(bytes, {5000, 1, 3, 4095, 4096, 4097}) == whole);
}

TEST(StreamDecoder, DamagedStreamsFailAtTheSamePlace) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomContent content(seed);
    std::vector<uint8_t> bytes = random_stream(seed, 2, 8).bytes;
    for (int i = 0; i < 3; ++i)
      bytes[content.below(bytes.size())] = static_cast<uint8_t>(content.below(256));
    const Recorder whole = record(bytes, kAsStream);
    for (const size_t size : {size_t{1}, size_t{3}, size_t{64}}) {
      Recorder pieces = record_pieces(bytes, {size});
      // A frame whose count alone is beyond the limit is refused before its other faults are there.
      if (pieces.rule == Rule::kFrameSize) pieces.rule = whole.rule;
      ASSERT_TRUE(pieces == whole) << seed << " by " << size;
    }
  }
}

TEST(StreamDecoder, SaysWhereWholeFramesEndAndKeepsTheRest) {
  const std::vector<uint8_t> bytes = random_stream(5, 2, 10).bytes;
  StreamDecoder decoder({PoolStorage::kNone, 1 << 20, 1 << 20});
  Visitor ignored;
  uint64_t previous = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const DecodeState state = decoder.push(Bytes(bytes).subspan(at, 1), ignored);
    ASSERT_EQ(state, decoder.rest().empty() ? DecodeState::kEnd : DecodeState::kNeedMore);
    ASSERT_GE(decoder.whole_bytes(), previous);
    ASSERT_EQ(decoder.whole_bytes() + decoder.rest().size(), at + 1);
    if (!decoder.rest().empty()) {
      ASSERT_EQ(decoder.rest()[0], bytes[decoder.whole_bytes()]);
    }
    previous = decoder.whole_bytes();
    // Everything up to there is a good stream by itself.
    ASSERT_TRUE(previous == 0 || record(Bytes(bytes).first(previous)).rule == Rule::kNone);
  }
  EXPECT_EQ(decoder.finish(), std::nullopt);
  EXPECT_EQ(decoder.decoder().sub_streams(), 2u);
}

TEST(StreamDecoder, ReportsTheUnfinishedEnd) {
  const std::vector<uint8_t> bytes = {'T', 'R', 'C', 0, 1, 5, 1, 2};
  StreamDecoder decoder;
  Visitor ignored;
  EXPECT_EQ(decoder.push(bytes, ignored), DecodeState::kNeedMore);
  const auto problem = decoder.finish();
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->rule, Rule::kTruncated);
  EXPECT_EQ(problem->frame_offset, 5u);
  EXPECT_EQ(problem->offset, 8u);
  EXPECT_EQ(to_error(*problem).code, Code::kTruncated);
}

TEST(StreamDecoder, RefusesATooLongFrameBeforeItArrives) {
  const StreamOptions options{PoolStorage::kCopy, 1000, 100000};
  // A string pool whose one entry says 1001 - 13 + 1 bytes, and one that just fits.
  for (const bool fits : {true, false}) {
    std::vector<uint8_t> bytes = {'T', 'R', 'C', 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    store_le(bytes.data() + 14, uint32_t{fits ? 1000u - 13 : 1001u - 13});
    StreamDecoder decoder(options);
    Visitor ignored;
    const DecodeState state = decoder.push(bytes, ignored);
    EXPECT_EQ(state, fits ? DecodeState::kNeedMore : DecodeState::kFailed);
    if (fits) {
      const std::vector<uint8_t> rest(1000 - 13);
      EXPECT_EQ(decoder.push(rest, ignored), DecodeState::kEnd);
    } else {
      EXPECT_EQ(decoder.problem()->rule, Rule::kFrameSize);
      EXPECT_EQ(decoder.push(bytes, ignored), DecodeState::kFailed);
      EXPECT_EQ(decoder.whole_bytes(), 5u);
      EXPECT_EQ(to_error(*decoder.problem()).code, Code::kLimit);
    }
  }
}

TEST(StreamDecoder, RefusesMoreStateThanItsLimit) {
  StreamDecoder decoder({PoolStorage::kCopy, 1 << 20, 200000});
  Visitor ignored;
  const std::vector<uint8_t> head = {'T', 'R', 'C', 0, 1};
  ASSERT_EQ(decoder.push(head, ignored), DecodeState::kEnd);
  std::vector<uint8_t> pool(13 + 10000);
  pool[0] = 3;
  pool[1] = 1;
  store_le(pool.data() + 9, uint32_t{10000});
  size_t taken = 0;
  while (taken < 1000 && decoder.push(pool, ignored) == DecodeState::kEnd) ++taken;
  EXPECT_EQ(decoder.problem()->rule, Rule::kState);
  EXPECT_GT(taken, 10u);
  EXPECT_LT(taken, 20u);
  // Those that only look for frames keep no pools.
  StreamDecoder scanner({PoolStorage::kNone, 1 << 20, 200000});
  ASSERT_EQ(scanner.push(head, ignored), DecodeState::kEnd);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(scanner.push(pool, ignored), DecodeState::kEnd);
}

// Annotations count as state, and the schemas of a sub-stream that has ended do not.
TEST(StreamDecoder, AnnotationsWithoutEndReachTheLimitOfState) {
  const std::vector<uint8_t> head = {'T', 'R', 'C', 0, 1, 1, 0, 0, 1, 0, 'A', 1, 0, 0};
  std::vector<uint8_t> note = {6, 0, 1, 0, 0, 0, 1, 0, 'k', 0, 0, 0, 0};
  store_le(note.data() + 9, uint32_t{10000});
  note.resize(note.size() + 10000, 'v');
  StreamDecoder decoder({PoolStorage::kCopy, 1 << 20, 200000});
  Visitor ignored;
  for (int sub_stream = 0; sub_stream < 30; ++sub_stream) {
    ASSERT_EQ(decoder.push(head, ignored), DecodeState::kEnd) << sub_stream;
    for (int i = 0; i < 5; ++i) ASSERT_EQ(decoder.push(note, ignored), DecodeState::kEnd);
  }
  size_t taken = 5;
  while (taken < 100 && decoder.push(note, ignored) == DecodeState::kEnd) ++taken;
  ASSERT_TRUE(decoder.problem());
  EXPECT_EQ(decoder.problem()->rule, Rule::kState);
  EXPECT_LE(taken, 20u);
}

struct OneByOne : Visitor {
  void on_event(const Event& event) { times.push_back(event.timestamp_ns()), more = false; }
  bool wants_more() const { return more; }
  std::vector<uint64_t> times;
  bool more = true;
};

TEST(StreamDecoder, VisitorMayTakeOneEventAtATime) {
  Encoder encoder;
  const EventType type = *encoder.define({0, "A", true, {}});
  for (uint64_t i = 0; i < 10; ++i) {
    encoder.begin_event(type, i);
    ASSERT_TRUE(encoder.end_event());
  }
  const std::vector<uint8_t> bytes = encoder.take();
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    StreamDecoder decoder;
    OneByOne visitor;
    Bytes next = Bytes(bytes).first(cut);
    for (int calls = 0; calls < 40; ++calls) {
      visitor.more = true;
      (void)decoder.push(next, visitor);
      next = calls == 3 ? Bytes(bytes).subspan(cut) : Bytes();
    }
    ASSERT_EQ(visitor.times.size(), 10u) << cut;
    EXPECT_EQ(decoder.finish(), std::nullopt);
  }
}

// One frame of many entries, sent byte by byte. Each look at an unfinished frame reads it from its
// start, so their number must not grow with the bytes.
TEST(StreamDecoder, ReexaminesAFrameOnlyWhenItMayBeWhole) {
  std::vector<uint8_t> bytes = {'T', 'R', 'C', 0, 1, 3, 0, 0, 0, 0};
  constexpr uint32_t kEntries = 20000;
  store_le(bytes.data() + 6, kEntries);
  for (uint32_t i = 0; i < kEntries; ++i) {
    const size_t at = bytes.size();
    bytes.resize(at + 9, 'x');
    store_le(bytes.data() + at, i);
    store_le(bytes.data() + at + 4, uint32_t{1});
  }
  Visitor ignored;
  uint64_t need = 0;
  size_t looks = 0;
  bool whole = false;
  for (size_t size = 5; size <= bytes.size() - 5; ++size) {
    if (size < need) continue;
    ++looks;
    Decoder fresh({PoolStorage::kNone, kMaxFrameBytes, kDefaultMaxStateBytes});
    ASSERT_EQ(fresh.decode(Bytes(bytes).first(5), ignored).state, DecodeState::kEnd);
    const Decoded decoded = fresh.decode(Bytes(bytes).subspan(5, size), ignored);
    whole = decoded.state == DecodeState::kEnd;
    if (whole) break;
    ASSERT_EQ(decoded.state, DecodeState::kNeedMore);
    ASSERT_GT(decoded.need, size);
    need = decoded.need;
  }
  EXPECT_TRUE(whole);
  EXPECT_LT(looks, 40u);
}

}  // namespace
}  // namespace collect::dial9
