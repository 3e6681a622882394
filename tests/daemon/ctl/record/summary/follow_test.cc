// Which agents and sessions are those of a run, and how they are followed to their end.
#include "daemon/ctl/record/summary/run_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>
#include <csignal>

#include <atomic>

#include "daemon/control/control_server.h"
#include "daemon/ctl/record/program/run_environment.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kTag[] = "run-1";

// Calls `on_look` whenever someone looks at its sessions.
class WatchedCollector final : public control::FakeCollector {
 public:
  std::vector<api::Session> sessions(const api::Selector&) override {
    ++looks;
    if (on_look) on_look();
    return sessions_;
  }
  std::vector<api::Agent> agents(const api::Selector&) override { return agents_; }
  void stop_session(const api::Selector& target,
                    control::Callback<api::StopSessionResponse> done) override {
    stopped.push_back(target.any());
    for (api::Session& session : sessions_) session.set_state(api::SESSION_STATE_RECOVERED);
    done(api::StopSessionResponse());
  }

  std::atomic<int> looks{0};
  std::function<void()> on_look;
  std::vector<std::string> stopped;
  std::vector<api::Agent> agents_;
  std::vector<api::Session> sessions_;  // the newest first
};

class FollowARun : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = control::ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    wait_.tag = kTag;
    wait_.process_lives = [](pid_t pid) { return pid < 100; };
  }

  api::Agent& add_agent(const std::string& name, api::AgentState state, uint32_t pid = 1000) {
    api::Agent& agent = collector_.agents_.emplace_back();
    agent.set_name("agents/" + name);
    agent.set_state(state);
    agent.set_pid(pid);
    agent.set_tag(kTag);
    return agent;
  }
  api::Session& add_session(const std::string& name, api::SessionState state, uint32_t pid = 1000) {
    api::Session session;
    session.set_name("sessions/" + name);
    session.set_agent("agents/" + name);
    session.set_state(state);
    session.set_pid(pid);
    session.set_tag(kTag);
    collector_.sessions_.insert(collector_.sessions_.begin(), session);
    return collector_.sessions_.front();
  }
  // Someone presses Ctrl-C after so many looks.
  void interrupt_after(int looks, int signal = SIGINT) {
    collector_.on_look = [this, looks, signal, here = ::pthread_self()] {
      if (collector_.looks == looks) ::pthread_kill(here, signal);
    };
  }
  RunSessions follow() {
    JobSignals signals;
    Client client(ControlTarget(server_->address()));
    return wait_until_sealed(client, wait_, signals, err_);
  }
  std::vector<std::string> agents_meant() {
    Client client(ControlTarget(server_->address()));
    std::vector<std::string> names;
    const auto view = look_at_run(client, wait_);
    EXPECT_TRUE(view.ok());
    for (const api::Agent& agent : view->agents) names.push_back(agent.name());
    for (const api::Session& session : view->sessions) names.push_back(session.name());
    return names;
  }

  WatchedCollector collector_;
  std::unique_ptr<control::ControlServer> server_;
  SealWait wait_;
  std::ostringstream err_;
};

// ---- which are meant

TEST_F(FollowARun, ThoseWithTheTagThatWereNotThereBefore) {
  add_agent("1", api::AGENT_STATE_GONE);
  add_agent("2", api::AGENT_STATE_GONE).set_tag("another");
  add_agent("3", api::AGENT_STATE_GONE);
  add_session("1", api::SESSION_STATE_COMPLETE);
  add_session("2", api::SESSION_STATE_COMPLETE).set_tag("another");
  add_session("3", api::SESSION_STATE_COMPLETE);
  add_session("4", api::SESSION_STATE_COMPLETE);
  EXPECT_THAT(agents_meant(),
              ElementsAre("agents/1", "agents/3", "sessions/1", "sessions/3", "sessions/4"));
  wait_.before = {"agents/1", "sessions/3"};
  EXPECT_THAT(agents_meant(), ElementsAre("agents/3", "sessions/1", "sessions/4"));
  const auto names = names_with_tag(ControlTarget(server_->address()), kTag);
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, UnorderedElementsAre("agents/1", "agents/3", "sessions/1", "sessions/3",
                                           "sessions/4"));
  EXPECT_FALSE(names_with_tag("127.0.0.1:1", kTag).ok());
}

TEST_F(FollowARun, ThoseOfAnAddressOrADevice) {
  add_agent("1", api::AGENT_STATE_GONE).set_address("usbmux:A:tcp:1");
  add_agent("2", api::AGENT_STATE_GONE).set_address("usbmux:B:tcp:1");
  add_agent("3", api::AGENT_STATE_GONE).set_address("usbmux:A:tcp:2");
  collector_.agents_[2].set_tag("another");
  for (const char* name : {"1", "2", "3"}) add_session(name, api::SESSION_STATE_COMPLETE);
  wait_.device = "usbmux:A:";
  EXPECT_THAT(agents_meant(), ElementsAre("agents/1", "sessions/1", "sessions/3"));
  wait_.address = "usbmux:A:tcp:2";
  wait_.tag = "";
  EXPECT_THAT(agents_meant(), ElementsAre("agents/3", "sessions/3")) << "with any tag";
  wait_.address = "usbmux:A";
  EXPECT_THAT(agents_meant(), IsEmpty());
}

// ---- how long

TEST_F(FollowARun, IsOverWhenAllIsSealed) {
  add_agent("1", api::AGENT_STATE_GONE);
  add_agent("2", api::AGENT_STATE_DISCONNECTED);
  add_session("1", api::SESSION_STATE_COMPLETE);
  add_session("2", api::SESSION_STATE_RECOVERED);
  const RunSessions ended = follow();
  EXPECT_EQ(collector_.looks, 1);
  EXPECT_TRUE(ended.agent_seen);
  EXPECT_EQ(ended.trouble, "");
  ASSERT_EQ(ended.sessions.size(), 2u);
  EXPECT_EQ(ended.sessions[0].name(), "sessions/1");
  EXPECT_EQ(err_.str(), "");
}

// A process that executes another one connects twice: the first has ended, and the second ships all
// that it has between two looks.
TEST_F(FollowARun, SessionsThatCameWhileItLookedAreSeen) {
  add_agent("1", api::AGENT_STATE_GONE);
  wait_.any_ships = [this] {
    if (collector_.sessions_.empty()) add_session("2", api::SESSION_STATE_COMPLETE);
    return false;
  };
  EXPECT_EQ(follow().sessions.size(), 1u);
}

TEST_F(FollowARun, AgentAloneWasSeen) {
  add_agent("1", api::AGENT_STATE_GONE);
  EXPECT_TRUE(follow().agent_seen);
  collector_.agents_.clear();
  add_session("1", api::SESSION_STATE_FAILED);
  EXPECT_TRUE(follow().agent_seen);
}

// What is still on its way through the sockets gets a moment.
TEST_F(FollowARun, WaitsAMomentForTheFirstAgent) {
  const RunSessions ended = follow();
  EXPECT_FALSE(ended.agent_seen);
  EXPECT_GT(collector_.looks, 3);
  EXPECT_EQ(ended.trouble, "");
}

TEST_F(FollowARun, WaitsForActiveAgentsAndSessions) {
  for (const api::AgentState state : {api::AGENT_STATE_CONNECTED, api::AGENT_STATE_RECORDING}) {
    collector_.agents_.clear();
    add_agent("1", state);
    collector_.looks = 0;
    collector_.on_look = [this] {
      if (collector_.looks == 3) collector_.agents_[0].set_state(api::AGENT_STATE_GONE);
    };
    EXPECT_EQ(follow().trouble, "");
    EXPECT_EQ(collector_.looks, 4);
  }
  collector_.agents_.clear();
  for (const api::SessionState state :
       {api::SESSION_STATE_ACTIVE, api::SESSION_STATE_INTERRUPTED, api::SESSION_STATE_SEALING}) {
    collector_.sessions_.clear();
    add_session("1", state, 50);
    collector_.looks = 0;
    collector_.on_look = [this] {
      if (collector_.looks == 3) collector_.sessions_[0].set_state(api::SESSION_STATE_COMPLETE);
    };
    EXPECT_EQ(follow().trouble, "");
    EXPECT_EQ(collector_.looks, 3);
  }
  EXPECT_THAT(collector_.stopped, IsEmpty()) << "its process lives";
}

// A process that continues records into a collector that stays; one that leaves has to wait.
TEST_F(FollowARun, CollectorThatStaysIsLeftToWhatLives) {
  add_agent("1", api::AGENT_STATE_RECORDING, 50);
  add_session("1", api::SESSION_STATE_ACTIVE, 50);
  wait_.collector_stays = true;
  EXPECT_EQ(follow().trouble, "");
  EXPECT_EQ(collector_.looks, 1);
  // No one knows whether a process without a number lives.
  collector_.agents_[0].set_pid(0);
  collector_.looks = 0;
  interrupt_after(4);
  EXPECT_EQ(follow().trouble, "stopped waiting for the rest of the recording");
  collector_.agents_[0].set_pid(50);
  collector_.sessions_[0].set_pid(1000);
  collector_.looks = 0;
  EXPECT_NE(follow().trouble, "");
  collector_.sessions_[0].set_pid(50);
  wait_.collector_stays = false;
  collector_.looks = 0;
  EXPECT_NE(follow().trouble, "");
}

TEST_F(FollowARun, EverySignalThatEndsUsEndsTheWait) {
  add_session("1", api::SESSION_STATE_ACTIVE, 50);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    collector_.looks = 0;
    interrupt_after(2, signal);
    const RunSessions ended = follow();
    EXPECT_EQ(ended.trouble, "stopped waiting for the rest of the recording") << signal;
    ASSERT_EQ(ended.sessions.size(), 1u);
  }
}

TEST_F(FollowARun, SessionOfAProcessThatIsGoneIsSealed) {
  add_session("1", api::SESSION_STATE_INTERRUPTED);
  const RunSessions ended = follow();
  EXPECT_THAT(collector_.stopped, ElementsAre("sessions/1"));
  EXPECT_EQ(ended.sessions[0].state(), api::SESSION_STATE_RECOVERED);
  // One that may outlive its program has time to come back.
  collector_.stopped.clear();
  collector_.sessions_[0].set_state(api::SESSION_STATE_INTERRUPTED);
  wait_.agent_outlives = true;
  collector_.looks = 0;
  interrupt_after(4);
  EXPECT_NE(follow().trouble, "");
  EXPECT_THAT(collector_.stopped, IsEmpty());
}

TEST_F(FollowARun, NamesAreWaitedFor) {
  add_session("1", api::SESSION_STATE_COMPLETE).set_symbols(api::SYMBOLS_STATE_PENDING);
  collector_.on_look = [this] {
    if (collector_.looks == 3) collector_.sessions_[0].set_symbols(api::SYMBOLS_STATE_DONE);
  };
  EXPECT_EQ(follow().trouble, "");
  EXPECT_EQ(collector_.looks, 3);
}

// Once, when it takes long: for what is waited.
TEST_F(FollowARun, SaysOnceWhatItWaitsFor) {
  const auto said = [&] {
    err_.str("");
    collector_.looks = 0;
    // Two looks after it was said, at the latest after a time that is only a bound.
    collector_.on_look = [this, here = ::pthread_self(), seen = 0]() mutable {
      if (!err_.str().empty() && ++seen == 3) ::pthread_kill(here, SIGINT);
    };
    EXPECT_NE(follow().trouble, "");
    return err_.str();
  };
  add_session("1", api::SESSION_STATE_ACTIVE, 50);
  EXPECT_EQ(said(),
            "collectctl: process 50 of this run still records; waiting for it, Ctrl-C stops "
            "waiting\n");
  collector_.sessions_[0].set_pid(1000);
  EXPECT_EQ(said(), "collectctl: waiting for the last events to be stored; Ctrl-C stops waiting\n");
  collector_.sessions_[0].set_state(api::SESSION_STATE_COMPLETE);
  collector_.sessions_[0].set_symbols(api::SYMBOLS_STATE_PENDING);
  EXPECT_EQ(said(), "collectctl: waiting for the names of functions; Ctrl-C stops waiting\n");
}

TEST_F(FollowARun, CollectorThatLeavesIsTrouble) {
  add_session("1", api::SESSION_STATE_ACTIVE, 50);
  JobSignals signals;
  Client client{ControlTarget(server_->address())};
  ASSERT_TRUE(client.stats().ok());
  server_.reset();
  const RunSessions ended = wait_until_sealed(client, wait_, signals, err_);
  EXPECT_TRUE(ended.trouble.starts_with("lost the connection to the collector: ")) << ended.trouble;
}

// A drain process holds what has nowhere to go once storing has failed.
TEST_F(FollowARun, DoesNotAwaitTheDrainProcessOnceStoringEnded) {
  bool ships = true;
  wait_.any_ships = [&ships] { return ships; };
  add_agent("1", api::AGENT_STATE_GONE);
  api::Session& session = add_session("1", api::SESSION_STATE_FAILED);
  session.set_status("the disk is full");
  wait_.agent_outlives = true;
  EXPECT_EQ(follow().trouble, "storing ended, so run does not wait for the rest: the disk is full");
  // It is waited for where the session holds, where its process lives, or where it is linked.
  const auto waits = [&] {
    collector_.looks = 0;
    interrupt_after(20);  // looks grow rarer: some seconds
    return follow().trouble == "stopped waiting for the rest of the recording";
  };
  collector_.sessions_[0].set_pid(50);
  EXPECT_TRUE(waits());
  collector_.sessions_[0].set_pid(1000);
  for (const auto state : {api::AGENT_STATE_CONNECTED, api::AGENT_STATE_RECORDING}) {
    collector_.agents_[0].set_state(state);
    EXPECT_TRUE(waits()) << state;
  }
  collector_.agents_[0].set_state(api::AGENT_STATE_GONE);
  collector_.sessions_[0].set_state(api::SESSION_STATE_COMPLETE);
  EXPECT_TRUE(waits());
  ships = false;
  collector_.looks = 0;
  EXPECT_EQ(follow().trouble, "");
  EXPECT_EQ(collector_.looks, 1);
}

// ---- filters

void set_filter(api::StartFilter* filter, const std::vector<std::string>& unmatched,
                const std::string& error = "") {
  for (const std::string& pattern : unmatched) filter->add_unmatched(pattern);
  filter->set_error(error);
}

// A pattern that one process has a function for has matched.
TEST_F(FollowARun, PatternsThatNoProcessHas) {
  set_filter(add_agent("1", api::AGENT_STATE_GONE).mutable_start_filter(), {"a", "b"});
  EXPECT_THAT(follow().filter.unmatched, ElementsAre("a", "b"));
  set_filter(add_agent("2", api::AGENT_STATE_GONE).mutable_start_filter(), {"b", "c"});
  EXPECT_THAT(follow().filter.unmatched, ElementsAre("b"));
  // Of an agent that is listed no more the session says it.
  set_filter(add_session("3", api::SESSION_STATE_COMPLETE).mutable_start_filter(), {"c"});
  EXPECT_THAT(follow().filter.unmatched, IsEmpty());
  EXPECT_EQ(follow().filter.error, "");
  set_filter(add_agent("4", api::AGENT_STATE_GONE).mutable_start_filter(), {}, "too many");
  set_filter(add_agent("5", api::AGENT_STATE_GONE).mutable_start_filter(), {}, "too late");
  EXPECT_EQ(follow().filter.error, "too many") << "of the first one";
  collector_.agents_.erase(collector_.agents_.begin() + 1, collector_.agents_.begin() + 3);
  collector_.sessions_.clear();
  EXPECT_THAT(follow().filter.unmatched, ElementsAre("a", "b")) << "who had none says nothing";
}

}  // namespace
}  // namespace collect::ctl
