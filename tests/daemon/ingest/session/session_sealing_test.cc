// The seal of one session by hand: what is reported of it, and when it is tried again.
#include "daemon/ingest/session/session_sealing.h"

#include <gmock/gmock.h>

#include "daemon/ingest/session/core.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/storage/fault_fs.h"

namespace collect::ingest {
namespace {

using storage::SessionState::kComplete;
using storage::SessionState::kFailed;
using storage::SessionState::kRecovered;
using testing::HasSubstr;
using testing::StartsWith;

class NamingObserver final : public IngestObserver {
 public:
  void agent_changed(const AgentSnapshot&) override {}
  void agent_removed(AgentId) override {}
  void session_changed(const SessionSnapshot&) override {}
  bool to_be_named(const std::string& name, const std::string&,
                   std::vector<uint64_t> ids) override {
    named = name;
    functions = std::move(ids);
    return true;
  }
  std::string named;
  std::vector<uint64_t> functions;
};

class SessionSealingTest : public IngestTest {
 protected:
  ~SessionSealingTest() override {
    session_.reset();
    if (core_) core_->stop_threads();
  }
  // A session that is open, and its first report is taken.
  void begin() {
    core_ = std::make_unique<IngestCore>(options_, faulty_, namer_);
    make_session();
    storage::SessionIdentity identity;
    identity.process_id = {7};
    identity.recording = 1;
    identity.pid = 4711;
    ASSERT_TRUE(session_->open(identity, std::nullopt).ok());
    opened_ = session_->take_report().opened.value();
  }
  void make_session() {
    session_.emplace(core_->queue_dependencies.storage,
                     core_->budget.account(principal::Principal::of_uid(1)));
  }
  void begin_seal(storage::SessionState state, const std::string& reason) {
    sealing_.emplace(*session_, SessionSeal{state, reason});
  }
  bool attempt(bool can_come_again = true) {
    asked_ = false;
    const bool reports = sealing_->attempt([&] {
      asked_ = true;
      return can_come_again;
    });
    if (reports) sealed_ = session_->take_report().sealed.value();
    return reports;
  }
  void break_disk(Code code) {
    faulty_.set_plan({.fail_at = faulty_.changes(), .code = code, .lasting = true});
  }
  bool is_remembered() { return core_->completed.find({7}, 1, 4711).session_path.has_value(); }

  storage::test::FaultFs faulty_;
  NamingObserver namer_;
  std::unique_ptr<IngestCore> core_;
  std::optional<StoredSession> session_;
  std::optional<SessionSealing> sealing_;
  SessionReport::Opened opened_;
  SessionReport::Sealed sealed_;
  bool asked_ = false;  // whether another attempt can be made
};

TEST_F(SessionSealingTest, WholeOneIsReportedRememberedAndClosed) {
  begin();
  begin_seal(kComplete, "exit");
  EXPECT_TRUE(attempt());
  EXPECT_FALSE(asked_);
  EXPECT_EQ(sealed_.state, kComplete);
  EXPECT_EQ(sealed_.reason, "exit");
  EXPECT_FALSE(sealed_.deferred);
  EXPECT_EQ(sealed_.health.state, kComplete);
  EXPECT_TRUE(is_remembered());
  EXPECT_FALSE(session_->is_open());
  EXPECT_EQ(core_->budget.used(principal::Resource::kDescriptors), 0u);
}

TEST_F(SessionSealingTest, OnlyACompleteOneIsRemembered) {
  begin();
  begin_seal(kRecovered, "cut");
  EXPECT_TRUE(attempt());
  EXPECT_EQ(sealed_.state, kRecovered);
  EXPECT_FALSE(is_remembered());
}

// Its end came, and the last counts of a thread did not.
TEST_F(SessionSealingTest, StateIsWhatTheFilesHave) {
  begin();
  ASSERT_TRUE(session_->writer().open_stream({1, 11, "thread", 1}).ok());
  begin_seal(kComplete, "exit");
  EXPECT_TRUE(attempt());
  EXPECT_EQ(sealed_.state, kRecovered);
  EXPECT_TRUE(is_remembered()) << "nothing more is to come";
}

TEST_F(SessionSealingTest, DefersAndReportsSealingOnAFullDisk) {
  begin();
  break_disk(Code::kNoSpace);
  begin_seal(kComplete, "exit");
  EXPECT_TRUE(attempt());
  EXPECT_TRUE(asked_);
  EXPECT_TRUE(sealed_.deferred);
  EXPECT_EQ(sealed_.state, kFailed);
  EXPECT_THAT(sealed_.reason, StartsWith("exit; sealing failed: "));
  EXPECT_TRUE(session_->is_open());
  EXPECT_FALSE(attempt()) << "still full, and that was reported";
  EXPECT_TRUE(asked_);
  EXPECT_FALSE(is_remembered());
  faulty_.set_plan({});
  EXPECT_TRUE(attempt());
  EXPECT_EQ(sealed_.state, kComplete);
  EXPECT_FALSE(sealed_.deferred);
  EXPECT_TRUE(is_remembered());
  EXPECT_FALSE(session_->is_open());
}

TEST_F(SessionSealingTest, KeepsTheFirstOutcomeWithoutAnotherAttempt) {
  begin();
  break_disk(Code::kNoSpace);
  begin_seal(kComplete, "exit");
  EXPECT_TRUE(attempt(false));
  EXPECT_FALSE(sealed_.deferred);
  EXPECT_EQ(sealed_.state, kFailed);
  EXPECT_FALSE(session_->is_open());
}

TEST_F(SessionSealingTest, BrokenDiskDoesNotGetBetter) {
  begin();
  break_disk(Code::kIo);
  begin_seal(kComplete, "exit");
  EXPECT_TRUE(attempt());
  EXPECT_FALSE(asked_);
  EXPECT_FALSE(sealed_.deferred);
  EXPECT_EQ(sealed_.state, kFailed);
}

// This machine was out of something: nothing has become of the session yet.
TEST_F(SessionSealingTest, RetriesTransientExhaustionWithoutReportingIt) {
  begin();
  break_disk(Code::kExhausted);
  begin_seal(kComplete, "exit");
  EXPECT_FALSE(attempt());
  EXPECT_TRUE(asked_);
  EXPECT_TRUE(session_->is_open());
  faulty_.set_plan({});
  EXPECT_TRUE(attempt());
  EXPECT_EQ(sealed_.state, kComplete);
  EXPECT_TRUE(is_remembered());
}

TEST_F(SessionSealingTest, FunctionsThatOccurAreToBeNamed) {
  options_.storage.symbolize = true;
  begin();
  ASSERT_TRUE(session_->writer().open_stream({1, 11, "thread", 1}).ok());
  const std::vector<uint8_t> events = fakes::index_events(0, 3);  // of two functions
  const Page page{fakes::index_page_header(1, 0, 3), events, {}};
  PageUnpacker unpacker;
  ASSERT_TRUE(session_->store(std::span(&page, 1), unpacker).ok());
  begin_seal(kRecovered, "cut");
  EXPECT_TRUE(attempt());
  EXPECT_EQ(namer_.named, opened_.name);
  EXPECT_EQ(namer_.functions.size(), 2u);
  EXPECT_EQ(sealed_.symbols, storage::SymbolsState::kPending);
}

TEST_F(SessionSealingTest, RecoversSessionsThatCannotGoOn) {
  begin();
  begin_seal(kRecovered, "cut");
  ASSERT_TRUE(attempt());
  sealing_.reset();
  make_session();
  ASSERT_TRUE(session_->resume(opened_.directory).ok());
  EXPECT_EQ(session_->recover_directory(), opened_.directory);
  begin_seal(session_->must_seal()->state, session_->must_seal()->reason);
  EXPECT_TRUE(attempt());
  EXPECT_EQ(sealed_.state, kRecovered);
  EXPECT_EQ(sealed_.reason, "cut") << "as it was sealed then";
}

TEST_F(SessionSealingTest, WhereNothingIsLeftItHasFailed) {
  begin();
  sealing_.reset();
  make_session();
  ASSERT_TRUE(session_->resume(root_ + "/session_20260101_000000/pid_1").ok());
  begin_seal(session_->must_seal()->state, session_->must_seal()->reason);
  EXPECT_TRUE(attempt());
  EXPECT_EQ(sealed_.state, kFailed);
  EXPECT_EQ(sealed_.health.state, kFailed);
  EXPECT_THAT(sealed_.reason, HasSubstr("session_20260101_000000/pid_1"));
}

}  // namespace
}  // namespace collect::ingest
