// ProcessorTimes off the processor in the totals, beside what the same times as stalls leave over.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "formats/calls/caller_totals.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/module_totals.h"
#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using testing::Event;
using testing::Events;
using testing::kCall;
using testing::kReturn;

constexpr uint64_t kOtherModule = uint64_t{1} << 32;

struct Recorded {
  std::vector<Event> events;
  std::vector<Stall> stalls;  // with times off the processor among them
};

// Calls of six functions in two modules, in and out at random; between them times off the
// processor, and here and there a stall, which may have a part of one.
Recorded random_waits(uint32_t seed) {
  std::mt19937 random(seed);
  Recorded recorded;
  std::vector<uint64_t> open;
  uint64_t now_ns = 1000;
  for (int i = 0; i < 400; ++i) {
    if (!open.empty() && (random() % 2 == 0 || open.size() > 12)) {
      recorded.events.push_back({now_ns, kReturn, open.back()});
      open.pop_back();
    } else {
      open.push_back(random() % 6 + (random() % 2) * kOtherModule);
      recorded.events.push_back({now_ns, kCall, open.back()});
    }
    const uint64_t pause_ns = 1 + random() % 100;
    if (random() % 4 == 0) {
      const uint64_t from_ns = now_ns + random() % pause_ns;
      const uint64_t length_ns = random() % (now_ns + pause_ns - from_ns + 1);
      recorded.stalls.push_back({from_ns, from_ns + length_ns, length_ns, 1, false, true});
    }
    if (random() % 16 == 0) {
      recorded.stalls.push_back({now_ns, now_ns + pause_ns / 2, pause_ns / 2, 1, false, false});
    }
    now_ns += pause_ns;
  }
  return recorded;
}

template <class Sink>
ThreadCounts read(const Recorded& recorded, const Window& window, FunctionSlots& slots,
                  Sink& sink) {
  ThreadCalls<Sink> calls(slots, sink, recorded.stalls, window);
  read_thread(Events(recorded.events), {}, calls);
  return calls.counts();
}

// The times off the processor are stalls: what is left is on the processor.
Recorded as_stalls(Recorded recorded) {
  for (Stall& stall : recorded.stalls) stall.is_off_processor = false;
  return recorded;
}

struct ProcessorTimes {
  uint64_t total_ns = 0, self_ns = 0;
  bool operator==(const ProcessorTimes&) const = default;
};
using ByKey = std::map<std::pair<uint64_t, uint64_t>, ProcessorTimes>;

template <class Group>
ProcessorTimes on_processor(const Group& times) {
  return {times.total_ns - times.waited.total_ns, times.self_ns - times.waited.self_ns};
}

ByKey functions_of(const Recorded& recorded, const Window& window) {
  FunctionSlots slots;
  FunctionTotals totals;
  read(recorded, window, slots, totals);
  ByKey all;
  for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
    all[{slots.function_of(slot), 0}] = on_processor(totals.times()[slot]);
  }
  return all;
}

ByKey callers_of(const Recorded& recorded, const Window& window) {
  FunctionSlots slots;
  CallerTotals totals;
  read(recorded, window, slots, totals);
  ByKey all;
  for (const auto& pair : totals.pairs()) {
    all[{pair.caller, slots.function_of(pair.callee)}] = on_processor(pair.times);
  }
  return all;
}

ByKey modules_of(const Recorded& recorded, const Window& window) {
  FunctionSlots slots;
  ModuleTotals totals(slots);
  read(recorded, window, slots, totals);
  ByKey all;
  for (const auto& module : totals.modules()) {
    all[{module.module_id, 0}] = on_processor(module.times);
  }
  return all;
}

TEST(Waits, AreWhatStallsWouldTakeAway) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Recorded recorded = random_waits(seed);
    const Recorded stalled = as_stalls(recorded);
    Window window;
    if (seed % 2 == 1) window = {3000 + seed, 12'000 + 7 * seed};
    EXPECT_EQ(functions_of(recorded, window), functions_of(stalled, window));
    EXPECT_EQ(callers_of(recorded, window), callers_of(stalled, window));
    EXPECT_EQ(modules_of(recorded, window), modules_of(stalled, window));
    FunctionSlots slots;
    CallSink ignored;
    const ThreadCounts with = read(recorded, window, slots, ignored);
    const ThreadCounts without = read(stalled, window, slots, ignored);
    EXPECT_EQ(with.running_ns - with.waited_ns, without.running_ns);
    EXPECT_EQ(without.waited_ns, 0u);
  }
}

// a 0..100 > a 10..90 > b 20..60: off the processor 30..40 in b, 70..75 in the inner a, 95..99.
TEST(Waits, RecursiveCallsCountOnceInTheTotal) {
  const Recorded recorded = {
      {{0, kCall, 'a'},
       {10, kCall, 'a'},
       {20, kCall, 'b'},
       {60, kReturn, 'b'},
       {90, kReturn, 'a'},
       {100, kReturn, 'a'}},
      {{30, 40, 10, 1, false, true}, {70, 75, 5, 1, false, true}, {95, 99, 4, 1, false, true}}};
  FunctionSlots slots;
  FunctionTotals totals;
  const ThreadCounts counts = read(recorded, {}, slots, totals);
  const WaitedTimes a = totals.times()[slots.slot_of('a')].waited;
  EXPECT_EQ(a.total_ns, 19u);
  EXPECT_EQ(a.self_ns, 9u);
  EXPECT_EQ(totals.times()[slots.slot_of('b')].waited.self_ns, 10u);
  EXPECT_EQ(counts.waited_ns, 19u);
  EXPECT_EQ(counts.running_ns, 100u);
}

// Of a thread that was there before: what it waited before its first event is in no call.
TEST(Waits, BeforeTheFirstEventCountForNothing) {
  const Recorded recorded = {{{100, kCall, 'a'}, {200, kReturn, 'a'}},
                             {{10, 90, 80, 1, false, true}, {150, 160, 10, 1, false, true}}};
  FunctionSlots slots;
  FunctionTotals totals;
  EXPECT_EQ(read(recorded, {}, slots, totals).waited_ns, 10u);
  EXPECT_EQ(totals.times().front().waited.total_ns, 10u);
}

}  // namespace
}  // namespace collect::calls
