#include "formats/calls/open_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "formats/calls/function_slots.h"

namespace collect::calls {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kA = 0, kB = 1, kC = 2, kD = 3;

Moment at(uint64_t ns) {
  return {ns, ns, ns, atf::kNoDetail};
}

class OpenCallsTest : public ::testing::Test {
 protected:
  Leave leave(uint32_t slot, uint64_t ns) {
    return open_.leave(slot, at(ns), EndReason::kReturned, keep());
  }
  void gap(uint64_t last_ns, std::optional<size_t> survivors = std::nullopt) {
    open_.gap(at(last_ns), survivors, keep());
  }
  // "b 10..40 self 20 returned"
  std::function<void(const EndedCall&)> keep() {
    return [this](const EndedCall& call) {
      ended_.push_back(std::string(1, static_cast<char>('a' + call.slot)) + " " +
                       std::to_string(call.begin.ns) + ".." + std::to_string(call.end.ns) +
                       " self " + std::to_string(call.self_ns) + " " + to_text(call.reason));
    };
  }

  OpenCalls open_;
  std::vector<std::string> ended_;
};

TEST_F(OpenCallsTest, AReturnOfAnOuterCallEndsTheInnerOnes) {
  open_.call(kA, at(0));
  open_.call(kB, at(10));
  open_.call(kC, at(20));
  EXPECT_EQ(leave(kD, 30), Leave::kNoCall);
  EXPECT_EQ(leave(kA, 50), Leave::kClosed);
  EXPECT_THAT(ended_, ElementsAre("c 20..50 self 30 skipped", "b 10..50 self 10 skipped",
                                  "a 0..50 self 10 returned"));
  EXPECT_EQ(open_.depth(), 0u);
}

TEST_F(OpenCallsTest, OfRecursiveCallsTheInnermostReturns) {
  open_.call(kA, at(0));
  open_.call(kA, at(10));
  std::vector<bool> outermost;
  for (const uint64_t ns : {30, 70}) {
    open_.leave(kA, at(ns), EndReason::kReturned, [&](const EndedCall& call) {
      keep()(call);
      outermost.push_back(call.is_outermost);
    });
  }
  EXPECT_THAT(ended_, ElementsAre("a 10..30 self 20 returned", "a 0..70 self 50 returned"));
  EXPECT_THAT(outermost, ElementsAre(false, true));
}

// The outer call may have ended in the gap: the calls behind it count by themselves.
TEST_F(OpenCallsTest, BehindAGapCallsCountInTheTotalOfTheirFunction) {
  uint64_t function_ns = 0;
  const auto add = [&](const EndedCall& call) {
    if (call.slot == kA) function_ns += call.function_ns;
  };
  open_.call(kA, at(0));
  open_.gap(at(10), std::nullopt, add);
  for (const uint64_t ns : {20, 40}) {
    open_.call(kA, at(ns));
    open_.call(kA, at(ns + 1));
    open_.leave(kA, at(ns + 2), EndReason::kReturned, add);
    open_.leave(kA, at(ns + 5), EndReason::kReturned, add);
  }
  EXPECT_EQ(function_ns, 10u);
  open_.finish(at(100), EndReason::kOpenAtEnd, add);
  EXPECT_EQ(function_ns, 20u) << "the outer one counts up to the gap";
}

TEST_F(OpenCallsTest, AnOuterCallThatSurvivedAGapCountsNothingTwice) {
  uint64_t function_ns = 0;
  const auto add = [&](const EndedCall& call) {
    if (call.slot == kA) function_ns += call.function_ns;
  };
  open_.call(kA, at(0));
  open_.call(kB, at(5));
  open_.gap(at(10), std::nullopt, add);
  open_.call(kA, at(20));
  open_.leave(kA, at(25), EndReason::kReturned, add);
  open_.leave(kB, at(30), EndReason::kReturned, add);
  open_.call(kA, at(40));  // in no doubt any more
  open_.leave(kA, at(45), EndReason::kReturned, add);
  open_.leave(kA, at(100), EndReason::kReturned, add);
  EXPECT_EQ(function_ns, 100u);
}

TEST_F(OpenCallsTest, BeyondTheDepthLimitCallsAndReturnsStayInStep) {
  for (size_t i = 0; i < OpenCalls::kMaxDepth; ++i) ASSERT_TRUE(open_.call(kA, at(i)));
  EXPECT_FALSE(open_.call(kB, at(0)));
  EXPECT_FALSE(open_.call(kB, at(0)));
  EXPECT_EQ(open_.depth(), OpenCalls::kMaxDepth + 2);
  EXPECT_EQ(open_.timed_depth(), OpenCalls::kMaxDepth);
  EXPECT_EQ(leave(kB, 0), Leave::kTooDeep);
  EXPECT_EQ(leave(kB, 0), Leave::kTooDeep);
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(leave(kA, OpenCalls::kMaxDepth), Leave::kClosed);
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_EQ(leave(kB, 0), Leave::kNoCall);
  open_.finish(at(0), EndReason::kOpenAtEnd, keep());
  EXPECT_EQ(ended_.size(), OpenCalls::kMaxDepth);
  EXPECT_EQ(open_.depth(), 0u);
}

TEST_F(OpenCallsTest, TimeThatStepsBackMakesNoNegativeDurations) {
  open_.call(kA, at(100));
  open_.call(kB, at(50));
  leave(kB, 90);
  leave(kA, 20);
  EXPECT_THAT(ended_, ElementsAre("b 50..90 self 40 returned", "a 100..20 self 0 returned"));
}

// Nobody says at the gap what survived it: the return of b says it, and that c did not.
TEST_F(OpenCallsTest, AReturnBehindAGapSaysWhichCallsSurvivedIt) {
  open_.call(kA, at(0));
  open_.call(kB, at(10));
  open_.call(kC, at(20));
  gap(30);
  open_.call(kD, at(40));
  EXPECT_TRUE(open_.newest().is_caller_in_doubt);
  leave(kD, 45);
  leave(kB, 50);
  open_.call(kD, at(60));
  EXPECT_FALSE(open_.newest().is_caller_in_doubt) << "a is open since b returned behind the gap";
  leave(kD, 70);
  leave(kA, 100);
  // c is known up to 30; d was called by b, which had 40 ns: 10 of c, 5 of d.
  EXPECT_THAT(ended_, ElementsAre("d 40..45 self 5 returned", "c 20..30 self 10 cut_by_gap",
                                  "b 10..50 self 25 returned", "d 60..70 self 10 returned",
                                  "a 0..100 self 50 returned"));
}

TEST_F(OpenCallsTest, WhatAGapLeftInDoubtEndsThereWhenNothingElseIsKnown) {
  open_.call(kA, at(0));
  open_.call(kB, at(10));
  gap(30);
  open_.call(kD, at(40));
  open_.finish(at(60), EndReason::kOpenAtEnd, keep());
  EXPECT_THAT(ended_, ElementsAre("d 40..60 self 20 open_at_end", "b 10..30 self 20 cut_by_gap",
                                  "a 0..30 self 10 cut_by_gap"));
}

// b was called behind the first gap and is in doubt since the second; that it returns says nothing
// about a, which is in doubt since the first.
TEST_F(OpenCallsTest, EveryDoubtIsOfItsOwnGap) {
  open_.call(kA, at(0));
  gap(5);
  open_.call(kB, at(20));
  gap(30);
  open_.call(kD, at(32));
  leave(kD, 40);
  leave(kB, 50);
  EXPECT_TRUE(open_.at(0).is_caller_in_doubt == false);
  open_.call(kC, at(60));
  EXPECT_TRUE(open_.newest().is_caller_in_doubt) << "a is in doubt still";
  leave(kC, 70);
  leave(kA, 100);
  EXPECT_THAT(ended_, ElementsAre("d 32..40 self 8 returned", "b 20..50 self 22 returned",
                                  "c 60..70 self 10 returned", "a 0..100 self 60 returned"));
}

TEST_F(OpenCallsTest, AGapWithKnownSurvivorsEndsTheOthersAtOnce) {
  open_.call(kA, at(0));
  open_.call(kB, at(10));
  open_.call(kC, at(20));
  gap(30, 1);
  EXPECT_THAT(ended_, ElementsAre("c 20..30 self 10 cut_by_gap", "b 10..30 self 10 cut_by_gap"));
  open_.call(kD, at(40));
  EXPECT_FALSE(open_.newest().is_caller_in_doubt);
  leave(kD, 50);
  leave(kA, 100);
  EXPECT_EQ(ended_.back(), "a 0..100 self 70 returned");
  gap(100, 0);
  EXPECT_EQ(open_.depth(), 0u);
}

TEST_F(OpenCallsTest, AGapWithoutSurvivorsEndsAllEachAtItsOwnDoubt) {
  open_.call(kA, at(0));
  gap(5);
  open_.call(kB, at(20));
  gap(30, 0);
  EXPECT_THAT(ended_, ElementsAre("b 20..30 self 10 cut_by_gap", "a 0..5 self 5 cut_by_gap"));
  open_.call(kC, at(40));
  open_.call(kD, at(41));
  EXPECT_FALSE(open_.newest().is_caller_in_doubt);
}

TEST(FunctionSlots, BeyondTheLimitFunctionsShareOneSlot) {
  FunctionSlots slots;
  for (uint64_t i = 0; i < FunctionSlots::kMaxFunctions; ++i) ASSERT_EQ(slots.slot_of(i), i);
  const uint32_t other = slots.slot_of(uint64_t{1} << 40);
  EXPECT_EQ(slots.slot_of(uint64_t{1} << 41), other);
  EXPECT_EQ(slots.function_of(other), FunctionSlots::kOther);
  EXPECT_EQ(slots.slot_of(5), 5u);
}

}  // namespace
}  // namespace collect::calls
