// A whole thread: what is read ahead at gaps, and what a window leaves unread.
#include "formats/calls/read_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using ::testing::ElementsAre;
using testing::Event;
using testing::Events;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using testing::read;

constexpr auto kUnknown = static_cast<atf::EventKind>(9);

// ---- ahead of a gap

TEST(ReadThread, ExceptionBehindAGapSaysWhatSurvivedIt) {
  const std::vector<Event> events = {
      {0, kCall, 'a'}, {10, kCall, 'b'}, {20, kCall, 'c'}, {50, kException, 'b'}};
  EXPECT_THAT(read(events, {{3, 1, 0, 0}}).ends,
              ElementsAre("-c 20..20 total 0 self 0 cut_by_gap over a gap",
                          "-b 10..50 total 40 self 40 unwound over a gap",
                          "-a 0..50 total 50 self 10 open_at_end over a gap"));
}

// An event of a kind that no one knows is no return of b.
TEST(ReadThread, UnknownKindBehindAGapSaysNothing) {
  EXPECT_THAT(read({{0, kCall, 'a'}, {10, kCall, 'b'}, {40, kUnknown, 'b'}, {50, kReturn, 'a'}},
                   {{2, 1, 0, 0}})
                  .ends,
              ElementsAre("-b 10..10 total 0 self 0 cut_by_gap over a gap",
                          "-a 0..50 total 50 self 50 returned over a gap"));
}

TEST(ReadThread, ReturnOfACallBehindTheGapSaysNothing) {
  // b is called again behind the gap and returns; then a does: the first b has ended in the gap.
  EXPECT_THAT(read({{0, kCall, 'a'},
                    {10, kCall, 'b'},
                    {40, kCall, 'b'},
                    {42, kCall, 'c'},
                    {45, kReturn, 'b'},
                    {46, kCall, 'c'},
                    {47, kReturn, 'c'},
                    {50, kReturn, 'a'}},
                   {{2, 1, 0, 0}})
                  .ends,
              ElementsAre("-b 10..10 total 0 self 0 cut_by_gap over a gap",
                          "-c 42..45 total 3 self 3 skipped", "-b 40..45 total 5 self 2 returned",
                          "-c 46..47 total 1 self 1 returned",
                          "-a 0..50 total 50 self 44 returned over a gap"));
}

// Within a, x is open at the gap; behind it x is called again, `calls` others in it, and x returns.
std::string end_of_first_x(uint64_t calls) {
  std::vector<Event> events = {{0, kCall, 'a'}, {10, kCall, 'x'}, {20, kCall, 'x'}};
  events.insert(events.end(), calls, {30, kCall, 'f'});
  events.push_back({40, kReturn, 'x'});
  events.push_back({50, kReturn, 'a'});
  const auto ends = read(events, {{2, 1, 0, 0}}).ends;
  const auto first = std::find_if(ends.begin(), ends.end(), [](const std::string& line) {
    return line.rfind("-x 10..", 0) == 0;
  });
  return first == ends.end() ? "" : *first;
}

TEST(ReadThread, ReturnIsComparedWithSoManyCallsAhead) {
  EXPECT_EQ(end_of_first_x(kMaxAheadSearch - 1), "-x 10..10 total 0 self 0 cut_by_gap over a gap");
  EXPECT_EQ(end_of_first_x(kMaxAheadSearch), "-x 10..50 total 40 self 20 skipped over a gap")
      << "taken for the return of the x from before the gap";
}

// a and b are open at the gap; `calls` are called behind it, and then what `rest` has.
bool is_known(uint64_t calls, const std::vector<Event>& rest) {
  std::vector<Event> events = {{0, kCall, 'a'}, {1, kCall, 'b'}};
  events.insert(events.end(), calls, {2, kCall, 'f'});
  events.insert(events.end(), rest.begin(), rest.end());
  const auto lines = read(events, {{2, 1, 0, 0}}).lines;
  return std::find(lines.begin(), lines.end(), "+f 2 caller in doubt") == lines.end();
}

TEST(ReadThread, SoManyCallsAreFollowedAhead) {
  const std::vector<Event> then_b = {{3, kReturn, 'b'}};
  EXPECT_TRUE(is_known(kMaxAheadDepth, then_b));
  EXPECT_FALSE(is_known(kMaxAheadDepth + 1, then_b)) << "taken for the return of the last call";
  EXPECT_TRUE(is_known(kMaxAheadDepth + 1, {{3, kReturn, 'f'}, {4, kReturn, 'b'}}));
  EXPECT_FALSE(is_known(kMaxAheadDepth + 2, {{3, kReturn, 'f'}, {4, kReturn, 'b'}}));
  EXPECT_FALSE(is_known(1, {}));
}

// ---- gaps

TEST(ReadThread, GapsStandBeforeTheirEvents) {
  const auto of =
      read({{0, kCall, 'a'}, {10, kReturn, 'a'}, {20, kCall, 'b'}, {30, kReturn, 'b'}},
           {{0, 1, 0, 0}, {1, 2, 0, 0}, {1, 3, 0, 0}, {3, 4, 0, 0}, {4, 5, 0, 0}, {9, 6, 0, 0}});
  EXPECT_THAT(of.lines,
              ElementsAre("gap 1", "+a 0", "gap 2 behind 0", "gap 3 behind 0",
                          "-a 0..10 total 10 self 10 returned over a gap", "+b 20",
                          "gap 4 behind 20", "-b 20..30 total 10 self 10 returned over a gap",
                          "gap 5 behind 30", "gap 6 behind 30"));
  EXPECT_EQ(of.counts.gaps, 6u);
  EXPECT_EQ(of.counts.lost_events, 21u);
  EXPECT_EQ(of.counts.events, 4u);
}

// A gap before the first event is in no call.
TEST(ReadThread, GapAtTheBeginIsInNoCall) {
  EXPECT_THAT(read({{0, kCall, 'a'}, {10, kReturn, 'a'}}, {{0, 1, 0, 0}}).ends,
              ElementsAre("-a 0..10 total 10 self 10 returned"));
}

// ---- windows

// As Events, and counts what is read.
class CountedEvents {
 public:
  explicit CountedEvents(std::vector<Event> events) : events_(std::move(events)) {}
  uint64_t size() const { return events_.size(); }
  Event event(uint64_t seq) const {
    most_ = std::max(most_, seq + 1);
    return events_[seq];
  }
  struct Span {
    const CountedEvents& events;
    uint64_t first;
    uint64_t count;
    template <class F>
    void for_each(F&& f) const {
      for (uint64_t seq = first; seq < first + count; ++seq) f(seq, events.event(seq));
    }
  };
  Span events(uint64_t first, uint64_t count) const { return {*this, first, count}; }
  uint64_t most() const { return most_; }

 private:
  std::vector<Event> events_;
  mutable uint64_t most_ = 0;
};

TEST(ReadThread, DoesNotReadFarBehindTheWindow) {
  std::vector<Event> all;
  for (uint64_t i = 0; i < 400'000; ++i) all.push_back({i, i % 2 == 0 ? kCall : kReturn, 'a'});
  const CountedEvents events(all);
  FunctionSlots slots;
  CallSink sink;
  ThreadCalls<CallSink> calls(slots, sink, {}, {0, 9});
  read_thread(events, {{300'000, 1, 0, 0}}, calls);
  EXPECT_EQ(calls.counts().events, 10u);
  EXPECT_EQ(calls.counts().gaps, 0u);
  EXPECT_TRUE(calls.is_behind_window());
  EXPECT_LT(events.most(), 100'000u);

  ThreadCalls<CallSink> whole(slots, sink);
  read_thread(events, {}, whole);
  EXPECT_EQ(whole.counts().events, 400'000u);
  EXPECT_EQ(whole.counts().calls, 200'000u);
}

TEST(ReadThread, EventAtTheWindowsBeginIsInIt) {
  const auto of = read({{9, kCall, 'a'}, {10, kCall, 'b'}, {10, kReturn, 'b'}, {20, kReturn, 'a'}},
                       {}, {}, {10, 20});
  EXPECT_THAT(of.lines, ElementsAre("+a 9", "+b 10", "-b 10..10 total 0 self 0 returned",
                                    "-a 9..20 total 10 self 10 returned"));
  EXPECT_EQ(of.counts.events, 3u);
  EXPECT_EQ(of.counts.clock_ns, 10u);
  EXPECT_THAT(read({{5, kCall, 'a'}, {10, kReturn, 'a'}}, {}, {}, {10, 20}).lines,
              ElementsAre("+a 5", "-a 5..10 total 0 self 0 returned"));
}

TEST(ReadThread, RecordingMayEndInTheWindow) {
  const auto of = read({{0, kCall, 'a'}, {350, kCall, 'b'}}, {}, {}, {300, 400});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "+b 350", "-b 350..350 total 0 self 0 open_at_end",
                                    "-a 0..350 total 50 self 50 open_at_end"));
  EXPECT_EQ(of.counts.clock_ns, 50u);
  EXPECT_EQ(read({{350, kCall, 'a'}, {380, kReturn, 'a'}}, {}, {}, {300, 400}).counts.clock_ns, 30u)
      << "nothing is known of the time before the first event";
}

// What is before the window is in no count.
TEST(ReadThread, EventsBeforeAWindowAreNotCounted) {
  std::vector<Event> events = {
      {0, kReturn, 'r'}, {1, kUnknown, 'u'}, {2, kCall, 'a'}, {3, kReturn, 'a'}, {4, kCall, 'b'}};
  events.insert(events.end(), OpenCalls::kMaxDepth, {5, kCall, 'd'});
  events.push_back({6, kReturn, 'd'});
  FunctionSlots slots;
  struct Untimed : CallSink {
    void on_untimed(uint32_t, atf::EventKind) { ++count; }
    void on_lone_end(uint32_t, EndReason, const Moment&) { ++count; }
    int count = 0;
  } sink;
  ThreadCalls<Untimed> calls(slots, sink, {}, {10, 20});
  events.push_back({10, kReturn, 'r'});
  read_thread(Events(events), {}, calls);
  EXPECT_EQ(sink.count, 1) << "the last return alone";
  EXPECT_EQ(calls.counts().events, 1u);
  EXPECT_EQ(calls.counts().too_deep, 0u);
  EXPECT_EQ(calls.counts().unknown_kinds, 0u);
  EXPECT_EQ(calls.counts().lone_ends, 1u);
  EXPECT_EQ(calls.counts().calls, OpenCalls::kMaxDepth);
}

TEST(ReadThread, GapMayTouchTheEndOfAWindow) {
  const std::vector<Event> events = {{10, kCall, 'a'}, {20, kCall, 'b'}, {90, kReturn, 'b'}};
  EXPECT_EQ(read(events, {{2, 9, 40, 80}}, {}, {5, 40}).counts.gaps, 1u);
  EXPECT_EQ(read(events, {{2, 9, 41, 80}}, {}, {5, 40}).counts.gaps, 0u);
  EXPECT_EQ(read(events, {{1, 9, 5, 9}, {2, 4, 41, 80}}, {}, {5, 40}).counts.lost_events, 9u);
}

// The window is between the last event and a gap behind it.
TEST(ReadThread, GapBehindTheWindowEndsIt) {
  const auto of = read({{0, kCall, 'a'}, {600, kReturn, 'a'}}, {{1, 9, 500, 550}}, {}, {300, 400});
  EXPECT_THAT(of.lines, ElementsAre("+a 0", "-a 0..400 total 100 self 100 cut_by_window"));
  EXPECT_EQ(of.counts.gaps, 0u);
}

// ---- stalls

TEST(ReadThread, StallsThatTouchTheEventsAreNotBetweenThem) {
  const std::vector<Event> events = {{10, kCall, 'a'}, {20, kReturn, 'a'}};
  const auto stalls_in = [&](Stall stall) {
    stall.count = 5;
    return read(events, {}, {stall}).counts.stalls;
  };
  EXPECT_EQ(stalls_in({0, 10, 10, 1, false}), 0u);
  EXPECT_EQ(stalls_in({0, 11, 11, 1, false}), 5u);
  EXPECT_EQ(stalls_in({19, 30, 11, 1, false}), 5u);
  EXPECT_EQ(stalls_in({20, 30, 10, 1, false}), 0u);
}

TEST(ReadThread, WithoutAWindowsPartThereAreNoStalls) {
  const std::vector<Stall> stalls = {{210, 220, 10, 1, false}};
  const auto beside = read({{0, kCall, 'a'}, {100, kReturn, 'a'}}, {}, stalls, {200, 300}).counts;
  EXPECT_EQ(beside.stalls, 0u);
  EXPECT_EQ(beside.stalled_ns, 0u);
  const auto in_call = read({{0, kCall, 'a'}, {900, kReturn, 'a'}}, {}, stalls, {215, 215}).counts;
  EXPECT_EQ(in_call.stalls, 1u);
  EXPECT_EQ(in_call.clock_ns, 0u);
}

}  // namespace
}  // namespace collect::calls
