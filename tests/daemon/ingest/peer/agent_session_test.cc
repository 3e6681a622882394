// One recording by hand: what it is charged for, how long it waits, and what it does for people.
#include "daemon/ingest/peer/agent_session.h"

#include <gmock/gmock.h>

#include "storage/model/session_layout.h"
#include "tests/daemon/ingest/peer/peer_parts.h"

namespace collect::ingest {
namespace {

using principal::Resource;
using testing::ElementsAre;
using Overdue = AgentSession::Overdue;

constexpr milliseconds kResume{60'000};
constexpr milliseconds kSlack{5'000};  // longer than the test takes

class AgentSessionTest : public PeerPartsTest {
 protected:
  ~AgentSessionTest() override {
    if (!session_) return;
    session_->seal(storage::SessionState::kRecovered, "the test is over");
    run();
  }
  void begin_session(uint64_t memory = kMaxAccountedMemory) {
    options_.accounted_memory = memory;
    begin();
    session_ = std::make_shared<AgentSession>(
        *core_, loop_.io(), core_->budget.account(principal::Principal::of_uid(1)), 5);
    session_->queue->report_to([this](const SessionReport& report) {
      session_->take_report(report);
      if (report.sealed) session_->take_sealed(*report.sealed);
    });
  }
  void open() {
    const storage::SessionIdentity identity = identity_from(hello(), start_of(5));
    session_->push([identity](StoredSession& session) { return session.open(identity, {}); });
    ASSERT_TRUE(loop_.run_until([this] { return session_->opened; }));
  }
  Overdue overdue_in(milliseconds later) const {
    return session_->overdue(std::chrono::steady_clock::now() + later, kResume);
  }

  std::shared_ptr<AgentSession> session_;
};

TEST_F(AgentSessionTest, ItIsChargedUntilItIsGone) {
  begin_session();
  EXPECT_EQ(session_->shown.recording, 5u);
  ASSERT_TRUE(session_->charge().ok());
  EXPECT_EQ(used(Resource::kSessions), 1u);
  EXPECT_EQ(used(Resource::kMemory), kSessionMemory);
  EXPECT_EQ(used(Resource::kInodes), storage::kFilesPerSession);
  session_.reset();
  EXPECT_EQ(used(Resource::kSessions), 0u);
  EXPECT_EQ(used(Resource::kMemory), 0u);
  EXPECT_EQ(used(Resource::kInodes), 0u);
  core_->live_sessions.fetch_sub(1);
}

TEST_F(AgentSessionTest, OneThatIsFoundIsThereWithoutRoom) {
  begin_session(kSessionMemory / 2);
  EXPECT_EQ(session_->charge().code(), Code::kExhausted);
  session_->charge_found();
  EXPECT_EQ(used(Resource::kSessions), 1u);
  EXPECT_EQ(used(Resource::kMemory), kSessionMemory);
  EXPECT_EQ(used(Resource::kInodes), storage::kFilesPerSession);
}

TEST_F(AgentSessionTest, ItsAgentIsWaitedForSoLong) {
  begin_session();
  open();
  EXPECT_EQ(overdue_in(kResume + kSlack), Overdue::kNo) << "it is not away";
  session_->wait_for_agent();
  EXPECT_EQ(session_->shown.state, SessionState::kInterrupted);
  EXPECT_EQ(session_->shown.status, "its agent is away");
  EXPECT_EQ(overdue_in(kResume - kSlack), Overdue::kNo);
  EXPECT_EQ(overdue_in(kResume + kSlack), Overdue::kAgentAway);
  session_->end_wait();
  EXPECT_EQ(session_->shown.state, SessionState::kActive);
  EXPECT_EQ(session_->shown.status, "");
  EXPECT_EQ(overdue_in(kResume + kSlack), Overdue::kNo);
}

TEST_F(AgentSessionTest, EndHasADeadlineAfterTheLastData) {
  begin_session();
  open();
  EXPECT_FALSE(session_->expects_end());
  EXPECT_TRUE(session_->expect_end());
  EXPECT_FALSE(session_->expect_end()) << "again";
  EXPECT_TRUE(session_->expects_end());
  EXPECT_EQ(overdue_in(kStopIdleDeadline - kSlack), Overdue::kNo);
  EXPECT_EQ(overdue_in(kStopIdleDeadline + kSlack), Overdue::kEndNotSent);
  session_->wait_for_agent();
  EXPECT_EQ(overdue_in(kResume + kSlack), Overdue::kAgentAway) << "it can't end it";
}

TEST_F(AgentSessionTest, OrdersAreAnsweredFromTheFiles) {
  begin_session();
  open();
  std::vector<std::string> answers;
  session_->annotate({7, "here"}, [&](const Result<uint64_t>& at) {
    answers.push_back(at.ok() ? std::to_string(*at) : at.error().message);
  });
  session_->cut([&](const Result<storage::SessionCut>& cut) {
    answers.push_back(cut.ok() ? cut->manifest.markers.at(0).text : cut.error().message);
  });
  session_->store_lost_without_stream(0);
  session_->store_lost_without_stream(3);
  session_->store(storage::ClockSync{1, 2, 3, 0, 0, {}});
  session_->cut([&](const Result<storage::SessionCut>& cut) {
    answers.push_back(cut.ok() ? std::to_string(cut->manifest.lost_without_stream)
                               : cut.error().message);
  });
  ASSERT_TRUE(loop_.run_until([&] { return answers.size() == 3; }));
  EXPECT_THAT(answers, ElementsAre("7", "here", "3"));
}

TEST_F(AgentSessionTest, ContainersAreRolledWhereThereAreSome) {
  begin_session();
  open();
  std::optional<Result<std::string>> rolled;
  session_->roll_container([&](Result<std::string> path) { rolled.emplace(std::move(path)); });
  ASSERT_TRUE(loop_.run_until([&] { return rolled.has_value(); }));
  ASSERT_FALSE(rolled->ok()) << "none are written";
  EXPECT_EQ(rolled->code(), Code::kUnsupported);
}

}  // namespace
}  // namespace collect::ingest
