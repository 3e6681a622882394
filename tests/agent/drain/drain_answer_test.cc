// What the agent answers, and to what it gives no answer but a reason.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "agent/drain/drain_thread.h"
#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

class DrainAnswerTest : public DrainTest {};

TEST_F(DrainAnswerTest, HeartbeatsTellWhatWentOverTheLink) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 1000);
  collector.welcome_pair(false, 3000);
  collector.take_records(stream, 0, 1000);
  wire::Heartbeat heartbeat;
  for (int i = 0; i < 600 && heartbeat.link_raw_bytes() == 0; ++i) {
    heartbeat = collector.control.expect<wire::Heartbeat>(FrameType::kHeartbeat);
  }
  EXPECT_EQ(heartbeat.link_raw_bytes(), 32'000u);
  EXPECT_EQ(heartbeat.link_sent_bytes(), 32'000u) << "they went raw";
  collector.data.close();
  collector.control.close();
  collector.features = wire::kFeatureColumns;
  collector.welcome_pair(true, 3000);
  fake::write_index(stream, 2000);
  collector.take_records(stream, 0, 3000);
  // Those that come before both channels are welcomed are of the link before.
  for (int i = 0; i < 600 && heartbeat.link_raw_bytes() != 64'000; ++i) {
    heartbeat = collector.control.expect<wire::Heartbeat>(FrameType::kHeartbeat);
  }
  EXPECT_EQ(heartbeat.link_raw_bytes(), 64'000u) << "on this link";
  EXPECT_GT(heartbeat.link_sent_bytes(), 0u);
  EXPECT_LT(heartbeat.link_sent_bytes(), 32'000u);
}

// The program's own last error is none of the agent's business.
TEST_F(DrainAnswerTest, StartHoldAndStopLeaveErrnoAlone) {
  errno = 77;
  ASSERT_TRUE(drain_start(connecting()));
  EXPECT_EQ(errno, 77);
  drain_hold_for_filter();
  EXPECT_EQ(errno, 77);
  drain_stop(0);
  EXPECT_EQ(errno, 77);
  Settings nowhere = connecting();
  set_address(nowhere, "nowhere");
  EXPECT_FALSE(drain_start(nowhere));
  EXPECT_EQ(errno, 77);
}

// Who looks at the program's threads sees whose that one is.
TEST_F(DrainAnswerTest, ItsThreadHasAName) {
  ASSERT_TRUE(drain_start(connecting()));
  EXPECT_TRUE(eventually([] {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(task.path() / "comm");
      std::string name;
      if (std::getline(file, name) && name == "collect-drain") return true;
    }
    return false;
  }));
}

TEST_F(DrainAnswerTest, UnreadableFramesEndTheLink) {
  struct Case {
    FrameType type;
    const char* reason;
  };
  for (const Case& one :
       {Case{FrameType::kClockProbe, "a ClockProbe that can't be read"},
        {FrameType::kAck, "an Ack that can't be read"},
        {FrameType::kBye, "a Bye that can't be read"},
        {FrameType::kCommand,
         "a Command that can't be read, or is longer than the protocol allows"},
        {FrameType::kModules, "not what a collector says on the control channel"},
        {FrameType::kHello, "not what a collector says on the control channel"}}) {
    ASSERT_TRUE(drain_start(connecting()));
    collector.welcome_pair();
    collector.control.send_frame(one.type, std::string("\xff\xff\xff", 3));
    const auto refuse = collector.control.expect<wire::Refuse>(FrameType::kRefuse);
    EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL) << one.reason;
    EXPECT_EQ(refuse.reason(), one.reason);
    EXPECT_TRUE(refuse.retry());
    collector.control.close();
    collector.data.close();
    drain_stop(0);
  }
}

TEST_F(DrainAnswerTest, RefusesOtherFramesOnTheDataChannel) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  collector.data.send_frame(static_cast<FrameType>(200), "of a later version");
  collector.data.send(FrameType::kHeartbeat, wire::Heartbeat());
  const auto refuse = collector.data.expect<wire::Refuse>(FrameType::kRefuse);
  EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL);
  EXPECT_EQ(refuse.reason(), "not what a collector says on the data channel");
  collector.welcome_pair(true);
  wire::Refuse limit;
  limit.set_code(wire::REFUSE_LIMIT);
  limit.set_reason("the disk is full");
  limit.set_retry(true);
  collector.data.send(FrameType::kRefuse, limit);
  EXPECT_TRUE(collector.control.ends());
  EXPECT_TRUE(eventually([] {
    return std::string(drain_status()) ==
           "refused by the collector: the disk is full; trying again later";
  }));
  collector.welcome_pair(true);
  EXPECT_TRUE(is_recording());
}

TEST_F(DrainAnswerTest, FlushesHaveTheirNumber) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  collector.welcome_pair();
  collector.take_records(stream, 0, 10);
  wire::Command flush;
  flush.mutable_flush();
  for (uint32_t i = 1; i <= kMaxFlushes; ++i) {
    flush.set_command_id(100 + i);
    collector.control.send(FrameType::kCommand, flush);
  }
  const auto refused = collector.command(flush);
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), "too many flushes are waiting");
  collector.send_ack();
  for (uint32_t i = 1; i <= kMaxFlushes; ++i) {
    const auto result = collector.control.expect<wire::CommandResult>(FrameType::kCommandResult);
    EXPECT_EQ(result.command_id(), 100 + i);
    EXPECT_TRUE(result.ok());
    EXPECT_GT(result.at_ns(), 0u);
    EXPECT_EQ(result.recording(), 1u);
  }
  // Where nothing is recorded there is nothing to wait for.
  wire::Command stop;
  stop.mutable_stop_recording();
  ASSERT_TRUE(collector.command(stop).ok());
  collector.seal();
  EXPECT_TRUE(eventually([&] { return fake::was_released(stream); }));
  EXPECT_TRUE(collector.command(flush).ok());
}

TEST_F(DrainAnswerTest, OneStartWaitsForTheEndOfTheLast) {
  ASSERT_TRUE(drain_start(connecting()));
  fake::write_index(fake::add_stream(1, "main"), 10);
  collector.welcome_pair();
  wire::Command stop;
  stop.mutable_stop_recording();
  ASSERT_TRUE(collector.command(stop).ok());
  wire::Command start;
  start.set_command_id(500);
  start.mutable_start_recording();
  collector.control.send(FrameType::kCommand, start);
  EXPECT_EQ(collector.command(start).error(), "a recording is about to start already");
  // A stop takes it back.
  stop.set_command_id(600);
  collector.control.send(FrameType::kCommand, stop);
  auto result = collector.control.expect<wire::CommandResult>(FrameType::kCommandResult);
  EXPECT_EQ(result.command_id(), 500u);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error(), "the recording was stopped before it began");
  result = collector.control.expect<wire::CommandResult>(FrameType::kCommandResult);
  EXPECT_EQ(result.command_id(), 600u);
  EXPECT_TRUE(result.ok());
  collector.seal();
  EXPECT_EQ(collector.command(start).recording(), 2u);
}

}  // namespace
}  // namespace collect::agent
