// Calls that the settings leave out: which they are, that their returns go with them, and that they
// are counted.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "agent/ring/function_filter.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/ring/hooks/hooks_inline.h"
#include "agent/ring/hooks/unwinding.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

void event(uint64_t n, atf::EventKind kind) {
  on_event(function(n), kind, HookFrame{});
}
void call(uint64_t n) {
  event(n, atf::EventKind::kCall);
}
void leave(uint64_t n) {
  event(n, atf::EventKind::kReturn);
}

// As the hooks of a compiler do, which say where the call is.
void followed(uint64_t n, atf::EventKind kind, uint64_t place) {
  uint64_t address = function(n);
  Stream* stream = nullptr;
  if (record_short<true>(address, kind, stream, place) ||
      record_selected<true>(address, kind, stream, place)) {
    return;
  }
  HookFrame frame;
  frame.place = place;
  general_event(stream, address, kind, frame);
}

// "+1 -1": calls and returns in order, by number; "!1" an exception.
std::string events_of(const TakenStream& stream) {
  std::string text;
  for (const atf::IndexEventV2& event : stream.events()) {
    text += event.event_kind == 1 ? '+' : event.event_kind == 2 ? '-' : '!';
    text += std::to_string(event.function_id - id_of(0)) + " ";
  }
  return text;
}

struct Recorded {
  std::string events;
  uint64_t left_out = 0;
};

Recorded finish(RingDrain& drain) {
  drain.finish();
  EXPECT_EQ(drain.lost(), 0u);
  EXPECT_LE(drain.streams.size(), 1u);
  Recorded recorded{"", drain.left_out()};
  if (!drain.streams.empty()) recorded.events = events_of(drain.streams.begin()->second);
  return recorded;
}
Recorded finish() {
  RingDrain drain;
  return finish(drain);
}

class MaxDepthTest : public ::testing::TestWithParam<int> {
 protected:
  // By the short path, and by the general one, which writes detail.
  void begin(uint32_t max_depth) {
    Settings settings;
    settings.buffer_mb = 8;
    settings.detail = GetParam() == 2 ? 2 : 0;
    settings.max_depth = max_depth;
    ASSERT_TRUE(recorder_init(settings));
    start_recording();
  }
};

TEST_P(MaxDepthTest, LeavesOutAndCountsDeeperCallsAndTheirReturns) {
  begin(2);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t n = 1; n <= 4; ++n) call(n);
    for (uint64_t n = 4; n >= 1; --n) leave(n);
  }
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 +2 -2 -1 +1 +2 -2 -1 ");
  EXPECT_EQ(recorded.left_out, 4u);
}

TEST_P(MaxDepthTest, WithoutALimitNothingIsLeftOut) {
  begin(0);
  for (uint64_t n = 1; n <= 4; ++n) call(n);
  for (uint64_t n = 4; n >= 1; --n) leave(n);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 +2 +3 +4 -4 -3 -2 -1 ");
  EXPECT_EQ(recorded.left_out, 0u);
}

// The recording began within calls: their returns are recorded, and the depth does not go below 0.
TEST_P(MaxDepthTest, ReturnsOfCallsFromBeforeTheRecording) {
  begin(1);
  leave(9);
  leave(8);
  call(1);
  call(2);
  leave(2);
  leave(1);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "-9 -8 +1 -1 ");
  EXPECT_EQ(recorded.left_out, 1u);
}

TEST_P(MaxDepthTest, ExceptionEndsACallAsAReturnDoes) {
  begin(1);
  call(1);
  call(2);
  event(2, atf::EventKind::kException);
  event(1, atf::EventKind::kException);
  call(3);
  leave(3);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 !1 +3 -3 ");
  EXPECT_EQ(recorded.left_out, 1u);
}

TEST_P(MaxDepthTest, CallsThatALongjmpEndedCountNoMore) {
  begin(2);
  constexpr uint64_t kStack = 0x100000;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t n = 1; n <= 4; ++n) followed(n, atf::EventKind::kCall, kStack - n * 64);
    on_unwind({UnwindStep::kJumped, kStack, 0, kStack - 4096});
  }
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 +2 +1 +2 +1 +2 ");
  EXPECT_EQ(recorded.left_out, 6u);
}

// Depth is that of the calls that the filter takes: what is recorded is never nested deeper.
TEST_P(MaxDepthTest, CallsThatTheFilterLeavesOutAreNoDepth) {
  begin(1);
  begin_function_filter(FunctionFilterMode::kAllBut);
  const uint64_t id = id_of(1);
  ASSERT_TRUE(add_to_function_filter(&id, 1));
  (void)commit_function_filter();
  for (uint64_t n = 1; n <= 3; ++n) call(n);
  for (uint64_t n = 3; n >= 1; --n) leave(n);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+2 -2 ");
  EXPECT_EQ(recorded.left_out, 2u);
  begin_function_filter(FunctionFilterMode::kEverything);
  (void)commit_function_filter();
}

TEST_P(MaxDepthTest, ManyPagesOfCallsAtTheLimit) {
  begin(1);
  RingDrain drain;
  constexpr uint64_t kCalls = 10'000;
  for (uint64_t i = 0; i < kCalls; ++i) {
    call(1);
    call(2);
    leave(2);
    leave(1);
    if (i % 1000 == 0) drain.take();
  }
  drain.finish();
  EXPECT_EQ(drain.left_out(), kCalls);
  EXPECT_EQ(drain.records(), 2 * kCalls);
  EXPECT_EQ(drain.lost(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Paths, MaxDepthTest, ::testing::Values(0, 2));

constexpr uint64_t kHour = 3'600'000'000'000;  // no call of a test takes so long
constexpr uint64_t kMillisecond = 1'000'000;

class LongerThanTest : public ::testing::TestWithParam<int> {
 protected:
  // By the short path, and by the general one, which a program with a clock of the system takes.
  void begin(uint64_t longer_than_ns, uint8_t detail = 0) {
    Settings settings;
    settings.buffer_mb = 8;
    settings.longer_than_ns = longer_than_ns;
    settings.detail = detail;
    ASSERT_TRUE(recorder_init(settings));
    start_recording();
    if (GetParam() != 0) change_state(kStateSlowClock, 0);
  }
  static void wait_for(uint64_t ns) {
    for (const uint64_t end = now_ns() + ns; now_ns() < end;) {
    }
  }
};

TEST_P(LongerThanTest, ShortCallIsLeftOutWithItsReturn) {
  begin(kHour);
  call(1);
  for (int i = 0; i < 10; ++i) {
    call(2);
    leave(2);
  }
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 ") << "it is open at the end";
  EXPECT_EQ(recorded.left_out, 10u);
}

TEST_P(LongerThanTest, LeavesOutAShortCallWithItsShortCalls) {
  begin(kHour);
  for (uint64_t n = 1; n <= 4; ++n) call(n);
  for (uint64_t n = 4; n >= 1; --n) leave(n);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "");
  EXPECT_EQ(recorded.left_out, 4u);
}

TEST_P(LongerThanTest, LongCallIsRecorded) {
  begin(kMillisecond);
  call(1);
  call(2);
  wait_for(kMillisecond);
  leave(2);
  leave(1);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 +2 -2 -1 ");
  EXPECT_EQ(recorded.left_out, 0u);
}

// However the machine interrupts this test: what is recorded was long, what is not is counted.
TEST_P(LongerThanTest, RecordsOnlyCallsOverTheLimit) {
  constexpr uint64_t kLimit = 20'000;
  begin(kLimit);
  RingDrain drain;
  uint64_t calls = 0;
  for (uint64_t i = 0; i < 20'000; ++i) {
    for (uint64_t n = 1; n <= 3; ++n) call(n);
    if (i % 100 == 0) wait_for(kLimit);
    for (uint64_t n = 3; n >= 1; --n) leave(n);
    calls += 3;
    if (i % 500 == 0) drain.take();
  }
  drain.finish();
  const uint64_t left_out = drain.left_out();
  EXPECT_EQ(drain.lost(), 0u);
  std::vector<atf::IndexEventV2> open;
  uint64_t recorded = 0;
  for (const atf::IndexEventV2& event : drain.streams.begin()->second.events()) {
    if (event.event_kind == 1) {
      open.push_back(event);
      continue;
    }
    ASSERT_FALSE(open.empty());
    EXPECT_EQ(open.back().function_id, event.function_id);
    EXPECT_GE(event.timestamp_ns - open.back().timestamp_ns, kLimit);
    open.pop_back();
    ++recorded;
  }
  EXPECT_TRUE(open.empty());
  EXPECT_GE(recorded, 200u * 3);
  EXPECT_EQ(recorded + left_out, calls);
}

// The thread stays in its call and runs no hook: the drain shows the call, and its end comes later.
TEST_P(LongerThanTest, DrainShowsACallThatContinues) {
  begin(kMillisecond);
  call(1);
  call(2);
  RingDrain drain;
  while (drain.records() < 2) {
    poll_threads();
    drain.take();
  }
  leave(2);
  leave(1);
  const Recorded recorded = finish(drain);
  EXPECT_EQ(recorded.events, "+1 +2 -2 -1 ");
  EXPECT_EQ(recorded.left_out, 0u);
}

TEST_P(LongerThanTest, DrainShowsNoCallThatMayYetBeShort) {
  begin(kHour);
  call(1);
  RingDrain drain;
  for (int i = 0; i < 3; ++i) {
    poll_threads();
    drain.take();
  }
  EXPECT_EQ(drain.records(), 0u);
  leave(1);
  const Recorded recorded = finish(drain);
  EXPECT_EQ(recorded.events, "");
  EXPECT_EQ(recorded.left_out, 1u);
}

// A page is closed with what is open on it.
TEST_P(LongerThanTest, CallsThatFillAPageStay) {
  begin(kHour);
  constexpr uint64_t kDeep = 5000;
  constexpr uint64_t kInPages = 2 * (kPageBytes / 32);
  for (uint64_t i = 0; i < kDeep; ++i) call(1);
  for (uint64_t i = 0; i < kDeep; ++i) leave(1);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.left_out(), kDeep - kInPages);
  EXPECT_EQ(drain.records(), 2 * kInPages);
  EXPECT_EQ(drain.lost(), 0u);
}

TEST_P(LongerThanTest, CallThatEndsByAnExceptionStays) {
  begin(kHour);
  call(1);
  call(2);
  event(2, atf::EventKind::kException);
  leave(1);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 +2 !2 -1 ");
  EXPECT_EQ(recorded.left_out, 0u);
}

TEST_P(LongerThanTest, CallThatALongjmpEndsStays) {
  begin(kHour);
  constexpr uint64_t kStack = 0x100000;
  for (uint64_t n = 1; n <= 2; ++n) followed(n, atf::EventKind::kCall, kStack - n * 64);
  on_unwind({UnwindStep::kJumped, kStack, 0, kStack - 4096});
  RingDrain drain;
  drain.take();
  EXPECT_EQ(drain.records(), 2u) << "it is known at once that they stay";
  followed(3, atf::EventKind::kCall, kStack - 64);
  followed(3, atf::EventKind::kReturn, kStack - 64);
  const Recorded recorded = finish(drain);
  EXPECT_EQ(recorded.events, "+1 +2 ");
  EXPECT_EQ(recorded.left_out, 1u);
}

TEST_P(LongerThanTest, ReturnOfAnotherCallKeepsWhatIsOpen) {
  begin(kHour);
  call(1);
  leave(9);
  leave(1);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 -9 -1 ");
  EXPECT_EQ(recorded.left_out, 0u);
}

// A detail record refers to its event.
TEST_P(LongerThanTest, CallWithADetailRecordStays) {
  begin(kHour, 2);
  call(1);
  leave(1);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "+1 -1 ");
  EXPECT_EQ(recorded.left_out, 0u);
}

TEST_P(LongerThanTest, GoesWithADepth) {
  Settings settings;
  settings.buffer_mb = 8;
  settings.longer_than_ns = kHour;
  settings.max_depth = 1;
  ASSERT_TRUE(recorder_init(settings));
  start_recording();
  call(1);
  call(2);
  leave(2);
  leave(1);
  const Recorded recorded = finish();
  EXPECT_EQ(recorded.events, "");
  EXPECT_EQ(recorded.left_out, 2u);
}

// Pages of 64 KiB hold 2048 events.
class MaxSizeTest : public ::testing::TestWithParam<uint8_t> {
 protected:
  static void begin(uint64_t max_bytes, FullPolicy full = FullPolicy::kDrop) {
    Settings settings;
    settings.buffer_mb = 8;
    settings.atf_version = GetParam();
    settings.max_bytes = max_bytes;
    settings.full = full;
    ASSERT_TRUE(recorder_init(settings));
    start_recording();
  }
  static constexpr uint64_t kEvents = kPageBytes / atf::kEventBytes;
};

TEST_P(MaxSizeTest, RecordingEndsWithThePageThatReachesIt) {
  begin(2 * kPageBytes);
  for (uint64_t i = 0; i < kEvents; ++i) call(1);
  EXPECT_FALSE(size_reached());
  for (uint64_t i = 0; i < kEvents; ++i) leave(1);
  EXPECT_TRUE(is_recording()) << "no one has asked for a third page yet";
  call(2);
  EXPECT_TRUE(size_reached());
  EXPECT_FALSE(is_recording());
  call(3);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.records(), 2 * kEvents);
  EXPECT_EQ(drain.lost(), 0u);
}

TEST_P(MaxSizeTest, PagesOfAllThreadsCount) {
  begin(3 * kPageBytes);
  std::thread([] {
    for (uint64_t i = 0; i < 2 * kEvents + 1; ++i) call(1);
  }).join();
  EXPECT_FALSE(size_reached());
  for (uint64_t i = 0; i < 2 * kEvents; ++i) call(2);
  EXPECT_TRUE(size_reached());
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.records(), 3 * kEvents + 1);
  EXPECT_EQ(drain.lost(), 0u);
}

TEST_P(MaxSizeTest, NextRecordingHasItsOwn) {
  begin(1);
  for (uint64_t i = 0; i < kEvents + 1; ++i) call(1);
  EXPECT_TRUE(size_reached());
  RingDrain first;
  first.finish();
  EXPECT_EQ(first.records(), kEvents);
  start_recording();
  EXPECT_FALSE(size_reached());
  call(1);
  leave(1);
  RingDrain second;
  second.finish();
  EXPECT_EQ(second.records(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Versions, MaxSizeTest, ::testing::Values(1, 2));

INSTANTIATE_TEST_SUITE_P(Paths, LongerThanTest, ::testing::Values(0, 1));

}  // namespace
}  // namespace collect::agent
