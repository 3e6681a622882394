#include "storage/select/time_line.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace collect::select {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kEpoch = 1'800'000'000 * kSecond;  // the collector's boot, as time of day

storage::Manifest compared(std::vector<storage::ClockSync> syncs) {
  storage::Manifest manifest;
  manifest.clock_syncs = std::move(syncs);
  return manifest;
}

storage::ClockSync sync_at(uint64_t at_ns, int64_t offset_ns, uint64_t uncertainty_ns,
                           const std::string& boot = "boot-1", uint64_t step_ns = 0) {
  return {at_ns, offset_ns, uncertainty_ns, 0, kEpoch + at_ns + step_ns, boot};
}

TEST(TimeLine, OneComparisonMovesByTheOffset) {
  TimeLine line;
  const auto clock = line.add(compared({sync_at(100 * kSecond, 7 * kSecond, 40)}));
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->line_ns(107 * kSecond), kEpoch + 100 * kSecond);
  EXPECT_EQ(clock->line_ns(106 * kSecond), kEpoch + 99 * kSecond);
  EXPECT_EQ(clock->device_ns(kEpoch + 101 * kSecond), 108 * kSecond);
  EXPECT_EQ(clock->uncertainty_ns(107 * kSecond), 40u);
  // A second away a quartz of 100 ppm may be 100 us off.
  EXPECT_EQ(clock->uncertainty_ns(106 * kSecond), 40u + 100'000u);
}

TEST(TimeLine, DriftIsFollowedBetweenAndBeyondComparisons) {
  TimeLine line;
  // The device gains 50 us a second.
  const auto clock =
      line.add(compared({sync_at(100 * kSecond, 0, 10), sync_at(110 * kSecond, 500'000, 30)}));
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->line_ns(105 * kSecond + 250'000), kEpoch + 105 * kSecond);
  EXPECT_EQ(clock->line_ns(120 * kSecond + 1'000'000), kEpoch + 120 * kSecond);
  EXPECT_EQ(clock->line_ns(90 * kSecond - 500'000), kEpoch + 90 * kSecond);
  EXPECT_EQ(clock->device_ns(kEpoch + 105 * kSecond), 105 * kSecond + 250'000);
  EXPECT_EQ(clock->device_ns(kEpoch + 120 * kSecond), 120 * kSecond + 1'000'000);
  EXPECT_EQ(clock->uncertainty_ns(105 * kSecond), 30u);
  EXPECT_GT(clock->uncertainty_ns(120 * kSecond), 30u);
  EXPECT_EQ(clock->best_uncertainty_ns(), 10u);
}

// A time of day from before the device was started.
TEST(TimeLine, BeforeTheBootIsTheBoot) {
  TimeLine line;
  const auto clock = line.add(compared({sync_at(100 * kSecond, 0, 10)}));
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->device_ns(kEpoch), 0u);
  EXPECT_EQ(clock->device_ns(kEpoch - 3600 * kSecond), 0u);
  EXPECT_EQ(clock->device_ns(kEpoch + kSecond), kSecond);
}

TEST(TimeLine, WithinOneBootTheTimeOfDayMayStep) {
  TimeLine line;
  const auto phone = line.add(compared({sync_at(100 * kSecond, 5, 1)}));
  const auto tablet = line.add(compared({sync_at(200 * kSecond, -9, 1, "boot-1", 3600 * kSecond)}));
  ASSERT_TRUE(phone.ok() && tablet.ok());
  EXPECT_EQ(tablet->line_ns(200 * kSecond - 9) - phone->line_ns(100 * kSecond + 5), 100 * kSecond);
  // Another boot has nothing but the time of day.
  const auto later = line.add(compared({sync_at(3 * kSecond, 0, 1, "boot-2", 7 * kSecond)}));
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->line_ns(3 * kSecond), kEpoch + 10 * kSecond);
}

TEST(TimeLine, VagueComparisonBetweenExactOnesIsLeftOut) {
  TimeLine line;
  const auto clock = line.add(
      compared({sync_at(100 * kSecond, 0, 100), sync_at(105 * kSecond, 40'000'000, 50'000'000),
                sync_at(110 * kSecond, 0, 100)}));
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->comparisons(), 2u);
  EXPECT_EQ(clock->line_ns(105 * kSecond), kEpoch + 105 * kSecond);
}

TEST(TimeLine, TimeNeverRunsBackwards) {
  TimeLine line;
  // The collector's clock is said to have gone back while the device's went on.
  const auto clock =
      line.add(compared({sync_at(100 * kSecond, 0, 10), sync_at(99 * kSecond, 2 * kSecond, 10),
                         sync_at(102 * kSecond, 0, 10)}));
  ASSERT_TRUE(clock.ok());
  uint64_t before = 0;
  for (uint64_t ns = 95 * kSecond; ns < 106 * kSecond; ns += kSecond / 7) {
    const uint64_t now = clock->line_ns(ns);
    EXPECT_GE(now, before) << ns;
    before = now;
  }
}

TEST(TimeLine, UsesTheTimeOfDayWithoutAComparison) {
  TimeLine line;
  storage::Manifest manifest;
  EXPECT_EQ(line.add(manifest).code(), Code::kInvalidArgument);
  manifest.identity.start_ns = 50;
  manifest.identity.start_unix_ns = kEpoch;
  manifest.clock_syncs = {{100, 3, 1, 0}};  // of a collector that did not say when that was
  const auto clock = line.add(manifest);
  ASSERT_TRUE(clock.ok());
  EXPECT_FALSE(clock->is_compared());
  EXPECT_EQ(clock->line_ns(57), kEpoch + 7);
}

// Two comparisons tell the rate when they are a second apart, and only a rate that a clock can
// have.
TEST(TimeLine, TwoComparisonsGiveAPlausibleRate) {
  const auto added = [](uint64_t span_ns, int64_t gained_ns) {
    TimeLine line;
    const auto clock =
        line.add(compared({sync_at(kSecond, 0, 10), sync_at(kSecond + span_ns, gained_ns, 10)}));
    EXPECT_TRUE(clock.ok());
    return *clock;
  };
  const DeviceClock rated = added(kSecond, 0);
  EXPECT_EQ(rated.uncertainty_ns(3 * kSecond), 10u + 10'000u) << "10 ppm are left";
  EXPECT_EQ(rated.uncertainty_ns(0), 10u + 10'000u);
  EXPECT_EQ(added(kSecond - 1, 0).uncertainty_ns(3 * kSecond - 1), 10u + 100'000u);
  EXPECT_EQ(added(kSecond, 1'000'000).uncertainty_ns(3 * kSecond + 1'000'000), 10u + 100'000u)
      << "no clock gains a thousandth";
  // Gains of 999 and of 1001 millionths; losses of as many.
  EXPECT_EQ(added(10 * kSecond, 9'990'000).line_ns(21 * kSecond + 19'980'000),
            kEpoch + 21 * kSecond);
  EXPECT_EQ(added(10 * kSecond, 10'010'000).line_ns(21 * kSecond + 10'010'000),
            kEpoch + 21 * kSecond);
  EXPECT_EQ(added(10 * kSecond, -9'980'000).line_ns(21 * kSecond - 19'960'000),
            kEpoch + 21 * kSecond);
  EXPECT_EQ(added(10 * kSecond, -10'010'000).line_ns(21 * kSecond - 10'010'000),
            kEpoch + 21 * kSecond);
}

TEST(TimeLine, AtAndBetweenComparisons) {
  TimeLine line;
  const auto clock =
      line.add(compared({sync_at(20 * kSecond, 1000, 30), sync_at(10 * kSecond, 0, 20)}));
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->line_ns(10 * kSecond), kEpoch + 10 * kSecond);
  EXPECT_EQ(clock->line_ns(20 * kSecond + 1000), kEpoch + 20 * kSecond);
  EXPECT_EQ(clock->line_ns(15 * kSecond + 500), kEpoch + 15 * kSecond);
  EXPECT_EQ(clock->device_ns(kEpoch + 10 * kSecond), 10 * kSecond);
  EXPECT_EQ(clock->device_ns(kEpoch + 20 * kSecond), 20 * kSecond + 1000);
  EXPECT_EQ(clock->device_ns(kEpoch + 15 * kSecond), 15 * kSecond + 500);
  EXPECT_EQ(clock->uncertainty_ns(10 * kSecond), 30u) << "the larger of its neighbours";
  EXPECT_EQ(clock->uncertainty_ns(20 * kSecond + 1000), 30u);
  EXPECT_EQ(clock->uncertainty_ns(9 * kSecond), 20u + 10'000u);
  EXPECT_TRUE(clock->is_compared());
}

// A second away a clock of 100 ppm may be 100 us off: so much vaguer is of no use.
TEST(TimeLine, HowVagueAComparisonMayBe) {
  const auto comparisons = [](uint64_t uncertainty_ns) {
    TimeLine line;
    return line.add(compared({sync_at(kSecond, 0, 100), sync_at(2 * kSecond, 0, uncertainty_ns)}))
        ->comparisons();
  };
  EXPECT_EQ(comparisons(100'100), 2u);
  EXPECT_EQ(comparisons(100'101), 1u);
}

TEST(TimeLine, HowTheClockIsKnownIsSaid) {
  const auto said = [](std::vector<storage::ClockSync> syncs) {
    TimeLine line;
    return line.add(compared(std::move(syncs)))->sentence();
  };
  const std::string with = " with the collector's clock, the best within ";
  EXPECT_EQ(said({sync_at(1, 0, 0)}), "1 comparison" + with + "0 us");
  EXPECT_EQ(said({sync_at(1, 0, 1)}), "1 comparison" + with + "1 us");
  EXPECT_EQ(said({sync_at(1, 0, 1000)}), "1 comparison" + with + "1 us");
  EXPECT_EQ(said({sync_at(1, 0, 1001)}), "1 comparison" + with + "2 us");
  EXPECT_EQ(said({sync_at(1, 0, 3000), sync_at(2, 0, 2000), sync_at(3, 0, 2500)}),
            "1 comparison" + with + "2 us");
  EXPECT_EQ(said({sync_at(1, 0, 2000), sync_at(kSecond, 0, 2000), sync_at(2 * kSecond, 0, 2500)}),
            "3 comparisons" + with + "2 us");
  storage::Manifest alone;
  alone.identity.start_unix_ns = 1;
  TimeLine line;
  EXPECT_EQ(line.add(alone)->sentence(),
            "placed by the device's own time of day: its clock was not compared");
  EXPECT_EQ(line.add(storage::Manifest()).error().message,
            "its clock was not compared with a collector's, and it has no start time of day");
}

}  // namespace
}  // namespace collect::select
