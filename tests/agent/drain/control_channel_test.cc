// What is read from the control channel, and what is sent there.
#include <gmock/gmock.h>

#include "agent/drain/control_reader.h"
#include "agent/drain/link/control_sender.h"
#include "agent/drain/link/status.h"
#include "agent/drain/status_reports.h"
#include "agent/ring/counters.h"
#include "agent/shared_memory.h"
#include "tests/agent/drain/drain_parts.h"

namespace collect::agent {
namespace {

using testing::HasSubstr;
using wire::FrameType;

class ControlReaderTest : public DrainPartsTest {
 protected:
  // Reads until `holds`, or for so long that it never will.
  template <class Holds>
  void read_until(Holds holds) {
    for (int i = 0; i < 60'000 && !holds(); ++i) {
      pollfd waiting{link().control().socket.fd(), POLLIN, 0};
      (void)poll(&waiting, 1, 1);
      parts_->reader.read(now_ms_);
    }
    ASSERT_TRUE(holds());
  }
  // Until the agent has said something.
  void read_until_answer() {
    read_until([&] {
      pollfd answer{collector_.control.fd(), POLLIN, 0};
      return poll(&answer, 1, 0) > 0;
    });
  }
  // Everything that was sent so far: a probe is answered behind it.
  void read_all() {
    wire::ClockProbe probe;
    probe.set_number(++probes_);
    collector_.control.send(FrameType::kClockProbe, probe);
    read_until_answer();
    const auto reply = collector_.control.expect<wire::ClockReply>(FrameType::kClockReply);
    EXPECT_EQ(reply.number(), probes_);
  }
  RecordingState& recording() { return parts_->recording; }

  uint32_t probes_ = 0;
};

TEST_F(ControlReaderTest, AnswersAProbeWithReceiveAndSendTimes) {
  come_up();
  const uint64_t before_ns = now_ns();
  wire::ClockProbe probe;
  probe.set_burst(3);
  probe.set_number(4);
  probe.set_t1_ns(55);
  collector_.control.send(FrameType::kClockProbe, probe);
  read_until_answer();
  const auto reply = collector_.control.expect<wire::ClockReply>(FrameType::kClockReply);
  EXPECT_EQ(reply.burst(), 3u);
  EXPECT_EQ(reply.number(), 4u);
  EXPECT_EQ(reply.t1_ns(), 55u);
  EXPECT_GE(reply.t2_ns(), before_ns);
  EXPECT_GE(reply.t3_ns(), reply.t2_ns());
  EXPECT_LE(reply.t3_ns(), now_ns());
}

TEST_F(ControlReaderTest, AckFreesRecordsAndEndsASealedRecording) {
  come_up();
  recording().ask();
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 100);
  ASSERT_EQ(ship(), PumpStatus::kNothing);
  collector_.take_records(stream, 0, 100);
  collector_.send_ack();
  read_all();
  EXPECT_EQ(fake::acknowledged(stream, Lane::kIndex), 100u);
  EXPECT_TRUE(recording().is_running());
  recording().end("command", nullptr);
  wire::Command start;
  start.set_command_id(77);
  start.mutable_start_recording();
  collector_.control.send(FrameType::kCommand, start);
  wire::Ack sealed = collector_.ack();
  sealed.set_recording_ended(1);
  collector_.control.send(FrameType::kAck, sealed);
  read_until([&] { return recording().is_running(); });
  EXPECT_EQ(current_recording(), 2u) << "the start waited for that";
  const auto result = collector_.control.expect<wire::CommandResult>(FrameType::kCommandResult);
  EXPECT_EQ(result.command_id(), 77u);
}

TEST_F(ControlReaderTest, AckBeforeTheDataChannelIsThereMeansNothing) {
  come_up(false);
  recording().ask();
  wire::Ack ack;
  ack.set_recording_ended(1);
  collector_.control.send(FrameType::kAck, ack);
  read_all();
  EXPECT_TRUE(recording().is_running());
}

TEST_F(ControlReaderTest, FramesOfLaterVersionsAndHeartbeatsAreSkipped) {
  come_up();
  collector_.control.send_frame(static_cast<FrameType>(200), "of a later version");
  collector_.control.send(FrameType::kHeartbeat, wire::Heartbeat());
  read_all();
  EXPECT_TRUE(link().is_up());
}

TEST_F(ControlReaderTest, UnexpectedFramesBreakTheLinkWithAReason) {
  const std::string broken(3, '\xff');
  const std::vector<std::pair<FrameType, std::string>> cases{
      {FrameType::kStreamOpen, "not what a collector says on the control channel"},
      {FrameType::kClockProbe, "a ClockProbe that can't be read"},
      {FrameType::kAck, "an Ack that can't be read"},
      {FrameType::kBye, "a Bye that can't be read"},
      {FrameType::kCommand, "a Command that can't be read, or is longer than the protocol allows"}};
  for (const auto& [type, reason] : cases) {
    come_up();
    collector_.control.send_frame(type, broken);
    read_until([&] { return !link().is_up(); });
    const auto refuse = collector_.control.expect<wire::Refuse>(FrameType::kRefuse);
    EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL) << reason;
    EXPECT_EQ(refuse.reason(), reason);
  }
}

TEST_F(ControlReaderTest, ByeSaysWhetherTheCollectorReturns) {
  come_up();
  wire::Bye bye;
  bye.set_will_return(true);
  collector_.control.send(FrameType::kBye, bye);
  read_until([&] { return !link().is_up(); });
  EXPECT_TRUE(link().collector_returns(now_ms_));
  EXPECT_FALSE(link().given_up());
  come_up();
  collector_.control.send(FrameType::kBye, wire::Bye());
  read_until([&] { return !link().is_up(); });
  EXPECT_TRUE(link().given_up());
}

class ControlSenderTest : public DrainPartsTest {
 protected:
  void send(const char* reason) {
    collect_wire_Bye bye = collect_wire_Bye_init_zero;
    std::memcpy(bye.reason, reason, std::strlen(reason) + 1);
    parts_->sender.send(now_ms_, FrameType::kBye, collect_wire_Bye_fields, &bye);
  }
};

TEST_F(ControlSenderTest, FrameGoesOutAtOnce) {
  come_up();
  send("one");
  EXPECT_TRUE(link().control().out.is_empty());
  EXPECT_EQ(collector_.control.expect<wire::Bye>(FrameType::kBye).reason(), "one");
}

TEST_F(ControlSenderTest, WithoutAnOpenChannelNothingIsKept) {
  send("one");
  EXPECT_TRUE(link().control().out.is_empty());
  come_up();
  send("two");
  EXPECT_EQ(collector_.control.expect<wire::Bye>(FrameType::kBye).reason(), "two");
}

TEST_F(ControlSenderTest, CollectorThatLeavesNoRoomLosesTheLink) {
  come_up();
  SendBuffer& out = link().control().out;
  const collect_wire_Bye bye = collect_wire_Bye_init_zero;
  while (out.push(FrameType::kBye, collect_wire_Bye_fields, &bye)) {
  }
  send("one too many");
  EXPECT_FALSE(link().is_up());
  EXPECT_THAT(status(), HasSubstr("the collector does not read the control channel"));
}

class StatusReportsTest : public DrainPartsTest {
 protected:
  StatusReportsTest() {
    EXPECT_TRUE(shared_memory_init(false));
    counters_after_fork_in_child();
    EXPECT_TRUE(counters_init());
    come_up();
    reports().begin_link(now_ms_);
  }
  // The types of the frames that are due now; a Bye marks their end.
  std::vector<GotFrame> due() {
    std::vector<GotFrame> frames;
    reports().send_due(now_ms_);
    const collect_wire_Bye bye = collect_wire_Bye_init_zero;
    parts_->sender.send(now_ms_, FrameType::kBye, collect_wire_Bye_fields, &bye);
    EXPECT_TRUE(collector_.control.next_of(FrameType::kBye, &frames));
    return frames;
  }
  static std::vector<FrameType> types(const std::vector<GotFrame>& frames) {
    std::vector<FrameType> all;
    for (const GotFrame& frame : frames) all.push_back(frame.type);
    return all;
  }
  static wire::Counters counters(const std::vector<GotFrame>& frames) {
    wire::Counters counters;
    EXPECT_EQ(types(frames), std::vector<FrameType>{FrameType::kCounters});
    EXPECT_TRUE(!frames.empty() && counters.ParseFromString(frames[0].body));
    return counters;
  }
  StatusReports& reports() { return parts_->reports; }
};

TEST_F(StatusReportsTest, SendsHeartbeatAtOnceAndAfterHalfItsInterval) {
  const std::vector<FrameType> heartbeat{FrameType::kHeartbeat};
  EXPECT_EQ(types(due()), heartbeat);
  EXPECT_TRUE(due().empty());
  now_ms_ += link().heartbeat_ms() / 2 - 1;
  EXPECT_TRUE(due().empty());
  ++now_ms_;
  EXPECT_EQ(types(due()), heartbeat);
  cut();
  reports().send_due(now_ms_ + 60'000);  // no one is there
  come_up();
  reports().begin_link(now_ms_);
  EXPECT_EQ(types(due()), heartbeat);
}

TEST_F(StatusReportsTest, HeartbeatHasTheNumbersOfTheRecorder) {
  parts_->recording.ask();
  (void)set_detail(1, 0, nullptr);
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 100);
  fake::write_detail(stream, 20);
  fake::lose_index(stream, 7, 1);
  fake::lose(stream, Lane::kDetail, 2, 1);
  const auto frames = due();
  wire::Heartbeat heartbeat;
  ASSERT_EQ(frames.size(), 1u);
  ASSERT_TRUE(heartbeat.ParseFromString(frames[0].body));
  EXPECT_EQ(heartbeat.recorded(), 100u);
  EXPECT_EQ(heartbeat.lost(), 7u);
  EXPECT_EQ(heartbeat.detail_recorded(), 20u);
  EXPECT_EQ(heartbeat.detail_lost(), 2u);
  EXPECT_EQ(heartbeat.lost_without_stream(), 3u);
  EXPECT_EQ(heartbeat.threads(), 1u);
  EXPECT_EQ(heartbeat.buffer_used(), 4096u);
  EXPECT_EQ(heartbeat.buffer_bytes(), uint64_t{64} << 20);
  EXPECT_TRUE(heartbeat.is_recording());
  EXPECT_EQ(heartbeat.recording(), 1u);
  EXPECT_EQ(heartbeat.detail(), wire::DETAIL_ARMED);
  EXPECT_EQ(heartbeat.spooled_bytes(), 0u);
}

TEST_F(StatusReportsTest, SendsChangedCountersAtMostOncePerInterval) {
  (void)due();
  set_counter("depth", 7);
  wire::Counters sent = counters(due());
  ASSERT_EQ(sent.counters_size(), 1);
  EXPECT_EQ(sent.counters(0).name(), "depth");
  EXPECT_EQ(sent.counters(0).value(), 7);
  EXPECT_EQ(sent.counters(0).highest(), 7);
  set_counter("depth", 9);
  set_counter("depth", 8);
  set_counter("width", -1);
  now_ms_ += kCountersMs - 1;
  EXPECT_TRUE(due().empty());
  ++now_ms_;
  sent = counters(due());
  ASSERT_EQ(sent.counters_size(), 2);
  EXPECT_EQ(sent.counters(0).value(), 8);
  EXPECT_EQ(sent.counters(0).highest(), 9) << "changes add up";
  EXPECT_EQ(sent.counters(1).value(), -1);
  now_ms_ += kCountersMs;
  EXPECT_TRUE(due().empty()) << "nothing has changed";
}

TEST_F(StatusReportsTest, NewCollectorGetsEveryCounter) {
  (void)due();
  set_counter("depth", 7);
  (void)counters(due());
  cut();
  come_up();
  reports().begin_link(now_ms_);
  now_ms_ += kCountersMs;
  const auto frames = due();
  EXPECT_EQ(types(frames), (std::vector<FrameType>{FrameType::kHeartbeat, FrameType::kCounters}));
}

TEST_F(StatusReportsTest, CountersWaitForWhatTheCollectorHasNotRead) {
  (void)due();
  set_counter("depth", 7);
  collect_wire_Bye bye = collect_wire_Bye_init_zero;
  ASSERT_TRUE(link().control().out.push(FrameType::kBye, collect_wire_Bye_fields, &bye));
  reports().send_due(now_ms_);
  const auto unsent = take_frames(link().control().out);
  ASSERT_EQ(unsent.size(), 1u);
  EXPECT_EQ(unsent[0].type, FrameType::kBye);
  EXPECT_EQ(counters(due()).counters_size(), 1);
}

}  // namespace
}  // namespace collect::agent
