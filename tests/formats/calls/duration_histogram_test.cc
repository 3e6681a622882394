#include "formats/calls/duration_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

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

// 1000 is in the bucket 992..1023, whose middle is 1008.
TEST(DurationHistogram, PercentileIsTheMiddleOfItsBucket) {
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

TEST(DurationHistogram, IsIncompleteBeyondItsMemory) {
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

// 16 buckets to each power of two: the first and the last duration of a bucket have its middle.
TEST(DurationHistogram, BucketsBeginAndEndWhereTheDocumentSays) {
  struct Case {
    uint64_t ns, middle;
  };
  for (const Case& each :
       {Case{0, 0}, Case{15, 15}, Case{16, 16}, Case{31, 31}, Case{32, 33}, Case{33, 33},
        Case{34, 35}, Case{63, 63}, Case{64, 66}, Case{67, 66}, Case{68, 70}, Case{1023, 1008},
        Case{1024, 1056}, Case{1087, 1056}, Case{1088, 1120}}) {
    DurationHistogram histogram;
    size_t left = 1;
    histogram.add(each.ns, left);
    EXPECT_EQ(histogram.percentile(1), each.middle) << each.ns;
    EXPECT_EQ(histogram.percentile(1000), each.middle) << each.ns;
    EXPECT_EQ(left, 0u);
  }
}

TEST(DurationHistogram, BucketsFollowEachOther) {
  uint64_t next = 0;
  for (uint32_t bucket = 0; bucket < DurationHistogram::kMaxBuckets; ++bucket) {
    const auto [first, last] = DurationHistogram::range_of(bucket);
    ASSERT_EQ(first, next) << bucket;
    ASSERT_EQ(DurationHistogram::bucket_of(first), bucket);
    ASSERT_EQ(DurationHistogram::bucket_of(last), bucket);
    next = last + 1;
  }
  EXPECT_EQ(next, 0u) << "the last one ends with 2^64 - 1";
}

// Of 3: 333 per mille are one, 334 are more than one.
TEST(DurationHistogram, PercentileIsTheNearestRank) {
  DurationHistogram histogram;
  size_t left = 10;
  for (const uint64_t ns : {1, 2, 3}) histogram.add(ns, left);
  EXPECT_EQ(histogram.percentile(0), 1u);
  EXPECT_EQ(histogram.percentile(333), 1u);
  EXPECT_EQ(histogram.percentile(334), 2u);
  EXPECT_EQ(histogram.percentile(666), 2u);
  EXPECT_EQ(histogram.percentile(667), 3u);
}

TEST(DurationHistogram, OneThatIsNotCompleteTakesNoMore) {
  DurationHistogram one, other, none;
  size_t left = 1;
  one.add(20, left);
  one.add(40, left);
  EXPECT_FALSE(one.is_complete());
  size_t more = 10;
  other.add(21, more);
  other.add(1, more);
  EXPECT_EQ(more, 8u);
  one.add(other, more);
  EXPECT_EQ(one.count(), 1u);
  one.add(1, more);
  EXPECT_EQ(one.count(), 1u);
  EXPECT_EQ(more, 8u);
  // What is complete stays so beside one without any.
  other.add(none, more);
  EXPECT_TRUE(other.is_complete());
  EXPECT_EQ(other.count(), 2u);
  none.add(DurationHistogram(), more);
  EXPECT_EQ(more, 8u);
  EXPECT_EQ(none.count(), 0u);
}

TEST(DurationHistogram, AddingAnotherTakesTheRoomThatItNeeds) {
  DurationHistogram one, two;
  size_t left = 100;
  one.add(100, left);                                     // octave 3
  for (const uint64_t ns : {1, 1000}) two.add(ns, left);  // 0 to 6
  size_t room = 6;
  one.add(two, room);
  EXPECT_EQ(room, 0u);
  EXPECT_TRUE(one.is_complete());
  EXPECT_EQ(one.percentile(333), 1u);
  EXPECT_EQ(one.percentile(500), 102u);
  EXPECT_EQ(one.percentile(1000), 1008u);

  DurationHistogram small;
  small.add(100, left);
  size_t little = 5;
  small.add(two, little);
  EXPECT_FALSE(small.is_complete());
}

}  // namespace
}  // namespace collect::calls
