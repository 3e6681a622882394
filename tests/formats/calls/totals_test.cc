#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/calls/call_tree.h"
#include "formats/calls/caller_totals.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/module_totals.h"
#include "formats/calls/path_tree.h"
#include "formats/calls/sinks.h"
#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using ::testing::ElementsAre;
using testing::Event;
using testing::Events;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// a 0..100 > a 10..90 > b 20..60 > a 30..50.
const std::vector<Event> kRecursive = {{0, kCall, 'a'},    {10, kCall, 'a'},   {20, kCall, 'b'},
                                       {30, kCall, 'a'},   {50, kReturn, 'a'}, {60, kReturn, 'b'},
                                       {90, kReturn, 'a'}, {100, kReturn, 'a'}};

template <class Sink>
void feed(FunctionSlots& slots, Sink& sink, const std::vector<Event>& events,
          const std::vector<Gap>& gaps = {}, Window window = {}) {
  ThreadCalls<Sink> calls(slots, sink, {}, window);
  read_thread(Events(events), gaps, calls);
}

std::string text(const GroupTimes& times) {
  return std::to_string(times.calls) + " calls, total " + std::to_string(times.total_ns) +
         ", self " + std::to_string(times.self_ns);
}

// ---- functions

struct Functions {
  FunctionSlots slots;
  FunctionTotals totals;

  const FunctionTimes& of(char function) {
    return totals.times()[slots.slot_of(static_cast<uint64_t>(function))];
  }
};

TEST(FunctionTotals, RecursiveCallsCountOnceInTheTotal) {
  Functions functions;
  feed(functions.slots, functions.totals, kRecursive);
  EXPECT_EQ(functions.of('a').calls, 3u);
  EXPECT_EQ(functions.of('a').total_ns, 100u);
  EXPECT_EQ(functions.of('a').self_ns, 20u + 40u + 20u);
  EXPECT_EQ(functions.of('a').shortest_ns, 20u);
  EXPECT_EQ(functions.of('a').longest_ns, 100u);
  EXPECT_EQ(functions.of('b').total_ns, 40u);
  EXPECT_EQ(functions.of('b').self_ns, 20u);
  EXPECT_EQ(functions.of('b').durations.count(), 1u);
}

TEST(FunctionTotals, EveryWayThatACallEnds) {
  Functions functions;
  // a catches what b throws, jumps over c; d is cut by the gap, e is open at the end.
  feed(functions.slots, functions.totals,
       {{0, kCall, 'm'},
        {1, kCall, 'a'},
        {2, kCall, 'b'},
        {5, kException, 'b'},
        {6, kCall, 'c'},
        {9, kReturn, 'a'},
        {10, kCall, 'd'},
        {20, kCall, 'e'},
        {30, kException, 'x'},
        {31, kReturn, 'e'},
        {32, kReturn, 'm'},
        {33, kCall, 'e'}},
       {{7, 1, 0, 0}});
  EXPECT_EQ(functions.of('b').exceptions, 1u);
  EXPECT_EQ(functions.of('b').durations.count(), 1u) << "an exception is an end of its own";
  EXPECT_EQ(functions.of('c').skipped, 1u);
  EXPECT_EQ(functions.of('c').durations.count(), 0u);
  EXPECT_EQ(functions.of('d').cut_by_gap, 1u);
  EXPECT_EQ(functions.of('d').total_ns, 0u);
  EXPECT_EQ(functions.of('e').calls, 2u);
  EXPECT_EQ(functions.of('e').open_at_end, 1u);
  EXPECT_EQ(functions.of('x').exceptions, 1u);
  EXPECT_EQ(functions.of('x').calls, 0u);
  EXPECT_EQ(functions.of('m').total_ns, 32u);
  EXPECT_EQ(functions.of('m').self_ns, 32u - 8 - 0 - 11);
}

TEST(FunctionTotals, CallsThatAWindowCutsHaveNoDuration) {
  Functions functions;
  feed(functions.slots, functions.totals, kRecursive, {}, {25, 55});
  EXPECT_EQ(functions.of('a').calls, 3u);
  EXPECT_EQ(functions.of('a').total_ns, 30u);
  EXPECT_EQ(functions.of('a').cut_by_window, 2u);
  EXPECT_EQ(functions.of('a').durations.count(), 1u);
  EXPECT_EQ(functions.of('a').longest_ns, 20u);
}

TEST(FunctionTotals, ThreadsAndWorkersAddUp) {
  Functions one, two;
  feed(one.slots, one.totals, kRecursive);
  feed(one.slots, one.totals, kRecursive);
  // The slots of the other worker are others.
  feed(two.slots, two.totals, {{0, kCall, 'b'}, {7, kReturn, 'b'}});
  feed(two.slots, two.totals, kRecursive);
  one.totals.add(one.slots, two.totals, two.slots);
  EXPECT_EQ(one.of('a').calls, 9u);
  EXPECT_EQ(one.of('a').total_ns, 300u);
  EXPECT_EQ(one.of('b').calls, 4u);
  EXPECT_EQ(one.of('b').total_ns, 127u);
  EXPECT_EQ(one.of('b').shortest_ns, 7u);
  EXPECT_EQ(one.of('b').durations.count(), 4u);
}

// Each way to end occurs once in the one worker and twice in the other.
TEST(FunctionTotals, WorkersAddUpHowCallsEnded) {
  const std::vector<Event> events = {{0, kCall, 'm'},      {1, kCall, 'u'},   {3, kException, 'u'},
                                     {3, kCall, 's'},      {5, kReturn, 'm'}, {6, kCall, 'g'},
                                     {7, kException, 'x'}, {8, kCall, 'o'}};
  const std::vector<Gap> gaps = {{6, 1, 0, 0}};
  Functions one, two;
  feed(one.slots, one.totals, events, gaps);
  feed(two.slots, two.totals, {{0, kCall, 'w'}, {90, kReturn, 'w'}, {91, kCall, 'w'}}, {}, {1, 92});
  feed(two.slots, two.totals, {{0, kCall, 'm'}, {70, kReturn, 'm'}});
  feed(two.slots, two.totals, {{0, kCall, 'v'}, {5, kCall, 'v'}, {99, kReturn, 'v'}}, {}, {1, 9});
  for (int i = 0; i < 2; ++i) feed(two.slots, two.totals, events, gaps);
  one.totals.add(one.slots, two.totals, two.slots);
  EXPECT_EQ(one.of('u').exceptions, 3u);
  EXPECT_EQ(one.of('x').exceptions, 3u);
  EXPECT_EQ(one.of('s').skipped, 3u);
  EXPECT_EQ(one.of('g').cut_by_gap, 3u);
  EXPECT_EQ(one.of('o').open_at_end, 3u);
  EXPECT_EQ(one.of('m').calls, 4u);
  EXPECT_EQ(one.of('m').longest_ns, 70u);
  EXPECT_EQ(one.of('m').shortest_ns, 5u);
  EXPECT_EQ(one.of('w').calls, 2u);
  EXPECT_EQ(one.of('v').cut_by_window, 2u);
  EXPECT_EQ(one.of('v').total_ns, 8u);
  EXPECT_EQ(one.of('v').self_ns, 8u);
  EXPECT_EQ(one.of('m').self_ns, 70u + 3 * 1);
}

TEST(FunctionTotals, FunctionIsSeenByCallOrException) {
  Functions functions;
  feed(functions.slots, functions.totals,
       {{0, kCall, 'a'}, {1, kReturn, 'a'}, {2, kReturn, 'r'}, {3, kException, 'x'}});
  EXPECT_TRUE(functions.of('a').is_seen());
  EXPECT_TRUE(functions.of('x').is_seen());
  EXPECT_FALSE(functions.of('r').is_seen()) << "a return of no call";
}

TEST(FunctionTotals, CountsTooDeepCallsWithoutTimingThem) {
  Functions functions;
  std::vector<Event> events(OpenCalls::kMaxDepth, {0, kCall, 'a'});
  for (uint64_t ns = 0; ns < 3; ++ns) events.push_back({ns, kCall, 'd'});
  events.push_back({3, kException, 'd'});
  events.push_back({4, kReturn, 'd'});
  feed(functions.slots, functions.totals, events);
  EXPECT_EQ(functions.of('a').calls, OpenCalls::kMaxDepth);
  EXPECT_EQ(functions.of('d').calls, 3u);
  EXPECT_EQ(functions.of('d').exceptions, 1u);
  EXPECT_EQ(functions.of('d').total_ns, 0u);
  EXPECT_EQ(functions.totals.times().size(), 2u);
}

TEST(FunctionTotals, PercentilesAreOfWholeCallsAndWithinThem) {
  Functions functions;
  feed(functions.slots, functions.totals,
       {{0, kCall, 'a'},
        {1000, kReturn, 'a'},
        {2000, kCall, 'b'},
        {3020, kReturn, 'b'},
        {4000, kCall, 'b'},
        {5021, kReturn, 'b'},
        {6000, kCall, 'o'}});
  EXPECT_EQ(functions.of('a').percentile(500), 1000u) << "the only one, though its bucket has 1008";
  EXPECT_EQ(functions.of('b').percentile(500), 1020u) << "no less than the shortest";
  EXPECT_EQ(functions.of('o').percentile(500), std::nullopt);
  EXPECT_EQ(functions.of('o').shortest_ns, UINT64_MAX);
  EXPECT_EQ(FunctionTimes().percentile(500), std::nullopt);
  FunctionTimes cut = functions.of('a');
  size_t none = 0;
  cut.durations.add(1, none);
  EXPECT_EQ(cut.percentile(500), std::nullopt) << "not all of them were kept";
}

// Each function has 60 powers of two, until what is left is too little for the next.
TEST(FunctionTotals, BeyondItsMemoryAFunctionHasNoPercentiles) {
  constexpr uint64_t kLongest = uint64_t{1} << 62;  // octave 59
  constexpr uint64_t kFull = FunctionTotals::kMaxOctaves / 60;
  constexpr uint64_t kLeft = FunctionTotals::kMaxOctaves % 60;
  static_assert(kLeft != 0 && kLeft < 59);
  FunctionSlots slots;
  FunctionTotals totals;
  const auto add = [&](uint32_t slot, uint64_t ns) {
    Call call;
    call.slot = slot;
    totals.on_call_begin(call);
    EndedCall ended;
    ended.slot = slot;
    ended.is_whole = true;
    ended.total_ns = ns;
    totals.on_call_end(ended);
  };
  for (uint32_t slot = 0; slot < kFull; ++slot) {
    add(slot, 1);
    add(slot, kLongest);
  }
  EXPECT_TRUE(totals.times().back().percentile(500).has_value());
  const auto slot = static_cast<uint32_t>(kFull);
  add(slot, 1);
  add(slot, uint64_t{1} << (kLeft + 2));  // the last octave that there is room for
  EXPECT_TRUE(totals.times().back().percentile(500).has_value());
  add(slot, uint64_t{1} << (kLeft + 3));
  EXPECT_EQ(totals.times().back().percentile(500), std::nullopt);
  EXPECT_EQ(totals.times().back().longest_ns, uint64_t{1} << (kLeft + 3));
}

// ---- callers

std::map<std::string, std::string> pairs_of(const CallerTotals& callers,
                                            const FunctionSlots& slots) {
  const auto name = [&](uint32_t slot) {
    return slot == CallerTotals::kNoCaller        ? std::string("-")
           : slot == CallerTotals::kCallerInDoubt ? std::string("?")
           : slot == CallerTotals::kOther
               ? std::string("other")
               : std::string(1, static_cast<char>(slots.function_of(slot)));
  };
  std::map<std::string, std::string> pairs;
  for (const CallerTotals::Pair& pair : callers.pairs()) {
    pairs[name(pair.caller) + ">" + name(pair.callee)] = text(pair.times);
  }
  return pairs;
}

TEST(CallerTotals, EachPairOfCallerAndCallee) {
  FunctionSlots slots;
  CallerTotals callers;
  feed(slots, callers, kRecursive);
  EXPECT_THAT(pairs_of(callers, slots),
              UnorderedElementsAre(Pair("->a", "1 calls, total 100, self 20"),
                                   Pair("a>a", "1 calls, total 0, self 40"),
                                   Pair("a>b", "1 calls, total 40, self 20"),
                                   Pair("b>a", "1 calls, total 0, self 20")));
}

TEST(CallerTotals, MarksACallerAfterAGapAsDoubtful) {
  FunctionSlots slots;
  CallerTotals callers;
  feed(slots, callers, {{0, kCall, 'a'}, {10, kCall, 'b'}, {14, kReturn, 'b'}}, {{1, 1, 0, 0}});
  EXPECT_THAT(pairs_of(callers, slots),
              UnorderedElementsAre(Pair("->a", "1 calls, total 0, self 0"),
                                   Pair("?>b", "1 calls, total 4, self 4")));
}

TEST(CallerTotals, WorkersAddUp) {
  FunctionSlots slots, other_slots;
  CallerTotals callers, other;
  feed(slots, callers, kRecursive);
  feed(other_slots, other,
       {{0, kCall, 'b'}, {1, kCall, 'a'}, {4, kReturn, 'a'}, {9, kReturn, 'b'}});
  callers.add(slots, other, other_slots);
  EXPECT_THAT(pairs_of(callers, slots),
              UnorderedElementsAre(Pair("->a", "1 calls, total 100, self 20"),
                                   Pair("->b", "1 calls, total 9, self 6"),
                                   Pair("a>a", "1 calls, total 0, self 40"),
                                   Pair("a>b", "1 calls, total 40, self 20"),
                                   Pair("b>a", "2 calls, total 3, self 23")));
}

TEST(CallerTotals, BeyondTheLimitPairsAreCountedTogether) {
  FunctionSlots slots;
  CallerTotals callers;
  std::vector<Event> events;
  for (uint64_t i = 0; i <= CallerTotals::kMaxPairs; ++i) {
    events.push_back({2 * i, kCall, i});
    events.push_back({2 * i + 1, kReturn, i});
  }
  events.push_back({1u << 30, kCall, uint64_t{1} << 40});
  events.push_back({(1u << 30) + 5, kReturn, uint64_t{1} << 40});
  feed(slots, callers, events);
  CallerTotals callers_of_two;
  feed(slots, callers_of_two,
       {{0, kCall, 1},
        {4, kReturn, 1},
        {5, kCall, uint64_t{1} << 41},
        {8, kReturn, uint64_t{1} << 41}});
  EXPECT_EQ(callers.pairs().size(), CallerTotals::kMaxPairs + 1);
  EXPECT_EQ(callers.pairs().back().caller, CallerTotals::kOther);
  EXPECT_EQ(text(callers.pairs().back().times), "2 calls, total 6, self 6");
  for (int i = 0; i < 2; ++i) callers.add(slots, callers_of_two, slots);
  EXPECT_EQ(callers.pairs().size(), CallerTotals::kMaxPairs + 1);
  EXPECT_EQ(text(callers.pairs().back().times), "4 calls, total 12, self 12");
  EXPECT_EQ(text(callers.pairs()[1].times), "3 calls, total 9, self 9");
  CallerTotals sum;
  sum.add(slots, callers, slots);
  EXPECT_EQ(sum.pairs().back().caller, CallerTotals::kOther);
  EXPECT_EQ(sum.pairs().back().callee, CallerTotals::kOther);
}

TEST(CallerTotals, WorkersAddUpWhatHasNoCaller) {
  FunctionSlots slots, other_slots;
  CallerTotals callers, other;
  feed(slots, callers, {{0, kCall, 'x'}, {1, kReturn, 'x'}});
  feed(other_slots, other, {{0, kCall, 'a'}, {10, kCall, 'b'}, {14, kReturn, 'b'}}, {{1, 1, 0, 0}});
  callers.add(slots, other, other_slots);
  EXPECT_THAT(pairs_of(callers, slots),
              UnorderedElementsAre(Pair("->x", "1 calls, total 1, self 1"),
                                   Pair("->a", "1 calls, total 0, self 0"),
                                   Pair("?>b", "1 calls, total 4, self 4")));
}

// ---- modules

TEST(ModuleTotals, CountsAModuleOnceDuringItsOpenCalls) {
  constexpr uint64_t kOne = uint64_t{1} << 32, kTwo = uint64_t{2} << 32;
  FunctionSlots slots;
  ModuleTotals modules(slots);
  // one:1 0..100 > two:1 10..90 > one:2 20..50 > one:1 30..40.
  feed(slots, modules,
       {{0, kCall, kOne + 1},
        {10, kCall, kTwo + 1},
        {20, kCall, kOne + 2},
        {30, kCall, kOne + 1},
        {40, kReturn, kOne + 1},
        {50, kReturn, kOne + 2},
        {90, kReturn, kTwo + 1},
        {100, kReturn, kOne + 1}});
  ASSERT_EQ(modules.modules().size(), 2u);
  EXPECT_EQ(modules.modules()[0].module_id, 1u);
  EXPECT_EQ(text(modules.modules()[0].times), "3 calls, total 100, self 50");
  EXPECT_EQ(modules.modules()[1].module_id, 2u);
  EXPECT_EQ(text(modules.modules()[1].times), "1 calls, total 80, self 50");

  FunctionSlots other_slots;
  ModuleTotals other(other_slots);
  feed(other_slots, other, {{0, kCall, kTwo}, {3, kReturn, kTwo}});
  modules.add(other);
  EXPECT_EQ(text(modules.modules()[1].times), "2 calls, total 83, self 53");
}

TEST(ModuleTotals, BeyondTheLimitModulesAreCountedTogether) {
  FunctionSlots slots;
  ModuleTotals modules(slots);
  std::vector<Event> events;
  for (uint64_t i = 0; i < ModuleTotals::kMaxModules + 2; ++i) {
    events.push_back({2 * i, kCall, i << 32});
    events.push_back({2 * i + 1, kReturn, i << 32});
  }
  feed(slots, modules, events);
  ASSERT_EQ(modules.modules().size(), ModuleTotals::kMaxModules + 1);
  EXPECT_EQ(modules.modules()[1].module_id, 1u);
  EXPECT_EQ(modules.modules().back().module_id, ModuleTotals::kOther);
  EXPECT_EQ(text(modules.modules().back().times), "2 calls, total 2, self 2");
}

// ---- call tree

std::map<std::string, std::string> paths_of(const CallTree& tree, const FunctionSlots& slots) {
  std::vector<std::string> paths = {"", "?", "other"};
  std::map<std::string, std::string> found;
  for (uint32_t number = CallTree::kFirstFunction; number < tree.nodes().size(); ++number) {
    const CallTree::Node& node = tree.nodes()[number];
    EXPECT_LT(node.parent, number);
    paths.push_back(paths[node.parent] + static_cast<char>(slots.function_of(node.slot)));
    found[paths.back()] = text(node.times);
  }
  return found;
}

TEST(CallTree, NodeForEachPath) {
  FunctionSlots slots;
  CallTree tree;
  feed(slots, tree, kRecursive);
  feed(slots, tree, {{0, kCall, 'a'}, {1, kCall, 'b'}, {4, kReturn, 'b'}, {6, kReturn, 'a'}});
  EXPECT_THAT(paths_of(tree, slots),
              UnorderedElementsAre(Pair("a", "2 calls, total 106, self 23"),
                                   Pair("aa", "1 calls, total 80, self 40"),
                                   Pair("aab", "1 calls, total 40, self 20"),
                                   Pair("aaba", "1 calls, total 20, self 20"),
                                   Pair("ab", "1 calls, total 3, self 3")));
  // The nodes are a, aa, aab, aaba, ab: of a the child that was called last is ab.
  const uint32_t newest[] = {3, 0, 0, 7, 5, 6, 0, 0};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(tree.nodes()[i].newest_child, newest[i]) << i;
  feed(slots, tree, {{0, kCall, 'a'}, {1, kCall, 'a'}});
  EXPECT_EQ(tree.nodes()[3].newest_child, 4u);
  FunctionSlots other_slots;
  CallTree other;
  feed(other_slots, other,
       {{0, kCall, 'b'}, {5, kCall, 'a'}, {6, kReturn, 'a'}, {9, kReturn, 'b'}});
  feed(other_slots, other, kRecursive);
  tree.add(slots, other, other_slots);
  EXPECT_THAT(
      paths_of(tree, slots),
      UnorderedElementsAre(
          Pair("a", "4 calls, total 207, self 44"), Pair("aa", "3 calls, total 160, self 80"),
          Pair("aab", "2 calls, total 80, self 40"), Pair("aaba", "2 calls, total 40, self 40"),
          Pair("ab", "1 calls, total 3, self 3"), Pair("b", "1 calls, total 9, self 8"),
          Pair("ba", "1 calls, total 1, self 1")));
}

TEST(CallTree, CallsWhoseCallerIsInDoubtStandApart) {
  FunctionSlots slots;
  CallTree tree;
  feed(slots, tree, {{0, kCall, 'a'}, {10, kCall, 'b'}, {14, kReturn, 'b'}}, {{1, 1, 0, 0}});
  EXPECT_THAT(paths_of(tree, slots), UnorderedElementsAre(Pair("a", "1 calls, total 0, self 0"),
                                                          Pair("?b", "1 calls, total 4, self 4")));
}

// Every path is found again, however many there are.
TEST(CallTree, ManyPathsHaveOneNodeEach) {
  constexpr uint64_t kPaths = 40'000;
  std::vector<Event> events;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kPaths; ++i) {
      events.push_back({0, kCall, i % 200});
      events.push_back({0, kCall, i});
      events.push_back({1, kReturn, i});
      events.push_back({1, kReturn, i % 200});
    }
  }
  FunctionSlots slots;
  CallTree tree;
  feed(slots, tree, events);
  ASSERT_EQ(tree.nodes().size(), CallTree::kFirstFunction + 200 + kPaths);
  uint64_t calls = 0;
  for (uint32_t i = CallTree::kFirstFunction; i < tree.nodes().size(); ++i) {
    const CallTree::Node& node = tree.nodes()[i];
    ASSERT_LT(node.parent, i);
    EXPECT_EQ(node.times.calls, node.parent == CallTree::kRoot ? 2 * kPaths / 200 : 2u) << i;
    calls += node.times.calls;
  }
  EXPECT_EQ(calls, 4 * kPaths);
  for (uint32_t i = 0; i < CallTree::kFirstFunction; ++i) {
    EXPECT_EQ(text(tree.nodes()[i].times), "0 calls, total 0, self 0");
    EXPECT_EQ(tree.nodes()[i].slot, CallTree::kNoSlot);
  }
}

// A tree that is full takes another one: the outermost of what has no node counts in the total.
TEST(CallTree, FullTreeCountsAddedFunctionsTogether) {
  FunctionSlots slots, other_slots;
  CallTree tree, other;
  constexpr uint64_t kPlaces = CallTree::kMaxNodes - CallTree::kFirstFunction;
  std::vector<Event> events;
  for (uint64_t i = 0; i < kPlaces; ++i) {
    events.push_back({i, kCall, i});
    events.push_back({i, kReturn, i});
  }
  feed(slots, tree, events);
  ASSERT_EQ(tree.nodes().size(), CallTree::kMaxNodes);
  EXPECT_EQ(tree.nodes()[CallTree::kOther].times.calls, 0u);
  feed(other_slots, other,
       {{0, kCall, 5},
        {10, kCall, uint64_t{1} << 40},
        {20, kCall, uint64_t{1} << 41},
        {50, kReturn, uint64_t{1} << 41},
        {70, kReturn, uint64_t{1} << 40},
        {100, kReturn, 5}});
  for (int i = 0; i < 2; ++i) tree.add(slots, other, other_slots);
  EXPECT_EQ(tree.nodes().size(), CallTree::kMaxNodes);
  EXPECT_EQ(text(tree.nodes()[CallTree::kOther].times), "4 calls, total 120, self 120");
  EXPECT_EQ(text(tree.nodes()[CallTree::kFirstFunction + 5].times), "3 calls, total 200, self 80");

  // The outermost call of a thread that has no node, and one within it.
  feed(slots, tree,
       {{0, kCall, uint64_t{1} << 50},
        {10, kCall, uint64_t{1} << 51},
        {20, kReturn, uint64_t{1} << 51},
        {1000, kReturn, uint64_t{1} << 50}});
  EXPECT_EQ(text(tree.nodes()[CallTree::kOther].times), "6 calls, total 1120, self 1120");

  // What is one node there is one node here.
  CallTree sum;
  sum.add(slots, tree, slots);
  EXPECT_EQ(text(sum.nodes()[CallTree::kOther].times), "6 calls, total 1120, self 1120");
}

// A chain of calls deeper than there are nodes: what is beyond is one node, and its total is the
// time of the outermost call there.
TEST(CallTree, BeyondTheLimitCallsAreCountedTogether) {
  FunctionSlots slots;
  CallTree tree;
  constexpr uint64_t kPlaces = CallTree::kMaxNodes - CallTree::kFirstFunction;
  std::vector<Event> events;
  for (uint64_t i = 0; i < kPlaces - 1; ++i) {
    events.push_back({i, kCall, i});
    events.push_back({i, kReturn, i});
  }
  constexpr uint64_t kBegin = 10'000'000;
  for (uint64_t i = 0; i < 3; ++i) events.push_back({kBegin + i, kCall, (i + 1) << 40});
  for (uint64_t i = 3; i-- > 0;) events.push_back({kBegin + 20 - i, kReturn, (i + 1) << 40});
  feed(slots, tree, events);
  EXPECT_EQ(tree.nodes().size(), CallTree::kMaxNodes);
  // z0 0..20 has the last node; z1 1..19 and z2 2..18 have none.
  EXPECT_EQ(text(tree.nodes().back().times), "1 calls, total 20, self 2");
  EXPECT_EQ(text(tree.nodes()[CallTree::kOther].times), "2 calls, total 18, self 18");
}

TEST(Sinks, EachIsGivenEveryEvent) {
  struct Counted : CallSink {
    void on_call_begin(const Call&) { said += 'b'; }
    void on_call_end(const EndedCall&) { said += 'e'; }
    void on_lone_end(uint32_t, EndReason, const Moment&) { said += 'l'; }
    void on_untimed(uint32_t, atf::EventKind) { said += 'u'; }
    void on_gap(const Gap&, const Moment&) { said += 'g'; }
    std::string said;
  } one, two;
  Sinks<Counted, Counted> both(one, two);
  both.on_gap({}, {});
  both.on_call_begin({});
  both.on_untimed(0, kCall);
  both.on_lone_end(0, EndReason::kReturned, {});
  both.on_call_end({});
  EXPECT_EQ(one.said, "gbule");
  EXPECT_EQ(two.said, "gbule");
}

// root > a 100 > b 60 > c 50, d 5; a > e 4; lost 3 > f 3; other 7 (2 calls of it below a).
TEST(PathTree, OfMoreNodesTheSmallOnesArePutTogether) {
  constexpr uint32_t kOther = PathNode::kOther, kLost = PathNode::kAfterLoss;
  const std::vector<PathNode> paths = {{},
                                       {0, 'a', {1, 100, 30}},
                                       {1, 'b', {1, 60, 5}},
                                       {2, 'c', {1, 50, 50}},
                                       {2, 'd', {2, 5, 5}},
                                       {1, 'e', {3, 4, 4}},
                                       {0, kLost, {0, 3, 0}},
                                       {6, 'f', {1, 3, 3}},
                                       {1, kOther, {2, 7, 7}}};
  EXPECT_EQ(fewer_paths(paths, paths.size()).size(), paths.size());
  std::vector<std::string> found;
  uint64_t calls = 0, self_ns = 0;
  for (const PathNode& node : fewer_paths(paths, 6)) {
    const std::string name = node.is_function()    ? std::string(1, static_cast<char>(node.slot))
                             : node.slot == kOther ? "other"
                             : node.slot == kLost  ? "lost"
                                                   : "root";
    found.push_back(std::to_string(node.parent) + " " + name + " " +
                    std::to_string(node.times.calls) + " " + std::to_string(node.times.total_ns));
    calls += node.times.calls;
    self_ns += node.times.self_ns;
  }
  EXPECT_THAT(found, ElementsAre("0 root 0 0", "0 a 1 100", "1 b 1 60", "2 c 1 50", "2 other 2 5",
                                 "1 other 5 11", "0 lost 0 3", "6 other 1 3"));
  EXPECT_EQ(calls, 11u);
  EXPECT_EQ(self_ns, 104u);
}

TEST(Sinks, EachIsGivenEverything) {
  FunctionSlots slots;
  FunctionTotals totals;
  CallTree tree;
  Sinks<FunctionTotals, CallTree> both(totals, tree);
  feed(slots, both, kRecursive);
  EXPECT_EQ(totals.times()[0].total_ns, 100u);
  EXPECT_EQ(paths_of(tree, slots).size(), 4u);
}

}  // namespace
}  // namespace collect::calls
