#include "daemon/ingest/peer/keep_alive.h"

#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

using Due = KeepAlive::Due;

constexpr milliseconds kHeartbeat{2'000};

class KeepAliveTest : public testing::Test {
 protected:
  KeepAliveTest() { keep_alive_.restart(begin_, 5); }
  Due after(milliseconds passed, uint64_t sent_frames = 5) {
    return keep_alive_.sweep(begin_ + passed, sent_frames);
  }
  KeepAlive keep_alive_{kHeartbeat};
  const SteadyTime begin_ = std::chrono::steady_clock::now();
};

TEST_F(KeepAliveTest, AfterThreeHeartbeatsOfSilenceItIsDead) {
  EXPECT_EQ(keep_alive_.dead_after(), 3 * kHeartbeat);
  EXPECT_NE(after(3 * kHeartbeat), Due::kDead);
  EXPECT_EQ(after(3 * kHeartbeat + milliseconds{1}), Due::kDead);
  keep_alive_.note_received(begin_ + milliseconds{1});
  EXPECT_NE(after(3 * kHeartbeat + milliseconds{1}), Due::kDead);
  EXPECT_EQ(after(3 * kHeartbeat + milliseconds{2}), Due::kDead);
}

TEST_F(KeepAliveTest, HeartbeatIsDueWhereNothingElseIsSent) {
  EXPECT_EQ(after(kHeartbeat / 2 - milliseconds{1}), Due::kNothing);
  EXPECT_EQ(after(kHeartbeat / 2), Due::kHeartbeat);
  // The heartbeat is a frame too: it is seen by the next sweep.
  EXPECT_EQ(after(kHeartbeat / 2 + milliseconds{1}, 6), Due::kNothing);
  EXPECT_EQ(after(kHeartbeat, 6), Due::kNothing);
  EXPECT_EQ(after(kHeartbeat + milliseconds{1}, 6), Due::kHeartbeat);
}

TEST_F(KeepAliveTest, SentFramesPostponeTheHeartbeat) {
  EXPECT_EQ(after(kHeartbeat / 2, 9), Due::kNothing);
  EXPECT_EQ(after(kHeartbeat - milliseconds{1}, 9), Due::kNothing);
  EXPECT_EQ(after(kHeartbeat, 9), Due::kHeartbeat);
}

TEST_F(KeepAliveTest, RestartsWithANewChannel) {
  keep_alive_.restart(begin_ + 4 * kHeartbeat, 1);
  EXPECT_EQ(after(4 * kHeartbeat, 1), Due::kNothing);
  EXPECT_EQ(after(4 * kHeartbeat + kHeartbeat / 2, 1), Due::kHeartbeat);
}

}  // namespace
}  // namespace collect::ingest
