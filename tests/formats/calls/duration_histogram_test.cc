#include "formats/calls/duration_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace collect::calls {
namespace {

TEST(DurationHistogram, ShortDurationsAreExact) {
  DurationHistogram histogram;
  size_t left = 100;
  for (uint64_t ns = 1; ns <= 20; ++ns) histogram.add(ns, left);
  EXPECT_EQ(histogram.count(), 20u);
  EXPECT_EQ(histogram.percentile(500), 10u);
  EXPECT_EQ(histogram.percentile(950), 19u);
  EXPECT_EQ(histogram.percentile(990), 20u);
  EXPECT_EQ(histogram.percentile(1000), 20u);
  EXPECT_EQ(histogram.percentile(1), 1u);
  EXPECT_EQ(left, 98u) << "1..15 and 16..31";
  EXPECT_EQ(DurationHistogram().percentile(500), 0u);
}

// 1000 lies in the bucket 992..1023, whose middle is 1008.
TEST(DurationHistogram, APercentileIsTheMiddleOfItsBucket) {
  DurationHistogram histogram;
  size_t left = 100;
  histogram.add(1000, left);
  EXPECT_EQ(histogram.percentile(500), 1008u);
}

TEST(DurationHistogram, EveryPercentileIsWithinTheStatedError) {
  std::mt19937_64 random(20261125);
  DurationHistogram histogram;
  DurationHistogram parts[2];
  size_t left = 1000;
  std::vector<uint64_t> all;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t ns = random() >> (random() % 64);
    all.push_back(ns);
    histogram.add(ns, left);
    parts[i % 2].add(ns, left);
  }
  parts[0].add(parts[1], left);
  EXPECT_EQ(parts[0].count(), all.size());
  std::sort(all.begin(), all.end());
  for (uint32_t per_mille = 1; per_mille <= 1000; ++per_mille) {
    const uint64_t exact = all[(all.size() * per_mille + 999) / 1000 - 1];
    const uint64_t said = histogram.percentile(per_mille);
    const uint64_t error = said > exact ? said - exact : exact - said;
    ASSERT_LE(error, exact / 32) << per_mille << ": " << said << " for " << exact;
    ASSERT_EQ(parts[0].percentile(per_mille), said);
  }
}

TEST(DurationHistogram, GrowsInBothDirections) {
  DurationHistogram histogram;
  size_t left = 100;
  for (const uint64_t ns : {1000, 31, 1, 5000}) histogram.add(ns, left);
  EXPECT_EQ(histogram.percentile(250), 1u);
  EXPECT_EQ(histogram.percentile(500), 31u);
  EXPECT_EQ(histogram.percentile(750), 1008u);
  EXPECT_EQ(histogram.percentile(1000), 4992u) << "4864..5119";
  EXPECT_EQ(left, 100u - 10) << "1 to 5000";
}

TEST(DurationHistogram, BeyondItsMemoryItSaysThatItIsNotComplete) {
  DurationHistogram histogram;
  size_t left = 2;
  histogram.add(16, left);
  histogram.add(32, left);
  EXPECT_TRUE(histogram.is_complete());
  histogram.add(17, left);
  EXPECT_TRUE(histogram.is_complete()) << "there is room for it";
  histogram.add(64, left);
  EXPECT_FALSE(histogram.is_complete());
  histogram.add(1, left);
  EXPECT_EQ(histogram.count(), 3u) << "neither a longer nor a shorter one";
  EXPECT_EQ(left, 0u);
  DurationHistogram other;
  size_t more = 10;
  other.add(1, more);
  other.add(histogram, more);
  EXPECT_FALSE(other.is_complete());
}

TEST(DurationHistogram, OfNoneNothingComes) {
  DurationHistogram none, some;
  size_t left = 100;
  EXPECT_EQ(none.percentile(500), 0u);
  some.add(1000, left);
  const size_t before = left;
  some.add(none, left);
  EXPECT_TRUE(some.is_complete());
  EXPECT_EQ(some.count(), 1u);
  EXPECT_EQ(left, before);
  none.add(some, left);
  EXPECT_TRUE(none.is_complete());
  EXPECT_EQ(none.percentile(500), some.percentile(500));
  EXPECT_EQ(left, before - 1);
}

// From below, from above, and from both sides: every duration stays in its bucket.
TEST(DurationHistogram, AnotherIsAddedWhereverItLies) {
  for (const std::vector<uint64_t>& others :
       {std::vector<uint64_t>{3}, {100'000}, {3, 100'000}, {1000}, {1000, 1'000'000'000}}) {
    DurationHistogram together, one, two;
    size_t left = 1000;
    for (const uint64_t ns : {900, 1000, 2000}) {
      together.add(static_cast<uint64_t>(ns), left);
      one.add(static_cast<uint64_t>(ns), left);
    }
    for (const uint64_t ns : others) {
      together.add(ns, left);
      two.add(ns, left);
    }
    one.add(two, left);
    EXPECT_TRUE(one.is_complete());
    EXPECT_EQ(one.count(), together.count());
    for (uint32_t per_mille = 1; per_mille <= 1000; ++per_mille) {
      ASSERT_EQ(one.percentile(per_mille), together.percentile(per_mille)) << per_mille;
    }
  }
}

}  // namespace
}  // namespace collect::calls
