// The bars of a time line: from calls, and from index.lod.
#include "formats/calls/lod/call_bars.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/formats/calls/built_lod.h"

namespace collect::calls {
namespace {

using testing::build;
using testing::Events;
using testing::kCall;
using testing::kReturn;
using testing::MadeThread;

// "a 10..40 (30, 1)": function or functions, time, time in calls, calls; by depth.
std::vector<std::string> lines_of(const std::vector<CallBar>& bars, const FunctionSlots& slots) {
  std::vector<std::string> lines;
  for (const CallBar& bar : bars) {
    lines.push_back(std::string(bar.depth, ' ') + static_cast<char>(slots.function_of(bar.slot)) +
                    " " + std::to_string(bar.first_ns) + ".." + std::to_string(bar.last_ns) + " (" +
                    std::to_string(bar.covered_ns) + ", " + std::to_string(bar.calls) + ")" +
                    (bar.is_call ? "" : " several"));
  }
  return lines;
}

std::vector<std::string> drawn(const MadeThread& thread, const Window& window, uint32_t columns) {
  FunctionSlots slots;
  CallBars bars(window, columns);
  ThreadCalls calls(slots, bars, thread.stalls, window);
  read_thread(Events(thread.events), thread.gaps, calls);
  return lines_of(bars.take(), slots);
}

const MadeThread kThread{{{100, kCall, 'a'},
                          {110, kCall, 'b'},
                          {150, kReturn, 'b'},
                          {151, kCall, 'c'},
                          {152, kReturn, 'c'},
                          {153, kCall, 'd'},
                          {156, kReturn, 'd'},
                          {170, kCall, 'b'},
                          {171, kReturn, 'b'},
                          {200, kReturn, 'a'}},
                         {},
                         {}};

TEST(CallBars, ShortCallsOfAColumnAreOneBar) {
  EXPECT_EQ(drawn(kThread, {100, 200}, 10),
            (std::vector<std::string>{"a 100..200 (100, 1)", " b 110..150 (40, 1)",
                                      " d 151..156 (4, 2) several", " b 170..171 (1, 1)"}));
}

TEST(CallBars, CloseUpEveryCallIsThere) {
  EXPECT_EQ(drawn(kThread, {150, 160}, 100),
            (std::vector<std::string>{"a 150..160 (10, 1)", " b 150..150 (0, 1)",
                                      " c 151..152 (1, 1)", " d 153..156 (3, 1)"}));
}

// With leaves of one pair, a node knows each call; the outer one continues over all of them.
TEST(CallBars, NodesShowTheSame) {
  const auto built = build(kThread, 2);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok());
  CallBars bars({100, 200}, 10);
  ASSERT_TRUE(bars.add(*lod).ok());
  const auto summary = lod->summary();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(lines_of(bars.take(), (*summary)->slots),
            (std::vector<std::string>{"a 100..200 (100, 1) several",  // as no one can tell
                                      " b 100..150 (40, 1) several",
                                      " d 150..156 (4, 2) several",  // two leaves of one column
                                      " b 156..171 (1, 1) several"}));
}

TEST(CallBars, DeeperCallsAreCounted) {
  MadeThread thread;
  for (uint64_t i = 0; i < CallBars::kRows + 5; ++i) {
    thread.events.push_back({100 + i, kCall, 'a'});
  }
  FunctionSlots slots;
  CallBars bars({100, 200}, 10);
  ThreadCalls calls(slots, bars);
  read_thread(Events(thread.events), {}, calls);
  EXPECT_EQ(bars.deeper_calls(), 5u);
}

// A thread of many leaves: no more bars than columns, and all time of the outermost calls.
TEST(CallBars, WindowHasNoMoreBarsThanItsColumns) {
  MadeThread thread;
  uint64_t ns = 1000;
  for (int i = 0; i < 5000; ++i) {
    thread.events.push_back({ns, kCall, 'a'});
    thread.events.push_back({ns += 7, kReturn, 'a'});
    ns += 3;
  }
  const auto built = build(thread, 16);
  const auto lod = LodReader::open(built.file);
  ASSERT_TRUE(lod.ok());
  CallBars bars({1000, ns}, 50);
  ASSERT_TRUE(bars.add(*lod).ok());
  const auto drawn = bars.take();
  EXPECT_LE(drawn.size(), 100u);
  uint64_t covered_ns = 0, calls = 0;
  for (const CallBar& bar : drawn) {
    covered_ns += bar.covered_ns;
    calls += bar.calls;
  }
  EXPECT_NEAR(static_cast<double>(covered_ns), 35'000.0, 100.0);
  EXPECT_EQ(calls, 5000u);
  EXPECT_EQ(*events_in(*lod, {1000, ns}), 10'000u);
  EXPECT_LE(*events_in(*lod, {20'000, 20'100}), 64u);
}

}  // namespace
}  // namespace collect::calls
