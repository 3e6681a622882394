#include "daemon/ingest/clock_fit.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(ClockFitTest, ClockThatJumpedBeginsAnew) {
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
