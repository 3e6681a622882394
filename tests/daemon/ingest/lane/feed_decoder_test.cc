// The bytes of a dial9 feed without a feed: how much of them are whole frames, in any pieces, and
// what is said of their end.
#include "daemon/ingest/lane/dial9_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/ingest/link/limits.h"
#include "tests/fakes/dial9_stream.h"

namespace collect::ingest {
namespace {

using fakes::kDial9Example;
using fakes::kDial9ExampleFrameEnds;
using testing::HasSubstr;
using testing::StartsWith;
using End = LaneTurn::End;

class FeedDecoderTest : public ::testing::Test {
 protected:
  // As a lane does while no session takes the data.
  static LaneTurn take(FeedDecoder& decoder, Bytes bytes) {
    PageUnpacker unpacker;
    LaneTurn turn;
    size_t taken = 0;
    EXPECT_TRUE(decoder.take(bytes, nullptr, unpacker, turn, taken).ok());
    EXPECT_EQ(taken, bytes.size()) << "the decoder keeps what it needs";
    return turn;
  }
};

TEST_F(FeedDecoderTest, EveryPrefixIsInAFrameOrBetweenTwo) {
  for (size_t size = 0; size <= kDial9Example.size(); ++size) {
    FeedDecoder decoder;
    const LaneTurn turn = take(decoder, Bytes(kDial9Example).first(size));
    EXPECT_EQ(turn.end, End::kMore) << size;
    EXPECT_EQ(decoder.received_bytes(), size);
    const bool between =
        size == 0 || std::find(std::begin(kDial9ExampleFrameEnds), std::end(kDial9ExampleFrameEnds),
                               size) != std::end(kDial9ExampleFrameEnds);
    EXPECT_EQ(decoder.in_frame(), !between) << size;
    const auto said = decoder.finish();
    EXPECT_EQ(said.has_value(), size == 0 || !between) << size << ": " << said.value_or("");
  }
}

TEST_F(FeedDecoderTest, PiecesOfAnySizeComeToTheSame) {
  const std::vector<uint8_t> stream = fakes::dial9_stream(3, 40);
  ASSERT_FALSE(stream.empty());
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{64}, stream.size()}) {
    FeedDecoder decoder;
    for (size_t at = 0; at < stream.size(); at += piece) {
      const LaneTurn turn =
          take(decoder, Bytes(stream).subspan(at, std::min(piece, stream.size() - at)));
      ASSERT_EQ(turn.end, End::kMore) << turn.fault.reason;
    }
    EXPECT_EQ(decoder.received_bytes(), stream.size());
    EXPECT_FALSE(decoder.in_frame());
    EXPECT_EQ(decoder.finish(), std::nullopt);
  }
}

TEST_F(FeedDecoderTest, RejectsOtherStreamsNamingTheRule) {
  FeedDecoder decoder;
  const std::string text = "GET / HTTP/1.1\r\n\r\n";
  const LaneTurn turn =
      take(decoder, Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  EXPECT_EQ(turn.end, End::kFault);
  EXPECT_THAT(turn.fault.reason, StartsWith("dial9: "));
}

TEST_F(FeedDecoderTest, FaultInTheMiddleSaysWhere) {
  std::vector<uint8_t> stream = kDial9Example;
  stream[kDial9ExampleFrameEnds[1]] = 0xEE;  // the tag of the first event
  FeedDecoder decoder;
  const LaneTurn turn = take(decoder, stream);
  EXPECT_EQ(turn.end, End::kFault);
  EXPECT_THAT(turn.fault.reason, HasSubstr("18"));
}

TEST_F(FeedDecoderTest, RejectsATooLargeFrameBeforeItIsWhole) {
  const std::vector<uint8_t> stream = fakes::dial9_stream_with_large_event(kMaxFeedFrameBytes + 1);
  ASSERT_FALSE(stream.empty());
  FeedDecoder decoder;
  size_t sent = 0;
  LaneTurn turn;
  for (; sent < stream.size() && turn.end == End::kMore; sent += 4096) {
    turn = take(decoder, Bytes(stream).subspan(sent, std::min<size_t>(4096, stream.size() - sent)));
  }
  EXPECT_EQ(turn.end, End::kFault);
  EXPECT_LT(sent, stream.size());
}

}  // namespace
}  // namespace collect::ingest
