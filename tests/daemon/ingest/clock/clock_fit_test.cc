#include "daemon/ingest/clock/clock_fit.h"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

// A probe over a link that takes `there` and `back`, to a device whose clock is `offset` ahead.
ClockSample probe(uint64_t t1, int64_t offset, uint64_t there, uint64_t back) {
  const uint64_t t2 = t1 + there + static_cast<uint64_t>(offset);
  return {t1, t2, t2 + 500, t1 + there + 500 + back};
}

TEST(ClockFitTest, KeepsTheSmallestRoundTrip) {
  ClockFit fit;
  fit.begin_burst();
  fit.add(probe(1'000'000, 7'000'000, 90'000, 1'000));  // the queue stood on the way there
  fit.add(probe(2'000'000, 7'000'000, 1'000, 1'000));
  fit.add(probe(3'000'000, 7'000'000, 1'000, 60'000));
  const auto sync = fit.end_burst();
  ASSERT_TRUE(sync.has_value());
  EXPECT_EQ(sync->offset_ns, 7'000'000);
  EXPECT_EQ(sync->uncertainty_ns, 1'001u);
  EXPECT_EQ(sync->drift_ppb, 0);
}

TEST(ClockFitTest, ErrorStaysWithinTheStatedUncertainty) {
  ClockFit fit;
  fit.begin_burst();
  fit.add(probe(5'000'000'000, -4'000'000'000, 30'000, 2'000));
  const auto sync = fit.end_burst();
  ASSERT_TRUE(sync.has_value());
  EXPECT_LE(std::abs(sync->offset_ns + 4'000'000'000), static_cast<int64_t>(sync->uncertainty_ns));
}

TEST(ClockFitTest, FindsTheDriftOverBursts) {
  ClockFit fit;
  std::optional<storage::ClockSync> sync;
  for (uint64_t second = 0; second <= 60; second += 5) {
    const uint64_t now = 1'000'000'000'000 + second * 1'000'000'000;
    fit.begin_burst();
    fit.add(probe(now, 1'000'000 + static_cast<int64_t>(second) * 20'000, 1'000, 1'000));  // 20 ppm
    sync = fit.end_burst();
  }
  ASSERT_TRUE(sync.has_value());
  EXPECT_NEAR(sync->drift_ppb, 20'000, 1);
  EXPECT_NEAR(static_cast<double>(sync->offset_ns), 1'000'000 + 60 * 20'000, 2);
}

TEST(ClockFitTest, RestartsAfterAClockJump) {
  ClockFit fit;
  fit.begin_burst();
  fit.add(probe(1'000'000'000, 0, 1'000, 1'000));
  ASSERT_TRUE(fit.end_burst().has_value());
  fit.begin_burst();
  fit.add(probe(6'000'000'000, 3'600'000'000'000, 1'000, 1'000));
  const auto sync = fit.end_burst();
  ASSERT_TRUE(sync.has_value());
  EXPECT_EQ(sync->offset_ns, 3'600'000'000'000);
  EXPECT_EQ(sync->drift_ppb, 0);
}

// What was measured before a jump is no part of the drift behind it.
TEST(ClockFitTest, BehindAJumpOnlyTheNewClockCounts) {
  ClockFit fit;
  std::optional<storage::ClockSync> sync;
  const auto burst = [&](uint64_t second, int64_t offset) {
    fit.begin_burst();
    fit.add(probe(second * 1'000'000'000, offset, 1'000, 1'000));
    sync = fit.end_burst();
    return sync.has_value();
  };
  for (uint64_t second = 1; second <= 20; ++second) ASSERT_TRUE(burst(second, 0));
  constexpr int64_t kJump = 3'600'000'000'000;
  ASSERT_TRUE(burst(21, kJump));
  EXPECT_EQ(sync->drift_ppb, 0);
  for (int64_t after = 1; after <= 5; ++after) {
    ASSERT_TRUE(burst(21 + static_cast<uint64_t>(after), kJump + after * 20'000));  // 20 ppm
    EXPECT_NEAR(sync->drift_ppb, 20'000, 1) << after;
    EXPECT_NEAR(static_cast<double>(sync->offset_ns - kJump), static_cast<double>(after * 20'000),
                2);
  }
}

// Of two points that are close together the noise of the round trip says more than the drift.
TEST(ClockFitTest, DriftTakesASecondAtLeast) {
  for (const uint64_t apart : {uint64_t{999'999'999}, uint64_t{1'000'000'000}}) {
    ClockFit fit;
    fit.begin_burst();
    fit.add(probe(1'000'000'000, 1'000'000, 1'000, 1'000));
    ASSERT_TRUE(fit.end_burst().has_value());
    fit.begin_burst();
    fit.add(probe(1'000'000'000 + apart, 1'100'000, 1'000, 1'000));
    const auto sync = fit.end_burst();
    ASSERT_TRUE(sync.has_value());
    EXPECT_EQ(sync->offset_ns, 1'100'000);
    EXPECT_NEAR(sync->drift_ppb, apart < 1'000'000'000 ? 0 : 100'000, 1) << apart;
  }
}

TEST(ClockFitTest, NoQuartzIsWorseThanOneInAThousand) {
  for (const int64_t ahead : {int64_t{1'000'000}, int64_t{-1'000'000}, int64_t{1'000'100}}) {
    ClockFit fit;
    fit.begin_burst();
    fit.add(probe(10'000'000'000, 0, 1'000, 1'000));
    ASSERT_TRUE(fit.end_burst().has_value());
    fit.begin_burst();
    fit.add(probe(11'000'000'000, ahead, 1'000, 1'000));
    const auto sync = fit.end_burst();
    ASSERT_TRUE(sync.has_value());
    EXPECT_EQ(sync->drift_ppb != 0, std::abs(ahead) <= 1'000'000) << ahead;
  }
}

// A link that broke within a burst leaves nothing of it to the next.
TEST(ClockFitTest, BurstThatWasBrokenOffIsForgotten) {
  ClockFit fit;
  fit.begin_burst();
  fit.add(probe(1'000'000, 5'000'000, 1'000, 1'000));
  fit.begin_burst();
  EXPECT_FALSE(fit.end_burst().has_value());
  fit.begin_burst();
  fit.add(probe(2'000'000, 7'000'000, 50'000, 50'000));
  const auto sync = fit.end_burst();
  ASSERT_TRUE(sync.has_value());
  EXPECT_EQ(sync->offset_ns, 7'000'000);
}

// Least squares through (-10 s, 0), (-5 s, 0), (0, 3000 ns): 300 ns a second, and 2500 ns now.
TEST(ClockFitTest, NoiseOfOneBurstIsEvenedOut) {
  ClockFit fit;
  std::optional<storage::ClockSync> sync;
  for (const auto& [second, offset] : {std::pair{10, 0}, {15, 0}, {20, 3'000}}) {
    fit.begin_burst();
    fit.add(probe(static_cast<uint64_t>(second) * 1'000'000'000, offset, 1'000, 1'000));
    sync = fit.end_burst();
  }
  ASSERT_TRUE(sync.has_value());
  EXPECT_NEAR(sync->drift_ppb, 300, 0.001);
  EXPECT_EQ(sync->offset_ns, 2'500);
}

// A clock that has changed its pace is followed: the old points are forgotten.
TEST(ClockFitTest, OnlyTheLastBurstsCount) {
  ClockFit fit;
  std::optional<storage::ClockSync> sync;
  int64_t offset = 0;
  for (uint64_t burst = 0; burst < 2 * kFittedBursts; ++burst) {
    if (burst > kFittedBursts) offset += 50'000;  // 10 ppm
    fit.begin_burst();
    fit.add(probe(1'000'000'000'000 + burst * 5'000'000'000, offset, 1'000, 1'000));
    sync = fit.end_burst();
  }
  ASSERT_TRUE(sync.has_value());
  EXPECT_NEAR(sync->drift_ppb, 10'000, 1);
}

TEST(ClockFitTest, DeviceThatTakesNoTimeIsBelieved) {
  ClockFit fit;
  fit.begin_burst();
  fit.add({100, 60, 60, 120});
  auto sync = fit.end_burst();
  ASSERT_TRUE(sync.has_value());
  EXPECT_EQ(sync->offset_ns, -50);
  EXPECT_EQ(sync->uncertainty_ns, 11u);
  fit.begin_burst();
  fit.add({100, 60, 80, 120});  // all of it inside
  sync = fit.end_burst();
  ASSERT_TRUE(sync.has_value());
  EXPECT_EQ(sync->offset_ns, -40);
  EXPECT_EQ(sync->uncertainty_ns, 1u);
}

TEST(ClockTest, IsTheContinuousOneOfThisBoot) {
  const auto boot_clock = [] {
    timespec now{};
    EXPECT_EQ(::clock_gettime(CLOCK_BOOTTIME, &now), 0);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  };
  const uint64_t before = boot_clock();
  const uint64_t ours = boottime_ns();
  const uint64_t after = boot_clock();
  EXPECT_GE(ours, before);
  EXPECT_LE(ours, after);
  std::string line;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), line);
  EXPECT_EQ(boot_id(), line);
}

TEST(ClockTest, KnowsTheTimeOfDayOfAMoment) {
  const uint64_t at = boottime_ns();
  const auto now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch());
  const uint64_t found = unix_ns_at(at);
  const uint64_t an_hour_ago = unix_ns_at(at - 3'600'000'000'000);
  const uint64_t took = boottime_ns() - at + 1'000'000;  // and the clocks' own pace
  EXPECT_NEAR(static_cast<double>(found - static_cast<uint64_t>(now.count()) + took),
              static_cast<double>(took), static_cast<double>(took));
  EXPECT_NEAR(static_cast<double>(found - an_hour_ago), 3'600e9, static_cast<double>(took));
}

TEST(ClockFitTest, ContradictionsAreIgnored) {
  ClockFit fit;
  fit.begin_burst();
  fit.add({10, 5, 4, 20});                        // sent before it was received
  fit.add({10, 5, 100, 20});                      // took longer inside than outside
  fit.add({20, 5, 6, 10});                        // came back before it left
  fit.add({10, UINT64_MAX - 1, UINT64_MAX, 20});  // no time that there can be
  EXPECT_FALSE(fit.end_burst().has_value());
}

}  // namespace
}  // namespace collect::ingest
