// Commands that agents receive by request, part after part, and the answers.
#include <gmock/gmock.h>

#include "proto/wire/layout.h"
#include "tests/daemon/collector/agent_commands_fixture.h"

namespace collect::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// How much of a pre-roll there is, is what its ring still held.
TEST_F(CollectorOrdersTest, WarnsOfAPreRollShorterThanRequested) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  begin(agent, 1, 10);
  shown("app", api::AGENT_STATE_RECORDING);
  control::DetailCommand command;
  const auto warnings = [&](uint64_t records, uint64_t from_ns) -> std::vector<std::string> {
    EXPECT_TRUE(detail({.mode = api::DETAIL_MODE_ARMED, .target = {}}).ok());
    shown([](const api::Agent& one) { return one.detail() == api::DETAIL_MODE_ARMED; });
    answer_with([=](const wire::Command&, wire::CommandResult& result) {
      result.set_at_ns(10'000'000'000);
      result.set_pre_roll_records(records);
      result.set_pre_roll_from_ns(from_ns);
    });
    command.mode = api::DETAIL_MODE_ON;
    command.pre_roll_ns = 5'000'000'000;
    const auto outcome = detail(command);
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->detail(), api::DETAIL_MODE_ON);
    shown([](const api::Agent& one) { return one.detail() == api::DETAIL_MODE_ON; });
    return {outcome->warnings().begin(), outcome->warnings().end()};
  };
  EXPECT_THAT(warnings(0, 0),
              ElementsAre("there is no pre-roll: nothing was kept since ArmDetail"));
  EXPECT_THAT(warnings(1, 5'000'000'000), IsEmpty()) << "as long as it was asked for";
  EXPECT_THAT(warnings(1, 4'000'000'000), IsEmpty());
  EXPECT_THAT(warnings(1, 7'500'000'000),
              ElementsAre(HasSubstr("goes back 2.5 s of the 5 s that")));
  EXPECT_THAT(warnings(1, 11'000'000'000), ElementsAre(HasSubstr("goes back 0 s of the 5 s that")));
}

TEST_F(CollectorOrdersTest, LimitsDetailToTheThreadsAnAgentHolds) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  ASSERT_TRUE(agent.start_recording(1));
  control::DetailCommand command;
  command.mode = api::DETAIL_MODE_ON;
  for (uint32_t at = 1; at <= wire::kMaxFilterThreads; ++at) {
    ASSERT_TRUE(agent.open_stream(at, 1'000 + at));
    command.threads.push_back(std::to_string(1'000 + at));
  }
  ASSERT_TRUE(agent.send_events(wire::kMaxFilterThreads, 0, 2));
  ASSERT_TRUE(agent.wait_stored(wire::kMaxFilterThreads, 2));
  const auto all = detail(command);
  ASSERT_TRUE(all.ok()) << to_string(all.error());
  EXPECT_EQ(all->threads_matched(), wire::kMaxFilterThreads);
  ASSERT_TRUE(agent.open_stream(5'000, 5'000));
  ASSERT_TRUE(agent.send_events(5'000, 0, 2));
  ASSERT_TRUE(agent.wait_stored(5'000, 2));
  command.threads.push_back("5000");
  const auto more = detail(command);
  EXPECT_EQ(more.code(), Code::kLimit);
  EXPECT_THAT(more.error().message, HasSubstr("at most 256: narrow the patterns"));
  EXPECT_THAT(received(), SizeIs(1));
}

// A command holds 4,096 ids; each part goes when the one before has been taken.
TEST_F(CollectorOrdersTest, FilterGoesInParts) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  begin(agent, 1, 10);
  shown("app", api::AGENT_STATE_RECORDING);
  api::SetFunctionFilterRequest request;
  const auto add = [&request](uint32_t id) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%x", id);
    request.add_only(text);
  };
  for (uint32_t at = 1; at <= wire::kMaxFilterFunctions; ++at) add(at);
  answer_with([](const wire::Command&, wire::CommandResult& result) {
    result.set_at_ns(77);
    result.set_functions_patched(9);
  });
  auto outcome = filter(request);
  ASSERT_TRUE(outcome.ok()) << to_string(outcome.error());
  EXPECT_EQ(outcome->functions_matched(), wire::kMaxFilterFunctions);
  EXPECT_EQ(outcome->functions_patched(), 9u);
  EXPECT_EQ(outcome->effect_time_ns(), 77u);
  ASSERT_THAT(received(), SizeIs(1));
  EXPECT_TRUE(received()[0].set_function_filter().last());
  EXPECT_EQ(received()[0].set_function_filter().mode(), wire::SetFunctionFilter::ONLY);

  add(wire::kMaxFilterFunctions + 1);
  outcome = filter(request);
  ASSERT_TRUE(outcome.ok()) << to_string(outcome.error());
  EXPECT_EQ(outcome->functions_matched(), wire::kMaxFilterFunctions + 1);
  ASSERT_THAT(received(), SizeIs(3));
  const wire::SetFunctionFilter first = received()[1].set_function_filter();
  const wire::SetFunctionFilter second = received()[2].set_function_filter();
  EXPECT_EQ(first.part(), 0u);
  EXPECT_FALSE(first.last());
  EXPECT_EQ(first.function_ids_size(), static_cast<int>(wire::kMaxFilterFunctions));
  EXPECT_EQ(second.part(), 1u);
  EXPECT_TRUE(second.last());
  EXPECT_THAT(second.function_ids(), ElementsAre(wire::kMaxFilterFunctions + 1));

  // Of parts that are not taken, the next is not sent.
  answer_with([](const wire::Command&, wire::CommandResult& result) {
    result.set_ok(false);
    result.set_error("no room");
  });
  outcome = filter(request);
  EXPECT_EQ(outcome.code(), Code::kUnsupported);
  EXPECT_THAT(outcome.error().message, HasSubstr("agents/1: no room"));
  EXPECT_THAT(received(), SizeIs(4));
}

TEST_F(CollectorOrdersTest, OnlyAndExceptTogetherAreTheirDifference) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  begin(agent, 1, 10);
  shown("app", api::AGENT_STATE_RECORDING);
  api::SetFunctionFilterRequest request;
  for (const char* id : {"0x3", "0x1", "0x2"}) request.add_only(id);
  request.add_except("0x2");
  EXPECT_EQ(filter(request)->functions_matched(), 2u);
  request.clear_only();
  EXPECT_EQ(filter(request)->functions_matched(), 1u);
  request.clear_except();
  EXPECT_EQ(filter(request)->functions_matched(), 0u);
  ASSERT_THAT(received(), SizeIs(3));
  EXPECT_THAT(received()[0].set_function_filter().function_ids(), ElementsAre(1, 3));
  EXPECT_EQ(received()[1].set_function_filter().mode(), wire::SetFunctionFilter::ALL_BUT);
  EXPECT_THAT(received()[1].set_function_filter().function_ids(), ElementsAre(2));
  EXPECT_EQ(received()[2].set_function_filter().mode(), wire::SetFunctionFilter::EVERYTHING);
  request.add_only("");
  EXPECT_EQ(filter(request).code(), Code::kInvalidArgument);
}

// Before anything fires, detail is armed for those triggers that want to look back.
TEST_F(CollectorOrdersTest, TriggersArmWhatTheyWantToLookBackAt) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  begin(agent, 1, 10);
  shown("app", api::AGENT_STATE_RECORDING);
  api::SetTriggersRequest request;
  api::Trigger& plain = *request.add_triggers();
  plain.add_functions("0x9");
  plain.add_detail_functions("0x7");
  ASSERT_TRUE(set_triggers(request).ok());
  EXPECT_THAT(received(), IsEmpty()) << "none looks back";

  api::Trigger& back = *request.add_triggers();
  back.add_functions("0x9");
  back.add_functions("0x8");
  back.add_until_functions("0x6");
  back.mutable_pre_roll()->set_seconds(1);
  back.add_detail_functions("0x5");
  back.set_fired_count(3);
  auto outcome = set_triggers(request);
  ASSERT_TRUE(outcome.ok()) << to_string(outcome.error());
  EXPECT_EQ(outcome->functions_matched(), 3u) << "those that start detail";
  EXPECT_EQ(outcome->session(), shown("app", api::AGENT_STATE_RECORDING).session());
  ASSERT_EQ(outcome->triggers_size(), 2);
  EXPECT_EQ(outcome->triggers(1).fired_count(), 0u);
  ASSERT_THAT(received(), SizeIs(1));
  EXPECT_EQ(received()[0].set_detail().mode(), wire::DETAIL_ARMED);
  EXPECT_THAT(received()[0].set_detail().function_ids(), ElementsAre(5));

  shown([](const api::Agent& one) { return one.detail() == api::DETAIL_MODE_ARMED; });
  ASSERT_TRUE(set_triggers(request).ok());
  EXPECT_THAT(received(), SizeIs(1)) << "it is armed already";
  ASSERT_TRUE(detail({.mode = api::DETAIL_MODE_OFF, .target = {}}).ok());
  shown([](const api::Agent& one) { return one.detail() == api::DETAIL_MODE_OFF; });
  // Where they want different functions, all are kept.
  request.mutable_triggers(0)->mutable_pre_roll()->set_seconds(1);
  ASSERT_TRUE(set_triggers(request).ok());
  ASSERT_THAT(received(), SizeIs(3));
  EXPECT_EQ(received()[2].set_detail().mode(), wire::DETAIL_ARMED);
  EXPECT_THAT(received()[2].set_detail().function_ids(), IsEmpty());

  ASSERT_TRUE(detail({.mode = api::DETAIL_MODE_OFF, .target = {}}).ok());
  shown([](const api::Agent& one) { return one.detail() == api::DETAIL_MODE_OFF; });
  answer_with([](const wire::Command&, wire::CommandResult& result) {
    result.set_ok(false);
    result.set_error("no room");
  });
  outcome = set_triggers(request);
  EXPECT_THAT(outcome.error().message, HasSubstr("no room"));
}

TEST_F(CollectorOrdersTest, StartWithoutATargetTakesIdleAgents) {
  FakeAgent idle(process(1, "idle", 10));
  FakeAgent busy(process(2, "busy", 20));
  connect(busy);
  begin(busy, 1, 10);
  shown("busy", api::AGENT_STATE_RECORDING);
  Waiting<api::StartSessionResponse> refused;
  collector_->methods().call(api::StartSessionRequest(), refused.callback());
  const auto all = refused.get();
  EXPECT_EQ(all.code(), Code::kUnsupported);
  EXPECT_EQ(all.error().message, "every connected agent records already");
  answer_with([&idle](const wire::Command& command, wire::CommandResult& result) {
    result.set_recording(1);
    if (command.has_start_recording()) {
      EXPECT_TRUE(idle.start_recording(1));
    }
  });
  connect(idle);
  const std::string name = shown("idle", api::AGENT_STATE_CONNECTED).name();
  Waiting<api::StartSessionResponse> started;
  collector_->methods().call(api::StartSessionRequest(), started.callback());
  const auto begun = started.get();
  ASSERT_TRUE(begun.ok()) << to_string(begun.error());
  ASSERT_EQ(begun->outcomes_size(), 1);
  EXPECT_EQ(begun->outcomes(0).agent(), name);
  // A session is stopped by what is its agent's, too.
  Waiting<api::StopSessionResponse> stopped;
  api::Selector target;
  target.set_agent(name);
  answer_with([&idle](const wire::Command&, wire::CommandResult& result) {
    result.set_recording(1);
    EXPECT_TRUE(idle.end_recording("command"));
  });
  collector_->methods().call(stop_request(target), stopped.callback());
  const auto ended = stopped.get();
  ASSERT_TRUE(ended.ok()) << to_string(ended.error());
  ASSERT_EQ(ended->outcomes_size(), 1);
  EXPECT_EQ(ended->outcomes(0).agent(), name);
  EXPECT_EQ(ended->outcomes(0).session().name(), begun->outcomes(0).session().name());
}

TEST_F(CollectorOrdersTest, MarkersAndContainersNeedASessionThatRecords) {
  Waiting<api::AnnotateResponse> without_agent;
  api::AnnotateRequest request;
  request.set_text("door opens");
  request.set_time_ns(55);
  collector_->methods().call(request, without_agent.callback());
  EXPECT_EQ(without_agent.get().error().message, "no agent is connected; known: none");
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  shown("app", api::AGENT_STATE_CONNECTED);
  Waiting<api::AnnotateResponse> none;
  collector_->methods().call(request, none.callback());
  EXPECT_EQ(none.get().error().message, "no session records now");
  begin(agent, 1, 10);
  const api::Agent recording = shown("app", api::AGENT_STATE_RECORDING);
  Waiting<api::AnnotateResponse> marked;
  collector_->methods().call(request, marked.callback());
  const auto made = marked.get();
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  ASSERT_EQ(made->outcomes_size(), 1);
  EXPECT_EQ(made->outcomes(0).agent(), recording.name());
  EXPECT_EQ(made->outcomes(0).session(), recording.session());
  EXPECT_EQ(made->outcomes(0).time_ns(), 55u);
  Waiting<api::RollContainerResponse> rolled;
  collector_->methods().call(api::RollContainerRequest(), rolled.callback());
  const auto container = rolled.get();
  ASSERT_FALSE(container.ok());
  EXPECT_EQ(container.error().message,
            recording.name() + ": no containers are written: set rtc = true");
}

TEST_F(CollectorOrdersTest, DeviceThatIsNotThereIsNamed) {
  EXPECT_EQ(collector_->device("").error().message, "there is no device");
  EXPECT_EQ(collector_->device("R58M").error().message, "no device \"R58M\"; there are: none");
}

}  // namespace
}  // namespace collect::daemon
