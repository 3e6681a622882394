// What a thread that waits for a page leaves behind: when it stood still, and for how long.
#include "agent/ring/stalls.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "agent/ring/clock.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"
#include "tests/fakes/sanitized.h"

namespace collect::agent {
namespace {

using namespace std::chrono_literals;

uint64_t traced() {
  return reinterpret_cast<uint64_t>(&traced);
}

void record(uint64_t events) {
  const HookFrame frame;
  for (uint64_t i = 0; i < events; ++i) {
    on_event(traced(), i % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn, frame);
  }
}

struct LoneStream : Stream {
  LoneStream() {
    stalls.entries = held;
    stalls.held = kStallsHeld;
  }
  ThreadStall held[kStallsHeld];
};

void wait_and_add(StallRing& ring, uint64_t first_ns, uint64_t last_ns) {
  begin_wait(ring, first_ns);
  continue_wait(ring, last_ns);
  add_stalls(ring);
}

std::vector<ThreadStall> take_all(Stream& stream) {
  std::vector<ThreadStall> all;
  ThreadStall stall;
  while (take_stall(stream, stall)) all.push_back(stall);
  return all;
}

TEST(Stalls, WaitsOfOneEventAreOneStall) {
  LoneStream stream;
  begin_wait(stream.stalls, 100);
  continue_wait(stream.stalls, 150);
  begin_wait(stream.stalls, 151);  // the page that it waited for went to another thread
  continue_wait(stream.stalls, 300);
  EXPECT_TRUE(take_all(stream).empty());  // not added yet
  add_stalls(stream.stalls);
  EXPECT_FALSE(stream.stalls.is_pending());
  const auto stalls = take_all(stream);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].first_ns, 100u);
  EXPECT_EQ(stalls[0].last_ns, 300u);
  EXPECT_EQ(stalls[0].stalled_ns, 200u);
  EXPECT_EQ(stalls[0].count, 1u);
}

TEST(Stalls, JoinsAndCountsStallsThatHaveNoRoom) {
  LoneStream stream;
  constexpr uint64_t kStalls = kStallsHeld + 5;
  for (uint64_t i = 0; i < kStalls; ++i) wait_and_add(stream.stalls, 1000 * i + 1, 1000 * i + 11);
  EXPECT_EQ(take_all(stream).size(), kStallsHeld);
  EXPECT_TRUE(stream.stalls.is_pending());
  add_stalls(stream.stalls);  // of the next event that takes the general path
  const auto rest = take_all(stream);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].count, 5u);
  EXPECT_EQ(rest[0].stalled_ns, 50u);
  EXPECT_EQ(rest[0].first_ns, 1000 * kStallsHeld + 1);
  EXPECT_EQ(rest[0].last_ns, 1000 * (kStalls - 1) + 11);
}

TEST(Stalls, StreamThatEndedGivesTheJoinedOnesToo) {
  LoneStream stream;
  for (uint64_t i = 0; i < kStallsHeld + 3; ++i)
    wait_and_add(stream.stalls, 10 * i + 1, 10 * i + 2);
  begin_wait(stream.stalls, 5000);
  continue_wait(stream.stalls, 5900);  // and is killed
  add_last_stalls(stream.stalls);
  stream.ended = true;
  uint64_t stalled_ns = 0;
  uint64_t count = 0;
  for (const ThreadStall& stall : take_all(stream)) {
    stalled_ns += stall.stalled_ns;
    count += stall.count;
  }
  EXPECT_EQ(count, kStallsHeld + 4);
  EXPECT_EQ(stalled_ns, kStallsHeld + 3 + 900);
}

// What no longer fits is one, which keeps what all of them have in common; pages are apart.
TEST(Stalls, WaitsForLocksAreJoinedApart) {
  LoneStream stream;
  for (uint64_t i = 0; i < kStallsHeld; ++i) {
    add_lock_wait(stream.stalls, {10 * i, 10 * i + 5, 5, 1, true, 7, 0x1000 + i});
  }
  add_lock_wait(stream.stalls, {5000, 5010, 10, 1, true, 7, 0x2000});
  wait_and_add(stream.stalls, 5020, 5040);
  add_lock_wait(stream.stalls, {5050, 5060, 10, 1, true, 8, 0x2000});
  std::vector<ThreadStall> all = take_all(stream);
  ASSERT_EQ(all.size(), kStallsHeld);
  EXPECT_EQ(all.back().place, 0x1000 + kStallsHeld - 1);
  EXPECT_EQ(all.back().owner, 7u);
  add_stalls(stream.stalls);
  all = take_all(stream);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].is_for_lock);
  EXPECT_EQ(all[0].stalled_ns, 20u);
  EXPECT_TRUE(all[1].is_for_lock);
  EXPECT_EQ(all[1].count, 2u);
  EXPECT_EQ(all[1].stalled_ns, 20u);
  EXPECT_EQ(all[1].place, 0x2000u);
  EXPECT_EQ(all[1].owner, 0u);
}

// Handlers that waited inside one hook are one stall: as it lay where it was one, else as one that
// ended with the last.
TEST(Stalls, WaitsOfHandlersAreAddedTogether) {
  LoneStream stream;
  add_nested_wait(stream.stalls, 100, 100);
  add_nested_wait(stream.stalls, 100, 90);
  EXPECT_FALSE(stream.stalls.is_pending()) << "no time passed";
  add_nested_wait(stream.stalls, 100, 150);
  EXPECT_TRUE(stream.stalls.is_pending());
  add_stalls(stream.stalls);
  EXPECT_FALSE(stream.stalls.is_pending());
  add_nested_wait(stream.stalls, 1000, 1010);
  add_nested_wait(stream.stalls, 1500, 1520);
  add_stalls(stream.stalls);
  const auto stalls = take_all(stream);
  ASSERT_EQ(stalls.size(), 2u);
  EXPECT_EQ(stalls[0].first_ns, 100u);
  EXPECT_EQ(stalls[0].last_ns, 150u);
  EXPECT_EQ(stalls[0].stalled_ns, 50u);
  EXPECT_EQ(stalls[0].count, 1u);
  EXPECT_EQ(stalls[1].first_ns, 1000u);
  EXPECT_EQ(stalls[1].last_ns, 1520u);
  EXPECT_EQ(stalls[1].stalled_ns, 30u);
  EXPECT_EQ(stalls[1].count, 2u);
  // The beginning of one was counted before, its end after.
  stream.stalls.nested_first_ns = 2000;
  stream.stalls.nested_last_ns = 2010;
  stream.stalls.nested_ns = 300;
  stream.stalls.nested_count = 1;
  add_stalls(stream.stalls);
  const auto cut = take_all(stream);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].first_ns, 1710u);
  EXPECT_EQ(cut[0].last_ns, 2010u);
}

TEST(Stalls, WaitThatTookNoTimeIsNone) {
  LoneStream stream;
  begin_wait(stream.stalls, 100);
  EXPECT_TRUE(stream.stalls.is_pending());
  continue_wait(stream.stalls, 99);  // of a clock that was fitted again
  add_stalls(stream.stalls);
  EXPECT_FALSE(stream.stalls.is_pending());
  EXPECT_TRUE(take_all(stream).empty());
}

class WaitingThread : public testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.full = FullPolicy::kWait;
    settings.buffer_mb = 1;
    ASSERT_TRUE(recorder_init(settings));
    start_recording();
  }
  void TearDown() override {
    stop_recording();
    drain_.finish();
  }

  Stream& stream() { return *stream_at(0); }
  bool waits_soon() {
    for (int i = 0; i < 10'000; ++i) {
      if (stream_at(0) != nullptr && stream().waiting.load() != 0) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  void drain_until(const std::atomic<bool>& done) {
    while (!done.load()) {
      drain_.take();
      std::this_thread::sleep_for(1ms);
    }
    drain_.take();
  }

  RingDrain drain_;
};

constexpr uint64_t kMoreThanTheRing = 64'000;  // events; a page of 2 KiB of them, 16 pages
constexpr uint64_t kHeldNs = 200'000'000;

TEST_F(WaitingThread, MeasuresAStallBetweenTwoOfItsEvents) {
  std::atomic<bool> done{false};
  std::thread thread([&] {
    record(kMoreThanTheRing);
    done = true;
  });
  ASSERT_TRUE(waits_soon());
  std::this_thread::sleep_for(std::chrono::nanoseconds(kHeldNs));
  drain_until(done);
  thread.join();
  const std::vector<ThreadStall> stalls = take_all(stream());
  ASSERT_FALSE(stalls.empty());
  uint64_t longest = 0;
  const auto events = drain_.streams.begin()->second.events();
  ASSERT_EQ(events.size(), kMoreThanTheRing);
  for (const ThreadStall& stall : stalls) {
    longest = std::max(longest, stall.stalled_ns);
    if (stall.count != 1) continue;
    const auto behind =
        std::upper_bound(events.begin(), events.end(), stall.first_ns,
                         [](uint64_t ns, const auto& event) { return ns < event.timestamp_ns; });
    ASSERT_NE(behind, events.begin());
    EXPECT_LE((behind - 1)->timestamp_ns, stall.first_ns);
    if (behind == events.end()) continue;
    EXPECT_GE(behind->timestamp_ns + 1000, stall.last_ns);
  }
  EXPECT_GE(longest, kHeldNs);
}

// Although nothing is taken out of the ring.
TEST_F(WaitingThread, ContinuesWhenAFullRingBeginsToDrop) {
  std::thread thread([] { record(kMoreThanTheRing); });
  EXPECT_TRUE(waits_soon());
  set_full_policy(FullPolicy::kDrop);
  thread.join();
  drain_.take();
  EXPECT_EQ(drain_.records(), 16u * kPageBytes / atf::kEventBytes);
  EXPECT_EQ(drain_.records() + recorder_stats().lost, kMoreThanTheRing);
}

TEST_F(WaitingThread, ReportsAStallEndedByTheRecordingsEnd) {
  std::atomic<bool> done{false};
  std::thread thread([&] {
    record(kMoreThanTheRing);
    done = true;
  });
  ASSERT_TRUE(waits_soon());
  std::this_thread::sleep_for(std::chrono::nanoseconds(kHeldNs));
  stop_recording();
  thread.join();
  ASSERT_TRUE(stream_ended(stream()));
  const std::vector<ThreadStall> stalls = take_all(stream());
  ASSERT_FALSE(stalls.empty());
  EXPECT_GE(stalls.back().stalled_ns, kHeldNs * 9 / 10);
  EXPECT_LE(stalls.back().last_ns, now_ns());
}

std::atomic<uint64_t> handled_at_ns{0};
void on_signal(int) {
  record(2);
  handled_at_ns = now_ns();
}

// The handler's own events lie in the time of the wait: that time was none of standing still.
TEST_F(WaitingThread, SignalHandlerThatRecordsIsNoStall) {
  if (fakes::kLosesSignals) GTEST_SKIP() << "the signal may never reach the thread";
  struct sigaction action{};
  action.sa_handler = on_signal;
  struct sigaction old{};
  sigaction(SIGUSR1, &action, &old);
  std::atomic<bool> prepared{false};
  std::atomic<bool> done{false};
  std::thread thread([&] {
    while (!prepared) record(1000);
    record(kMoreThanTheRing);
    done = true;
  });
  // Until a signal has interrupted a hook: from then on the stream has a page for such events.
  while (stream_at(0) == nullptr || stream().deferred_tail == 0) {
    pthread_kill(thread.native_handle(), SIGUSR1);
    drain_.take();
  }
  (void)take_all(stream());
  prepared = true;
  ASSERT_TRUE(waits_soon());
  std::this_thread::sleep_for(100ms);
  handled_at_ns = 0;
  pthread_kill(thread.native_handle(), SIGUSR1);
  while (handled_at_ns == 0) std::this_thread::sleep_for(1ms);
  const uint64_t handled_ns = handled_at_ns;
  std::this_thread::sleep_for(100ms);
  drain_until(done);
  thread.join();
  sigaction(SIGUSR1, &old, nullptr);
  bool before = false;
  bool after = false;
  for (const ThreadStall& stall : take_all(stream())) {
    EXPECT_FALSE(stall.first_ns < handled_ns && handled_ns < stall.last_ns);
    const bool is_long = stall.stalled_ns >= 80'000'000;
    before |= is_long && stall.last_ns <= handled_ns;
    after |= is_long && stall.first_ns >= handled_ns;
  }
  EXPECT_TRUE(before);
  EXPECT_TRUE(after);
}

}  // namespace
}  // namespace collect::agent
