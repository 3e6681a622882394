// The control channel: commands, clock, heartbeats; and how recordings end.
#include <gmock/gmock.h>

#include <string_view>

#include "proto/wire/codec_rules.h"
#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DrainCommandTest : public DrainTest {
 protected:
  static wire::Command set_detail(wire::DetailMode mode) {
    wire::Command command;
    command.mutable_set_detail()->set_mode(mode);
    return command;
  }
};

TEST_F(DrainCommandTest, StopsARecordingAndStartsTheNext) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 100);
  collector.welcome_pair();
  wire::Command stop;
  stop.mutable_stop_recording();
  const auto stopped = collector.command(stop);
  EXPECT_TRUE(stopped.ok()) << stopped.error();
  EXPECT_EQ(stopped.recording(), 1u);
  EXPECT_FALSE(is_recording());

  wire::RecordingEnd end;
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.recording(), 1u);
  EXPECT_EQ(end.reason(), "command");
  EXPECT_EQ(end.lost_without_stream(), 3u);
  EXPECT_TRUE(collector.closed.contains(stream));
  expect_index(stream, 100);

  // Stop again, and start: the start waits until the first recording is sealed.
  EXPECT_TRUE(collector.command(stop).ok());
  wire::Command start;
  start.set_command_id(500);
  start.mutable_start_recording();
  collector.control.send(FrameType::kCommand, start);
  wire::Ack sealed = collector.ack();
  sealed.set_recording_ended(1);
  collector.control.send(FrameType::kAck, sealed);
  const auto started = collector.control.expect<wire::CommandResult>(FrameType::kCommandResult);
  EXPECT_EQ(started.command_id(), 500u);
  EXPECT_TRUE(started.ok());
  EXPECT_EQ(started.recording(), 2u);
  EXPECT_TRUE(fake::was_released(stream));

  // The second session knows nothing of the first: modules are sent again.
  const size_t modules_before = collector.modules.size();
  const uint32_t next = fake::add_stream(1, "main");
  fake::write_index(next, 3);
  wire::RecordingStart again;
  ASSERT_TRUE(again.ParseFromString(collector.take_until(FrameType::kRecordingStart).body));
  EXPECT_EQ(again.recording(), 2u);
  collector.take_records(next, 0, 3);
  EXPECT_EQ(collector.modules.size(), modules_before + 1);
  EXPECT_EQ(collector.opened[next].recording(), 2u);
  start.clear_command_id();
  const auto running = collector.command(start);
  EXPECT_TRUE(running.ok());
  EXPECT_EQ(running.recording(), 2u);
}

TEST_F(DrainCommandTest, IdleAgentRecordsNothingBeforeACommand) {
  Settings settings = connecting();
  settings.start_recording = false;
  ASSERT_TRUE(drain_start(settings));
  collector.welcome_pair();
  EXPECT_EQ(collector.data_hello.recording(), 0u);
  EXPECT_FALSE(collector.data_hello.is_recording());
  wire::Command start;
  start.mutable_start_recording();
  EXPECT_EQ(collector.command(start).recording(), 1u);
  EXPECT_EQ(collector.take()->type, FrameType::kRecordingStart);
}

TEST_F(DrainCommandTest, EachRecordingEndsAfterItsOwnTimeLimit) {
  Settings settings = connecting();
  settings.max_time_ns = 1;
  ASSERT_TRUE(drain_start(settings));
  fake::write_index(fake::add_stream(1, "main"), 100);
  collector.welcome_pair();
  wire::RecordingEnd end;
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.recording(), 1u);
  EXPECT_EQ(end.reason(), "time limit");
  EXPECT_FALSE(end.has_process_end());
  EXPECT_FALSE(is_recording());
  wire::Ack sealed = collector.ack();
  sealed.set_recording_ended(1);
  collector.control.send(FrameType::kAck, sealed);
  wire::Command start;
  start.mutable_start_recording();
  EXPECT_EQ(collector.command(start).recording(), 2u);
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.recording(), 2u);
  EXPECT_EQ(end.reason(), "time limit");
}

// As in a process that is started, or forked, when the time of the others is over.
TEST_F(DrainCommandTest, WhereTheTimeIsOverNoRecordingBegins) {
  Settings settings = connecting();
  settings.max_time_ns = 1;
  settings.max_time_since_ns = 1;
  ASSERT_TRUE(drain_start(settings));
  EXPECT_FALSE(is_recording());
  collector.welcome_pair();
  EXPECT_EQ(collector.data_hello.recording(), 0u);
}

TEST_F(DrainCommandTest, RecordingEndsAtItsSize) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 100);
  fake::reach_size();
  collector.welcome_pair();
  wire::RecordingEnd end;
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.reason(), "size limit");
  expect_index(stream, 100);
}

// The program may be over before the drain looks.
TEST_F(DrainCommandTest, SizeLimitRemainsTheReasonWhenTheProgramEnds) {
  ASSERT_TRUE(drain_start(connecting()));
  fake::write_index(fake::add_stream(1, "main"), 100);
  collector.welcome_pair();
  wire::RecordingEnd end;
  std::thread stopping([] {
    fake::reach_size();
    drain_stop(5000);
  });
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.reason(), "size limit");
  wire::Ack sealed = collector.ack();
  sealed.set_recording_ended(1);
  collector.control.send(FrameType::kAck, sealed);
  stopping.join();
}

// What no hook notices: many threads, each with less than a page.
TEST_F(DrainCommandTest, RecordingEndsWhereAllPagesTogetherHaveItsSize) {
  Settings settings = connecting();
  settings.max_bytes = 20 * 32;
  ASSERT_TRUE(drain_start(settings));
  const uint32_t one = fake::add_stream(1, "one");
  const uint32_t two = fake::add_stream(2, "two");
  fake::write_index(one, 10);
  fake::write_index(two, 10);
  collector.welcome_pair();
  wire::RecordingEnd end;
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.reason(), "size limit");
  expect_index(one, 10);
  expect_index(two, 10);
}

class StartFilterTest : public DrainCommandTest {
 protected:
  StartFilterTest() { collector.features = wire::kFeatureStartFilter; }
  Settings filtered() {
    Settings settings = connecting();
    std::string_view("parse_*;lex").copy(settings.only, kMaxFilterText);
    std::string_view("parse_char").copy(settings.except, kMaxFilterText);
    return settings;
  }
  static wire::Command filter(std::vector<uint64_t> ids) {
    wire::Command command;
    command.mutable_set_function_filter()->set_mode(wire::SetFunctionFilter::ONLY);
    command.mutable_set_function_filter()->set_last(true);
    for (const uint64_t id : ids) command.mutable_set_function_filter()->add_function_ids(id);
    return command;
  }
  // What the agent asks for, behind the modules.
  wire::WantFunctionFilter wanted(size_t modules) {
    std::vector<GotFrame> before;
    wire::WantFunctionFilter want;
    const auto frame = collector.control.next_of(FrameType::kWantFunctionFilter, &before);
    EXPECT_TRUE(frame && want.ParseFromString(frame->body));
    size_t sent = 0;
    for (const GotFrame& one : before) {
      wire::Modules some;
      if (one.type != FrameType::kModules || !some.ParseFromString(one.body)) continue;
      sent += static_cast<size_t>(some.modules_size());
    }
    EXPECT_EQ(sent, modules);
    return want;
  }
};

TEST_F(StartFilterTest, RecordingBeginsWhenTheFilterHasCome) {
  fake::add_module("/one");
  fake::add_module("/two");
  ASSERT_TRUE(drain_start(filtered()));
  EXPECT_FALSE(is_recording());
  collector.welcome_pair();
  EXPECT_EQ(collector.control_hello.features(), wire::kCodecFeatures | wire::kFeatureStartFilter);
  const wire::WantFunctionFilter want = wanted(3);
  EXPECT_EQ(want.only(), "parse_*;lex");
  EXPECT_EQ(want.except(), "parse_char");
  wire::Command start;
  start.mutable_start_recording();
  EXPECT_THAT(collector.command(start).error(), HasSubstr("has not come yet"));
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(collector.command(filter({3, 5})).ok());
  EXPECT_THAT(fake::function_filter(), ElementsAre(3, 5));
  EXPECT_TRUE(is_recording());
  drain_hold_for_filter();  // nothing holds any more
  fake::write_index(fake::add_stream(1, "main"), 3);
  wire::RecordingStart begun;
  ASSERT_TRUE(begun.ParseFromString(collector.take_until(FrameType::kRecordingStart).body));
  EXPECT_EQ(begun.recording(), 1u);
}

TEST_F(StartFilterTest, ItIsAskedForAgainOnTheNextLink) {
  ASSERT_TRUE(drain_start(filtered()));
  collector.welcome_pair();
  (void)wanted(1);
  collector.control.close();
  collector.data.close();
  collector.welcome_pair();
  (void)wanted(1);
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(collector.command(filter({3})).ok());
  EXPECT_TRUE(is_recording());
}

TEST_F(StartFilterTest, IdleAgentHasItsFilterAndStaysIdle) {
  Settings settings = filtered();
  settings.start_recording = false;
  ASSERT_TRUE(drain_start(settings));
  drain_hold_for_filter();  // an idle program is not held
  collector.welcome_pair();
  (void)wanted(1);
  EXPECT_TRUE(collector.command(filter({3})).ok());
  EXPECT_FALSE(is_recording());
  wire::Command start;
  start.mutable_start_recording();
  EXPECT_TRUE(collector.command(start).ok());
  EXPECT_TRUE(is_recording());
}

TEST_F(StartFilterTest, ProgramContinuesUnrecordedWithoutACollector) {
  ASSERT_TRUE(drain_start(filtered()));
  drain_hold_for_filter();
  EXPECT_FALSE(is_recording());
  collector.welcome_pair();
  (void)wanted(1);
  EXPECT_TRUE(collector.command(filter({3})).ok());
  fake::write_index(fake::add_stream(1, "main"), 3);
  wire::RecordingStart begun;
  ASSERT_TRUE(begun.ParseFromString(collector.take_until(FrameType::kRecordingStart).body));
  EXPECT_GT(begun.late_ns(), 0u) << "it is said that the beginning is missing";
}

TEST_F(StartFilterTest, CollectorThatMakesNoFilterIsNotAsked) {
  collector.features = 0;
  ASSERT_TRUE(drain_start(filtered()));
  collector.welcome_pair();
  EXPECT_TRUE(collector.command(set_detail(wire::DETAIL_OFF)).ok());
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(collector.command(filter({3})).ok()) << "someone sets one by hand";
  EXPECT_TRUE(is_recording());
}

TEST_F(DrainCommandTest, RecordingEndIsRepeatedUntilItIsAcknowledged) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  wire::Command stop;
  stop.mutable_stop_recording();
  ASSERT_TRUE(collector.command(stop).ok());
  collector.take_until(FrameType::kRecordingEnd);
  collector.data.close();
  collector.control.close();
  collector.welcome_pair(true);
  EXPECT_FALSE(collector.data_hello.is_recording());
  EXPECT_EQ(collector.data_hello.recording(), 1u);
  EXPECT_EQ(collector.take()->type, FrameType::kRecordingStart);
  collector.seal();
}

TEST_F(DrainCommandTest, TimedDetailReturnsToTheEarlierMode) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  ASSERT_TRUE(collector.command(set_detail(wire::DETAIL_ARMED)).ok());
  wire::Command on = set_detail(wire::DETAIL_ON);
  on.mutable_set_detail()->set_pre_roll_ns(1000);
  on.mutable_set_detail()->set_duration_ns(30'000'000);
  on.mutable_set_detail()->add_thread_ids(1);
  for (int i = 0; i < 4096; ++i) on.mutable_set_detail()->add_function_ids(1000000000u + i);
  const auto result = collector.command(on);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.pre_roll_records(), 5u);
  EXPECT_EQ(result.pre_roll_from_ns(), result.at_ns() - 1000);
  while (collector.detail_states.size() < 3) collector.take_until(FrameType::kDetailState);
  EXPECT_EQ(collector.detail_states[0].mode(), wire::DETAIL_ARMED);
  EXPECT_EQ(collector.detail_states[1].mode(), wire::DETAIL_ON);
  EXPECT_EQ(collector.detail_states[1].reason(), "command");
  EXPECT_EQ(collector.detail_states[1].at_ns(), result.at_ns());
  EXPECT_EQ(collector.detail_states[1].pre_roll_from_ns(), result.at_ns() - 1000);
  EXPECT_EQ(collector.detail_states[2].mode(), wire::DETAIL_ARMED);
  EXPECT_EQ(collector.detail_states[2].reason(), "duration");
  EXPECT_GE(collector.detail_states[2].at_ns(), result.at_ns() + 30'000'000);
  EXPECT_EQ(detail_mode(), 1u);
  EXPECT_EQ(fake::detail_filter_functions(), 0u);
}

TEST_F(DrainCommandTest, LimitedDetailReturnsToTheModeBeforeTheFirst) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  wire::Command armed = set_detail(wire::DETAIL_ARMED);
  armed.mutable_set_detail()->add_thread_ids(7);
  armed.mutable_set_detail()->add_function_ids(10);
  armed.mutable_set_detail()->add_function_ids(11);
  ASSERT_TRUE(collector.command(armed).ok());
  wire::Command on = set_detail(wire::DETAIL_ON);
  on.mutable_set_detail()->set_duration_ns(60'000'000'000);
  on.mutable_set_detail()->add_function_ids(12);
  ASSERT_TRUE(collector.command(on).ok());
  EXPECT_EQ(fake::detail_filter_threads(), 0u);
  EXPECT_EQ(fake::detail_filter_functions(), 1u);
  on.mutable_set_detail()->set_duration_ns(30'000'000);
  on.mutable_set_detail()->clear_function_ids();
  ASSERT_TRUE(collector.command(on).ok());
  while (collector.detail_states.size() < 4) collector.take_until(FrameType::kDetailState);
  EXPECT_EQ(collector.detail_states[3].reason(), "duration");
  EXPECT_EQ(collector.detail_states[3].mode(), wire::DETAIL_ARMED);
  EXPECT_EQ(detail_mode(), 1u);
  EXPECT_EQ(fake::detail_filter_threads(), 1u);
  EXPECT_EQ(fake::detail_filter_functions(), 2u);
}

TEST_F(DrainCommandTest, FiltersReachTheRecorder) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  wire::Command on = set_detail(wire::DETAIL_ON);
  for (uint32_t i = 0; i < wire::kMaxFilterThreads; ++i) on.mutable_set_detail()->add_thread_ids(i);
  for (uint32_t i = 0; i < wire::kMaxFilterFunctions; ++i) {
    on.mutable_set_detail()->add_function_ids(i);
  }
  EXPECT_TRUE(collector.command(on).ok());
  EXPECT_EQ(fake::detail_filter_threads(), wire::kMaxFilterThreads);
  EXPECT_EQ(fake::detail_filter_functions(), wire::kMaxFilterFunctions);
}

wire::Command filter_part(uint32_t part, uint64_t first, uint64_t count, bool last) {
  wire::Command command;
  wire::SetFunctionFilter& filter = *command.mutable_set_function_filter();
  filter.set_mode(wire::SetFunctionFilter::ONLY);
  for (uint64_t i = 0; i < count; ++i) filter.add_function_ids(first + i);
  filter.set_part(part);
  filter.set_last(last);
  return command;
}

// Sixteen full parts, which is the limit; it takes effect with the last.
TEST_F(DrainCommandTest, FunctionFilterInParts) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  constexpr uint32_t kParts = wire::kMaxFunctionFilter / wire::kMaxFilterFunctions;
  for (uint32_t part = 0; part < kParts; ++part) {
    const bool last = part + 1 == kParts;
    const auto result = collector.command(filter_part(part, uint64_t{part} * 4096, 4096, last));
    ASSERT_TRUE(result.ok()) << result.error();
    EXPECT_EQ(result.functions_patched(), last ? 7u : 0u);
    EXPECT_EQ(fake::function_filters(), last ? 1u : 0u);
  }
  EXPECT_EQ(fake::function_filter().size(), size_t{wire::kMaxFunctionFilter});
  EXPECT_EQ(fake::function_filter().back(), wire::kMaxFunctionFilter - 1);
}

TEST_F(DrainCommandTest, FunctionFilterThatIsNoneIsRefused) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  EXPECT_FALSE(collector.command(filter_part(1, 0, 3, true)).ok()) << "without its first part";
  ASSERT_TRUE(collector.command(filter_part(0, 0, 3, false)).ok());
  EXPECT_FALSE(collector.command(filter_part(2, 0, 3, true)).ok()) << "a part is left out";
  EXPECT_FALSE(collector.command(filter_part(1, 0, 3, true)).ok()) << "the first was forgotten";
  wire::Command unknown = filter_part(0, 0, 1, true);
  unknown.mutable_set_function_filter()->set_mode(static_cast<wire::SetFunctionFilter::Mode>(9));
  EXPECT_FALSE(collector.command(unknown).ok());
  for (uint32_t part = 0; part < 16; ++part) {
    ASSERT_TRUE(collector.command(filter_part(part, uint64_t{part} * 4096, 4096, false)).ok());
  }
  EXPECT_FALSE(collector.command(filter_part(16, 1u << 20, 1, true)).ok()) << "the limit plus one";
  EXPECT_EQ(fake::function_filters(), 0u);
  EXPECT_TRUE(collector.command(filter_part(0, 5, 2, true)).ok());
  EXPECT_EQ(fake::function_filter(), (std::vector<uint64_t>{5, 6}));
}

TEST_F(DrainCommandTest, HalfAFunctionFilterEndsWithItsLink) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  ASSERT_TRUE(collector.command(filter_part(0, 0, 3, false)).ok());
  collector.data.close();
  collector.control.close();
  collector.welcome_pair(true);
  EXPECT_FALSE(collector.command(filter_part(1, 3, 3, true)).ok());
  EXPECT_EQ(fake::function_filters(), 0u);
}

TEST_F(DrainCommandTest, ResendsDetailChangesUntilTheRecordingEnds) {
  Settings settings = connecting();
  ASSERT_TRUE(drain_start(settings));
  collector.welcome_pair();
  ASSERT_TRUE(collector.command(set_detail(wire::DETAIL_ON)).ok());
  collector.take_until(FrameType::kDetailState);
  collector.data.close();
  collector.control.close();
  collector.welcome_pair(true);
  collector.take_until(FrameType::kDetailState);
  EXPECT_EQ(collector.detail_states[0].at_ns(), collector.detail_states[1].at_ns());
  wire::Command stop;
  stop.mutable_stop_recording();
  ASSERT_TRUE(collector.command(stop).ok());
  collector.take_until(FrameType::kDetailState);
  EXPECT_EQ(collector.detail_states[2].mode(), wire::DETAIL_OFF);
  EXPECT_EQ(collector.detail_states[2].reason(), "recording ended");
  EXPECT_EQ(detail_mode(), 0u);
}

TEST_F(DrainCommandTest, FlushIsAnsweredWhenItsRecordsAreStored) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  fake::write_index(stream, 321);
  wire::Command flush;
  flush.set_command_id(77);
  flush.mutable_flush();
  collector.control.send(FrameType::kCommand, flush);
  collector.take_records(stream, 0, 321);
  expect_index(stream, 321);
  // Another command is answered before it: it waits for the Ack.
  wire::Command off;
  off.mutable_set_detail()->set_mode(wire::DETAIL_OFF);
  EXPECT_TRUE(collector.command(off).ok());
  wire::Ack part = collector.ack();
  part.mutable_positions(0)->set_index_next(320);
  collector.control.send(FrameType::kAck, part);
  EXPECT_TRUE(collector.command(off).ok());
  collector.send_ack();
  const auto result = collector.control.expect<wire::CommandResult>(FrameType::kCommandResult);
  EXPECT_EQ(result.command_id(), 77u);
  EXPECT_TRUE(result.ok());
}

TEST_F(DrainCommandTest, UnknownCommandsAndModesGetAnError) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  const auto empty = collector.command(wire::Command());
  EXPECT_FALSE(empty.ok());
  EXPECT_FALSE(empty.error().empty());
  EXPECT_FALSE(collector.command(set_detail(static_cast<wire::DetailMode>(77))).ok());
  // A frame of a later version is skipped.
  collector.control.send_frame(static_cast<FrameType>(200), "anything");
  EXPECT_TRUE(collector.command(set_detail(wire::DETAIL_OFF)).ok());
}

TEST_F(DrainCommandTest, OversizedCommandEndsTheLinkWithAReason) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  wire::Command on = set_detail(wire::DETAIL_ON);
  for (uint32_t i = 0; i <= wire::kMaxFilterThreads; ++i) {
    on.mutable_set_detail()->add_thread_ids(i);
  }
  on.set_command_id(1);
  collector.control.send(FrameType::kCommand, on);
  const auto refuse = collector.control.expect<wire::Refuse>(FrameType::kRefuse);
  EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL);
  EXPECT_TRUE(collector.data.ends());
  collector.welcome_pair(true);  // and the agent comes back
}

TEST_F(DrainCommandTest, ClockProbesAreAnsweredWithBothTimes) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  for (uint32_t i = 0; i < 16; ++i) {
    wire::ClockProbe probe;
    probe.set_burst(3);
    probe.set_number(i);
    probe.set_t1_ns(now_ns());
    collector.control.send(FrameType::kClockProbe, probe);
    const auto reply = collector.control.expect<wire::ClockReply>(FrameType::kClockReply);
    const uint64_t t4 = now_ns();
    EXPECT_EQ(reply.burst(), 3u);
    EXPECT_EQ(reply.number(), i);
    EXPECT_EQ(reply.t1_ns(), probe.t1_ns());
    // The fake's device clock is this machine's.
    EXPECT_GE(reply.t2_ns(), probe.t1_ns());
    EXPECT_GE(reply.t3_ns(), reply.t2_ns());
    EXPECT_LE(reply.t3_ns(), t4);
  }
}

TEST_F(DrainCommandTest, HeartbeatsCarryTheCounters) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 42);
  fake::lose_index(stream, 2, kLostRingFull);
  fake::write_detail(stream, 7);
  fake::lose(stream, Lane::kDetail, 4, kLostRingFull);
  (void)agent::set_detail(2, 0, nullptr);
  collector.welcome_pair();
  const auto heartbeat = collector.control.expect<wire::Heartbeat>(FrameType::kHeartbeat);
  EXPECT_EQ(heartbeat.detail_recorded(), 7u);
  EXPECT_EQ(heartbeat.detail_lost(), 4u);
  EXPECT_EQ(heartbeat.detail(), wire::DETAIL_ON);
  EXPECT_EQ(heartbeat.buffer_used(), 4096u);
  EXPECT_EQ(heartbeat.lost_without_stream(), 3u);
  EXPECT_EQ(heartbeat.spooled_bytes(), 0u);
  EXPECT_EQ(heartbeat.recorded(), 42u);
  EXPECT_EQ(heartbeat.lost(), 2u);
  EXPECT_EQ(heartbeat.threads(), 1u);
  EXPECT_EQ(heartbeat.recording(), 1u);
  EXPECT_TRUE(heartbeat.is_recording());
  EXPECT_EQ(heartbeat.buffer_bytes(), 64u << 20);
}

TEST_F(DrainCommandTest, SilentCollectorIsTakenForDead) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair(false, 50);
  EXPECT_TRUE(drain_connected() || eventually([] { return drain_connected(); }));
  Peer silent_control = std::move(collector.control);
  Peer silent_data = std::move(collector.data);
  collector.welcome_pair(false);  // the agent has come again by itself
  EXPECT_TRUE(silent_control.ends());
}

TEST_F(DrainCommandTest, StopShipsTheRestAndSaysGoodbye) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 5000);
  fake::write_detail(stream, 100);
  collector.welcome_pair();
  std::thread stopping([] { drain_stop(60000); });
  collector.take_until(FrameType::kStreamClose);
  EXPECT_EQ(collector.closed[stream].detail_count(), 100u);
  expect_index(stream, 5000);
  collector.seal();
  const auto bye = collector.control.expect<wire::Bye>(FrameType::kBye);
  EXPECT_EQ(bye.reason(), "exit");
  EXPECT_FALSE(bye.will_return());
  stopping.join();
  EXPECT_TRUE(collector.data.ends());
  EXPECT_FALSE(drain_connected());
  EXPECT_EQ(fake::streams_held(), 0u);
  EXPECT_FALSE(fake::waiting_is_allowed());
}

TEST_F(DrainCommandTest, RecordingEndHasTheExitCode) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  drain_note_exit(200);
  std::thread stopping([] { drain_stop(60000); });
  wire::RecordingEnd end;
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(end.reason(), "exit");
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
  EXPECT_EQ(end.process_end().exit_code(), 200);
  wire::Ack sealed = collector.ack();
  sealed.set_recording_ended(1);
  collector.control.send(FrameType::kAck, sealed);
  stopping.join();
}

TEST_F(DrainCommandTest, StopGivesUpOnACollectorThatNeverSeals) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  ASSERT_TRUE(eventually([] { return drain_connected(); }));
  drain_stop(100);
  // The last word comes all the same.
  EXPECT_FALSE(collector.control.expect<wire::Bye>(FrameType::kBye).will_return());
}

TEST_F(DrainCommandTest, CollectorMayEndARecordingItself) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  collector.welcome_pair();
  collector.take_records(stream, 0, 10);
  wire::Ack ended;
  ended.set_recording_ended(1);
  collector.control.send(FrameType::kAck, ended);
  EXPECT_TRUE(eventually([&] { return fake::was_released(stream); }));
  EXPECT_FALSE(is_recording());
}

}  // namespace
}  // namespace collect::agent
