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

constexpr uint32_t kRecording = 3;
constexpr uint32_t kStream = 7;

std::vector<uint8_t> page(uint64_t first, uint32_t count, uint32_t stream = kStream) {
  return fakes::page_frame_bytes(index_page_header(stream, first, count),
                                 index_events(first, count));
}

std::vector<uint8_t> open_stream(uint32_t stream = kStream) {
  wire::StreamOpen open;
  open.set_recording(kRecording);
  open.set_stream_id(stream);
  return fakes::frame_bytes(wire::FrameType::kStreamOpen, open);
}

std::vector<uint8_t> close_stream(uint64_t index_count) {
  wire::StreamClose close;
  close.set_stream_id(kStream);
  close.set_index_count(index_count);
  return fakes::frame_bytes(wire::FrameType::kStreamClose, close);
}

std::vector<uint8_t> end_recording() {
  return fakes::frame_bytes(wire::FrameType::kRecordingEnd, wire::RecordingEnd());
}

void add(std::vector<uint8_t>& to, const std::vector<uint8_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

class AgentDecoderTest : public ::testing::Test {
 protected:
  AgentDecoderTest() { begin(); }
  // Another connection, on which the stream is open.
  void begin(uint64_t features = wire::kFeatureColumns) {
    decoder_ = std::make_unique<AgentDecoder>(features, counters_, kDefaultThreadsPerAgent,
                                              budget_.account(principal::Principal::of_uid(1)),
                                              std::make_shared<LoadedModules>());
    decoder_->begin_recording(kRecording);
    EXPECT_EQ(fault_of(open_stream()), "");
  }
  // As a lane does while no session takes the data.
  LaneTurn take(Bytes bytes, size_t& taken) {
    LaneTurn turn;
    taken = 0;
    EXPECT_TRUE(decoder_->take(bytes, nullptr, unpacker_, turn, taken).ok());
    return turn;
  }
  std::string fault_of(const std::vector<uint8_t>& bytes) {
    size_t taken = 0;
    const LaneTurn turn = take(bytes, taken);
    EXPECT_EQ(turn.end, turn.fault.reason.empty() ? End::kMore : End::kFault);
    return turn.fault.reason;
  }

  IngestCounters counters_;
  principal::Budget budget_{{}};
  std::unique_ptr<AgentDecoder> decoder_;
  PageUnpacker unpacker_;
};

TEST_F(AgentDecoderTest, WholePagesAreTakenAndTheRestStays) {
  std::vector<uint8_t> bytes = page(0, 10);
  add(bytes, page(10, 5));
  const size_t whole = bytes.size();
  const std::vector<uint8_t> third = page(15, 1);
  for (size_t part = 0; part < third.size(); part += 7) {
    begin();
    std::vector<uint8_t> cut = bytes;
    cut.insert(cut.end(), third.begin(), third.begin() + static_cast<ptrdiff_t>(part));
    size_t taken = 0;
    const LaneTurn turn = take(cut, taken);
    EXPECT_EQ(taken, whole) << part << " bytes of the third";
    EXPECT_EQ(turn.end, End::kMore);
    EXPECT_EQ(turn.stored_bytes, 15u * 32);
    EXPECT_EQ(fault_of(page(14, 1)), "page of stream 7 jumps back from record 15 to 14");
  }
}

TEST_F(AgentDecoderTest, TakesPagesAndFramesInOneTurn) {
  std::vector<uint8_t> bytes = page(0, 2);
  add(bytes, close_stream(2));
  add(bytes, open_stream(8));
  add(bytes, page(0, 3, 8));
  size_t taken = 0;
  const LaneTurn turn = take(bytes, taken);
  EXPECT_EQ(turn.end, End::kMore);
  EXPECT_EQ(taken, bytes.size());
  EXPECT_EQ(turn.frames, 2u);
  EXPECT_EQ(turn.stored_bytes, 5u * 32);
  EXPECT_EQ(decoder_->threads().size(), 1u);
}

TEST_F(AgentDecoderTest, RecordingEndEndsTheTurn) {
  std::vector<uint8_t> bytes = page(0, 1);
  add(bytes, end_recording());
  const size_t before_page = bytes.size();
  add(bytes, page(1, 1));
  size_t taken = 0;
  const LaneTurn turn = take(bytes, taken);
  EXPECT_EQ(turn.end, End::kFrame);
  EXPECT_EQ(turn.frame_type, wire::FrameType::kRecordingEnd);
  EXPECT_EQ(taken, before_page);
  EXPECT_EQ(fault_of(page(1, 1)), "") << "the second page comes again";
}

TEST_F(AgentDecoderTest, OnlySoManyFramesAtOnce) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < kFramesPerTurn + 1; ++i) add(bytes, open_stream());
  size_t taken = 0;
  const LaneTurn turn = take(bytes, taken);
  EXPECT_EQ(turn.end, End::kMore);
  EXPECT_TRUE(turn.is_full());
  EXPECT_EQ(taken, bytes.size() - open_stream().size());
}

TEST_F(AgentDecoderTest, RejectsAPageOfAStreamNotOpen) {
  EXPECT_EQ(fault_of(page(0, 1, kStream + 1)), "page of stream 8, which is not open");
  EXPECT_EQ(fault_of(close_stream(0)), "");
  EXPECT_EQ(fault_of(page(0, 1)), "page of stream 7, which is not open");
  EXPECT_EQ(fault_of(open_stream()), "");
  EXPECT_EQ(fault_of(page(0, 1)), "");
  decoder_->begin_recording(kRecording + 1);
  EXPECT_EQ(fault_of(page(1, 1)), "page of stream 7, which is not open");
}

TEST_F(AgentDecoderTest, RecordsMayBeMissingButNotComeTwice) {
  EXPECT_EQ(fault_of(page(0, 10)), "");
  EXPECT_EQ(fault_of(page(50, 10)), "") << "what is missing is counted elsewhere";
  EXPECT_EQ(fault_of(page(59, 2)), "page of stream 7 jumps back from record 60 to 59");
  EXPECT_EQ(fault_of(open_stream()), "") << "a repeat";
  EXPECT_EQ(fault_of(page(59, 2)), "page of stream 7 jumps back from record 60 to 59");
  EXPECT_EQ(fault_of(close_stream(59)), "stream 7 closes with fewer records than it sent");
  EXPECT_EQ(fault_of(close_stream(60)), "") << "no detail came: lanes are numbered apart";
}

TEST_F(AgentDecoderTest, CodecMustHaveBeenAgreedOn) {
  const auto tuples =
      fakes::tuple_page_frame_bytes(index_page_header(kStream, 0, 200), index_events(0, 200));
  EXPECT_EQ(fault_of(tuples), "page of codec 2, which was not agreed on");
  begin(wire::kFeatureTuples);
  size_t taken = 0;
  const LaneTurn turn = take(tuples, taken);
  EXPECT_EQ(turn.fault.reason, "");
  EXPECT_EQ(turn.stored_bytes, 200u * 32) << "as records";
}

TEST_F(AgentDecoderTest, DetectsEachFlippedByteAndCountsWrongPages) {
  const std::vector<uint8_t> sound = page(0, 3);
  for (size_t at = 0; at < sound.size(); ++at) {
    begin();
    std::vector<uint8_t> bytes = sound;
    bytes[at] ^= 0x20;
    size_t taken = 0;
    const LaneTurn turn = take(bytes, taken);
    EXPECT_EQ(taken, 0u) << at;
    EXPECT_EQ(turn.end, End::kFault) << at;
    EXPECT_FALSE(turn.fault.reason.empty()) << at;
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
  EXPECT_THAT(turn.fault.reason, HasSubstr("jumps back from record 4 to 2"));
}

}  // namespace
}  // namespace collect::ingest
