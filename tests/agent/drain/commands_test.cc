// Commands, one by one: what each does, and what is answered and when.
#include "agent/drain/commands.h"

#include <gmock/gmock.h>

#include "tests/agent/drain/drain_parts.h"

namespace collect::agent {
namespace {

using testing::ElementsAre;
using wire::FrameType;
using Phase = RecordingState::Phase;

class CommandsTest : public DrainPartsTest {
 protected:
  CommandsTest() { come_up(); }

  void give(wire::Command command, uint64_t id) {
    command.set_command_id(id);
    const std::string body = command.SerializeAsString();
    EXPECT_TRUE(commands().take(now_ms_, bytes_of(body)));
  }
  // The answer that comes next, which is to be the one to `id`.
  wire::CommandResult answer(uint64_t id) {
    auto result = collector_.control.expect<wire::CommandResult>(FrameType::kCommandResult);
    EXPECT_EQ(result.command_id(), id);
    EXPECT_EQ(result.ok(), result.error().empty());
    return result;
  }
  wire::CommandResult ask(const wire::Command& command) {
    give(command, ++last_id_);
    return answer(last_id_);
  }
  // Nothing is on its way: what comes next is the answer to another command.
  void expect_no_answer() { EXPECT_EQ(ask(wire::Command()).error(), kUnknown); }

  static Bytes bytes_of(const std::string& body) {
    return Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size());
  }
  static wire::Command start() {
    wire::Command command;
    command.mutable_start_recording();
    return command;
  }
  static wire::Command stop() {
    wire::Command command;
    command.mutable_stop_recording();
    return command;
  }
  static wire::Command flush() {
    wire::Command command;
    command.mutable_flush();
    return command;
  }
  static wire::Command filter(uint32_t part, bool last, const std::vector<uint64_t>& ids) {
    wire::Command command;
    wire::SetFunctionFilter& wanted = *command.mutable_set_function_filter();
    wanted.set_mode(wire::SetFunctionFilter::ONLY);
    wanted.set_part(part);
    wanted.set_last(last);
    for (const uint64_t id : ids) wanted.add_function_ids(id);
    return command;
  }
  Commands& commands() { return parts_->commands; }
  RecordingState& recording() { return parts_->recording; }

  static constexpr char kUnknown[] = "this agent does not know the command";
  uint64_t last_id_ = 1000;
};

TEST_F(CommandsTest, DoesNotAnswerUnreadableCommands) {
  EXPECT_FALSE(commands().take(now_ms_, bytes_of("\xff\xff\xff")));
  wire::Command too_long;
  for (uint32_t i = 0; i <= wire::kMaxFilterThreads; ++i) {
    too_long.mutable_set_detail()->add_thread_ids(i);
  }
  EXPECT_FALSE(commands().take(now_ms_, bytes_of(too_long.SerializeAsString())));
  EXPECT_EQ(ask(wire::Command()).error(), kUnknown);
}

TEST_F(CommandsTest, StartReturnsTimeAndNumberOfTheRecording) {
  const auto first = ask(start());
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(first.recording(), 1u);
  EXPECT_EQ(first.at_ns(), recording_start_ns());
  EXPECT_TRUE(recording().is_running());
  const auto again = ask(start());
  EXPECT_TRUE(again.ok()) << "one runs: that is what was asked for";
  EXPECT_EQ(again.recording(), 1u);
}

TEST_F(CommandsTest, StopSucceedsWithAndWithoutARecording) {
  EXPECT_TRUE(ask(stop()).ok());
  EXPECT_EQ(recording().phase(), Phase::kIdle);
  EXPECT_TRUE(ask(start()).ok());
  EXPECT_TRUE(ask(stop()).ok());
  EXPECT_EQ(recording().phase(), Phase::kEnding);
  EXPECT_EQ(shipped_end().reason(), "command");
  EXPECT_TRUE(ask(stop()).ok());
}

TEST_F(CommandsTest, StartWaitsUntilTheLastRecordingIsOver) {
  EXPECT_TRUE(ask(start()).ok());
  EXPECT_TRUE(ask(stop()).ok());
  give(start(), 7);
  EXPECT_EQ(ask(start()).error(), "a recording is about to start already");
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  EXPECT_FALSE(is_recording());
  commands().recording_is_over(now_ms_);
  EXPECT_TRUE(recording().is_running());
  const auto begun = answer(7);
  EXPECT_TRUE(begun.ok());
  EXPECT_EQ(begun.recording(), 2u);
  EXPECT_EQ(begun.at_ns(), recording_start_ns());
  // No one waits any more.
  ASSERT_TRUE(recording().collector_ended(now_ms_, 2));
  commands().recording_is_over(now_ms_);
  EXPECT_FALSE(is_recording());
  expect_no_answer();
}

TEST_F(CommandsTest, StopTakesAStartBackThatWaits) {
  EXPECT_TRUE(ask(start()).ok());
  EXPECT_TRUE(ask(stop()).ok());
  give(start(), 7);
  give(stop(), 8);
  EXPECT_EQ(answer(7).error(), "the recording was stopped before it began");
  EXPECT_TRUE(answer(8).ok());
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  commands().recording_is_over(now_ms_);
  EXPECT_FALSE(is_recording());
}

TEST_F(CommandsTest, RefusesStartOnceTheDrainEnds) {
  EXPECT_TRUE(ask(start()).ok());
  EXPECT_TRUE(ask(stop()).ok());
  give(start(), 7);
  commands().stop();
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  commands().recording_is_over(now_ms_);
  EXPECT_FALSE(is_recording());
  EXPECT_EQ(ask(start()).error(), "the agent is being stopped");
  EXPECT_FALSE(is_recording());
}

TEST_F(CommandsTest, StartWithoutItsFilterIsRefused) {
  std::memcpy(settings().only, "parse_*", 8);
  parts_->start_filter.prepare();
  EXPECT_EQ(ask(start()).error(),
            "the function filter that the program was started with has not come yet");
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(ask(filter(0, true, {3})).ok());
  EXPECT_TRUE(is_recording()) << "the settings ask for one";
}

TEST_F(CommandsTest, FlushesAreAnsweredTogetherWhenTheirPagesAreStored) {
  EXPECT_TRUE(ask(flush()).ok()) << "nothing is recorded";
  EXPECT_TRUE(ask(start()).ok());
  for (uint32_t id = 1; id <= kMaxFlushes; ++id) give(flush(), id);
  EXPECT_EQ(ask(flush()).error(), "too many flushes are waiting");
  commands().flush_is_done(now_ms_);
  for (uint32_t id = 1; id <= kMaxFlushes; ++id) EXPECT_TRUE(answer(id).ok());
  commands().flush_is_done(now_ms_);
  expect_no_answer();
}

TEST_F(CommandsTest, OnAnotherLinkNoFlushIsAnswered) {
  EXPECT_TRUE(ask(start()).ok());
  give(flush(), 1);
  commands().link_is_down();
  commands().flush_is_done(now_ms_);
  expect_no_answer();
}

TEST_F(CommandsTest, DetailIsAnsweredWithItsPreRoll) {
  wire::Command command;
  command.mutable_set_detail()->set_mode(wire::DETAIL_ON);
  command.mutable_set_detail()->set_pre_roll_ns(500);
  EXPECT_TRUE(ask(start()).ok());
  const auto done = ask(command);
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(done.at_ns() - done.pre_roll_from_ns(), 500u);
  EXPECT_EQ(done.pre_roll_records(), 5u);
  EXPECT_EQ(detail_mode(), static_cast<uint32_t>(wire::DETAIL_ON));
  command.mutable_set_detail()->set_mode(static_cast<wire::DetailMode>(3));
  EXPECT_EQ(ask(command).error(), "this agent does not know the detail mode");
  EXPECT_EQ(detail_mode(), static_cast<uint32_t>(wire::DETAIL_ON));
}

TEST_F(CommandsTest, FunctionFilterHoldsWhenItsLastPartHasCome) {
  EXPECT_TRUE(ask(filter(0, false, {1, 2})).ok());
  EXPECT_EQ(fake::function_filters(), 0u);
  const auto done = ask(filter(1, true, {3}));
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(done.functions_patched(), 7u);
  EXPECT_THAT(fake::function_filter(), ElementsAre(1, 2, 3));
  EXPECT_EQ(fake::function_filters(), 1u);
}

TEST_F(CommandsTest, RefusesFunctionsSwitchedOffWithinAnUnfinishedFilter) {
  wire::Command less = filter(0, true, {5});
  less.mutable_set_function_filter()->set_mode(wire::SetFunctionFilter::LESS);
  EXPECT_TRUE(ask(less).ok());
  EXPECT_THAT(fake::function_filter(), ElementsAre(5));
  EXPECT_TRUE(ask(filter(0, false, {1, 2})).ok());
  EXPECT_EQ(ask(less).error(), "another function filter is being set");
  EXPECT_TRUE(ask(filter(1, true, {3})).ok());
  EXPECT_THAT(fake::function_filter(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(ask(less).ok());
}

TEST_F(CommandsTest, RefusesFunctionFilterPartsOutOfOrder) {
  const std::string missing = "a part of the function filter is missing";
  EXPECT_EQ(ask(filter(1, true, {3})).error(), missing);
  EXPECT_TRUE(ask(filter(0, false, {1})).ok());
  EXPECT_EQ(ask(filter(2, true, {3})).error(), missing);
  EXPECT_EQ(ask(filter(1, true, {3})).error(), missing) << "those before are forgotten";
  EXPECT_TRUE(ask(filter(0, false, {1})).ok());
  commands().control_is_closed();
  EXPECT_EQ(ask(filter(1, true, {3})).error(), missing);
  wire::Command unknown = filter(0, true, {1});
  unknown.mutable_set_function_filter()->set_mode(static_cast<wire::SetFunctionFilter::Mode>(4));
  EXPECT_EQ(ask(unknown).error(), "this agent does not know the filter mode");
  EXPECT_EQ(fake::function_filters(), 0u);
}

TEST_F(CommandsTest, BufferingIsAnsweredWithWhyNot) {
  set_full_policy(FullPolicy::kDrop);
  wire::Command command;
  command.mutable_set_buffering()->set_when_full(wire::SetBuffering::OVERWRITE);
  EXPECT_TRUE(ask(command).ok());
  EXPECT_TRUE(ask(start()).ok());
  command.mutable_set_buffering()->set_when_full(wire::SetBuffering::DROP);
  const std::string refused = "overwrite can be chosen or left only while nothing is recorded";
  EXPECT_EQ(ask(command).error(), refused);
  EXPECT_TRUE(ask(stop()).ok());
  EXPECT_EQ(ask(command).error(), refused) << "the recording is not over yet";
  ASSERT_TRUE(recording().collector_ended(now_ms_, 1));
  EXPECT_TRUE(ask(command).ok());
  EXPECT_EQ(full_policy(), FullPolicy::kDrop);
}

}  // namespace
}  // namespace collect::agent
