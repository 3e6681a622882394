// Ingest without threads of its own: everything happens within step(), and abandon() leaves what a
// killed process leaves.
#include <gmock/gmock.h>

#include <filesystem>
#include <thread>

#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;

class SteppedTest : public IngestTest {
 protected:
  SteppedTest() { options_.stepped = true; }

  static size_t threads() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
  }
  // Agents wait for answers, so theirs is another thread.
  void serve(const std::function<void()>& agents) {
    std::atomic<bool> is_done{false};
    std::thread other([&] {
      agents();
      is_done = true;
    });
    while (!is_done) {
      if (!ingest_->step()) std::this_thread::yield();
    }
    other.join();
  }
};

TEST_F(SteppedTest, OneThreadTakesStoresAndSeals) {
  const size_t before = threads();
  start();
  EXPECT_LE(threads(), before);  // one that another test joined may have left meanwhile
  FakeAgent agent;
  serve([&] {
    ASSERT_TRUE(agent.connect(address()));
    record_all(agent, 1, 7, 5'000);
  });
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 5'000), fakes::index_events(0, 5'000));
  agent.disconnect();
  EXPECT_TRUE(ingest_->stop(milliseconds{0}));
}

TEST_F(SteppedTest, AbandonedRecordingContinuesAfterTheNextStart) {
  start();
  FakeAgent agent;
  serve([&] {
    ASSERT_TRUE(agent.connect(address()));
    ASSERT_TRUE(agent.start_recording(1));
    ASSERT_TRUE(agent.open_stream(7, 107));
    ASSERT_TRUE(agent.send_events(7, 0, 1'000));
    ASSERT_TRUE(agent.wait_stored(7, 1'000));
  });
  ingest_->abandon();
  agent.disconnect();
  EXPECT_FALSE(agent.bye().has_value());
  const auto places = storage::list_sessions(posix_, root_);
  ASSERT_TRUE(places.ok());
  ASSERT_EQ(places->size(), 1u);
  const auto left = storage::read_manifest(posix_, places->front().directory);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->state, storage::SessionState::kRecording);

  start();
  serve([&] {
    ASSERT_TRUE(agent.connect(address()));
    EXPECT_EQ(agent.resumed().at(7).index_next(), 1'000u);
    ASSERT_TRUE(agent.start_recording(1));
    ASSERT_TRUE(agent.open_stream(7, 107));
    ASSERT_TRUE(agent.send_events(7, 1'000, 500));
    ASSERT_TRUE(agent.close_stream(7, 1'500));
    ASSERT_TRUE(agent.end_recording());
    ASSERT_TRUE(agent.wait_recording_ended(1));
  });
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 1'500), fakes::index_events(0, 1'500));
  agent.disconnect();
}

}  // namespace
}  // namespace collect::ingest
