// More threads than there are pages: those that write nothing give the page back that they were
// filling, and their lanes continue where they were.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/stream.h"
#include "agent/ring/stream_reader.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

constexpr uint32_t kPages = 16;  // a megabyte
constexpr uint32_t kEventsPerPage = kPageBytes / atf::kEventBytes;

void begin(FullPolicy full, uint64_t longer_than_ns = 0) {
  Settings settings;
  settings.full = full;
  settings.buffer_mb = 1;
  settings.longer_than_ns = longer_than_ns;
  ASSERT_TRUE(recorder_init(settings));
  start_recording();
}

void record_pairs(uint64_t count) {
  const HookFrame frame;
  for (uint64_t i = 0; i < count; ++i) {
    on_event(function(0), atf::EventKind::kCall, frame);
    on_event(function(0), atf::EventKind::kReturn, frame);
  }
}

// Threads that all do the same, step by step, and live until the last step.
class Threads {
 public:
  explicit Threads(uint32_t count) : steps_(count + 1) {
    for (uint32_t i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        for (;;) {
          steps_.arrive_and_wait();
          if (!step_) return;
          step_();
          steps_.arrive_and_wait();
        }
      });
    }
  }
  ~Threads() {
    step_ = nullptr;
    steps_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  void all_do(std::function<void()> step) {
    step_ = std::move(step);
    steps_.arrive_and_wait();
    steps_.arrive_and_wait();
  }

 private:
  std::barrier<> steps_;
  std::function<void()> step_;
  std::vector<std::thread> threads_;
};

// The pace at which pages are taken is bounded.
void take_pages_until(uint64_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (recorder_stats().buffer_used > bytes && std::chrono::steady_clock::now() < deadline) {
    prepare_pages();
  }
  EXPECT_EQ(recorder_stats().buffer_used, bytes);
}

void expect_whole(const RingDrain& drain, uint32_t streams, uint64_t events_each) {
  EXPECT_EQ(drain.streams.size(), streams);
  EXPECT_EQ(drain.lost(), 0u);
  for (const auto& [id, stream] : drain.streams) {
    const auto events = stream.events();
    ASSERT_EQ(events.size(), events_each);
    uint64_t last = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].event_kind, i % 2 + 1);
      ASSERT_GE(events[i].timestamp_ns, last);
      last = events[i].timestamp_ns;
    }
  }
}

TEST(IdlePages, AreTakenAndTheLaneContinues) {
  begin(FullPolicy::kDrop);
  Threads threads(kPages - 2);
  threads.all_do([] { record_pairs(5); });
  RingDrain drain;
  prepare_pages();
  EXPECT_EQ(recorder_stats().buffer_used, (kPages - 2) * kPageBytes) << "nothing is acknowledged";
  drain.take();
  take_pages_until(0);
  EXPECT_EQ(recorder_stats().recorded, (kPages - 2) * 10u);
  for (int round = 0; round < 3; ++round) {
    threads.all_do([] { record_pairs(kEventsPerPage / 4); });
    drain.take();
    take_pages_until(0);
  }
  drain.finish();
  expect_whole(drain, kPages - 2, 10 + 3 * kEventsPerPage / 2);
}

TEST(IdlePages, StayWhereThereIsRoom) {
  begin(FullPolicy::kDrop);
  Threads threads(kPages / 2);
  threads.all_do([] { record_pairs(5); });
  RingDrain drain;
  drain.take();
  for (int i = 0; i < 100; ++i) prepare_pages();
  EXPECT_EQ(recorder_stats().buffer_used, kPages / 2 * kPageBytes);
  drain.finish();
}

TEST(IdlePages, OfDetailAndItsPreRollContinue) {
  begin(FullPolicy::kDrop);
  (void)set_detail(2, 0, nullptr);
  Threads threads(kPages / 2 - 1);
  threads.all_do([] { record_pairs(3); });
  RingDrain drain;
  drain.take();
  take_pages_until(0);
  (void)set_detail(1, 0, nullptr);
  threads.all_do([] { record_pairs(1); });
  EXPECT_NE(set_detail(2, UINT64_MAX, nullptr).pre_roll_records, 0u);
  drain.take();
  threads.all_do([] { record_pairs(1); });
  drain.finish();
  expect_whole(drain, kPages / 2 - 1, 10);
  for (const auto& [id, stream] : drain.streams) {
    EXPECT_EQ(stream.detail.skipped, 0u);
    EXPECT_GE(stream.detail.records + stream.detail.lost_total, 8u);
    for (const atf::IndexEventV2& event : stream.events()) {
      if (event.detail_seq == atf::kNoDetail) continue;
      EXPECT_LT(event.detail_seq, stream.detail.records);
    }
  }
}

// A call that may still be taken back is in the page.
TEST(IdlePages, WithTentativeCallsStay) {
  begin(FullPolicy::kDrop, 3'600'000'000'000);
  Threads threads(kPages - 2);
  threads.all_do([] {
    const HookFrame frame;
    on_event(function(0), atf::EventKind::kException, frame);
    on_event(function(0), atf::EventKind::kCall, frame);
  });
  RingDrain drain;
  drain.take();
  for (int i = 0; i < 100; ++i) prepare_pages();
  EXPECT_EQ(recorder_stats().buffer_used, (kPages - 2) * kPageBytes);
  drain.finish();
  EXPECT_EQ(drain.records(), (kPages - 2) * 2u);
}

// Each thread wants several pages while all others live, and there is one for a quarter of them.
TEST(IdlePages, LetMoreThreadsThanPagesRecordEverything) {
  begin(FullPolicy::kWait);
  RingDrain drain;
  constexpr uint32_t kThreads = 4 * kPages;
  constexpr int kRounds = 4;
  drain.drain_while([] {
    Threads threads(kThreads);
    for (int round = 0; round < kRounds; ++round) {
      threads.all_do([] { record_pairs(kEventsPerPage / 2 + 7); });
    }
  });
  expect_whole(drain, kThreads, kRounds * 2 * (kEventsPerPage / 2 + 7));
}

}  // namespace
}  // namespace collect::agent
