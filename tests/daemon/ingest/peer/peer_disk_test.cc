// What an agent is informed where its recording can't be stored, and what is left of its session.
#include <gmock/gmock.h>

#include <cstddef>

#include "formats/atf/layout.h"
#include "tests/daemon/ingest/peer/peer_fixture.h"
#include "tests/storage/fault_fs.h"

namespace collect::ingest {
namespace {

using testing::IsEmpty;
using wire::FrameType;

class PeerDiskTest : public PeerTest {
 protected:
  PeerDiskTest() { fs_ = &faulty_; }
  ~PeerDiskTest() override {
    if (core_) core_->stop_threads();
  }
  void expect_refused(wire::RefuseCode code, bool retry) {
    for (fakes::FrameSocket* channel : {&control_, &data_}) {
      const auto refuse = wait_for(*channel, FrameType::kRefuse);
      ASSERT_TRUE(refuse.has_value());
      EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), code);
      EXPECT_EQ(refuse->parsed<wire::Refuse>().retry(), retry);
      EXPECT_EQ(refuse->parsed<wire::Refuse>().reason(), shown().status);
    }
    EXPECT_FALSE(peer_->connected());
    EXPECT_EQ(shown().state, AgentState::kDisconnected);
  }
  storage::test::FaultFs faulty_;
};

// The agent sends it again, and that is a new session when the disk is well again.
TEST_F(PeerDiskTest, DiskThatFailsEndsTheSession) {
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  run();
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  open_stream(1);
  send_events(1, 0, 10);
  expect_refused(wire::REFUSE_STORAGE, true);
  const auto failed = session_in(SessionState::kFailed);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->status.find("I/O error: " + shown().status), 0u) << failed->status;
  EXPECT_EQ(core_->live_sessions, 0u);
  EXPECT_THAT(ended(), IsEmpty());
  faulty_.set_plan({});
  connect();
  start_recording();
  open_stream(1);
  send_events(1, 0, 10);
  close_stream(1, 10);
  end_recording();
  ASSERT_TRUE(when([](const auto& one) { return one.state == SessionState::kComplete; }));
  EXPECT_EQ(ended(), std::vector<uint32_t>{1});
  EXPECT_EQ(reported_.session_count(), 2u);
}

TEST_F(PeerDiskTest, WithoutRoomNoSessionBegins) {
  begin();
  faulty_.free_bytes = 1;
  connect();
  start_recording();
  expect_refused(wire::REFUSE_STORAGE, true);
  ASSERT_TRUE(loop_.run_until([&] { return core_->live_sessions == 0; }));
  EXPECT_EQ(reported_.session_count(), 0u) << "it has no name";
  EXPECT_EQ(used(principal::Resource::kSessions), 0u);
}

// What is no record would come again and again.
TEST_F(PeerDiskTest, RecordsThatAreNoneEndTheRecordingForGood) {
  begin();
  connect();
  start_recording();
  open_stream(1);
  send_events(1, 0, 10);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  auto events = fakes::index_events(10, 1);
  events[offsetof(atf::IndexEventV2, event_kind)] = 77;
  ASSERT_TRUE(data_.send_page(fakes::index_page_header(1, 10, 1), events));
  expect_refused(wire::REFUSE_PROTOCOL, false);
  const auto sealed = session_in(SessionState::kRecovered);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(sealed->status, "the agent's data was refused: " + shown().status);
  EXPECT_EQ(sealed->totals.events, 10u);
  connect();
  start_recording();
  EXPECT_EQ(ended(), std::vector<uint32_t>{1}) << "it is over";
  EXPECT_EQ(reported_.session_count(), 1u);
}

}  // namespace
}  // namespace collect::ingest
