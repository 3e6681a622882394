// Which agents and sessions are known, what people may call them, and which are forgotten first.
#include "daemon/collector/agents/registry.h"

#include <gmock/gmock.h>

namespace collect::daemon {
namespace {

using ingest::AgentSnapshot;
using ingest::AgentState;
using ingest::SessionSnapshot;
using ingest::SessionState;
using storage::SymbolsState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

AgentSnapshot agent(ingest::AgentId id, const std::string& process, AgentState state) {
  AgentSnapshot made;
  made.id = id;
  made.process_name = process;
  made.state = state;
  made.pid = 1'000 + static_cast<uint32_t>(id);
  made.device_id = "device-" + std::to_string(id);
  made.tag = "tag-" + std::to_string(id);
  made.session = "session_1/pid_" + std::to_string(id);
  made.address = "127.0.0.1:" + std::to_string(id);
  return made;
}

SessionSnapshot session(const std::string& name, SessionState state, int started = 0) {
  SessionSnapshot made;
  made.name = name;
  made.state = state;
  made.start_time = ingest::SystemTime(std::chrono::seconds(started));
  return made;
}

api::Selector any(const std::string& word) {
  api::Selector selector;
  selector.set_any(word);
  return selector;
}

class CollectorRegistryTest : public testing::Test {
 protected:
  std::vector<ingest::AgentId> targets(const std::string& word) {
    std::vector<ingest::AgentId> ids;
    const auto found = registry_.targets(any(word));
    if (found.ok()) {
      for (const AgentSnapshot& one : *found) ids.push_back(one.id);
    }
    return ids;
  }
  std::vector<std::string> session_names() {
    std::vector<std::string> names;
    for (const SessionSnapshot& one : registry_.sessions()) names.push_back(one.name);
    return names;
  }
  // The agent, or what is said instead.
  std::string detachable(const std::string& word) {
    const auto found = registry_.agent_to_detach(word);
    return found.ok() ? std::to_string(found->id) : found.error().message;
  }

  Registry registry_;
};

TEST_F(CollectorRegistryTest, AgentAnswersToEachOfItsNames) {
  registry_.put(agent(1, "app", AgentState::kConnected));
  registry_.put(agent(2, "other", AgentState::kRecording));
  for (const char* word : {"agents/2", "other", "1002", "device-2", "tag-2", "session_1/pid_2",
                           "sessions/session_1/pid_2", "2"}) {
    EXPECT_THAT(targets(word), ElementsAre(2)) << word;
  }
  EXPECT_THAT(targets(""), ElementsAre(1, 2));
  EXPECT_THAT(targets("agents/3"), IsEmpty());
  EXPECT_THAT(targets("agents/2x"), IsEmpty());
  const auto missing = registry_.targets(any("absent"));
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("agents: agents/1 (app), agents/2 (other)"));
}

// A number that is a pid, a tag or an agent's: the process is meant first.
TEST_F(CollectorRegistryTest, ShortNumberIsAnAgentUnlessANameMatches) {
  registry_.put(agent(1, "app", AgentState::kConnected));
  registry_.put(agent(2, "1", AgentState::kConnected));
  EXPECT_THAT(targets("1"), ElementsAre(2));
  EXPECT_THAT(targets("agents/1"), ElementsAre(1));
}

TEST_F(CollectorRegistryTest, PrefersConnectedAgentsOfTheSameName) {
  registry_.put(agent(1, "app", AgentState::kGone));
  registry_.put(agent(2, "app", AgentState::kDisconnected));
  EXPECT_THAT(targets("app"), ElementsAre(1, 2)) << "no one lives";
  EXPECT_THAT(targets(""), IsEmpty());
  EXPECT_THAT(registry_.targets({}).error().message,
              HasSubstr("no agent is connected; known: agents/2 (app)"));
  registry_.put(agent(3, "app", AgentState::kRecording));
  registry_.put(agent(4, "app", AgentState::kConnected));
  EXPECT_THAT(targets("app"), ElementsAre(3, 4));
  EXPECT_THAT(targets("agents/1"), ElementsAre(1));
}

TEST_F(CollectorRegistryTest, SessionsAreListedNewestFirst) {
  EXPECT_EQ(registry_.session("").error().message, "there is no session yet");
  registry_.put(session("b", SessionState::kComplete, 20));
  registry_.put(session("a", SessionState::kActive, 20));
  registry_.put(session("c", SessionState::kFailed, 10));
  EXPECT_THAT(session_names(), ElementsAre("b", "a", "c"));
  EXPECT_EQ(registry_.session("")->name, "b");
  EXPECT_EQ(registry_.session("sessions/c")->name, "c");
  const auto missing = registry_.session("d");
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("no session \"d\"; there are: c, b, a"));
  registry_.remove_session("b");
  EXPECT_THAT(session_names(), ElementsAre("a", "c"));
}

// An empty name means the recording and not what was made of it, which is as old.
TEST_F(CollectorRegistryTest, RecordingComesBeforeWhatWasMadeOfIt) {
  const std::string recorded = "session_20260131_235959/pid_7";
  const std::string converted = "session_20260131_235959_atf1/pid_7";
  registry_.put(session(converted, SessionState::kComplete, 5));
  EXPECT_EQ(registry_.session("")->name, converted) << "there is nothing else";
  registry_.put(session(recorded, SessionState::kComplete, 5));
  registry_.put(session("session_20250131_235959/pid_7", SessionState::kComplete, 4));
  EXPECT_EQ(registry_.session("")->name, recorded);
  EXPECT_EQ(registry_.sessions()[0].name, recorded);
  EXPECT_EQ(registry_.sessions()[1].name, converted);
}

TEST_F(CollectorRegistryTest, LongListsAreCutInSentences) {
  EXPECT_THAT(registry_.agent("1").error().message, HasSubstr("there are: none"));
  for (ingest::AgentId id = 1; id <= 8; ++id) {
    registry_.put(agent(id, "a", AgentState::kConnected));
    registry_.put(session("s" + std::to_string(id), SessionState::kActive));
  }
  EXPECT_THAT(registry_.agent("99").error().message, Not(HasSubstr("…")));
  EXPECT_THAT(registry_.session("x").error().message, Not(HasSubstr("…")));
  AgentSnapshot dialled = agent(9, "", AgentState::kDialing);
  registry_.put(dialled);
  registry_.put(session("s9", SessionState::kActive));
  EXPECT_THAT(registry_.agent("99").error().message, HasSubstr("agents/8 (a), …"));
  EXPECT_THAT(registry_.session("x").error().message,
              HasSubstr("s9, s8, s7, s6, s5, s4, s3, s2, …"));
  for (ingest::AgentId id = 1; id <= 8; ++id) registry_.put(agent(id, "a", AgentState::kGone));
  EXPECT_THAT(registry_.agent("99").error().message,
              HasSubstr("there are: agents/9 (127.0.0.1:9)"));
}

// Ingest knows nothing of names: what it tells of a session later takes none away.
TEST_F(CollectorRegistryTest, KeepsSymbolStateOverSessionUpdates) {
  registry_.set_symbols("a", SymbolsState::kDone);
  EXPECT_FALSE(registry_.session("a").ok()) << "there is none yet";
  registry_.put(session("a", SessionState::kComplete));
  EXPECT_EQ(registry_.session("a")->symbols, SymbolsState::kNone);
  registry_.set_symbols("a", SymbolsState::kDone);
  EXPECT_EQ(registry_.session("a")->symbols, SymbolsState::kDone);
  SessionSnapshot again = session("a", SessionState::kRecovered);
  again.symbols = SymbolsState::kPending;
  registry_.put(again);
  EXPECT_EQ(registry_.session("a")->symbols, SymbolsState::kDone);
  EXPECT_EQ(registry_.session("a")->state, SessionState::kRecovered);
}

TEST_F(CollectorRegistryTest, ForgetsTheOldestEndedAgent) {
  registry_.put(agent(1, "alive", AgentState::kConnected));
  for (ingest::AgentId id = 2; id < 2 + kMaxEndedAgents; ++id) {
    registry_.put(agent(id, "gone", AgentState::kGone));
  }
  EXPECT_TRUE(registry_.agent("2").ok());
  EXPECT_EQ(registry_.put(agent(5'000, "gone", AgentState::kGone)), Registry::Change::kAdded);
  EXPECT_FALSE(registry_.agent("2").ok());
  EXPECT_TRUE(registry_.agent("3").ok());
  EXPECT_TRUE(registry_.agent("1").ok()) << "what is alive is always listed";
  EXPECT_EQ(registry_.agents().size(), kMaxEndedAgents + 1);
  EXPECT_EQ(registry_.put(agent(1, "alive", AgentState::kRecording)), Registry::Change::kChanged);
}

TEST_F(CollectorRegistryTest, ForgetsTheOldestEndedSession) {
  registry_.put(session("alive", SessionState::kActive, 1));
  for (size_t at = 0; at < kMaxEndedSessions; ++at) {
    registry_.put(
        session("s" + std::to_string(at), SessionState::kComplete, 100'000 - static_cast<int>(at)));
  }
  const std::string oldest = "s" + std::to_string(kMaxEndedSessions - 1);
  EXPECT_TRUE(registry_.session(oldest).ok());
  registry_.put(session("newest", SessionState::kFailed, 200'000));
  EXPECT_FALSE(registry_.session(oldest).ok());
  EXPECT_TRUE(registry_.session("s0").ok());
  EXPECT_TRUE(registry_.session("alive").ok());
  EXPECT_EQ(registry_.sessions().size(), kMaxEndedSessions + 1);
}

TEST_F(CollectorRegistryTest, AgentIsDetachedByNameAddressOrWord) {
  AgentSnapshot dialled = agent(1, "", AgentState::kDialing);
  dialled.address = "unix:/run/app";
  registry_.put(dialled);
  EXPECT_EQ(detachable("unix:/run/app"), "1");
  AgentSnapshot answered = agent(2, "app", AgentState::kConnected);
  answered.address = "unix:/run/app";
  registry_.put(answered);
  EXPECT_EQ(detachable("unix:/run/app"), "2") << "the process that answered there";
  EXPECT_EQ(detachable("agents/1"), "1");
  EXPECT_EQ(detachable("app"), "2");
  registry_.put(agent(3, "app", AgentState::kConnected));
  EXPECT_EQ(detachable("app"), "\"app\" means 2 agents: name one, as in agents/2");
  EXPECT_THAT(detachable("nobody"), HasSubstr("no agent \"nobody\"; there are: agents/1"));
  answered.state = AgentState::kGone;
  registry_.put(answered);
  EXPECT_EQ(detachable("unix:/run/app"), "1") << "who is gone is not there any more";
}

TEST_F(CollectorRegistryTest, RemovedAgentsAreHandedBack) {
  EXPECT_THAT(registry_.remove_agent(1).error().message, HasSubstr("agents/1 is not known"));
  registry_.put(agent(1, "app", AgentState::kConnected));
  EXPECT_EQ(registry_.remove_agent(1)->process_name, "app");
  EXPECT_TRUE(registry_.agents().empty());
}

}  // namespace
}  // namespace collect::daemon
