// The frames between the pages of a data channel: what is stored of them, and which end the
// connection.
#include "daemon/ingest/lane/data_frames.h"

#include <gmock/gmock.h>

#include "tests/daemon/ingest/peer/peer_parts.h"

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class DataFramesTest : public PeerPartsTest {
 protected:
  void begin_recording(uint32_t recording = 1) {
    if (!core_) begin();
    ASSERT_EQ(data(FrameType::kRecordingStart, start_of(recording)), "");
  }
  std::string open_stream(uint32_t stream, uint32_t recording = 1) {
    return data(FrameType::kStreamOpen, stream_of(recording, stream));
  }
  std::string close_stream(uint32_t stream, uint64_t index_count) {
    wire::StreamClose close;
    close.set_stream_id(stream);
    close.set_index_count(index_count);
    return data(FrameType::kStreamClose, close);
  }
  std::vector<uint64_t> thread_ids() const {
    std::vector<uint64_t> ids;
    for (const auto& thread : parts_->decoder->threads()) ids.push_back(*thread.thread_id);
    return ids;
  }
};

TEST_F(DataFramesTest, EverythingOfARecordingIsStored) {
  begin_recording();
  EXPECT_EQ(data(FrameType::kModules, modules_of({"/bin/a"})), "");
  EXPECT_EQ(open_stream(2), "");
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(open_stream(1), "") << "a repeat";
  EXPECT_THAT(thread_ids(), ElementsAre(101, 102));
  wire::DetailState detail;
  detail.set_mode(wire::DETAIL_ON);
  detail.set_at_ns(5);
  EXPECT_EQ(data(FrameType::kDetailState, detail), "");
  EXPECT_EQ(parts_->profile.shown().detail, DetailMode::kOn);
  EXPECT_EQ(recordings().current()->shown.detail, DetailMode::kOn);
  wire::Stalls stalls;
  wire::Stall& stall = *stalls.add_stalls();
  stall.set_stream_id(1);
  stall.set_kind(wire::Stall::PAGE_WAIT);
  stall.set_first_ns(10);
  stall.set_last_ns(20);
  EXPECT_EQ(data(FrameType::kStalls, stalls), "");
  EXPECT_EQ(close_stream(1, 0), "");
  EXPECT_THAT(thread_ids(), ElementsAre(102));
  EXPECT_EQ(data(FrameType::kRecordingEnd, end_of(1)), "");
  EXPECT_THAT(thread_ids(), IsEmpty());
  const storage::Manifest manifest = sealed_manifest();
  ASSERT_EQ(manifest.modules.size(), 1u);
  EXPECT_EQ(manifest.threads.size(), 2u);
  EXPECT_EQ(manifest.stalls.size(), 1u);
  EXPECT_EQ(manifest.detail_windows.size(), 1u);
  EXPECT_EQ(parts_->modules->all().size(), 1u);
}

TEST_F(DataFramesTest, RejectsFramesBeforeTheRecordingBegins) {
  begin();
  EXPECT_THAT(data(FrameType::kModules, modules_of({"/bin/a"})), HasSubstr("modules before"));
  EXPECT_THAT(open_stream(1), HasSubstr("stream 1 of a recording that did not begin"));
  EXPECT_THAT(close_stream(1, 0), HasSubstr("stream 1, which is not open"));
  EXPECT_THAT(data(FrameType::kDetailState, wire::DetailState()), HasSubstr("detail state before"));
  EXPECT_THAT(data(FrameType::kStalls, wire::Stalls()), HasSubstr("stalls before"));
  EXPECT_THAT(data(FrameType::kRecordingEnd, end_of(1)), HasSubstr("end of a recording that did"));
  begin_recording();
  EXPECT_THAT(open_stream(1, 2), HasSubstr("of a recording that did not begin"));
  EXPECT_THAT(data(FrameType::kRecordingEnd, end_of(2)), HasSubstr("end of a recording that did"));
  EXPECT_EQ(verdict_->code, wire::REFUSE_PROTOCOL);
  EXPECT_TRUE(verdict_->retry);
  EXPECT_NE(recordings().current(), nullptr) << "the session waits, as after any other break";
}

TEST_F(DataFramesTest, RepeatOfTheStartChangesNothing) {
  begin_recording();
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(data(FrameType::kRecordingStart, start_of(1)), "");
  EXPECT_THAT(thread_ids(), ElementsAre(101));
  EXPECT_EQ(data(FrameType::kRecordingStart, start_of(2)), "");
  EXPECT_THAT(thread_ids(), IsEmpty()) << "those were of the one before";
}

TEST_F(DataFramesTest, AnotherConnectionContinuesTheSession) {
  begin_recording();
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(data(FrameType::kModules, modules_of({"/bin/a"})), "");
  const AgentSession* session = recordings().current();
  recordings().end_connection();
  parts_->connect_data();
  EXPECT_THAT(thread_ids(), IsEmpty());
  begin_recording();
  EXPECT_EQ(recordings().storing(), session);
  EXPECT_EQ(parts_->modules->all().size(), 1u) << "it is the same recording";
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(used(principal::Resource::kMemory) / kStreamMemory,
            (kSessionMemory + kStreamMemory) / kStreamMemory)
      << "the stream is charged once";
}

TEST_F(DataFramesTest, StreamClosesWithWhatItSent) {
  begin_recording();
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(open_stream(2), "");
  EXPECT_EQ(close_stream(2, 7), "") << "records that were not sent are lost";
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_thread_name(std::string(kMaxNameBytes + 1, 'n'));
  EXPECT_THAT(data(FrameType::kStreamClose, close), HasSubstr("name is too long"));
  EXPECT_THAT(thread_ids(), ElementsAre(101)) << "nothing of it was taken";
}

TEST_F(DataFramesTest, LimitsOfAFrame) {
  begin_recording();
  wire::StreamOpen stream = stream_of(1, 1);
  stream.set_thread_name(std::string(kMaxNameBytes + 1, 'n'));
  EXPECT_THAT(data(FrameType::kStreamOpen, stream), HasSubstr("name is too long"));
  wire::Modules modules;
  for (uint32_t at = 0; at <= wire::kMaxModulesPerFrame; ++at) modules.add_modules();
  EXPECT_THAT(data(FrameType::kModules, modules), HasSubstr("more than 16 modules"));
  wire::Stalls stalls;
  for (uint32_t at = 0; at <= wire::kMaxStallsPerFrame; ++at) stalls.add_stalls();
  EXPECT_THAT(data(FrameType::kStalls, stalls), HasSubstr("more than 64 stalls"));
  wire::Stalls backwards;
  backwards.add_stalls()->set_first_ns(9);
  EXPECT_THAT(data(FrameType::kStalls, backwards), HasSubstr("contradict"));
}

TEST_F(DataFramesTest, SoManyThreadsAtOnce) {
  options_.threads_per_agent = 2;
  begin_recording();
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(open_stream(2), "");
  EXPECT_THAT(open_stream(3), HasSubstr("more than 2 threads at once"));
  EXPECT_EQ(verdict_->code, wire::REFUSE_LIMIT);
  EXPECT_FALSE(verdict_->retry);
  EXPECT_EQ(close_stream(1, 0), "");
  EXPECT_EQ(open_stream(3), "");
}

TEST_F(DataFramesTest, RefusesStreamsForNowWithoutMemory) {
  options_.accounted_memory = kSessionMemory + 2 * kStreamMemory;
  begin_recording();
  EXPECT_EQ(open_stream(1), "");
  EXPECT_EQ(open_stream(2), "");
  EXPECT_NE(open_stream(3), "");
  EXPECT_EQ(verdict_->code, wire::REFUSE_LIMIT);
  EXPECT_TRUE(verdict_->retry);
  EXPECT_NE(data(FrameType::kModules, modules_of({"/bin/a"})), "");
  EXPECT_EQ(verdict_->code, wire::REFUSE_LIMIT);
  EXPECT_THAT(thread_ids(), ElementsAre(101, 102));
}

TEST_F(DataFramesTest, RefusesBrokenMessagesAndControlFrames) {
  begin_recording();
  const uint8_t bytes[] = {0xff, 0xff};
  for (const FrameType type :
       {FrameType::kRecordingStart, FrameType::kModules, FrameType::kStreamOpen,
        FrameType::kStreamClose, FrameType::kDetailState, FrameType::kStalls,
        FrameType::kRecordingEnd}) {
    EXPECT_THAT(data(fakes::frame_bytes(type, Bytes(bytes))),
                HasSubstr("the body is no collect.wire."));
  }
  for (const FrameType type : {FrameType::kHello, FrameType::kAck, FrameType::kCommand,
                               FrameType::kHeartbeat, FrameType::kBye, FrameType::kCounters}) {
    EXPECT_THAT(data(type, wire::Bye()), HasSubstr("does not belong on the data channel"));
  }
  EXPECT_EQ(data(static_cast<FrameType>(200), wire::Bye()), "") << "of a later version";
}

}  // namespace
}  // namespace collect::ingest
