// The online commands against a real server with a scripted collector.
#include "daemon/ctl/control/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/control/session_conversion.h"
#include "tests/daemon/ctl/control/fixture.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class OnlineCommandsTest : public OnlineTest {};

TEST_F(OnlineCommandsTest, AgentsThatAreHereComeBeforeThoseThatEnded) {
  collector_.add_agent("1", "ended", api::AGENT_STATE_GONE);
  collector_.add_agent("2", "here", api::AGENT_STATE_RECORDING);
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_LT(out_.str().find("here"), out_.str().find("ended")) << out_.str();
}

TEST_F(OnlineCommandsTest, ShowsTheDialledAddressBesideItsError) {
  api::Agent agent;
  agent.set_name("agents/3");
  agent.set_state(api::AGENT_STATE_DIALING);
  agent.set_address("127.0.0.1:7720");
  agent.set_status("Connection refused");
  collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("127.0.0.1:7720: Connection refused"));
}

TEST_F(OnlineCommandsTest, AgentsAsTableAndAsJson) {
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("collectctl run"));
  collector_.add_agent("1", "lua\x1b[2J", api::AGENT_STATE_RECORDING);
  out_.str("");
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("1      recording  lua\\x1b[2J"));
  out_.str("");
  EXPECT_EQ(list_agents(json_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"agents\":[{\"name\":\"agents/1\",\"state\":\"recording\""));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(OnlineCommandsTest, ListsGoOverAllPages) {
  for (int i = 0; i < 2345; ++i)
    collector_.add_session(std::to_string(i), api::SESSION_STATE_COMPLETE);
  const auto sessions = Client(online_.control).sessions("");
  ASSERT_TRUE(sessions.ok());
  EXPECT_EQ(sessions->size(), 2345u);
  EXPECT_EQ(sessions->front().name(), "sessions/2344");
  EXPECT_EQ(sessions->back().name(), "sessions/0");
}

TEST_F(OnlineCommandsTest, AttachDetachStartStop) {
  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  EXPECT_EQ(attach_agent(online_, "127.0.0.1:7720"), 0);
  EXPECT_THAT(out_.str(), HasSubstr("dialling"));
  EXPECT_EQ(detach_agent(online_, "agents/1"), 0);
  StartOptions start;
  start.target = "agents/1";
  start.only = {"parse_*"};
  start.except = {"parse_char"};
  start.detail = true;
  start.duration = std::chrono::milliseconds(1500);
  EXPECT_EQ(start_session(online_, start), 0);
  const api::StartSessionRequest request = collector_.last_start();
  EXPECT_EQ(request.target().any(), "agents/1");
  EXPECT_THAT(request.functions().only(), ::testing::ElementsAre("parse_*"));
  EXPECT_THAT(request.functions().except(), ::testing::ElementsAre("parse_char"));
  EXPECT_EQ(request.detail().mode(), api::DETAIL_MODE_ON);
  EXPECT_EQ(request.duration().nanos(), 500'000'000);
  EXPECT_EQ(start_session(online_, {}), 0);
  EXPECT_EQ(collector_.last_start().ByteSizeLong(), 0u);
  EXPECT_EQ(stop_session(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("complete"));
}

TEST_F(OnlineCommandsTest, FailureIsOneLineAndExitCode1) {
  collector_.fail_with({Code::kNotFound, "no agent is named x; see ListAgents"});
  EXPECT_EQ(detach_agent(online_, "x"), 1);
  EXPECT_EQ(err_.str(), "collectctl: no agent is named x; see ListAgents\n");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(OnlineCommandsTest, ConvertedSessionIsNamedAndItsLossesAreSaid) {
  collector_.add_session("session_20260131_235959/pid_7", api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(convert_session(online_, {"session_20260131_235959/pid_7", 1}), 1);
  EXPECT_EQ(collector_.last_argument(), "session_20260131_235959/pid_7");
  EXPECT_EQ(collector_.last_atf_version(), 1u);
  EXPECT_THAT(out_.str(), HasSubstr("_atf1: ATF version 1, 0 events"));
  EXPECT_EQ(err_.str(),
            "collectctl: missing: 7 thread_1/index.atf: gone\n"
            "collectctl: missing: 2 things more\n"
            "collectctl: left out: call depths\n");
  out_.str("");
  EXPECT_EQ(convert_session(json_, {"session_20260131_235959/pid_7", 2}), 1);
  EXPECT_THAT(out_.str(), HasSubstr("\"missing_left_out\":2"));
  collector_.fail_with({Code::kUnsupported, "it has ATF version 2 already"});
  err_.str("");
  EXPECT_EQ(convert_session(online_, {"", 2}), 1);
  EXPECT_EQ(err_.str(), "collectctl: it has ATF version 2 already\n");
}

TEST_F(OnlineCommandsTest, SnapshotIsNamedAndWhatItLacksIsSaid) {
  EXPECT_EQ(snapshot_session(online_, ""), 0);
  EXPECT_EQ(collector_.last_argument(), "");
  EXPECT_EQ(out_.str(),
            "session_20260131_235959_snap1/pid_7: 1,234 events, 0 detail records, 0 B\n");
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(snapshot_session(json_, "late"), 1);
  EXPECT_THAT(out_.str(), HasSubstr("\"state\":\"recovered\""));
  EXPECT_EQ(err_.str(), "collectctl: its agent did not ship what it still had\n");
}

// Says when something was written.
class NoticingBuffer : public std::stringbuf {
 public:
  std::atomic<bool> is_written{false};

 protected:
  int sync() override {
    is_written = true;
    return std::stringbuf::sync();
  }
};

class SlowSnapshots : public control::FakeCollector {
 public:
  explicit SlowSnapshots(const std::atomic<bool>& go_on) : go_on_(go_on) {}
  void snapshot_session(const std::string& name, control::Callback<api::Session> done) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!go_on_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FakeCollector::snapshot_session(name, std::move(done));
  }

 private:
  const std::atomic<bool>& go_on_;
};

TEST_F(OnlineCommandsTest, SlowSnapshotShowsProgressOnATerminal) {
  NoticingBuffer buffer;
  std::ostream err(&buffer);
  SlowSnapshots slow(buffer.is_written);
  auto server = control::ControlServer::start("127.0.0.1:0", slow);
  ASSERT_TRUE(server.ok());
  const Online online{(*server)->address(), false, true, out_, err};
  EXPECT_EQ(snapshot_session(online, ""), 0);
  EXPECT_THAT(buffer.str(), HasSubstr("making the copy, "));
}

TEST_F(OnlineCommandsTest, TriggersAreSetShownAndCleared) {
  TriggerOptions options;
  options.functions = {"parse_*", "read"};
  options.longer_than = std::chrono::milliseconds(5);
  options.pre_roll = std::chrono::seconds(1);
  options.times = 3;
  options.until = {"done", "stop_*"};
  EXPECT_EQ(set_trigger(online_, options), 0);
  EXPECT_THAT(out_.str(), HasSubstr("ok"));
  out_.str("");
  EXPECT_EQ(show_triggers(json_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"event\":\"long_call\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"times\":3,\"fired_count\":3,"));
  EXPECT_THAT(out_.str(), HasSubstr("\"longer_than_s\":0.005"));
  EXPECT_THAT(out_.str(), HasSubstr("\"pre_roll_s\":1.0"));
  EXPECT_THAT(out_.str(), HasSubstr("\"until_functions\":[\"done\",\"stop_*\"]"));
  out_.str("");
  EXPECT_EQ(show_triggers(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("parse_*, read  long call  "));
  out_.str("");
  options.longer_than = {};
  options.throws = true;
  EXPECT_EQ(set_trigger(online_, options), 0);
  EXPECT_EQ(show_triggers(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("exception"));
  out_.str("");
  TriggerOptions counter;
  counter.counter = "queue_depth";
  counter.above = -3;
  EXPECT_EQ(set_trigger(online_, counter), 0);
  EXPECT_EQ(show_triggers(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("queue_depth > -3  counter  "));
  EXPECT_EQ(set_trigger(online_, {.target = "app"}), 0);
  EXPECT_EQ(collector_.last_argument(), "app");
  EXPECT_EQ(collector_.triggers({})->outcomes(0).triggers_size(), 0);
}

TEST_F(OnlineCommandsTest, JsonManifestIsTheFile) {
  collector_.add_session("one", api::SESSION_STATE_COMPLETE);
  collector_.add_file("manifest.json", "{\"format_version\":\"2.1\"}\n");
  EXPECT_EQ(show_manifest(json_, ""), 0);
  EXPECT_EQ(out_.str(), "{\"format_version\":\"2.1\"}\n");
}

TEST_F(OnlineCommandsTest, RulesThatAreShownCanBeSet) {
  const std::string file = ::testing::TempDir() + "online_commands_rules.json";
  std::ofstream(file) << R"({"rules": [{"target": {"process_name": "render*"},
                                        "action": "idle"}]})";
  EXPECT_EQ(set_rules(online_, file), 0);
  EXPECT_EQ(out_.str(), "1 rule\n");
  out_.str("");
  EXPECT_EQ(show_rules(online_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"process_name\":\"render*\""));
  std::ofstream(file) << out_.str();
  out_.str("");
  EXPECT_EQ(set_rules(online_, file), 0);
  EXPECT_EQ(collector_.rules().rules(0).action(), api::Rule::ACTION_IDLE);

  std::ofstream(file) << R"({"rules": [{"colour": "red"}]})";
  EXPECT_EQ(set_rules(online_, file), 1);
  EXPECT_THAT(err_.str(), HasSubstr(file + ": "));
  EXPECT_THAT(err_.str(), HasSubstr("colour"));
  EXPECT_EQ(set_rules(online_, file + ".missing"), 1);
  std::remove(file.c_str());
}

TEST_F(OnlineCommandsTest, ManifestShowsItsStalls) {
  EXPECT_EQ(show_manifest(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("stall: thread 2 page_wait: " + short_duration(0.004) +
                                    " from 1000 to 9001000 ns, 3 stalls joined\n"));
  EXPECT_THAT(out_.str(), HasSubstr("stall: every thread stopped: " + short_duration(0.004) +
                                    " from 1000 to 9001000 ns\n"));
}

TEST_F(OnlineCommandsTest, DetailOptionsBecomeTheRequest) {
  DetailOptions options;
  options.mode = DetailMode::kOn;
  options.target = "agents/1";
  options.threads = {"4711", "name=w*"};
  options.functions = {"parse_*"};
  options.duration = std::chrono::milliseconds(5200);
  options.pre_roll = std::chrono::seconds(2);
  EXPECT_EQ(set_detail(online_, options), 0);
  control::DetailCommand command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_ON);
  EXPECT_EQ(command.target.any(), "agents/1");
  EXPECT_THAT(command.threads, ::testing::ElementsAre("4711", "name=w*"));
  EXPECT_THAT(command.functions, ::testing::ElementsAre("parse_*"));
  EXPECT_EQ(command.duration_ns, 5'200'000'000u);
  EXPECT_EQ(command.pre_roll_ns, 2'000'000'000u);
  EXPECT_THAT(out_.str(), HasSubstr("on"));
  EXPECT_EQ(err_.str(), "collectctl: 1: there is no pre-roll\n");

  options.mode = DetailMode::kArmed;
  EXPECT_EQ(set_detail(online_, options), 0);
  command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_ARMED);
  EXPECT_THAT(command.functions, ::testing::ElementsAre("parse_*"));

  EXPECT_EQ(set_detail(online_, {.mode = DetailMode::kOff,
                                 .target = "",
                                 .threads = {},
                                 .functions = {},
                                 .duration = {},
                                 .pre_roll = {}}),
            0);
  command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_OFF);
  EXPECT_EQ(command.target.ByteSizeLong(), 0u);
  EXPECT_TRUE(command.threads.empty());
}

TEST_F(OnlineCommandsTest, WatchFollowsASessionToItsEnd) {
  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  std::thread life([this] {
    collector_.wait_for_watches(1);
    api::Session session = *collector_.session("");
    session.set_events(1234567);
    collector_.change_session(session, false);
    session.set_state(api::SESSION_STATE_COMPLETE);
    session.set_path("/data/one");
    collector_.change_session(session, true);
  });
  EXPECT_EQ(watch(online_, {}), 0);
  life.join();
  EXPECT_THAT(out_.str(), HasSubstr("one  complete"));
  EXPECT_THAT(out_.str(), HasSubstr("1,234,567 events"));
  EXPECT_THAT(out_.str(), HasSubstr("files: /data/one\n"));
}

TEST_F(OnlineCommandsTest, WatchOfAFailedSessionFails) {
  collector_.add_session("one", api::SESSION_STATE_FAILED);
  EXPECT_EQ(watch(online_, {}), 1);
}

TEST_F(OnlineCommandsTest, WatchAgentsUntilTheCollectorLeaves) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  std::thread life([this] {
    collector_.wait_for_watches(1);
    server_->shutdown(control::ControlServer::kShutdownDeadline);
  });
  WatchOptions options;
  options.agents = true;
  EXPECT_EQ(watch(online_, options), 1);
  life.join();
  EXPECT_THAT(err_.str(), HasSubstr("shutting down"));
}

TEST_F(OnlineCommandsTest, Stats) {
  EXPECT_EQ(show_stats(online_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nevents                     123\n"));
  out_.str("");
  EXPECT_EQ(show_stats(json_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"events_stored\":123"));
}

}  // namespace
}  // namespace collect::ctl
