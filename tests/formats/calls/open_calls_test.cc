#include "formats/calls/open_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

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

TEST_F(OpenCallsTest, ReturnOfAnOuterCallEndsTheInnerOnes) {
  open_.call(kA, at(0));
  open_.call(kB, at(10));
  open_.call(kC, at(20));
  EXPECT_EQ(leave(kD, 30), Leave::kNoCall);
  EXPECT_EQ(leave(kA, 50), Leave::kClosed);
  EXPECT_THAT(ended_, ElementsAre("c 20..50 self 30 skipped", "b 10..50 self 10 skipped",
                                  "a 0..50 self 10 returned"));
  EXPECT_EQ(open_.depth(), 0u);
}

TEST_F(OpenCallsTest, ReturnEndsTheInnermostRecursiveCall) {
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
TEST_F(OpenCallsTest, CallsAfterAGapCountInFunctionTotals) {
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

TEST_F(OpenCallsTest, OuterCallThatSurvivedAGapCountsNothingTwice) {
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

TEST_F(OpenCallsTest, CallsBeyondTheDepthLimitMatchTheirReturns) {
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

// No one says at the gap what survived it: the return of b says it, and that c did not.
TEST_F(OpenCallsTest, ReturnBehindAGapSaysWhichCallsSurvivedIt) {
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

TEST_F(OpenCallsTest, DoubtfulCallsEndAtTheGap) {
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

TEST_F(OpenCallsTest, GapWithKnownSurvivorsEndsTheOthersAtOnce) {
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

TEST_F(OpenCallsTest, GapWithoutSurvivorsEndsAllAtTheirDoubt) {
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
  EXPECT_EQ(other, FunctionSlots::kMaxFunctions);
  EXPECT_EQ(slots.size(), FunctionSlots::kMaxFunctions + 1);
  EXPECT_EQ(slots.slot_of(5), 5u);
}

TEST_F(OpenCallsTest, BehindAGapNothingIsTooDeep) {
  for (size_t i = 0; i < OpenCalls::kMaxDepth; ++i) ASSERT_TRUE(open_.call(kA, at(i)));
  EXPECT_FALSE(open_.call(kB, at(0)));
  gap(0);
  EXPECT_EQ(open_.depth(), OpenCalls::kMaxDepth);
  EXPECT_EQ(leave(kB, 0), Leave::kNoCall);
  EXPECT_FALSE(open_.call(kB, at(0)));
  open_.finish(at(0), EndReason::kOpenAtEnd, [](const EndedCall&) {});
  EXPECT_EQ(open_.depth(), 0u);
  EXPECT_EQ(leave(kB, 0), Leave::kNoCall) << "nor for the next thread";
}

TEST_F(OpenCallsTest, CallSaysFromWhereOnTheCallsAreCertain) {
  open_.call(kA, at(0));
  open_.call(kB, at(1));
  gap(5);
  open_.call(kC, at(6));
  open_.call(kC, at(7));
  gap(8);
  gap(8);  // nothing was called since the one before
  open_.call(kD, at(9));
  open_.call(kD, at(10));
  EXPECT_EQ(open_.newest().certain_from, 4u);
  const uint32_t certain_from[] = {0, 0, 2, 2, 4, 4};
  const uint64_t begins[] = {0, 1, 6, 7, 9, 10};
  const bool in_doubt[] = {false, false, true, false, true, false};
  for (size_t i = 0; i < 6; ++i) {
    const Call call = open_.at(i);
    EXPECT_EQ(call.depth, i);
    EXPECT_EQ(call.certain_from, certain_from[i]) << i;
    EXPECT_EQ(call.is_caller_in_doubt, in_doubt[i]) << i;
    EXPECT_EQ(call.begin.ns, begins[i]);
  }
  EXPECT_EQ(open_.innermost(kC), 3u);
  EXPECT_FALSE(open_.is_open(4)) << "a function that was never called";
  leave(kC, 20);  // the inner c survived the second gap
  EXPECT_THAT(ended_, ElementsAre("d 10..20 self 10 skipped", "d 9..20 self 1 skipped",
                                  "c 7..20 self 2 returned"));
  open_.call(kD, at(21));
  EXPECT_FALSE(open_.newest().is_caller_in_doubt);
  EXPECT_EQ(open_.newest().certain_from, 2u) << "a and b are in the doubt of the first gap still";
}

TEST_F(OpenCallsTest, CallSpansTheGapsBehindItsBegin) {
  std::vector<bool> spans;
  const auto keep_spans = [&](const EndedCall& call) { spans.push_back(call.spans_gap); };
  open_.call(kA, at(10));
  open_.call(kB, at(11));
  open_.gap(at(11), size_t{2}, keep_spans);
  open_.call(kC, at(12));  // the first event behind it
  open_.leave(kC, at(13), EndReason::kReturned, keep_spans);
  open_.leave(kB, at(14), EndReason::kReturned, keep_spans);
  open_.finish(at(20), EndReason::kOpenAtEnd, keep_spans);
  open_.call(kA, at(0));
  open_.finish(at(20), EndReason::kOpenAtEnd, keep_spans);
  EXPECT_THAT(spans, ElementsAre(false, true, true, false));
}

TEST_F(OpenCallsTest, MoreSurvivorsThanCallsAreAllOfThem) {
  open_.call(kA, at(0));
  gap(5, 9);
  EXPECT_TRUE(ended_.empty());
  open_.call(kB, at(6));
  EXPECT_FALSE(open_.newest().is_caller_in_doubt);
}

// Measured again: what came before is in the total of nothing.
TEST_F(OpenCallsTest, RestartsMeasuringTimes) {
  struct Ended {
    uint64_t total_ns, self_ns, function_ns;
    bool is_whole;
  };
  std::vector<Ended> ended;
  const auto add = [&](const EndedCall& call) {
    ended.push_back({call.total_ns, call.self_ns, call.function_ns, call.is_whole});
  };
  open_.call(kA, at(0));
  open_.call(kB, at(10));
  open_.gap(at(10), std::nullopt, add);
  open_.call(kA, at(20));
  open_.leave(kA, at(30), EndReason::kReturned, add);
  open_.call(kC, at(40));
  open_.leave(kC, at(45), EndReason::kReturned, add);
  ended.clear();
  open_.restart_times(100);
  open_.leave(kB, at(150), EndReason::kReturned, add);
  open_.call(kC, at(160));
  open_.leave(kC, at(170), EndReason::kReturned, add);
  open_.leave(kA, at(200), EndReason::kReturned, add);
  ASSERT_EQ(ended.size(), 3u);
  const Ended wanted[] = {{50, 50, 50, false}, {10, 10, 10, true}, {100, 40, 100, false}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ended[i].total_ns, wanted[i].total_ns) << i;
    EXPECT_EQ(ended[i].self_ns, wanted[i].self_ns) << i;
    EXPECT_EQ(ended[i].function_ns, wanted[i].function_ns) << i;
    EXPECT_EQ(ended[i].is_whole, wanted[i].is_whole) << i;
  }
}

TEST_F(OpenCallsTest, OnlyACallWithItsOwnEndIsWhole) {
  std::vector<bool> whole;
  const auto keep_whole = [&](const EndedCall& call) { whole.push_back(call.is_whole); };
  for (int i = 0; i < 4; ++i) open_.call(static_cast<uint32_t>(i), at(0));
  open_.leave(kD, at(1), EndReason::kUnwound, keep_whole);
  open_.leave(kB, at(2), EndReason::kReturned, keep_whole);
  open_.finish(at(3), EndReason::kCutByWindow, keep_whole);
  EXPECT_THAT(whole, ElementsAre(true, false, true, false));
}

// Ids that may lie in the same place of the cache are distinguished.
TEST(FunctionSlots, ManyFunctionsHaveTheirOwnSlots) {
  FunctionSlots slots;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 20'000; ++i) {
      ASSERT_EQ(slots.slot_of(i << 32 | 7), i);
      ASSERT_EQ(slots.slot_of(i << 32 | 7), i);
    }
  }
  EXPECT_EQ(slots.size(), 20'000u);
  EXPECT_EQ(slots.function_of(3), uint64_t{3} << 32 | 7);
  EXPECT_EQ(FunctionSlots().slot_of(0), 0u);
}

}  // namespace
}  // namespace collect::calls
