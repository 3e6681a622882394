// Commands that change what a full ring does, and the program's counters.
#include <gmock/gmock.h>

#include "agent/ring/counters.h"
#include "agent/shared_memory.h"
#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

using testing::HasSubstr;

class DrainBufferingTest : public DrainTest {};

TEST_F(DrainBufferingTest, CommandChangesFullRingPolicy) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  wire::Command command;
  wire::SetBuffering& wanted = *command.mutable_set_buffering();
  wanted.set_when_full(wire::SetBuffering::WAIT);
  EXPECT_TRUE(collector.command(command).ok());
  EXPECT_EQ(full_policy(), FullPolicy::kWait);
  wanted.set_when_full(wire::SetBuffering::UNCHANGED);
  EXPECT_TRUE(collector.command(command).ok());
  EXPECT_EQ(full_policy(), FullPolicy::kWait);
  wanted.set_when_full(wire::SetBuffering::DROP);
  EXPECT_TRUE(collector.command(command).ok());
  EXPECT_EQ(full_policy(), FullPolicy::kDrop);
  command.mutable_set_buffering()->set_when_full(static_cast<wire::SetBuffering::WhenFull>(9));
  EXPECT_THAT(collector.command(command).error(), HasSubstr("does not know"));
  EXPECT_EQ(full_policy(), FullPolicy::kDrop);
}

// Both sides of a lane cut pages out of it then, and have to agree on that.
TEST_F(DrainBufferingTest, OverwriteChangesOnlyWhileNotRecording) {
  Settings settings = connecting();
  settings.start_recording = false;
  ASSERT_TRUE(drain_start(settings));
  collector.welcome_pair();
  wire::Command overwrite;
  overwrite.mutable_set_buffering()->set_when_full(wire::SetBuffering::OVERWRITE);
  EXPECT_TRUE(collector.command(overwrite).ok());
  EXPECT_EQ(full_policy(), FullPolicy::kOverwrite);
  wire::Command start;
  start.mutable_start_recording();
  ASSERT_TRUE(collector.command(start).ok());
  EXPECT_TRUE(collector.command(overwrite).ok()) << "it is no change";
  wire::Command drop;
  drop.mutable_set_buffering()->set_when_full(wire::SetBuffering::DROP);
  EXPECT_THAT(collector.command(drop).error(), HasSubstr("only while nothing is recorded"));
  EXPECT_EQ(full_policy(), FullPolicy::kOverwrite);
}

TEST_F(DrainBufferingTest, SendsChangedCountersAndAllToANewCollector) {
  ASSERT_TRUE(shared_memory_init(false));
  ASSERT_TRUE(counters_init());
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  set_counter("queue_depth", 7);
  auto counters = collector.control.expect<wire::Counters>(FrameType::kCounters);
  ASSERT_EQ(counters.counters_size(), 1);
  EXPECT_EQ(counters.counters(0).name(), "queue_depth");
  EXPECT_EQ(counters.counters(0).value(), 7);
  EXPECT_EQ(counters.counters(0).highest(), 7);
  EXPECT_GT(counters.at_ns(), 0u);
  collector.control.close();
  collector.data.close();
  collector.welcome_pair(true);
  counters = collector.control.expect<wire::Counters>(FrameType::kCounters);
  ASSERT_EQ(counters.counters_size(), 1);
  EXPECT_EQ(counters.counters(0).value(), 7);
}

}  // namespace
}  // namespace collect::agent
