// Stalls from the wire to the manifest: stored once, acknowledged, and refused where they make no
// sense.
#include <gmock/gmock.h>

#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using storage::StallKind;
using testing::HasSubstr;

class StallsTest : public IngestTest {
 protected:
  static void add(wire::Stalls& stalls, uint32_t stream, wire::Stall::Kind kind, uint64_t first_ns,
                  uint64_t last_ns) {
    wire::Stall* stall = stalls.add_stalls();
    stall->set_stream_id(stream);
    stall->set_kind(kind);
    stall->set_first_ns(first_ns);
    stall->set_last_ns(last_ns);
  }
  bool begin(FakeAgent& agent) {
    return agent.connect(address()) && agent.start_recording(1) && agent.open_stream(7, 70) &&
           agent.open_stream(8, 80);
  }
  storage::Manifest end(FakeAgent& agent) {
    EXPECT_TRUE(agent.close_stream(7, 10));
    EXPECT_TRUE(agent.close_stream(8, 0));
    EXPECT_TRUE(agent.end_recording());
    EXPECT_TRUE(agent.wait_recording_ended(1));
    const auto session = reported_.session_in(SessionState::kComplete);
    EXPECT_TRUE(session.has_value());
    if (!session) return {};
    shown_ = session->totals;
    auto stored = storage::manifest_from_json(manifest(*session));
    EXPECT_TRUE(stored.ok());
    return stored.ok() ? *stored : storage::Manifest();
  }
  // Sends it from a new process; why it was refused.
  std::string refusal_of(const wire::Stalls& stalls) {
    fakes::FakeProcess process;
    process.id_byte = ++last_process_;
    FakeAgent agent(process);
    EXPECT_TRUE(begin(agent));
    EXPECT_TRUE(agent.data().send(wire::FrameType::kStalls, stalls));
    EXPECT_TRUE(agent.wait_refused());
    return agent.refused() ? agent.refused()->reason() : "";
  }

  storage::SessionTotals shown_;
  uint8_t last_process_ = 0;
};

TEST_F(StallsTest, AreStoredOnceAndAcknowledged) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(begin(agent));
  wire::Stalls stalls;
  stalls.set_first_number(0);
  add(stalls, 7, wire::Stall::PAGE_WAIT, 1000, 1300);
  add(stalls, 0, wire::Stall::STOPPED, 2000, 9000);
  add(stalls, 8, wire::Stall::PAGE_WAIT, 4000, 8000);
  stalls.mutable_stalls(2)->set_count(5);
  stalls.mutable_stalls(2)->set_stalled_ns(700);
  ASSERT_TRUE(agent.data().send(wire::FrameType::kStalls, stalls));
  ASSERT_TRUE(agent.wait_stalls_stored(3));
  ASSERT_TRUE(agent.send_events(7, 0, 10));
  agent.disconnect();
  ASSERT_TRUE(reported_.session_in(SessionState::kInterrupted).has_value());
  // The acknowledgement may have been lost with the link: all of it again, and one more.
  ASSERT_TRUE(begin(agent));
  add(stalls, 0, wire::Stall::SUSPENDED, 10'000, 20'000);
  ASSERT_TRUE(agent.data().send(wire::FrameType::kStalls, stalls));
  ASSERT_TRUE(agent.wait_stalls_stored(4));
  const storage::Manifest manifest = end(agent);
  ASSERT_EQ(manifest.stalls.size(), 4u);
  EXPECT_EQ(manifest.stalls[0].kind, StallKind::kStopped);
  EXPECT_FALSE(manifest.stalls[0].thread.has_value());
  EXPECT_EQ(manifest.stalls[1].kind, StallKind::kSuspended);
  EXPECT_EQ(manifest.stalls[2].thread, 0u);
  EXPECT_EQ(manifest.stalls[2].first_ns, 1000u);
  EXPECT_EQ(manifest.stalls[2].last_ns, 1300u);
  EXPECT_EQ(manifest.stalls[3].thread, 1u);
  EXPECT_EQ(manifest.stalls[3].count, 5u);
  EXPECT_EQ(manifest.stalls[3].stalled_ns, 700u);
  EXPECT_EQ(manifest.threads[1].stalls.count, 5u);
  EXPECT_EQ(manifest.threads[1].stalls.stalled_ns, 700u);
  EXPECT_EQ(shown_.stalls.count, 8u);
  EXPECT_EQ(shown_.stalls.stalled_ns, 300u + 7000u + 700u + 10'000u);
  EXPECT_EQ(shown_.stalls.page_wait_ns, 1000u);
  EXPECT_EQ(manifest.totals.stalls.stalled_ns, shown_.stalls.stalled_ns);
}

TEST_F(StallsTest, LeavesOutAndAcknowledgesAKindOfLaterVersions) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(begin(agent));
  wire::Stalls stalls;
  add(stalls, 7, static_cast<wire::Stall::Kind>(77), 1000, 1300);
  ASSERT_TRUE(agent.data().send(wire::FrameType::kStalls, stalls));
  ASSERT_TRUE(agent.wait_stalls_stored(1));
  ASSERT_TRUE(agent.send_events(7, 0, 10));
  EXPECT_TRUE(end(agent).stalls.empty());
}

TEST_F(StallsTest, ThoseThatContradictThemselvesAreRefused) {
  start();
  wire::Stalls backwards;
  add(backwards, 7, wire::Stall::PAGE_WAIT, 1300, 1000);
  EXPECT_THAT(refusal_of(backwards), HasSubstr("contradict"));
  wire::Stalls too_much;
  add(too_much, 7, wire::Stall::PAGE_WAIT, 1000, 1300);
  too_much.mutable_stalls(0)->set_count(2);
  too_much.mutable_stalls(0)->set_stalled_ns(301);
  EXPECT_THAT(refusal_of(too_much), HasSubstr("contradict"));
  wire::Stalls one_in_part;
  add(one_in_part, 7, wire::Stall::PAGE_WAIT, 1000, 1300);
  one_in_part.mutable_stalls(0)->set_stalled_ns(200);
  EXPECT_THAT(refusal_of(one_in_part), HasSubstr("contradict"));
  wire::Stalls many;
  for (uint64_t i = 0; i <= wire::kMaxStallsPerFrame; ++i) {
    add(many, 7, wire::Stall::PAGE_WAIT, 10 * i, 10 * i + 5);
  }
  EXPECT_THAT(refusal_of(many), HasSubstr("more than 64 stalls"));
  wire::Stalls of_unknown;
  add(of_unknown, 99, wire::Stall::PAGE_WAIT, 1000, 1300);
  EXPECT_THAT(refusal_of(of_unknown), HasSubstr("stall of stream 99, which was not opened"));
}

TEST_F(StallsTest, BeforeARecordingTheyAreRefused) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  wire::Stalls stalls;
  add(stalls, 0, wire::Stall::STOPPED, 1000, 1300);
  ASSERT_TRUE(agent.data().send(wire::FrameType::kStalls, stalls));
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_THAT(agent.refused()->reason(), HasSubstr("before a recording"));
}

}  // namespace
}  // namespace collect::ingest
