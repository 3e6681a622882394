// Readings as the system gives them, and what they mean. The numbers of switches are those that a
// program saw that was stopped in poll, in a loop, and on a machine with four times the work that
// it has processors for.
#include "agent/drain/ship/pause_watch.h"

#include <gtest/gtest.h>

namespace collect::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;

class PauseWatchTest : public testing::Test {
 protected:
  PauseWatchTest() { (void)watch_.look(now_, 0); }
  // So much time passes, of which so much is a sleep of the machine.
  Pause passes(uint64_t awake_ms, uint64_t asleep_ms, uint64_t cpu_ms, uint64_t switches,
               uint64_t may_sleep_ms) {
    now_.monotonic_ns += awake_ms * kMs;
    now_.continuous_ns += (awake_ms + asleep_ms) * kMs;
    now_.cpu_ns += cpu_ms * kMs;
    now_.voluntary_switches += switches;
    return watch_.look(now_, may_sleep_ms * kMs);
  }

  PauseReadings now_{5000 * kMs, 9000 * kMs, 10 * kMs, 77};
  PauseWatch watch_;
};

TEST_F(PauseWatchTest, SleepAndSomeWorkAreNoPause) {
  EXPECT_EQ(passes(20, 0, 0, 1, 20).stopped_ns, 0u);
  EXPECT_EQ(passes(3000, 0, 3000, 0, 0).stopped_ns, 0u);
}

TEST_F(PauseWatchTest, StopInASleepLeavesOutTheSleep) {
  const Pause pause = passes(303, 0, 0, 2, 20);
  EXPECT_EQ(pause.stopped_ns, 283 * kMs);
  EXPECT_EQ(pause.suspended_ns, 0u);
}

TEST_F(PauseWatchTest, StopInTheWorkLeavesOutTheWork) {
  EXPECT_EQ(passes(306, 0, 3, 1, 0).stopped_ns, 303 * kMs);
}

TEST_F(PauseWatchTest, ThreadThatGetsNoProcessorIsNotStopped) {
  EXPECT_EQ(passes(312, 0, 0, 1, 20).stopped_ns, 0u);
  EXPECT_EQ(passes(312, 0, 3, 0, 0).stopped_ns, 0u);
}

TEST_F(PauseWatchTest, IgnoresStopsBelowTheMinimum) {
  EXPECT_EQ(passes(20 + kLeastStopNs / kMs - 1, 0, 0, 2, 20).stopped_ns, 0u);
  EXPECT_EQ(passes(20 + kLeastStopNs / kMs, 0, 0, 2, 20).stopped_ns, kLeastStopNs);
}

TEST_F(PauseWatchTest, MachineThatSleptIsNoStop) {
  const Pause pause = passes(20, 60'000, 0, 2, 20);
  EXPECT_EQ(pause.suspended_ns, 60'000 * kMs);
  EXPECT_EQ(pause.stopped_ns, 0u);
  EXPECT_EQ(passes(20, 9, 0, 1, 20).suspended_ns, 0u);  // less than the noise
}

}  // namespace
}  // namespace collect::agent
