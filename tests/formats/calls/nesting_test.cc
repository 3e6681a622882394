#include "formats/calls/nesting.h"

#include <gtest/gtest.h>

namespace collect::calls {
namespace {

TEST(Nesting, OnlyTheOutermostOfAGroupAddsItsTime) {
  Nesting nesting;
  EXPECT_FALSE(nesting.is_open(0));
  nesting.begin(1, 0);
  EXPECT_FALSE(nesting.is_open(0));
  EXPECT_TRUE(nesting.is_open(1));
  EXPECT_FALSE(nesting.is_open(2));
  nesting.begin(0, 0);
  nesting.begin(1, 0);
  EXPECT_EQ(nesting.newest(1), 2u);
  EXPECT_EQ(nesting.newest(0), 1u);
  Nesting::Ended ended = nesting.end(10, false);
  EXPECT_FALSE(ended.is_outermost);
  EXPECT_EQ(ended.added_ns, 0u);
  EXPECT_EQ(nesting.newest(1), 0u);
  ended = nesting.end(20, false);
  EXPECT_TRUE(ended.is_outermost);
  EXPECT_EQ(ended.added_ns, 20u);
  EXPECT_FALSE(nesting.is_open(0));
  ended = nesting.end(100, false);
  EXPECT_TRUE(ended.is_outermost);
  EXPECT_EQ(ended.added_ns, 100u);
}

// Positions 0 and 1 are in doubt: what is called behind counts by itself, and what is called within
// that does not.
TEST(Nesting, BehindAGapACallCountsByItself) {
  Nesting nesting;
  nesting.begin(0, 0);
  nesting.begin(1, 0);
  nesting.begin(0, 2);
  nesting.begin(0, 2);
  EXPECT_FALSE(nesting.end(5, false).is_outermost);
  EXPECT_EQ(nesting.end(30, false).added_ns, 30u);
  nesting.begin(1, 2);
  EXPECT_EQ(nesting.end(7, false).added_ns, 7u);
  EXPECT_EQ(nesting.end(50, false).added_ns, 43u) << "it went on: 7 were counted already";
  EXPECT_EQ(nesting.end(20, false).added_ns, 0u) << "never less than nothing";
}

TEST(Nesting, KeepsTimeOfCallsEndedInAGap) {
  Nesting nesting;
  nesting.begin(0, 0);
  nesting.begin(0, 1);
  EXPECT_EQ(nesting.end(30, false).added_ns, 30u);
  EXPECT_EQ(nesting.end(20, true).added_ns, 20u) << "it had ended before the other began";
}

// What was counted within a call that is no outermost one is handed on to the one that is.
TEST(Nesting, HandsCountedTimeOutwards) {
  Nesting nesting;
  nesting.begin(0, 0);
  nesting.begin(0, 0);  // within the first, for certain
  nesting.begin(0, 2);  // behind a gap
  EXPECT_EQ(nesting.end(30, false).added_ns, 30u);
  EXPECT_EQ(nesting.end(60, false).added_ns, 0u);
  EXPECT_EQ(nesting.end(100, false).added_ns, 70u);
}

TEST(Nesting, RestartedMeasurementCountsNothingBefore) {
  Nesting nesting;
  nesting.begin(0, 0);
  nesting.begin(0, 1);
  nesting.end(30, false);
  nesting.restart();
  EXPECT_EQ(nesting.end(40, false).added_ns, 40u);
}

}  // namespace
}  // namespace collect::calls
