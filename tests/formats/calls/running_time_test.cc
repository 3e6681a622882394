#include "formats/calls/running_time.h"

#include <gtest/gtest.h>

namespace collect::calls {
namespace {

Stall own(uint64_t first_ns, uint64_t last_ns) {
  return {first_ns, last_ns, last_ns - first_ns, 1, false};
}
Stall stop(uint64_t first_ns, uint64_t last_ns) {
  return {first_ns, last_ns, last_ns - first_ns, 1, true};
}

TEST(RunningTime, StandsStillInStalls) {
  RunningTime time({own(100, 200), own(500, 600)});
  EXPECT_EQ(time.at(50), 50u);
  EXPECT_EQ(time.at(150), 100u);
  EXPECT_EQ(time.at(200), 100u);
  EXPECT_EQ(time.at(500), 400u);
  EXPECT_EQ(time.at(1000), 800u);
  EXPECT_EQ(time.at(150), 100u);  // times may step back
  EXPECT_EQ(time.at(550), 400u);
  EXPECT_EQ(RunningTime().at(77), 77u);
}

TEST(RunningTime, OfJoinedStallsEveryPartCountsAlike) {
  Stall joined = own(1000, 2000);
  joined.count = 10;
  joined.stalled_ns = 250;
  RunningTime time({joined});
  EXPECT_EQ(time.at(1000), 1000u);
  EXPECT_EQ(time.at(1400), 1300u);  // a quarter of 400 was stalled
  EXPECT_EQ(time.at(2000), 1750u);
}

// The thread waits 100..400 and 700..900; the process is stopped 200..300, 350..800.
TEST(RunningTime, AStopWithinAWaitCountsOnce) {
  RunningTime time({own(100, 400), own(700, 900), stop(200, 300), stop(350, 800)});
  EXPECT_EQ(time.stalled_until(200), 100u);
  EXPECT_EQ(time.stalled_until(300), 200u);
  EXPECT_EQ(time.stalled_until(350), 250u);
  EXPECT_EQ(time.stalled_until(1000), 800u);  // 100..900 without a break
}

TEST(RunningTime, AStallThatEndsBeforeItBeginsIsNone) {
  RunningTime time({{200, 100, 50, 1, false}, {300, 300, 7, 1, true}});
  EXPECT_EQ(time.at(1000), 1000u);
}

TEST(RunningTime, AStallMayBeginWithTheClock) {
  RunningTime time({stop(0, 100)});
  EXPECT_EQ(time.stalled_until(100), 100u);
  EXPECT_EQ(time.stalled_until(50), 50u);
  EXPECT_EQ(time.at(100), 0u);
  EXPECT_EQ(RunningTime({own(0, 100)}).stalled_until(100), 100u);
}

}  // namespace
}  // namespace collect::calls
