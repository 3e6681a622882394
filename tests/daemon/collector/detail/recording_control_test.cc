// Recordings that are started with a choice, by request or by a standing rule: which commands the
// agent receives, and in which order.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RecordingOptionsTest : public CollectorTest {
 protected:
  // An agent that obeys its commands, and says what is loaded once it records.
  void connect(FakeAgent& agent, bool has_modules = true) {
    agent.on_command(
        [this, &agent, has_modules](const wire::Command& command, wire::CommandResult& result) {
          result.set_recording(1);
          if (command.has_start_recording()) {
            EXPECT_TRUE(agent.start_recording(1));
            if (has_modules) {
              EXPECT_TRUE(agent.data().send(wire::FrameType::kModules, this_program()));
            }
          } else if (command.has_stop_recording()) {
            EXPECT_TRUE(agent.end_recording("command"));
          }
          std::lock_guard lock(mutex_);
          received_.push_back(text_of(command));
        });
    ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  }
  static std::string text_of(const wire::Command& command) {
    if (command.has_start_recording()) return "start";
    if (command.has_stop_recording()) return "stop";
    if (command.has_set_detail()) {
      const wire::SetDetail& detail = command.set_detail();
      return "detail " + std::to_string(detail.mode()) + " of " +
             std::to_string(detail.function_ids_size()) + " for " +
             std::to_string(detail.duration_ns());
    }
    if (command.has_set_buffering()) {
      const wire::SetBuffering& buffering = command.set_buffering();
      return "full " + std::to_string(buffering.when_full()) + " spool " +
             (buffering.sets_spool() ? std::to_string(buffering.spool_mb()) : "as it is");
    }
    const wire::SetFunctionFilter& filter = command.set_function_filter();
    return (filter.mode() == wire::SetFunctionFilter::ONLY ? "only " : "all but ") +
           std::to_string(filter.function_ids_size());
  }
  std::vector<std::string> received() {
    std::lock_guard lock(mutex_);
    return received_;
  }
  Result<api::StartSessionResponse> start(const api::StartSessionRequest& request) {
    Waiting<api::StartSessionResponse> started;
    collector_->methods().call(request, started.callback());
    return started.get();
  }
  static api::Rules rules_of(const Collector& collector) {
    Waiting<api::Rules> rules;
    collector.methods().call(api::GetRulesRequest(), rules.callback());
    return rules.get().value();
  }
  void set_rules(const api::Rules& rules) {
    Waiting<api::Rules> set;
    api::SetRulesRequest request;
    *request.mutable_rules() = rules.rules();
    collector_->methods().call(request, set.callback());
    const auto result = set.get();
    ASSERT_TRUE(result.ok()) << to_string(result.error());
  }

  std::mutex mutex_;
  std::vector<std::string> received_;  // guarded by mutex_
};

TEST_F(RecordingOptionsTest, RecordsNothingUntilFunctionsAreChosen) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  shown("app", api::AGENT_STATE_CONNECTED);
  api::StartSessionRequest request;
  request.mutable_functions()->add_only("collector_test_landmark");
  request.mutable_detail()->set_mode(api::DETAIL_MODE_ON);
  request.mutable_detail()->add_functions("collector_test_land*");
  request.mutable_detail()->mutable_duration()->set_seconds(2);
  const auto started = start(request);
  ASSERT_TRUE(started.ok()) << to_string(started.error());
  EXPECT_EQ(started->outcomes(0).session().state(), api::SESSION_STATE_ACTIVE);
  EXPECT_THAT(received(), ElementsAre("only 0", "start", "only 1", "detail 2 of 1 for 2000000000"));
}

TEST_F(RecordingOptionsTest, SetsDetailOfEverythingBeforeTheFirstEvent) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent, false);
  shown("app", api::AGENT_STATE_CONNECTED);
  api::StartSessionRequest request;
  request.mutable_detail()->set_mode(api::DETAIL_MODE_ARMED);
  ASSERT_TRUE(start(request).ok());
  EXPECT_THAT(received(), ElementsAre("detail 1 of 0 for 0", "start"));
}

TEST_F(RecordingOptionsTest, StopsRecordingWhoseFunctionsAreNotFound) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  shown("app", api::AGENT_STATE_CONNECTED);
  api::StartSessionRequest request;
  request.mutable_functions()->add_except("no_such_function");
  const auto started = start(request);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.code(), Code::kNotFound);
  EXPECT_THAT(started.error().message, HasSubstr("no_such_function"));
  EXPECT_THAT(received(), ElementsAre("only 0", "start", "stop"));
  shown("app", api::AGENT_STATE_CONNECTED);
}

TEST_F(RecordingOptionsTest, ItStopsByItself) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent, false);
  shown("app", api::AGENT_STATE_CONNECTED);
  api::StartSessionRequest request;
  request.mutable_duration()->set_nanos(1'000'000);
  const auto started = start(request);
  ASSERT_TRUE(started.ok()) << to_string(started.error());
  const std::string name = started->outcomes(0).session().name();
  EXPECT_TRUE(eventually([&] {
    const auto session = collector_->session(name);
    return session.ok() && session->state() == api::SESSION_STATE_COMPLETE;
  }));
  EXPECT_THAT(received(), ElementsAre("start", "stop"));
}

// Only detail that is wanted is asked for, and what has no duration continues.
TEST_F(RecordingOptionsTest, SendsOnlyRequestedCommands) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent, false);
  shown("app", api::AGENT_STATE_CONNECTED);
  api::StartSessionRequest request;
  request.mutable_detail()->set_mode(api::DETAIL_MODE_OFF);
  ASSERT_TRUE(start(request).ok());
  // Behind any other command that it would receive.
  ASSERT_TRUE(detail({.mode = api::DETAIL_MODE_ON, .target = {}}).ok());
  EXPECT_THAT(received(), ElementsAre("start", "detail 2 of 0 for 0"));
}

// An agent that was idle says a moment later what is loaded in its process.
TEST_F(RecordingOptionsTest, ModulesMayComeLater) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent, false);
  shown("app", api::AGENT_STATE_CONNECTED);
  api::StartSessionRequest request;
  request.mutable_detail()->set_mode(api::DETAIL_MODE_ON);
  request.mutable_detail()->add_functions("collector_test_landmark");
  Waiting<api::StartSessionResponse> started;
  collector_->methods().call(request, started.callback());
  ASSERT_TRUE(eventually([&] { return !received().empty(); }));
  ASSERT_TRUE(agent.data().send(wire::FrameType::kModules, this_program()));
  const auto session = started.get();
  ASSERT_TRUE(session.ok()) << to_string(session.error());
  EXPECT_THAT(received(), ElementsAre("start", "detail 2 of 1 for 0"));
}

// What the agent refuses is not asked for a second time, and nothing else is.
TEST_F(RecordingOptionsTest, StopsAtTheFirstRefusedCommand) {
  FakeAgent agent(process(1, "app", 10));
  agent.on_command([this](const wire::Command& command, wire::CommandResult& result) {
    result.set_ok(false);
    result.set_error("not today");
    std::lock_guard lock(mutex_);
    received_.push_back(text_of(command));
  });
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  shown("app", api::AGENT_STATE_CONNECTED);
  const auto refusal = [&](const api::StartSessionRequest& request) {
    const auto started = start(request);
    return started.ok() ? "" : started.error().message;
  };
  EXPECT_EQ(refusal({}), "agents/1: the agent says: not today");
  api::StartSessionRequest with_filter;
  with_filter.mutable_functions()->add_only("0x7");
  EXPECT_EQ(refusal(with_filter), "agents/1: not today");
  api::StartSessionRequest with_detail;
  with_detail.mutable_detail()->set_mode(api::DETAIL_MODE_ARMED);
  EXPECT_THAT(refusal(with_detail), HasSubstr("agents/1: not today"));
  EXPECT_THAT(received(), ElementsAre("start", "only 0", "detail 1 of 0 for 0"));
}

// A new agent receives the rule's commands once: later requests of users hold.
TEST_F(RecordingOptionsTest, RuleHoldsWhenAnAgentComesAndNotAgain) {
  api::Rules rules;
  rules.add_rules();
  set_rules(rules);
  FakeAgent agent(process(1, "app", 10));
  connect(agent, false);
  shown("app", api::AGENT_STATE_RECORDING);
  Waiting<api::StopSessionResponse> stopped;
  collector_->methods().call(stop_request(), stopped.callback());
  ASSERT_TRUE(stopped.get().ok());
  shown("app", api::AGENT_STATE_CONNECTED);
  ASSERT_TRUE(detail({.mode = api::DETAIL_MODE_ARMED, .target = {}}).ok());
  shown([](const api::Agent& one) { return one.detail() == api::DETAIL_MODE_ARMED; });
  ASSERT_TRUE(detail({.mode = api::DETAIL_MODE_OFF, .target = {}}).ok());
  EXPECT_THAT(received(),
              ElementsAre("start", "stop", "detail 1 of 0 for 0", "detail 0 of 0 for 0"));
}

TEST_F(RecordingOptionsTest, RulesHoldForAgentsThatCome) {
  api::Rules rules;
  api::Rule& record = *rules.add_rules();
  record.mutable_target()->set_process_name("render*");
  record.mutable_detail()->set_mode(api::DETAIL_MODE_ON);
  api::Rule& idle = *rules.add_rules();
  idle.set_action(api::Rule::ACTION_IDLE);
  set_rules(rules);

  FakeAgent render(process(1, "renderer", 10));
  connect(render, false);
  shown("renderer", api::AGENT_STATE_RECORDING);
  EXPECT_THAT(received(), ElementsAre("detail 2 of 0 for 0", "start"));

  // The first rule that is about it holds, and no other.
  received_.clear();
  FakeAgent other(process(2, "other", 11));
  other.set_recording(1, true);
  other.on_command([this](const wire::Command& command, wire::CommandResult&) {
    std::lock_guard lock(mutex_);
    received_.push_back(text_of(command));
  });
  ASSERT_TRUE(other.connect(collector_->ingest_address()));
  EXPECT_TRUE(eventually([&] { return !received().empty(); }));
  EXPECT_THAT(received(), ElementsAre("stop"));
}

TEST_F(RecordingOptionsTest, SetsBufferingOfARuleBeforeItsRecording) {
  const std::pair<api::Rule::WhenFull, std::string> cases[] = {
      {api::Rule::WHEN_FULL_UNSPECIFIED, "full 0 spool 7"},
      {api::Rule::WHEN_FULL_DROP, "full 1 spool as it is"},
      {api::Rule::WHEN_FULL_WAIT, "full 2 spool as it is"},
      {api::Rule::WHEN_FULL_OVERWRITE, "full 3 spool 0"}};
  uint8_t number = 1;
  for (const auto& [when_full, wanted] : cases) {
    api::Rules rules;
    api::Rule& rule = *rules.add_rules();
    rule.set_when_full(when_full);
    if (when_full == api::Rule::WHEN_FULL_UNSPECIFIED) rule.set_spool_mb(7);
    if (when_full == api::Rule::WHEN_FULL_OVERWRITE) rule.set_spool_mb(0);
    set_rules(rules);
    {
      std::lock_guard lock(mutex_);
      received_.clear();
    }
    const std::string name = "app" + std::to_string(number);
    FakeAgent agent(process(number, name, 10u + number));
    connect(agent, false);
    shown(name, api::AGENT_STATE_RECORDING);
    EXPECT_TRUE(eventually([this] { return received().size() == 2; }));
    EXPECT_THAT(received(), ElementsAre(wanted, "start"));
    ++number;
  }
}

// An agent of an earlier version does not know the command: it records all the same.
TEST_F(RecordingOptionsTest, RuleRecordsAlsoWhenItsBufferingIsRefused) {
  api::Rules rules;
  rules.add_rules()->set_when_full(api::Rule::WHEN_FULL_WAIT);
  set_rules(rules);
  FakeAgent agent(process(1, "app", 10));
  agent.on_command([&agent](const wire::Command& command, wire::CommandResult& result) {
    if (command.has_start_recording()) {
      result.set_recording(1);
      EXPECT_TRUE(agent.start_recording(1));
    } else {
      result.set_ok(false);
      result.set_error("this agent does not know the command");
    }
  });
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  shown("app", api::AGENT_STATE_RECORDING);
}

TEST_F(RecordingOptionsTest, RuleIsAddedToARecordingThatHasBegun) {
  api::Rules rules;
  rules.add_rules()->mutable_functions()->add_only("collector_test_landmark");
  set_rules(rules);
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  EXPECT_TRUE(eventually([&] { return received().size() == 3; }));
  EXPECT_THAT(received(), ElementsAre("only 0", "start", "only 1"));
}

TEST_F(RecordingOptionsTest, RulesAreKeptAndChecked) {
  api::Rules rules;
  rules.add_rules()->mutable_target()->set_tag("night");
  set_rules(rules);
  const auto again = [this] {
    CollectorOptions options;
    options.ingest.listen = "127.0.0.1:0";
    options.ingest.storage.root = root_;
    return Collector::create(std::move(options), fs_);
  };
  const auto second = again();
  ASSERT_TRUE(second.ok()) << to_string(second.error());
  EXPECT_EQ(rules_of(**second).SerializeAsString(), rules.SerializeAsString());

  for (const char* damaged :
       {"{", R"({"rules": [{"colour": "red"}]})", R"({"rules": [{"target": {"pid": 7}}]})"}) {
    std::ofstream(root_ + "/rules.json") << damaged;
    const auto refused = again();
    ASSERT_FALSE(refused.ok()) << damaged;
    EXPECT_EQ(refused.code(), Code::kDamaged);
    EXPECT_THAT(refused.error().message, HasSubstr(root_ + "/rules.json holds no rules"));
  }
  set_rules({});
  const auto third = again();
  ASSERT_TRUE(third.ok()) << to_string(third.error());
  EXPECT_EQ(rules_of(**third).rules_size(), 0);
}

}  // namespace
}  // namespace collect::daemon
