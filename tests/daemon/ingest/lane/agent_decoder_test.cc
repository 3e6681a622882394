// The frames of a data channel without a channel: what is taken, what is handed on, what is
// refused.
#include "daemon/ingest/lane/agent_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/ingest/link/limits.h"
#include "tests/fakes/fake_agent.h"
#include "tests/fakes/frame_socket.h"

namespace collect::ingest {
namespace {

using fakes::index_events;
using fakes::index_page_header;
using testing::HasSubstr;
using End = LaneTurn::End;

constexpr uint32_t kStream = 7;

std::vector<uint8_t> page(uint64_t first, uint32_t count, uint32_t stream = kStream) {
  return fakes::page_frame_bytes(index_page_header(stream, first, count),
                                 index_events(first, count));
}

std::vector<uint8_t> control() {
  return fakes::frame_bytes(wire::FrameType::kStreamClose, wire::StreamClose());
}

void add(std::vector<uint8_t>& to, const std::vector<uint8_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

class AgentDecoderTest : public ::testing::Test {
 protected:
  AgentDecoderTest() { decoder_.open_stream(kStream); }
  // As a lane does while no session takes the data.
  LaneTurn take(Bytes bytes, size_t& taken) {
    LaneTurn turn;
    EXPECT_TRUE(decoder_.take(bytes, nullptr, unpacker_, turn, taken).ok());
    return turn;
  }
  std::string fault_of(const std::vector<uint8_t>& bytes) {
    size_t taken = 0;
    const LaneTurn turn = take(bytes, taken);
    EXPECT_EQ(turn.end, turn.fault.empty() ? End::kMore : End::kFault);
    return turn.fault;
  }

  IngestCounters counters_;
  AgentDecoder decoder_{wire::kFeatureColumns, counters_};
  PageUnpacker unpacker_;
};

TEST_F(AgentDecoderTest, WholePagesAreTakenAndTheRestStays) {
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, page(10, 5));
  const size_t whole = bytes.size();
  const std::vector<uint8_t> third = page(15, 1);
  for (size_t part = 0; part < third.size(); part += 7) {
    AgentDecoder decoder(wire::kFeatureColumns, counters_);
    decoder.open_stream(kStream);
    std::vector<uint8_t> cut = bytes;
    cut.insert(cut.end(), third.begin(), third.begin() + static_cast<ptrdiff_t>(part));
    LaneTurn turn;
    size_t taken = 0;
    ASSERT_TRUE(decoder.take(cut, nullptr, unpacker_, turn, taken).ok());
    EXPECT_EQ(taken, whole) << part << " bytes of the third";
    EXPECT_EQ(turn.end, End::kMore);
    EXPECT_EQ(turn.stored_bytes, 15u * 32);
    EXPECT_EQ(decoder.next_seq(kStream, Lane::kIndex), 15u);
  }
}

TEST_F(AgentDecoderTest, FramesOfTheOwnerEndTheTurnUpToTheNextPage) {
  std::vector<uint8_t> frames = control();
  add(frames, control());
  std::vector<uint8_t> bytes = page(0, 1);
  add(bytes, frames);
  const size_t before_page = bytes.size();
  add(bytes, page(1, 1));
  size_t taken = 0;
  const LaneTurn turn = take(bytes, taken);
  EXPECT_EQ(turn.end, End::kFrames);
  EXPECT_EQ(turn.frames, frames);
  EXPECT_EQ(taken, before_page);
  EXPECT_EQ(decoder_.next_seq(kStream, Lane::kIndex), 1u) << "the second page comes again";
}

TEST_F(AgentDecoderTest, OnlySoManyFramesAtOnce) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < kFramesPerTurn + 1; ++i) add(bytes, control());
  size_t taken = 0;
  const LaneTurn turn = take(bytes, taken);
  EXPECT_EQ(turn.end, End::kFrames);
  EXPECT_EQ(taken, bytes.size() - control().size());
}

TEST_F(AgentDecoderTest, PageOfAStreamThatIsNotOpenIsAFault) {
  EXPECT_EQ(fault_of(page(0, 1, kStream + 1)), "page of stream 8, which is not open");
  decoder_.close_stream(kStream);
  EXPECT_EQ(fault_of(page(0, 1)), "page of stream 7, which is not open");
  decoder_.open_stream(kStream);
  EXPECT_EQ(fault_of(page(0, 1)), "");
  decoder_.close_all_streams();
  EXPECT_EQ(fault_of(page(1, 1)), "page of stream 7, which is not open");
  EXPECT_EQ(decoder_.next_seq(kStream, Lane::kIndex), 0u);
}

TEST_F(AgentDecoderTest, RecordsMayBeMissingButNotComeTwice) {
  EXPECT_EQ(fault_of(page(0, 10)), "");
  EXPECT_EQ(fault_of(page(50, 10)), "") << "what is missing is counted elsewhere";
  EXPECT_EQ(fault_of(page(59, 2)), "page of stream 7 jumps back from record 60 to 59");
  decoder_.open_stream(kStream);  // again: it goes on where it was
  EXPECT_EQ(decoder_.next_seq(kStream, Lane::kIndex), 60u);
  EXPECT_EQ(decoder_.next_seq(kStream, Lane::kDetail), 0u) << "lanes are numbered apart";
}

TEST_F(AgentDecoderTest, CodecMustHaveBeenAgreedOn) {
  const auto tuples =
      fakes::tuple_page_frame_bytes(index_page_header(kStream, 0, 200), index_events(0, 200));
  EXPECT_EQ(fault_of(tuples), "page of codec 2, which was not agreed on");
  AgentDecoder agreed(wire::kFeatureTuples, counters_);
  agreed.open_stream(kStream);
  LaneTurn turn;
  size_t taken = 0;
  ASSERT_TRUE(agreed.take(tuples, nullptr, unpacker_, turn, taken).ok());
  EXPECT_EQ(turn.fault, "");
  EXPECT_EQ(turn.stored_bytes, 200u * 32) << "as records";
}

TEST_F(AgentDecoderTest, EachFlippedByteIsSeenAndAWrongPageCounted) {
  const std::vector<uint8_t> sound = page(0, 3);
  for (size_t at = 0; at < sound.size(); ++at) {
    AgentDecoder decoder(wire::kFeatureColumns, counters_);
    decoder.open_stream(kStream);
    std::vector<uint8_t> bytes = sound;
    bytes[at] ^= 0x20;
    LaneTurn turn;
    size_t taken = 0;
    ASSERT_TRUE(decoder.take(bytes, nullptr, unpacker_, turn, taken).ok());
    EXPECT_EQ(taken, 0u) << at;
    EXPECT_EQ(turn.end, End::kFault) << at;
    EXPECT_FALSE(turn.fault.empty()) << at;
  }
  EXPECT_EQ(counters_.pages_bad_checksum, 3u * 32) << "flips of its records";
}

TEST_F(AgentDecoderTest, TakesBytesBeforeAFault) {
  std::vector<uint8_t> bytes = page(0, 4);
  const size_t sound = bytes.size();
  add(bytes, page(2, 4));
  size_t taken = 0;
  const LaneTurn turn = take(bytes, taken);
  EXPECT_EQ(taken, sound);
  EXPECT_EQ(turn.end, End::kFault);
  EXPECT_THAT(turn.fault, HasSubstr("jumps back from record 4 to 2"));
}

}  // namespace
}  // namespace collect::ingest
