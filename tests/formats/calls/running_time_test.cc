#include "formats/calls/running_time.h"

#include <gtest/gtest.h>

#include <random>

namespace collect::calls {
namespace {

Stall own(uint64_t first_ns, uint64_t last_ns) {
  return {first_ns, last_ns, last_ns - first_ns, 1, false};
}
Stall stop(uint64_t first_ns, uint64_t last_ns) {
  return {first_ns, last_ns, last_ns - first_ns, 1, true};
}

TEST(RunningTime, PausesInStalls) {
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

TEST(RunningTime, SpreadsJoinedStallsEvenly) {
  Stall joined = own(1000, 2000);
  joined.count = 10;
  joined.stalled_ns = 250;
  RunningTime time({joined});
  EXPECT_EQ(time.at(1000), 1000u);
  EXPECT_EQ(time.at(1400), 1300u);  // a quarter of 400 was stalled
  EXPECT_EQ(time.at(2000), 1750u);
}

// The thread waits 100..400 and 700..900; the process is stopped 200..300, 350..800.
TEST(RunningTime, StopWithinAWaitCountsOnce) {
  RunningTime time({own(100, 400), own(700, 900), stop(200, 300), stop(350, 800)});
  EXPECT_EQ(time.stalled_until(200), 100u);
  EXPECT_EQ(time.stalled_until(300), 200u);
  EXPECT_EQ(time.stalled_until(350), 250u);
  EXPECT_EQ(time.stalled_until(1000), 800u);  // 100..900 without a break
}

TEST(RunningTime, StallThatEndsBeforeItBeginsIsNone) {
  RunningTime time({{200, 100, 50, 1, false}, {300, 300, 7, 1, true}});
  EXPECT_EQ(time.at(1000), 1000u);
}

TEST(RunningTime, StopMayBeginAtTheZeroOfTheClock) {
  RunningTime time({stop(0, 10)});
  EXPECT_EQ(time.stalled_until(0), 0u);
  EXPECT_EQ(time.stalled_until(1), 1u);
  EXPECT_EQ(time.stalled_until(10), 10u);
  RunningTime of_thread({own(0, 10)});
  EXPECT_EQ(of_thread.stalled_until(1), 1u);
}

// Of two of the process that overlap, the second counts from the end of the first.
TEST(RunningTime, StallsOfAKindThatOverlapCountOnce) {
  for (const bool is_of_process : {false, true}) {
    RunningTime time({{150, 300, 150, 1, is_of_process},
                      {100, 200, 100, 1, is_of_process},
                      {110, 120, 10, 1, is_of_process},
                      {300, 310, 10, 1, is_of_process}});
    EXPECT_EQ(time.stalled_until(100), 0u);
    EXPECT_EQ(time.stalled_until(175), 75u);
    EXPECT_EQ(time.stalled_until(250), 150u);
    EXPECT_EQ(time.stalled_until(305), 205u);
    EXPECT_EQ(time.stalled_until(400), 210u);
  }
}

TEST(RunningTime, StallThatAStopCoversAddsNothing) {
  RunningTime time({own(100, 400), stop(100, 400), own(150, 200), own(450, 500), stop(50, 60)});
  EXPECT_EQ(time.stalled_until(60), 10u);
  EXPECT_EQ(time.stalled_until(100), 10u);
  EXPECT_EQ(time.stalled_until(250), 160u);
  EXPECT_EQ(time.stalled_until(400), 310u);
  EXPECT_EQ(time.stalled_until(460), 320u);
  EXPECT_EQ(time.stalled_until(1000), 360u);
}

// The thread waits 100..1000; the process stops in it three times, first and last at its ends.
TEST(RunningTime, WaitContinuesBesideEachStop) {
  RunningTime time({own(100, 1000), stop(90, 110), stop(500, 600), stop(950, 1100)});
  EXPECT_EQ(time.stalled_until(95), 5u);
  EXPECT_EQ(time.stalled_until(300), 210u);
  EXPECT_EQ(time.stalled_until(550), 460u);
  EXPECT_EQ(time.stalled_until(700), 610u);
  EXPECT_EQ(time.stalled_until(1050), 960u);
  EXPECT_EQ(time.stalled_until(2000), 1010u);
}

TEST(RunningTime, TimesMayBeAskedInAnyOrder) {
  RunningTime time({own(100, 200), own(300, 400), own(500, 600)});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(time.stalled_until(1000), 300u);
    EXPECT_EQ(time.stalled_until(600), 300u);
    EXPECT_EQ(time.stalled_until(350), 150u);
    EXPECT_EQ(time.stalled_until(200), 100u);
    EXPECT_EQ(time.stalled_until(201), 100u);
    EXPECT_EQ(time.stalled_until(199), 99u);
    EXPECT_EQ(time.stalled_until(500), 200u);
    EXPECT_EQ(time.stalled_until(101), 1u);
    EXPECT_EQ(time.stalled_until(100), 0u);
    EXPECT_EQ(time.stalled_until(0), 0u);
  }
}

// The part of a wait beside a stop has its share of what was stalled in all of it.
// One after another, while times before are forgotten: as with all of them from the beginning.
TEST(RunningTime, AppendedStallsCountAsThoseThatWereThere) {
  std::vector<Stall> all;
  RunningTime growing;
  std::mt19937 random(7);
  uint64_t ns = 100;
  for (int i = 0; i < 500; ++i) {
    const uint64_t first_ns = ns + random() % 50;
    const uint64_t last_ns = first_ns + random() % 40;
    all.push_back({first_ns, last_ns, (last_ns - first_ns) / (1 + random() % 2), 1});
    growing.append(all.back());
    ns = last_ns;
    const uint64_t asked = ns + random() % 10;
    EXPECT_EQ(growing.stalled_until(asked), RunningTime(all).stalled_until(asked)) << i;
    if (i % 3 == 0) growing.forget_before(asked);
  }
  growing.append({ns - 5, ns + 5, 10, 1});  // half of it is behind the others
  EXPECT_EQ(growing.stalled_until(ns + 5) - RunningTime(all).stalled_until(ns), 5u);
}

TEST(RunningTime, StopTakesItsShareOfAJoinedWait) {
  RunningTime time({{1000, 2000, 500, 5, false}, stop(1200, 1400)});
  EXPECT_EQ(time.stalled_until(1200), 100u);
  EXPECT_EQ(time.stalled_until(1400), 300u);
  EXPECT_EQ(time.stalled_until(2000), 600u);
}

}  // namespace
}  // namespace collect::calls
