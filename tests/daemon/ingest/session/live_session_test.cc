// What is shown of a session, and when it is committed though nothing more comes.
#include "daemon/ingest/session/live_session.h"

#include <gmock/gmock.h>

#include "daemon/ingest/session/core.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"

namespace collect::ingest {
namespace {

class Shown final : public IngestObserver {
 public:
  void agent_changed(const AgentSnapshot&) override {}
  void agent_removed(AgentId) override {}
  void session_changed(const SessionSnapshot& session) override { all.push_back(session); }
  std::vector<SessionSnapshot> all;
};

class LiveSessionTest : public IngestTest {
 protected:
  LiveSessionTest() {
    options_.data_threads = 1;
    core_ = std::make_unique<IngestCore>(options_, *fs_, shown_);
    session_ = std::make_shared<LiveSession>(*core_, loop_.io(),
                                             core_->budget.account(principal::Principal::of_uid(1)),
                                             [this](const SessionReport& report) {
                                               ++reports_;
                                               session_->take(report);
                                               if (report.sealed)
                                                 session_->take_sealed(*report.sealed);
                                             });
  }
  ~LiveSessionTest() override {
    session_->seal(storage::SessionState::kRecovered, "the test is over");
    run();
    core_->stop_threads();
    run();
  }
  void open() {
    storage::SessionIdentity identity;
    identity.process_id = {7};
    identity.recording = 1;
    session_->push([identity](StoredSession& session) { return session.open(identity, {}); });
    run();
    ASSERT_TRUE(session_->opened);
  }
  void run() { loop_.run_with(&core_->data_threads); }
  // Whether the session was committed for its own sake.
  bool commits_at(SteadyTime now) {
    const int before = reports_;
    session_->commit_when_settled(now);
    run();
    return reports_ != before;
  }

  IoLoop loop_;
  Shown shown_;
  std::unique_ptr<IngestCore> core_;
  std::shared_ptr<LiveSession> session_;
  int reports_ = 0;
};

TEST_F(LiveSessionTest, IsNotReportedBeforeItHasAName) {
  EXPECT_EQ(core_->live_sessions, 1u);
  session_->show(true);
  session_->sweep(std::chrono::steady_clock::now() + std::chrono::hours(1));
  EXPECT_TRUE(shown_.all.empty());
  open();
  ASSERT_EQ(shown_.all.size(), 1u);
  EXPECT_EQ(shown_.all[0].name, session_->shown.name);
  EXPECT_EQ(shown_.all[0].directory, session_->shown.directory);
}

TEST_F(LiveSessionTest, ShowsCountsAtIntervalsAndStatesAtOnce) {
  open();
  shown_.all.clear();
  session_->show(true);
  const SteadyTime now = std::chrono::steady_clock::now();
  EXPECT_EQ(shown_.all.size(), 1u);
  SessionReport report;
  report.totals.events = 5;
  session_->take(report);
  session_->sweep(now - milliseconds{1});
  EXPECT_EQ(shown_.all.size(), 1u) << "it was shown just now";
  session_->sweep(now + kProgressInterval);
  ASSERT_EQ(shown_.all.size(), 2u);
  EXPECT_EQ(shown_.all[1].totals.events, 5u);
  session_->sweep(now + 2 * kProgressInterval);
  EXPECT_EQ(shown_.all.size(), 2u) << "nothing has changed";
  session_->show(false);
  EXPECT_EQ(shown_.all.size(), 2u);
  session_->sweep(std::chrono::steady_clock::now() + kProgressInterval);
  EXPECT_EQ(shown_.all.size(), 3u);
}

TEST_F(LiveSessionTest, WhenNothingMoreComesItIsCommittedTwice) {
  open();
  session_->push([](StoredSession&) { return Status(); });
  run();
  const SteadyTime first = std::chrono::steady_clock::now();
  EXPECT_TRUE(commits_at(first));
  EXPECT_FALSE(commits_at(first + kSettleInterval - milliseconds{1}));
  EXPECT_TRUE(commits_at(first + kSettleInterval));
  EXPECT_FALSE(commits_at(first + 2 * kSettleInterval));
  EXPECT_FALSE(commits_at(first + 9 * kSettleInterval)) << "it is true by now";
  session_->note("something happened");
  run();
  EXPECT_TRUE(commits_at(std::chrono::steady_clock::now() + 10 * kSettleInterval));
}

TEST_F(LiveSessionTest, SealIsShownFromItsBeginningToItsEnd) {
  open();
  shown_.all.clear();
  session_->seal(storage::SessionState::kRecovered, "cut");
  ASSERT_EQ(shown_.all.size(), 1u);
  EXPECT_EQ(shown_.all[0].state, SessionState::kSealing);
  ASSERT_TRUE(loop_.run_until([this] { return shown_.all.size() > 1; }));
  EXPECT_EQ(shown_.all.back().state, SessionState::kRecovered);
  EXPECT_EQ(shown_.all.back().status, "cut");
  EXPECT_EQ(shown_.all.back().health.state, storage::SessionState::kRecovered);
  EXPECT_NE(shown_.all.back().end_time, SystemTime{});
}

// The io thread may end before there is room; what becomes of it is shown all the same.
TEST_F(LiveSessionTest, DeferredSealIsShownWithoutTheSession) {
  open();
  shown_.all.clear();
  SessionReport::Sealed deferred;
  deferred.state = storage::SessionState::kFailed;
  deferred.reason = "the disk is full";
  deferred.deferred = true;
  session_->take_sealed(deferred);
  ASSERT_EQ(shown_.all.size(), 1u);
  EXPECT_EQ(shown_.all[0].state, SessionState::kFailed);
  const int reports = reports_;
  session_->queue->seal(storage::SessionState::kComplete, "exit");
  ASSERT_TRUE(loop_.run_until([this] { return shown_.all.size() == 2; }));
  EXPECT_EQ(shown_.all[1].state, SessionState::kComplete);
  EXPECT_EQ(shown_.all[1].name, session_->shown.name);
  EXPECT_EQ(reports_, reports) << "none of them is the session's any more";
}

TEST_F(LiveSessionTest, LeavingEndsReports) {
  open();
  const int reports = reports_;
  session_->leave();
  session_->push([](StoredSession&) { return Status(); });
  run();
  EXPECT_EQ(reports_, reports);
}

}  // namespace
}  // namespace collect::ingest
