// One dial9 feed driven by hand: its pace, and what is shown of it meanwhile.
#include <gmock/gmock.h>

#include <thread>

#include "daemon/ingest/clock/clock_fit.h"
#include "daemon/ingest/lane/dial9_feed.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/daemon/ingest/io_loop.h"
#include "tests/fakes/dial9_stream.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using fakes::kDial9Example;
using testing::HasSubstr;

class FeedPaceTest : public IngestTest {
 protected:
  FeedPaceTest() : core_(options_, posix_, reported_) {}
  ~FeedPaceTest() override {
    if (feed_) feed_->shut_down();
    loop_.run();
    feed_.reset();
    core_.stop_threads();
    loop_.run();
  }
  // With these bytes read already.
  void begin(std::vector<uint8_t> early) {
    auto [link, other] = loop_.link(std::move(early));
    other_ = std::move(other);
    feed_ = std::make_shared<Dial9Feed>(core_, loop_.io(), std::move(link));
    feed_->start();
    loop_.run();
  }
  void begin_with_header() {
    begin({kDial9Example.begin(), kDial9Example.begin() + 5});
    ASSERT_TRUE(when([](const auto& one) { return one.totals.stored_bytes == 5; }));
  }
  void send(Bytes bytes) {
    ASSERT_TRUE(other_.send_bytes(bytes));
    loop_.run_with(&core_.data_threads);
  }
  bool sweep(milliseconds later) {
    const bool is_kept = feed_->sweep(std::chrono::steady_clock::now() + later);
    loop_.run_with(&core_.data_threads);
    return is_kept;
  }
  bool when(const std::function<bool(const SessionSnapshot&)>& fits) {
    return loop_.run_until([&] {
      if (reported_.was_shown(fits)) return true;
      feed_->sweep(std::chrono::steady_clock::now());  // shows what has changed
      return false;
    });
  }
  SessionSnapshot session() {
    return *reported_.session([](const auto&) { return true; });
  }
  storage::Manifest stored_manifest() {
    const auto manifest = storage::read_manifest(posix_, session().directory);
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? *manifest : storage::Manifest();
  }

  IoLoop loop_;
  IngestCore core_;
  FrameSocket other_;
  std::shared_ptr<Dial9Feed> feed_;
};

TEST_F(FeedPaceTest, SessionSaysWhatItIs) {
  const auto before = std::chrono::system_clock::now();
  const uint64_t clock_before = boottime_ns();
  begin_with_header();
  EXPECT_TRUE(feed_->has_session(session().name));
  EXPECT_FALSE(feed_->has_session("another"));
  EXPECT_EQ(session().state, SessionState::kActive);
  EXPECT_EQ(session().process_name, "dial9");
  EXPECT_EQ(session().device_id, "peer");
  EXPECT_GE(session().start_time, before);
  EXPECT_LE(session().start_time, std::chrono::system_clock::now());
  const storage::SessionIdentity identity = stored_manifest().identity;
  EXPECT_EQ(identity.clock, atf::ClockType::kBoottime);
  EXPECT_GE(identity.start_ns, clock_before);
  EXPECT_LE(identity.start_ns, boottime_ns());
  EXPECT_NEAR(static_cast<double>(identity.start_unix_ns),
              static_cast<double>(storage::system_clock().unix_ns()), 60e9);
  const auto first = identity.process_id;
  EXPECT_NE(first, storage::SessionIdentity().process_id);
  EXPECT_EQ(core_.live_sessions, 1u);
  EXPECT_EQ(core_.counters.bytes_received, 5u);
}

TEST_F(FeedPaceTest, EndIsShownStepByStep) {
  begin_with_header();
  send(Bytes(kDial9Example).subspan(5));
  other_.end_sending();
  ASSERT_TRUE(when([](const auto& one) { return one.state == SessionState::kComplete; }));
  EXPECT_TRUE(reported_.was_shown([](const auto& one) {
    return one.state == SessionState::kSealing && one.end_time == SystemTime();
  }));
  EXPECT_EQ(core_.live_sessions, 0u);
  EXPECT_GE(session().end_time, session().start_time);
  EXPECT_EQ(session().health.state, storage::SessionState::kComplete);
  const storage::Manifest manifest = stored_manifest();
  ASSERT_EQ(manifest.passthrough_streams.size(), 1u);
  EXPECT_EQ(manifest.passthrough_streams[0].refused_bytes, 0u);
  EXPECT_EQ(manifest.passthrough_streams[0].problem, "");
  EXPECT_FALSE(sweep(milliseconds{0})) << "it may be forgotten";
  // A stop that comes now is answered at once.
  std::optional<Result<SessionSnapshot>> stopped;
  feed_->stop([&](auto result) { stopped.emplace(std::move(result)); });
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ((*stopped)->state, SessionState::kComplete);
}

TEST_F(FeedPaceTest, UnfinishedFrameEndsIt) {
  begin_with_header();
  EXPECT_TRUE(sweep(2 * kFrameStall)) << "at a frame's end it may be silent";
  send(Bytes(kDial9Example).subspan(5, 25));
  EXPECT_TRUE(sweep(kFrameStall - milliseconds{5'000}));
  EXPECT_FALSE(other_.ends(milliseconds{0}));
  sweep(kFrameStall + milliseconds{1});
  EXPECT_TRUE(other_.ends(milliseconds{0}));
  ASSERT_TRUE(when([](const auto& one) { return one.state == SessionState::kRecovered; }));
  EXPECT_EQ(session().status, "a frame came to a stop half-way, at 30");
  const storage::Manifest manifest = stored_manifest();
  EXPECT_EQ(manifest.passthrough_streams[0].bytes, 26u);
  EXPECT_EQ(manifest.passthrough_streams[0].refused_bytes, 4u);
  EXPECT_EQ(manifest.passthrough_streams[0].problem,
            "the frame at 26 had not come whole: a frame came to a stop half-way, at 30");
}

TEST_F(FeedPaceTest, DoesNotShowUnchangedSessionsAgain) {
  begin_with_header();
  send(Bytes(kDial9Example).subspan(5));
  const auto later = std::chrono::steady_clock::now() + 2 * kProgressInterval;
  EXPECT_TRUE(loop_.run_until([&] {
    feed_->sweep(later);
    return session().totals.stored_bytes == 33;
  }));
  const auto shown = [this] {
    size_t count = 0;
    reported_.was_shown([&](const auto&) { return ++count, false; });
    return count;
  };
  const size_t before = shown();
  EXPECT_TRUE(feed_->sweep(later + kProgressInterval));
  EXPECT_EQ(shown(), before);
}

// It is not written for every change.
TEST_F(FeedPaceTest, WhenNothingMoreComesTheManifestIsMadeTrue) {
  begin_with_header();
  const auto said = [&] {
    const storage::Manifest manifest = stored_manifest();
    return manifest.passthrough_streams.empty() ? 0 : manifest.passthrough_streams[0].bytes;
  };
  send(Bytes(kDial9Example).subspan(5));
  ASSERT_TRUE(when([](const auto& one) { return one.totals.stored_bytes == 33; }));
  EXPECT_TRUE(loop_.run_until([&] {
    sweep(milliseconds{0});
    return said() == 33;
  }));
}

}  // namespace
}  // namespace collect::ingest
