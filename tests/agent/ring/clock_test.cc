#include "agent/ring/clock.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "agent/ring/recorder.h"
#include "agent/ring/stream.h"

namespace collect::agent {
namespace {

// The counter is used where the processor says that it counts at one rate.
TEST(Clock, ReadsTheCounterIfItIsInvariant) {
  ASSERT_TRUE(clock_init());
  std::ifstream cpus("/proc/cpuinfo");
  const std::string text((std::istreambuf_iterator<char>(cpus)), {});
  const bool is_invariant = text.find("nonstop_tsc") != std::string::npos ||
                            text.find("flags") == std::string::npos;  // of arm64
  EXPECT_EQ(clock_line().ns_per_tick != 0, is_invariant);
  ASSERT_TRUE(recorder_init({}));
  start_recording();
  EXPECT_EQ((g_state.load() & kStateSlowClock) == 0, is_invariant);
  stop_recording();
}

TEST(Clock, FollowsTheSystemClockAndNeverRunsBackwards) {
  clock_init();
  uint64_t last = 0;
  for (int fit = 0; fit < 50; ++fit) {
    for (int i = 0; i < 20000; ++i) {
      const uint64_t now = clock_now(clock_line());
      ASSERT_GE(now, last);
      last = now;
    }
    (void)clock_fit();
  }
  // A thread that loses the CPU between two readings sees more than the clocks' distance.
  bool together = false;
  for (int tries = 0; tries < 100 && !together; ++tries) {
    const uint64_t ours = clock_now(clock_line());
    const uint64_t theirs = read_system_clock();
    together = (theirs > ours ? theirs - ours : ours - theirs) < 1000000;
    (void)clock_fit();
  }
  EXPECT_TRUE(together);
}

}  // namespace
}  // namespace collect::agent
