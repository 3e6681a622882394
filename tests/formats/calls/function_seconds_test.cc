#include "formats/calls/function_seconds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/calls/sinks.h"
#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using ::testing::ElementsAre;
using testing::Event;
using testing::Events;
using testing::kCall;
using testing::kReturn;

constexpr uint64_t kSecond = SecondClock::kSecondNs;

// "12 a: 2 calls, total 30, self 20, longest 20 of 2"
class Seconds {
 public:
  std::vector<std::string> of(const std::vector<Event>& events, const std::vector<Gap>& gaps = {},
                              SecondClock clock = {}) {
    std::vector<std::string> lines;
    const auto emit = [&](uint64_t second, uint32_t slot, const FunctionTimes& times) {
      lines.push_back(std::to_string(second) + " " + static_cast<char>(slots_.function_of(slot)) +
                      ": " + std::to_string(times.calls) + " calls, total " +
                      std::to_string(times.total_ns) + ", self " + std::to_string(times.self_ns) +
                      ", longest " + std::to_string(times.longest_ns) + " of " +
                      std::to_string(times.durations.count()));
    };
    FunctionSeconds<decltype(emit)> seconds(clock, emit);
    ThreadCalls<decltype(seconds)> calls(slots_, seconds);
    read_thread(Events(events), gaps, calls);
    seconds.finish_thread();
    return lines;
  }

 private:
  FunctionSlots slots_;
};

TEST(FunctionSeconds, CallCountsWhereItEnded) {
  EXPECT_THAT(
      Seconds().of({{10, kCall, 'a'},
                    {20, kCall, 'b'},
                    {50, kReturn, 'b'},
                    {kSecond - 1, kCall, 'b'},
                    {kSecond, kReturn, 'b'},
                    {3 * kSecond + 10, kReturn, 'a'}}),
      ElementsAre("0 b: 1 calls, total 30, self 30, longest 30 of 1",
                  "1 b: 1 calls, total 1, self 1, longest 1 of 1",
                  "3 a: 1 calls, total 3000000000, self 2999999969, longest 3000000000 of 1"));
}

TEST(FunctionSeconds, SplitAtSecondsOfTheDay) {
  EXPECT_THAT(
      Seconds().of(
          {{5'000, kCall, 'a'}, {5'100, kReturn, 'a'}, {5'101, kCall, 'a'}, {5'200, kReturn, 'a'}},
          {}, {5'000, 1'700'000'000 * kSecond + kSecond - 101}),
      ElementsAre("1700000000 a: 1 calls, total 100, self 100, longest 100 of 1",
                  "1700000001 a: 1 calls, total 99, self 99, longest 99 of 1"));
}

// What a gap ended is found out later: no second comes twice for it.
TEST(FunctionSeconds, CountsALateEndInItsSecond) {
  EXPECT_THAT(Seconds().of({{10, kCall, 'a'},
                            {20, kCall, 'b'},
                            {4 * kSecond, kCall, 'c'},
                            {4 * kSecond + 5, kReturn, 'c'},
                            {5 * kSecond, kReturn, 'd'}},
                           {{2, 3, 30, 40}}),
              ElementsAre("4 c: 1 calls, total 5, self 5, longest 5 of 1",
                          "4 b: 1 calls, total 0, self 0, longest 0 of 0",
                          "4 a: 1 calls, total 10, self 10, longest 0 of 0"));
}

TEST(FunctionSeconds, ClockThatStepsBackOpensItsSecondAgain) {
  EXPECT_THAT(Seconds().of({{2 * kSecond, kCall, 'a'},
                            {2 * kSecond + 1, kReturn, 'a'},
                            {kSecond, kCall, 'a'},
                            {kSecond + 1, kReturn, 'a'},
                            {2 * kSecond + 2, kCall, 'a'},
                            {2 * kSecond + 3, kReturn, 'a'}}),
              ElementsAre("2 a: 1 calls, total 1, self 1, longest 1 of 1",
                          "1 a: 1 calls, total 1, self 1, longest 1 of 1",
                          "2 a: 1 calls, total 1, self 1, longest 1 of 1"));
}

TEST(FunctionSeconds, TimesOfADamagedFileDoNotWrap) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const SecondClock clock{1'000, 2'000};
  EXPECT_EQ(clock.unix_ns(0), 1'000u);
  EXPECT_EQ((SecondClock{5'000, 2'000}.unix_ns(1'000)), 0u);
  EXPECT_EQ(clock.unix_ns(kMost), kMost);
  EXPECT_EQ((SecondClock{0, kMost}.second_of(1)), kMost / kSecond);
  EXPECT_THAT(
      Seconds().of(
          {{kMost - 1, kCall, 'a'}, {kMost, kReturn, 'a'}, {0, kCall, 'b'}, {1, kReturn, 'b'}}, {},
          clock),
      ElementsAre("18446744073 a: 1 calls, total 1, self 1, longest 1 of 1",
                  "0 b: 1 calls, total 1, self 1, longest 1 of 1"));
}

// The same calls as the totals, for any events.
TEST(FunctionSeconds, TooDeepCallsCountToo) {
  FunctionSlots slots;
  uint64_t calls = 0;
  const auto emit = [&](uint64_t, uint32_t, const FunctionTimes& times) { calls += times.calls; };
  FunctionSeconds<decltype(emit)> seconds({}, emit);
  seconds.on_untimed(slots.slot_of('a'), kCall);
  seconds.on_untimed(slots.slot_of('a'), kReturn);
  EXPECT_EQ(calls, 0u);
  seconds.finish_thread();
  EXPECT_EQ(calls, 1u);
  seconds.finish_thread();
  EXPECT_EQ(calls, 1u);
}

}  // namespace
}  // namespace collect::calls
