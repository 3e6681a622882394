#include "formats/calls/thread_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using ::testing::ElementsAre;
using testing::Event;
using ::testing::IsEmpty;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using testing::Read;
using testing::read;

TEST(ThreadCalls, Nested) {
  // a 0..100, in it b 10..30 and b 40..80, in the second one c 50..60.
  const Read of = read({{0, kCall, 'a'},
                        {10, kCall, 'b'},
                        {30, kReturn, 'b'},
                        {40, kCall, 'b'},
                        {50, kCall, 'c'},
                        {60, kReturn, 'c'},
                        {80, kReturn, 'b'},
                        {100, kReturn, 'a'}});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "+b 10", "-b 10..30 total 20 self 20 returned", "+b 40",
                                    "+c 50", "-c 50..60 total 10 self 10 returned",
                                    "-b 40..80 total 40 self 30 returned",
                                    "-a 0..100 total 100 self 40 returned"));
  EXPECT_TRUE(of.is_balanced);
  EXPECT_EQ(of.counts.events, 8u);
  EXPECT_EQ(of.counts.calls, 4u);
  EXPECT_EQ(of.counts.ended_by(EndReason::kReturned), 4u);
  EXPECT_EQ(of.counts.clock_ns, 100u);
  EXPECT_EQ(of.counts.running_ns, 100u);
}

TEST(ThreadCalls, Empty) {
  const Read of = read({});
  EXPECT_THAT(of.lines, IsEmpty());
  EXPECT_EQ(of.counts.events, 0u);
  EXPECT_EQ(of.counts.clock_ns, 0u);
}

TEST(ThreadCalls, WindowOfEverythingHasBothEnds) {
  EXPECT_TRUE(Window{}.is_everything());
  EXPECT_FALSE((Window{1}).is_everything());
  EXPECT_FALSE((Window{0, 5}).is_everything());
}

TEST(ThreadCalls, EndedCallSaysWhetherItsEndIsAnEvent) {
  EndedCall call;
  call.begin.ns = 10;
  call.end.ns = 25;
  EXPECT_EQ(call.clock_ns(), 15u);
  call.end.ns = 9;
  EXPECT_EQ(call.clock_ns(), 0u) << "times step back";
  for (const EndReason reason : {EndReason::kReturned, EndReason::kUnwound}) {
    call.reason = reason;
    EXPECT_TRUE(call.has_own_end()) << to_text(reason);
  }
  for (const EndReason reason : {EndReason::kSkipped, EndReason::kCutByGap, EndReason::kOpenAtEnd,
                                 EndReason::kCutByWindow}) {
    call.reason = reason;
    EXPECT_FALSE(call.has_own_end()) << to_text(reason);
  }
}

TEST(ThreadCalls, CallsThatAreTooDeepAreCounted) {
  std::vector<Event> events(OpenCalls::kMaxDepth + 3, {0, kCall, 'a'});
  FunctionSlots slots;
  CallSink sink;
  ThreadCalls<CallSink> calls(slots, sink);
  read_thread(testing::Events(events), {}, calls);
  EXPECT_EQ(calls.counts().too_deep, 3u);
  EXPECT_EQ(calls.counts().calls, OpenCalls::kMaxDepth);
}

TEST(ThreadCounts, EveryCountAddsUp) {
  ThreadCounts sum, one;
  one.events = 1;
  one.calls = 2;
  for (size_t i = 0; i < kEndReasons; ++i) one.ended[i] = 100 + i;
  one.lone_ends = 3;
  one.too_deep = 4;
  one.unknown_kinds = 5;
  one.gaps = 6;
  one.lost_events = 7;
  one.stalls = 8;
  one.stalled_ns = 9;
  one.clock_ns = 10;
  one.running_ns = 11;
  for (int i = 0; i < 2; ++i) sum.add(one);
  EXPECT_EQ(sum.events, 2u);
  EXPECT_EQ(sum.calls, 4u);
  for (size_t i = 0; i < kEndReasons; ++i) EXPECT_EQ(sum.ended[i], 2 * (100 + i)) << i;
  EXPECT_EQ(sum.lone_ends, 6u);
  EXPECT_EQ(sum.too_deep, 8u);
  EXPECT_EQ(sum.unknown_kinds, 10u);
  EXPECT_EQ(sum.gaps, 12u);
  EXPECT_EQ(sum.lost_events, 14u);
  EXPECT_EQ(sum.stalls, 16u);
  EXPECT_EQ(sum.stalled_ns, 18u);
  EXPECT_EQ(sum.clock_ns, 20u);
  EXPECT_EQ(sum.running_ns, 22u);
}

TEST(ThreadCalls, ThrowUnwindsTheCallsThatHaveAnExceptionEvent) {
  // c throws, b has no handler, a catches and continues.
  const Read of = read({{0, kCall, 'a'},
                        {10, kCall, 'b'},
                        {20, kCall, 'c'},
                        {50, kException, 'c'},
                        {60, kException, 'b'},
                        {100, kReturn, 'a'}});
  EXPECT_THAT(of.ends, ElementsAre("-c 20..50 total 30 self 30 unwound",
                                   "-b 10..60 total 50 self 20 unwound",
                                   "-a 0..100 total 100 self 50 returned"));
}

TEST(ThreadCalls, LongjmpSkipsCalls) {
  const Read of = read({{0, kCall, 'a'}, {10, kCall, 'b'}, {20, kCall, 'c'}, {50, kReturn, 'a'}});
  EXPECT_THAT(of.ends, ElementsAre("-c 20..50 total 30 self 30 skipped",
                                   "-b 10..50 total 40 self 10 skipped",
                                   "-a 0..50 total 50 self 10 returned"));
}

TEST(ThreadCalls, CrashLeavesCallsOpen) {
  const Read of = read({{0, kCall, 'a'}, {10, kCall, 'b'}, {30, kReturn, 'b'}, {70, kCall, 'c'}});
  EXPECT_THAT(of.ends, ElementsAre("-b 10..30 total 20 self 20 returned",
                                   "-c 70..70 total 0 self 0 open_at_end",
                                   "-a 0..70 total 70 self 50 open_at_end"));
  EXPECT_EQ(of.counts.ended_by(EndReason::kOpenAtEnd), 2u);
}

TEST(ThreadCalls, WrongPairsAreGivenAndCloseNothing) {
  const Read of = read({{5, kReturn, 'c'},
                        {10, kCall, 'a'},
                        {20, kReturn, 'b'},
                        {25, kException, 'd'},
                        {30, kReturn, 'a'},
                        {31, kReturn, 'a'}});
  EXPECT_THAT(of.lines, ElementsAre("?c 5 returned", "+a 10", "?b 20 returned", "?d 25 unwound",
                                    "-a 10..30 total 20 self 20 returned", "?a 31 returned"));
  EXPECT_EQ(of.counts.lone_ends, 4u);
}

TEST(ThreadCalls, UnknownKindsCountForNothing) {
  const Read of =
      read({{0, kCall, 'a'}, {5, static_cast<atf::EventKind>(9), 'a'}, {10, kReturn, 'a'}});
  EXPECT_THAT(of.ends, ElementsAre("-a 0..10 total 10 self 10 returned"));
  EXPECT_EQ(of.counts.unknown_kinds, 1u);
  EXPECT_EQ(of.counts.events, 3u);
}

TEST(ThreadCalls, StallsAreNoTimeOfOpenCalls) {
  // The thread waits 30..50 in b, and the process is 45..70: 40 ns in all, of these 30 in b.
  const std::vector<Stall> stalls = {{30, 50, 20, 1, false}, {45, 70, 25, 1, true}};
  const Read of = read({{0, kCall, 'a'}, {20, kCall, 'b'}, {60, kReturn, 'b'}, {100, kReturn, 'a'}},
                       {}, stalls);
  EXPECT_THAT(of.ends, ElementsAre("-b 20..60 total 10 self 10 returned",
                                   "-a 0..100 total 60 self 50 returned"));
  EXPECT_EQ(of.counts.stalls, 2u);
  EXPECT_EQ(of.counts.stalled_ns, 40u);
  EXPECT_EQ(of.counts.clock_ns, 100u);
  EXPECT_EQ(of.counts.running_ns, 60u);
}

struct Details : CallSink {
  void on_call_begin(const Call& call) { seqs.push_back(call.begin.detail_seq); }
  void on_call_end(const EndedCall& call) {
    seqs.push_back(call.begin.detail_seq);
    seqs.push_back(call.end.detail_seq);
    events.push_back(call.begin.seq);
    events.push_back(call.end.seq);
  }
  std::vector<uint64_t> seqs;
  std::vector<uint64_t> events;
};

TEST(ThreadCalls, DetailRecordsAndEventNumbersAreHandedThrough) {
  FunctionSlots slots;
  Details details;
  ThreadCalls<Details> calls(slots, details);
  read_thread(
      testing::Events(
          {{0, kCall, 'a'}, {10, kCall, 'b', 7}, {20, kReturn, 'b', 8}, {30, kCall, 'b', 9}}),
      {}, calls);
  constexpr uint64_t kNone = atf::kNoDetail;
  EXPECT_THAT(details.seqs, ElementsAre(kNone, 7, 7, 8, 9, 9, kNone, kNone, kNone));
  EXPECT_THAT(details.events, ElementsAre(1, 2, 3, kNoEvent, 0, kNoEvent));
}

// ---- gaps

TEST(ThreadCalls, FirstReturnBehindAGapSaysWhatSurvivedIt) {
  // The returns of c and of others are lost; b returns, so b and a were open all the time.
  const Read of = read({{0, kCall, 'a'},
                        {10, kCall, 'b'},
                        {20, kCall, 'c'},
                        {40, kCall, 'd'},
                        {45, kReturn, 'd'},
                        {50, kReturn, 'b'},
                        {100, kReturn, 'a'}},
                       {{3, 5, 0, 0}});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "+b 10", "+c 20",
                                    "-c 20..20 total 0 self 0 cut_by_gap over a gap",
                                    "gap 5 behind 20", "+d 40", "-d 40..45 total 5 self 5 returned",
                                    "-b 10..50 total 40 self 35 returned over a gap",
                                    "-a 0..100 total 100 self 60 returned over a gap"));
  EXPECT_EQ(of.counts.gaps, 1u);
  EXPECT_EQ(of.counts.lost_events, 5u);
}

TEST(ThreadCalls, DoubtsTheCallerAfterAGapWithoutAReturn) {
  const Read of = read({{0, kCall, 'a'}, {10, kCall, 'b'}, {40, kCall, 'd'}, {45, kReturn, 'd'}},
                       {{2, 3, 0, 0}});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "+b 10", "gap 3 behind 10", "+d 40 caller in doubt",
                                    "-d 40..45 total 5 self 5 returned",
                                    "-b 10..10 total 0 self 0 cut_by_gap over a gap",
                                    "-a 0..10 total 10 self 10 cut_by_gap over a gap"));
}

TEST(ThreadCalls, ReturnAfterASecondGapEndsTheDoubt) {
  const Read of = read({{0, kCall, 'a'},
                        {10, kCall, 'b'},
                        {20, kCall, 'd'},
                        {25, kReturn, 'd'},
                        {100, kReturn, 'a'}},
                       {{2, 1, 0, 0}, {4, 1, 0, 0}});
  EXPECT_THAT(of.ends, ElementsAre("-d 20..25 total 5 self 5 returned",
                                   "-b 10..10 total 0 self 0 cut_by_gap over a gap",
                                   "-a 0..100 total 100 self 95 returned over a gap"));
}

TEST(ThreadCalls, ReturnWhoseCallWasLostSaysNothing) {
  // x was called in the gap. b returns behind it.
  const Read of = read({{0, kCall, 'a'},
                        {10, kCall, 'b'},
                        {20, kCall, 'c'},
                        {40, kReturn, 'x'},
                        {50, kReturn, 'b'},
                        {60, kReturn, 'a'}},
                       {{3, 2, 0, 0}});
  EXPECT_THAT(of.ends, ElementsAre("-c 20..20 total 0 self 0 cut_by_gap over a gap",
                                   "-b 10..50 total 40 self 40 returned over a gap",
                                   "-a 0..60 total 60 self 20 returned over a gap"));
  EXPECT_EQ(of.counts.lone_ends, 1u);
}

TEST(ThreadCalls, GapsAtTheBeginAndAtTheEnd) {
  const Read of = read({{10, kCall, 'a'}, {20, kCall, 'b'}}, {{0, 4, 0, 0}, {99, 2, 0, 0}});
  EXPECT_THAT(of.lines, ElementsAre("gap 4", "+a 10", "+b 20", "gap 2 behind 20",
                                    "-b 20..20 total 0 self 0 cut_by_gap over a gap",
                                    "-a 10..20 total 10 self 10 cut_by_gap over a gap"));
  EXPECT_THAT(read({}, {{0, 4, 0, 0}}).lines, ElementsAre("gap 4"));
}

// ---- windows

const std::vector<Event> kFour = {{0, kCall, 'a'},    {10, kCall, 'b'},   {30, kReturn, 'b'},
                                  {40, kCall, 'c'},   {50, kCall, 'd'},   {60, kReturn, 'd'},
                                  {80, kReturn, 'c'}, {100, kReturn, 'a'}};

TEST(ThreadCalls, WindowMeasuresThePartOfEachCallInIt) {
  const Read of = read(kFour, {}, {}, {20, 55});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "+b 10", "-b 10..30 total 10 self 10 returned", "+c 40",
                                    "+d 50", "-d 50..55 total 5 self 5 cut_by_window",
                                    "-c 40..55 total 15 self 10 cut_by_window",
                                    "-a 0..55 total 35 self 10 cut_by_window"));
  EXPECT_TRUE(of.is_balanced);
  EXPECT_EQ(of.counts.events, 3u);
  EXPECT_EQ(of.counts.calls, 4u);
  EXPECT_EQ(of.counts.clock_ns, 35u);
}

TEST(ThreadCalls, WindowInOneLongCallHasThatCall) {
  const Read of = read({{0, kCall, 'a'}, {1000, kReturn, 'a'}}, {}, {}, {300, 400});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "-a 0..400 total 100 self 100 cut_by_window"));
  EXPECT_EQ(of.counts.clock_ns, 100u);
}

TEST(ThreadCalls, WindowsBesideTheEventsHaveNothing) {
  EXPECT_THAT(read(kFour, {}, {}, {200, 300}).lines, IsEmpty());
  EXPECT_THAT(read({{500, kCall, 'a'}}, {}, {}, {200, 300}).lines, IsEmpty());
  EXPECT_EQ(read({{500, kCall, 'a'}}, {}, {}, {200, 300}).counts.clock_ns, 0u);
}

TEST(ThreadCalls, BothEndsOfAWindowBelongToIt) {
  const Read of = read({{10, kCall, 'a'}, {20, kReturn, 'a'}, {30, kCall, 'b'}}, {}, {}, {10, 20});
  EXPECT_THAT(of.lines, ElementsAre("+a 10", "-a 10..20 total 10 self 10 returned"));
}

TEST(ThreadCalls, GapBeforeTheWindowCutsCallsThere) {
  // c ended in the gap, before the window, which has the rest of a alone.
  const Read of = read({{0, kCall, 'a'}, {10, kCall, 'c'}, {60, kReturn, 'a'}}, {{2, 9, 11, 29}},
                       {}, {30, 100});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "-a 0..60 total 30 self 30 returned over a gap"));
  EXPECT_EQ(of.counts.gaps, 0u);
}

TEST(ThreadCalls, GapThatReachesIntoTheWindowCounts) {
  const std::vector<Event> events = {{0, kCall, 'a'}, {10, kCall, 'c'}, {60, kReturn, 'a'}};
  const Read of = read(events, {{2, 9, 11, 30}}, {}, {30, 100});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "gap 9 behind 10",
                                    "-a 0..60 total 30 self 30 returned over a gap"));
  EXPECT_EQ(of.counts.gaps, 1u);
  EXPECT_EQ(of.counts.lost_events, 9u);
  EXPECT_EQ(read(events, {{2, 9, 0, 0}}, {}, {30, 100}).counts.gaps, 1u) << "no one knows when";
  EXPECT_EQ(read(events, {{1, 9, 1, 9}, {2, 4, 0, 0}}, {}, {30, 100}).counts.lost_events, 4u);
  EXPECT_EQ(read(events, {{1, 9, 0, 0}}, {}, {30, 100}).counts.gaps, 0u)
      << "c was called before the window, behind the gap";
}

TEST(ThreadCalls, WindowMayHoldOnlyAGap) {
  const Read of = read({{0, kCall, 'a'}}, {{1, 9, 40, 50}}, {}, {30, 100});
  EXPECT_THAT(of.lines, ElementsAre("gap 9 behind 0"));
  EXPECT_EQ(of.counts.lost_events, 9u);
}

TEST(ThreadCalls, GapBehindTheWindowIsNotInIt) {
  const Read of =
      read({{10, kCall, 'a'}, {20, kCall, 'b'}, {90, kReturn, 'b'}}, {{2, 9, 41, 80}}, {}, {5, 40});
  EXPECT_THAT(of.lines, ElementsAre("+a 10", "+b 20", "-b 20..40 total 20 self 20 cut_by_window",
                                    "-a 10..40 total 30 self 10 cut_by_window"));
  EXPECT_EQ(of.counts.gaps, 0u);
}

TEST(ThreadCalls, StallsBeforeAWindowDoNotCountInIt) {
  const std::vector<Stall> stalls = {{10, 20, 10, 1, false}, {30, 40, 10, 1, false}};
  const Read of = read({{0, kCall, 'a'}, {100, kReturn, 'a'}}, {}, stalls, {25, 60});
  EXPECT_THAT(of.ends, ElementsAre("-a 0..60 total 25 self 25 cut_by_window"));
  EXPECT_EQ(of.counts.stalls, 1u);
  EXPECT_EQ(of.counts.stalled_ns, 10u);
}

// The window begins with its first nanosecond and ends with its last.
TEST(ThreadCalls, WindowIncludesEventsAtItsEdges) {
  const std::vector<Event> events = {
      {0, kCall, 'a'}, {10, kCall, 'b'}, {20, kReturn, 'b'}, {30, kReturn, 'a'}};
  EXPECT_EQ(read(events, {}, {}, {10, 20}).counts.events, 2u);
  EXPECT_EQ(read(events, {}, {}, {11, 19}).counts.events, 0u);
  EXPECT_EQ(read(events, {}, {}, {10, 19}).counts.events, 1u);
  EXPECT_EQ(read(events, {}, {}, {9, 30}).counts.events, 3u);
  EXPECT_EQ(read(events, {}, {}, {30, 30}).counts.events, 1u);
}

// One that ends where the thread's first event is, or begins where its last is, held nothing up.
TEST(ThreadCalls, StallsBesideTheEventsAreNotCounted) {
  const std::vector<Event> events = {{100, kCall, 'a'}, {200, kReturn, 'a'}};
  const auto stalls = [&](uint64_t first_ns, uint64_t last_ns) {
    return read(events, {}, {{first_ns, last_ns, last_ns - first_ns, 1, false}}).counts.stalls;
  };
  EXPECT_EQ(stalls(50, 100), 0u);
  EXPECT_EQ(stalls(50, 101), 1u);
  EXPECT_EQ(stalls(199, 300), 1u);
  EXPECT_EQ(stalls(200, 300), 0u);
}

// Calls that were too deep to be kept have no end behind a gap: what returns there is another.
TEST(ThreadCalls, BehindAGapNothingIsTooDeep) {
  std::vector<Event> events(OpenCalls::kMaxDepth + 3, {0, kCall, 'a'});
  const uint64_t deep = events.size();
  events.push_back({10, kCall, 'b'});
  events.push_back({20, kReturn, 'b'});
  const Read of = read(events, {{deep, 5, 1, 9}});
  EXPECT_EQ(of.counts.too_deep, 3u + 1u) << "b too: the calls below may still be open";
  const Read lone = read({{0, kCall, 'a'}, {10, kReturn, 'b'}}, {{1, 5, 1, 9}});
  EXPECT_EQ(lone.counts.lone_ends, 1u);
}

}  // namespace
}  // namespace collect::calls
