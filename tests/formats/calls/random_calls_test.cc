// The pairing against one that was written to be obvious: it keeps the stack as a list of names,
// and gives every nanosecond to the functions that are open then.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "formats/calls/call_tree.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/sinks.h"
#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using testing::Event;
using testing::Events;
using testing::kCall;
using testing::kException;
using testing::kReturn;

struct Times {
  uint64_t calls = 0, total_ns = 0, self_ns = 0, exceptions = 0, skipped = 0, open = 0;
  bool operator==(const Times&) const = default;
};
void PrintTo(const Times& times, std::ostream* out) {
  *out << times.calls << " calls, total " << times.total_ns << ", self " << times.self_ns << ", "
       << times.exceptions << " exceptions, " << times.skipped << " skipped, " << times.open
       << " open";
}

struct Naive {
  std::map<uint64_t, Times> functions;
  std::map<std::string, uint64_t> self_by_path;
  uint64_t lone_ends = 0;

  Naive(const std::vector<Event>& events, const std::set<uint64_t>& stalled) {
    std::string stack;
    uint64_t now = events.empty() ? 0 : events.front().timestamp_ns;
    for (const Event& event : events) {
      for (; now < event.timestamp_ns; ++now) {
        if (stack.empty() || stalled.count(now) != 0) continue;
        functions[static_cast<uint64_t>(stack.back())].self_ns += 1;
        self_by_path[stack] += 1;
        for (const char each : std::set<char>(stack.begin(), stack.end())) {
          functions[static_cast<uint64_t>(each)].total_ns += 1;
        }
      }
      const char function = static_cast<char>(event.function_id);
      Times& times = functions[event.function_id];
      if (event.kind == kCall) {
        ++times.calls;
        stack.push_back(function);
        continue;
      }
      times.exceptions += event.kind == kException ? 1 : 0;
      const size_t own = stack.rfind(function);
      if (own == std::string::npos) {
        ++lone_ends;
        continue;
      }
      for (size_t i = own + 1; i < stack.size(); ++i) {
        ++functions[static_cast<uint64_t>(stack[i])].skipped;
      }
      stack.resize(own);
    }
    for (const char each : stack) ++functions[static_cast<uint64_t>(each)].open;
  }
};

class RandomCalls : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  // Mostly in pairs; some returns are missing, some are of another function.
  std::vector<Event> events() {
    std::vector<Event> events;
    std::vector<uint64_t> open;
    uint64_t now = below(50);
    const size_t count = below(400);
    for (size_t i = 0; i < count; ++i) {
      now += below(12);
      const uint64_t any = 'a' + below(6);
      if (open.empty() || below(2) == 0) {
        events.push_back({now, kCall, any});
        open.push_back(any);
      } else if (below(12) == 0) {
        events.push_back({now, below(2) == 0 ? kReturn : kException, any});
      } else {
        if (below(10) == 0) open.pop_back();
        if (open.empty()) continue;
        events.push_back({now, below(8) == 0 ? kException : kReturn, open.back()});
        open.pop_back();
      }
    }
    return events;
  }

  std::mt19937_64 random_{GetParam()};
};

TEST_P(RandomCalls, AgreeWithTheObviousPairing) {
  const std::vector<Event> given = events();
  std::vector<Stall> stalls;
  std::set<uint64_t> stalled;
  for (uint64_t at = 0; at < 2000 && GetParam() % 2 == 1;) {
    at += 1 + below(300);
    const uint64_t length = 1 + below(60);
    stalls.push_back({at, at + length, length, 1, below(2) == 0});
    for (uint64_t i = 0; i < length; ++i) stalled.insert(at + i);
    if (below(2) == 0) at += length;  // else the next may begin within this one
  }
  const Naive naive(given, stalled);

  FunctionSlots slots;
  FunctionTotals totals;
  CallTree tree;
  testing::GivenCalls lines(slots);
  Sinks<FunctionTotals, CallTree, testing::GivenCalls> sinks(totals, tree, lines);
  ThreadCalls<decltype(sinks)> calls(slots, sinks, stalls);
  read_thread(Events(given), {}, calls);

  EXPECT_TRUE(lines.is_balanced());
  EXPECT_EQ(calls.counts().lone_ends, naive.lone_ends);
  std::map<uint64_t, Times> functions;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    Times& times = functions[slots.function_of(slot)];
    if (slot >= totals.times().size()) continue;
    const FunctionTimes& said = totals.times()[slot];
    times = {said.calls,      said.total_ns, said.self_ns,
             said.exceptions, said.skipped,  said.open_at_end};
  }
  EXPECT_EQ(functions, naive.functions);
  std::vector<std::string> paths(CallTree::kFirstFunction);
  std::map<std::string, uint64_t> self_by_path;
  for (uint32_t i = CallTree::kFirstFunction; i < tree.nodes().size(); ++i) {
    const CallTree::Node& node = tree.nodes()[i];
    paths.push_back(paths[node.parent] + static_cast<char>(slots.function_of(node.slot)));
    if (node.times.self_ns != 0) self_by_path[paths.back()] = node.times.self_ns;
  }
  EXPECT_EQ(self_by_path, naive.self_by_path);
}

// Windows that follow one another have the times of the whole between them.
TEST_P(RandomCalls, WindowsThatMeetAddUp) {
  const std::vector<Event> given = events();
  const auto times_in = [&](Window window) {
    FunctionSlots slots;
    FunctionTotals totals;
    ThreadCalls<FunctionTotals> calls(slots, totals, {}, window);
    read_thread(Events(given), {}, calls);
    std::map<uint64_t, std::pair<uint64_t, uint64_t>> times;
    for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
      times[slots.function_of(slot)] = {totals.times()[slot].total_ns,
                                        totals.times()[slot].self_ns};
    }
    return times;
  };
  const uint64_t first = below(1000);
  const uint64_t second = first + 1 + below(1000);
  constexpr uint64_t kEnd = 1'000'000;
  const auto whole = times_in({});
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> sum;
  for (const Window& window : {Window{0, first}, Window{first, second}, Window{second, kEnd}}) {
    for (const auto& [function, times] : times_in(window)) {
      sum[function].first += times.first;
      sum[function].second += times.second;
    }
  }
  for (const auto& [function, times] : whole) {
    EXPECT_EQ(sum[function], times) << static_cast<char>(function);
  }
}

// Events are taken out of the middle: every call still ends once, in order, in
// its time, and no more time is given out than there was.
TEST_P(RandomCalls, GapsKeepEveryCallInOrder) {
  std::vector<Event> given = events();
  std::vector<Gap> gaps;
  for (int i = 0; i < 3 && given.size() > 20; ++i) {
    const size_t first = std::min<size_t>(
        (gaps.empty() ? 0 : gaps.back().before_seq) + below(given.size() / 4), given.size());
    const size_t count = std::min<size_t>(1 + below(20), given.size() - first);
    given.erase(given.begin() + static_cast<std::ptrdiff_t>(first),
                given.begin() + static_cast<std::ptrdiff_t>(first + count));
    gaps.push_back({first, count, 0, 0});
  }
  struct Bounded : CallSink {
    void on_call_begin(const Call&) { ++begun; }
    void on_call_end(const EndedCall& call) {
      ++ended;
      self_ns += call.self_ns;
      EXPECT_LE(call.begin.ns, call.end.ns);
      EXPECT_LE(call.self_ns, call.total_ns);
      EXPECT_EQ(call.total_ns, call.end.ns - call.begin.ns);
      EXPECT_TRUE(call.reason != EndReason::kCutByGap || call.spans_gap);
    }
    uint64_t begun = 0, ended = 0, self_ns = 0;
  };
  FunctionSlots slots;
  Bounded bounded;
  testing::GivenCalls lines(slots);
  Sinks<Bounded, testing::GivenCalls> sinks(bounded, lines);
  ThreadCalls<decltype(sinks)> calls(slots, sinks);
  read_thread(Events(given), gaps, calls);
  EXPECT_TRUE(lines.is_balanced());
  EXPECT_EQ(bounded.begun, bounded.ended);
  EXPECT_LE(bounded.self_ns, calls.counts().clock_ns);
  EXPECT_EQ(calls.counts().gaps, gaps.size());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCalls, ::testing::Range(1u, 301u));

}  // namespace
}  // namespace collect::calls
