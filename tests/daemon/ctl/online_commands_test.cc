// The online commands against a real server with a scripted collector.
#include "daemon/ctl/online_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "daemon/ctl/client.h"
#include "daemon/ctl/session_conversion.h"
#include "daemon/ctl/text.h"
#include "tests/daemon/ctl/online_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class OnlineCommandsTest : public OnlineTest {};

TEST_F(OnlineCommandsTest, AgentsThatAreHereComeBeforeThoseThatEnded) {
  collector_.add_agent("1", "ended", api::GONE);
  collector_.add_agent("2", "here", api::RECORDING);
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_LT(out_.str().find("here"), out_.str().find("ended")) << out_.str();
}

TEST_F(OnlineCommandsTest, AnAddressThatIsDialledIsNamedBesideWhatWentWrong) {
  api::Agent agent;
  agent.set_name("agents/3");
  agent.set_state(api::DIALING);
  agent.set_address("127.0.0.1:7720");
  agent.set_status("Connection refused");
  collector_.change_agent(api::AgentEvent::ADDED, agent);
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("127.0.0.1:7720: Connection refused"));
}

TEST_F(OnlineCommandsTest, AgentsAsTableAndAsJson) {
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("collectctl run"));
  collector_.add_agent("1", "lua\x1b[2J", api::RECORDING);
  out_.str("");
  EXPECT_EQ(list_agents(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("1      recording  lua\\x1b[2J"));
  out_.str("");
  EXPECT_EQ(list_agents(json_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"agents\":[{\"name\":\"agents/1\",\"state\":\"RECORDING\""));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(OnlineCommandsTest, ListsGoOverAllPages) {
  for (int i = 0; i < 2345; ++i) collector_.add_session(std::to_string(i), api::COMPLETE);
  const auto sessions = Client(online_.control).sessions("");
  ASSERT_TRUE(sessions.ok());
  EXPECT_EQ(sessions->size(), 2345u);
  EXPECT_EQ(sessions->front().name(), "sessions/2344");
  EXPECT_EQ(sessions->back().name(), "sessions/0");
}

TEST_F(OnlineCommandsTest, AttachDetachStartStop) {
  collector_.add_session("one", api::ACTIVE);
  EXPECT_EQ(attach_agent(online_, "127.0.0.1:7720"), 0);
  EXPECT_THAT(out_.str(), HasSubstr("dialling"));
  EXPECT_EQ(detach_agent(online_, "agents/1"), 0);
  EXPECT_EQ(start_session(online_, "agents/1"), 0);
  EXPECT_EQ(collector_.last_argument(), "agents/1");
  EXPECT_EQ(stop_session(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("complete"));
}

TEST_F(OnlineCommandsTest, AFailureIsOneLineAndExitCode1) {
  collector_.fail_with({Code::kNotFound, "no agent is named x; see ListAgents"});
  EXPECT_EQ(detach_agent(online_, "x"), 1);
  EXPECT_EQ(err_.str(), "collectctl: no agent is named x; see ListAgents\n");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(OnlineCommandsTest, AConvertedSessionIsNamedAndItsLossesAreSaid) {
  collector_.add_session("session_20260131_235959/pid_7", api::COMPLETE);
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
  EXPECT_THAT(out_.str(), HasSubstr("\"missingLeftOut\":\"2\""));
  collector_.fail_with({Code::kUnsupported, "it has ATF version 2 already"});
  err_.str("");
  EXPECT_EQ(convert_session(online_, {"", 2}), 1);
  EXPECT_EQ(err_.str(), "collectctl: it has ATF version 2 already\n");
}

TEST_F(OnlineCommandsTest, JsonManifestIsTheFile) {
  EXPECT_EQ(show_manifest(json_, ""), 0);
  EXPECT_EQ(out_.str(), "{\"format_version\":\"2.1\"}\n");
}

TEST_F(OnlineCommandsTest, AManifestShowsItsStalls) {
  EXPECT_EQ(show_manifest(online_, ""), 0);
  EXPECT_THAT(out_.str(), HasSubstr("stall: thread 2 page_wait: " + short_duration(0.004) +
                                    " from 1000 to 9001000 ns, 3 stalls joined\n"));
  EXPECT_THAT(out_.str(), HasSubstr("stall: every thread stopped: " + short_duration(0.004) +
                                    " from 1000 to 9001000 ns\n"));
}

TEST_F(OnlineCommandsTest, DetailOptionsBecomeTheRequest) {
  DetailOptions options;
  options.mode = api::ON;
  options.target = "agents/1";
  options.threads = {"4711", "name=w*"};
  options.functions = {"parse_*"};
  options.duration = std::chrono::milliseconds(5200);
  options.pre_roll = std::chrono::seconds(2);
  EXPECT_EQ(set_detail(online_, options), 0);
  EXPECT_EQ(collector_.last_mode(), api::ON);
  const api::DetailRequest request = collector_.last_detail();
  EXPECT_EQ(request.target(), "agents/1");
  EXPECT_THAT(request.thread_patterns(), ::testing::ElementsAre("4711", "name=w*"));
  EXPECT_EQ(request.functions(0), "parse_*");
  EXPECT_EQ(request.duration().seconds(), 5);
  EXPECT_EQ(request.duration().nanos(), 200'000'000);
  EXPECT_EQ(request.pre_roll().seconds(), 2);
  EXPECT_THAT(out_.str(), HasSubstr("on"));

  EXPECT_EQ(set_detail(online_, {.mode = api::OFF,
                                 .target = "",
                                 .threads = {},
                                 .functions = {},
                                 .duration = {},
                                 .pre_roll = {}}),
            0);
  EXPECT_EQ(collector_.last_mode(), api::OFF);
  EXPECT_EQ(collector_.last_detail().ByteSizeLong(), 0u);
}

TEST_F(OnlineCommandsTest, WatchFollowsASessionToItsEnd) {
  collector_.add_session("one", api::ACTIVE);
  std::thread life([this] {
    collector_.wait_for_watches(1);
    api::Session session = *collector_.session("");
    session.set_events(1234567);
    collector_.change_session(session, false);
    session.set_state(api::COMPLETE);
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
  collector_.add_session("one", api::FAILED);
  EXPECT_EQ(watch(online_, {}), 1);
}

TEST_F(OnlineCommandsTest, WatchAgentsUntilTheCollectorLeaves) {
  collector_.add_agent("1", "lua", api::RECORDING);
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
  EXPECT_THAT(out_.str(), HasSubstr("\"eventsStored\":\"123\""));
}

}  // namespace
}  // namespace collect::ctl
