// How a recording begins and ends, and the limits at which it ends by itself.
#include "agent/drain/recording_state.h"

#include "agent/drain/link/status.h"
#include "formats/atf/layout.h"
#include "tests/agent/drain/drain_parts.h"

namespace collect::agent {
namespace {

using Phase = RecordingState::Phase;

class RecordingStateTest : public DrainPartsTest {
 protected:
  RecordingStateTest() { settings().start_recording = true; }
  // Reports what the recorder holds, and asks whether that is enough.
  void count_and_look() {
    recording().count(recorder_stats());
    recording().end_at_limit(now_ms_, now_ns());
  }
  RecordingState& recording() { return parts_->recording; }
};

TEST_F(RecordingStateTest, BeginsByItselfOnlyIfTheSettingsSaySo) {
  settings().start_recording = false;
  recording().begin_by_itself();
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  EXPECT_FALSE(is_recording());
  settings().start_recording = true;
  recording().begin_by_itself();
  EXPECT_EQ(recording().phase(), Phase::kRecording);
  EXPECT_TRUE(recording().is_running());
  EXPECT_TRUE(is_recording());
  EXPECT_EQ(recording().until_ns(), 0u);
}

TEST_F(RecordingStateTest, DoesNotBeginAfterMaxTimeIsOver) {
  settings().max_time_ns = 1000;
  settings().max_time_since_ns = now_ns() - 1000;
  recording().begin_by_itself();
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  // What someone asks for has a time of its own.
  recording().ask();
  EXPECT_EQ(recording().phase(), Phase::kRecording);
  EXPECT_EQ(recording().until_ns(), recording_start_ns() + 1000);
}

TEST_F(RecordingStateTest, TimeCountsFromWhereTheSettingsSay) {
  constexpr uint64_t kHourNs = 3'600'000'000'000;
  settings().max_time_ns = kHourNs;
  settings().max_time_since_ns = now_ns() - 1000;
  recording().begin_by_itself();
  EXPECT_EQ(recording().until_ns(), settings().max_time_since_ns + kHourNs);
}

TEST_F(RecordingStateTest, EndsAtItsTime) {
  come_up();
  settings().max_time_ns = 1000;
  recording().ask();
  const uint64_t until_ns = recording().until_ns();
  EXPECT_EQ(until_ns, recording_start_ns() + 1000);
  recording().end_at_limit(now_ms_, until_ns - 1);
  EXPECT_TRUE(recording().is_running());
  recording().end_at_limit(now_ms_, until_ns);
  EXPECT_EQ(recording().phase(), Phase::kEnding);
  EXPECT_FALSE(is_recording());
  EXPECT_EQ(recording().until_ns(), 0u);
  const wire::RecordingEnd end = shipped_end();
  EXPECT_EQ(end.recording(), 1u);
  EXPECT_EQ(end.reason(), "time limit");
  EXPECT_FALSE(end.has_process_end());
}

TEST_F(RecordingStateTest, EndsAtItsBytes) {
  come_up();
  settings().max_bytes = 10 * atf::kEventBytes;
  recording().ask();
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 9);
  count_and_look();
  EXPECT_TRUE(recording().is_running());
  fake::write_index(stream, 1);
  count_and_look();
  EXPECT_EQ(recording().phase(), Phase::kEnding);
  EXPECT_EQ(shipped_end().reason(), "size limit");
}

TEST_F(RecordingStateTest, DetailCountsAsItsLeast) {
  constexpr uint64_t kLeast = atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes;
  settings().max_bytes = 2 * kLeast + atf::kEventBytes;
  recording().ask();
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_detail(stream, 2);
  count_and_look();
  EXPECT_TRUE(recording().is_running());
  fake::write_index(stream, 1);
  count_and_look();
  EXPECT_EQ(recording().phase(), Phase::kEnding);
}

TEST_F(RecordingStateTest, NextOneBeginsWithNoBytes) {
  settings().max_bytes = 10 * atf::kEventBytes;
  recording().ask();
  fake::write_index(fake::add_stream(1, "main"), 10);
  count_and_look();
  ASSERT_EQ(recording().phase(), Phase::kEnding);
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  recording().ask();
  recording().end_at_limit(now_ms_, now_ns());
  EXPECT_TRUE(recording().is_running());
}

TEST_F(RecordingStateTest, EndsWhereTheHooksReachedItsSize) {
  come_up();
  recording().ask();
  fake::reach_size();
  recording().end_at_limit(now_ms_, now_ns());
  EXPECT_EQ(recording().phase(), Phase::kEnding);
  EXPECT_EQ(shipped_end().reason(), "size limit");
}

TEST_F(RecordingStateTest, SizeLimitOutranksTheProcessEndAsReason) {
  come_up();
  collect_wire_ProcessEnd killed = collect_wire_ProcessEnd_init_zero;
  killed.how = collect_wire_ProcessEnd_How_SIGNALED;
  killed.signal = 9;
  recording().ask();
  recording().end_with_process("killed by SIGKILL", &killed);
  wire::RecordingEnd end = shipped_end();
  EXPECT_EQ(end.reason(), "killed by SIGKILL");
  EXPECT_EQ(end.process_end().signal(), 9u);
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  recording().ask();
  fake::reach_size();
  recording().end_with_process("killed by SIGKILL", &killed);
  end = shipped_end();
  EXPECT_EQ(end.reason(), "size limit");
  EXPECT_EQ(end.process_end().signal(), 9u);
}

TEST_F(RecordingStateTest, CollectorEndsTheOneThatThereIs) {
  EXPECT_FALSE(recording().collector_ended(now_ms_, 0));
  recording().ask();
  const uint32_t stream = fake::add_stream(1, "main");
  parts_->shipper.streams().refresh();
  EXPECT_FALSE(recording().collector_ended(now_ms_, 0));
  EXPECT_FALSE(recording().collector_ended(now_ms_, 2));
  EXPECT_TRUE(recording().is_running());
  EXPECT_TRUE(recording().collector_ended(now_ms_, 1)) << "it wants no more of it";
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(fake::was_released(stream));
  EXPECT_FALSE(recording().collector_ended(now_ms_, 1)) << "it is over";
}

TEST_F(RecordingStateTest, EmptyRecordingEndsOnceTheLinkIsUp) {
  fake::lose_without_stream(0);
  recording().begin_by_itself();
  recording().end_kept(now_ms_);
  EXPECT_TRUE(recording().is_running()) << "it has not ended";
  recording().end("command", nullptr);
  recording().end_kept(now_ms_);
  EXPECT_EQ(recording().phase(), Phase::kEnding) << "there is no link";
  come_up();
  recording().end_kept(now_ms_);
  EXPECT_EQ(recording().phase(), Phase::kIdle);
}

TEST_F(RecordingStateTest, ReportsAnEmptyRecordingThatWasCommanded) {
  fake::lose_without_stream(0);
  come_up();
  recording().begin_by_itself();
  recording().ask();
  EXPECT_EQ(current_recording(), 1u) << "the one that ran";
  recording().end("command", nullptr);
  recording().end_kept(now_ms_);
  EXPECT_EQ(recording().phase(), Phase::kEnding);
  EXPECT_EQ(shipped_end().reason(), "command");
}

// Half a page can't be taken back.
TEST_F(RecordingStateTest, EndWithinAPageBreaksTheLink) {
  come_up();
  recording().ask();
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 400'000);
  ASSERT_EQ(ship(), PumpStatus::kBlocked) << "no one reads";
  ASSERT_TRUE(parts_->shipper.mid_frame());
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  EXPECT_FALSE(link().is_up());
  EXPECT_EQ(std::string(status()),
            "the link to the collector broke: the collector ended the recording in the middle of a "
            "page; trying again");
}

TEST_F(RecordingStateTest, EndBetweenPagesLeavesTheLink) {
  come_up();
  recording().ask();
  fake::write_index(fake::add_stream(1, "main"), 100);
  ASSERT_EQ(ship(), PumpStatus::kNothing);
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  EXPECT_TRUE(link().is_up());
}

TEST_F(RecordingStateTest, DroppedInAnyPhase) {
  recording().drop();
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  recording().ask();
  const uint32_t running = fake::add_stream(1, "main");
  parts_->shipper.streams().refresh();
  recording().drop();
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(fake::was_released(running));
  recording().ask();
  recording().end("command", nullptr);
  recording().drop();
  EXPECT_EQ(recording().phase(), Phase::kIdle);
}

}  // namespace
}  // namespace collect::agent
