// The parts of the recorder one by one: the pool of pages, what handlers defer, open calls in their
// chunks, and who waits for a page.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "agent/platform/threads.h"
#include "agent/ring/hooks/deferred.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/ring/hooks/page_wait.h"
#include "agent/ring/hooks/unwinding.h"
#include "agent/ring/open_calls.h"
#include "agent/ring/page_pool.h"
#include "agent/ring/stream.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace collect::agent {
namespace {

constexpr uint32_t kPages = (1u << 20) / kPageBytes;

class PartsTest : public testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.buffer_mb = 1;
    settings.full = FullPolicy::kWait;
    ASSERT_TRUE(recorder_init(settings));
    stream_ = stream_take();
    ASSERT_NE(stream_, nullptr);
  }
  void TearDown() override {
    if (is_recording()) stop_recording();
    set_full_policy(FullPolicy::kDrop);
  }
  std::vector<PageRef> take_all() {
    std::vector<PageRef> pages;
    uint32_t reasons = 0;
    while (const PageRef page = pool_take(&reasons)) pages.push_back(page);
    EXPECT_EQ(reasons, kLostRingFull);
    return pages;
  }

  Stream* stream_ = nullptr;
};

TEST_F(PartsTest, PoolHasItsPagesAndNoMore) {
  EXPECT_EQ(pool_bytes(), 1u << 20);
  EXPECT_EQ(pool_used_bytes(), 0u);
  std::set<PageRef> pages;
  for (uint32_t i = 1; i <= kPages; ++i) {
    uint32_t reasons = 77;
    const PageRef page = pool_take(&reasons);
    ASSERT_NE(page, 0u);
    EXPECT_EQ(reasons, 77u) << "there is no loss";
    EXPECT_TRUE(pages.insert(page).second);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(page_bytes(page)) % kPageBytes, 0u);
    std::memset(page_bytes(page), static_cast<int>(page), kPageBytes);
    EXPECT_EQ(pool_used_bytes(), uint64_t{i} * kPageBytes);
  }
  uint32_t reasons = 0;
  EXPECT_EQ(pool_take(&reasons), 0u);
  EXPECT_EQ(reasons, kLostRingFull);
  for (const PageRef page : pages) {
    for (const uint32_t at : {0u, uint32_t{kPageBytes} - 1}) {
      EXPECT_EQ(page_bytes(page)[at], static_cast<uint8_t>(page)) << "no two share a byte";
    }
  }
  const uint32_t turns = pool_turns();
  pool_give(*pages.begin());
  EXPECT_NE(pool_turns(), turns);
  EXPECT_EQ(pool_used_bytes(), uint64_t{kPages - 1} * kPageBytes);
  EXPECT_EQ(pool_take(&reasons), *pages.begin());
  EXPECT_EQ(pool_take(&reasons), 0u);
  for (const PageRef page : pages) pool_give(page);
  EXPECT_EQ(pool_used_bytes(), 0u);
  EXPECT_EQ(take_all().size(), kPages) << "each is there again, and once";
}

// The drain finds out that there is no memory, by a call that says so. Threads fault nothing in
// then.
TEST_F(PartsTest, WithoutMemoryThreadsGetNoUnusedPage) {
  uint32_t reasons = 0;
  const PageRef first = pool_take(&reasons);
  ASSERT_NE(first, 0u);
  uint8_t* const next = page_bytes(first + 1);
  ASSERT_EQ(munmap(next, kPageBytes), 0);
  const bool populates = madvise(next, kPageBytes, MADV_POPULATE_WRITE) != 0 && errno == ENOMEM;
  pool_prepare();
  const PageRef refused = pool_take(&reasons);
  void* const back = mmap(next, kPageBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(back, next);
  if (!populates) GTEST_SKIP() << "no page is faulted in by madvise here";
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(reasons, kLostNoMemory);
  pool_prepare();
  EXPECT_NE(pool_take(&reasons), 0u) << "memory is back";
  EXPECT_EQ(take_all().size(), kPages - 2);
}

// Of each wait the drain says again whether the thread may sleep.
TEST_F(PartsTest, ThreadAsksForEachWaitWhetherItMaySleep) {
  stream_->thread_id = os_thread_id();
  stream_publish(*stream_);
  answer_sleep_requests();
  const uint32_t before = stream_->sleep;
  {
    const SleepRequest outer(*stream_);
    const uint32_t asked = stream_->sleep;
    EXPECT_NE(asked, before);
    answer_sleep_requests();
    const uint32_t answered = stream_->sleep;
    EXPECT_NE(answered, asked);
    const SleepRequest inner(*stream_);
    EXPECT_EQ(stream_->sleep, answered) << "one within another asks nothing";
    pause_for_page(*stream_, 0);
  }
  const uint32_t after = stream_->sleep;
  {
    const SleepRequest later(*stream_);
    EXPECT_NE(stream_->sleep, after);
    uint32_t old = before;
    EXPECT_FALSE(stream_->sleep.compare_exchange_strong(old, before)) << "no old answer fits";
  }
}

// A filter that lets everything through is one all the same.
TEST_F(PartsTest, SeesFiltersThatAThreadPutsOnItself) {
  note_filters();
  EXPECT_FALSE(is_filtered(0, os_thread_id()));
  bool is_set = false;
  bool is_seen = false;
  std::thread([&] {
    sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog filter{1, allow};
    is_set = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
             prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    is_seen = is_filtered(0, os_thread_id());
  }).join();
  if (!is_set) GTEST_SKIP() << "no filters here";
  EXPECT_TRUE(is_seen);
  EXPECT_FALSE(is_filtered(0, os_thread_id())) << "it is that thread's alone";
}

// A thread that read the list's head before must not find it again, however often pages came and
// went meanwhile.
TEST_F(PartsTest, FreeListIsNeverAsItWas) {
  std::vector<PageRef> pages = take_all();
  std::set<uint32_t> turns{pool_turns()};
  uint32_t reasons = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    pool_give(pages[i % 3]);
    EXPECT_TRUE(turns.insert(pool_turns()).second) << i;
    ASSERT_EQ(pool_take(&reasons), pages[i % 3]);
    EXPECT_TRUE(turns.insert(pool_turns()).second) << i;
  }
}

TEST_F(PartsTest, PageComesBackAsNew) {
  uint32_t reasons = 0;
  const PageRef page = pool_take(&reasons);
  PageInfo& info = page_info(page);
  info.committed = info.next = info.begin = info.records = info.sent = info.sent_records = 9;
  info.first_seq = info.lost_total = info.lost_first_ns = info.lost_last_ns = info.newest_ns = 9;
  info.lost_reasons = info.flags = 9;
  info.pinned = 9;
  pool_give(page);
  ASSERT_EQ(pool_take(&reasons), page);
  EXPECT_EQ(info.committed, 0u);
  EXPECT_EQ(info.next, 0u);
  EXPECT_EQ(info.begin, 0u);
  EXPECT_EQ(info.records, 0u);
  EXPECT_EQ(info.first_seq, 0u);
  EXPECT_EQ(info.lost_total, 0u);
  EXPECT_EQ(info.lost_first_ns, 0u);
  EXPECT_EQ(info.lost_last_ns, 0u);
  EXPECT_EQ(info.newest_ns, 0u);
  EXPECT_EQ(info.lost_reasons, 0u);
  EXPECT_EQ(info.flags, 0u);
  EXPECT_EQ(info.sent, 0u);
  EXPECT_EQ(info.sent_records, 0u);
  EXPECT_EQ(info.pinned, 0u);
}

DeferredEvent event_of(uint64_t n) {
  return {0, 1000 + n, 5000 + n, static_cast<uint8_t>(1 + n % 3), static_cast<uint8_t>(n % 2), {}};
}

// A handler that is left in the middle of an event leaves one without a kind, not what stood there.
TEST_F(PartsTest, PlaceThatIsUsedAgainHoldsNothingOfBefore) {
  uint32_t reasons = 0;
  DeferredEvent taken{};
  for (uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(defer_event(*stream_, event_of(n), &reasons));
  for (uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(take_deferred(*stream_, taken));
  ASSERT_FALSE(take_deferred(*stream_, taken));
  for (uint64_t n = 0; n < 3; ++n) {
    stream_->deferred_tail += sizeof(DeferredEvent);
    ASSERT_TRUE(take_deferred(*stream_, taken));
    EXPECT_EQ(taken.kind, 0u);
  }
  release_deferred(*stream_);
}

// More than two pages of them.
TEST_F(PartsTest, DeferredEventsComeOutInTheirOrder) {
  constexpr uint64_t kEvents = 2 * kPageBytes / sizeof(DeferredEvent) + 5;
  DeferredEvent taken{};
  EXPECT_FALSE(take_deferred(*stream_, taken));
  for (int round = 0; round < 2; ++round) {
    uint32_t reasons = 0;
    for (uint64_t n = 0; n < kEvents; ++n) {
      ASSERT_TRUE(defer_event(*stream_, event_of(n), &reasons));
      ASSERT_EQ(stream_->deferred, 1u);
    }
    uint64_t last_ns = 1;
    for (uint64_t n = 0; n < kEvents; ++n) {
      ASSERT_TRUE(take_deferred(*stream_, taken));
      const DeferredEvent wanted = event_of(n);
      ASSERT_EQ(taken.function, wanted.function);
      ASSERT_EQ(taken.place, wanted.place);
      ASSERT_EQ(taken.kind, wanted.kind);
      ASSERT_EQ(taken.by_sled, wanted.by_sled);
      ASSERT_GE(taken.ns, last_ns);
      last_ns = taken.ns;
    }
    EXPECT_FALSE(take_deferred(*stream_, taken));
    EXPECT_EQ(pool_used_bytes(), uint64_t{kPageBytes}) << "the last page is used again";
  }
  release_deferred(*stream_);
  EXPECT_EQ(pool_used_bytes(), 0u);
  EXPECT_FALSE(take_deferred(*stream_, taken));
}

TEST_F(PartsTest, DeferredPagesAreGivenBackFromWhereverTheyAre) {
  constexpr uint64_t kEvents = 3 * kPageBytes / sizeof(DeferredEvent);
  for (const uint64_t taken_out : {uint64_t{0}, uint64_t{1}, kEvents / 2, kEvents - 1, kEvents}) {
    uint32_t reasons = 0;
    for (uint64_t n = 0; n < kEvents; ++n) {
      ASSERT_TRUE(defer_event(*stream_, event_of(n), &reasons));
    }
    DeferredEvent taken{};
    for (uint64_t n = 0; n < taken_out; ++n) ASSERT_TRUE(take_deferred(*stream_, taken));
    release_deferred(*stream_);
    EXPECT_EQ(pool_used_bytes(), 0u) << taken_out;
  }
}

// What is still deferred when a stream ends is lost, but for the steps of an unwinding: those are
// no events.
TEST_F(PartsTest, CountsDeferredEventsAtTheEndAsLost) {
  uint32_t reasons = 0;
  for (uint64_t n = 0; n < 10; ++n) ASSERT_TRUE(defer_event(*stream_, event_of(n), &reasons));
  DeferredEvent step{};
  step.kind = static_cast<uint8_t>(UnwindStep::kLanded);
  ASSERT_TRUE(defer_event(*stream_, step, &reasons));
  stream_->last_ns = 123;
  lose_deferred(*stream_);
  const LaneState& lane = stream_->lane(Lane::kIndex);
  EXPECT_EQ(lane.lost_total, 10u);
  EXPECT_EQ(lane.lost_reasons, kLostReentry);
  EXPECT_EQ(lane.lost_first_ns, 123u);
  EXPECT_EQ(lane.lost_last_ns, 123u);
  release_deferred(*stream_);
}

TEST_F(PartsTest, WithoutAPageNothingIsDeferred) {
  const std::vector<PageRef> pages = take_all();
  ASSERT_EQ(pages.size(), kPages);
  uint32_t reasons = 0;
  EXPECT_FALSE(defer_event(*stream_, event_of(0), &reasons));
  EXPECT_EQ(reasons, kLostRingFull);
  give_deferred_page(*stream_, 0);
  EXPECT_FALSE(defer_event(*stream_, event_of(0), &reasons));
  give_deferred_page(*stream_, pages[0]);
  EXPECT_TRUE(defer_event(*stream_, event_of(0), &reasons));
  DeferredEvent taken{};
  EXPECT_TRUE(take_deferred(*stream_, taken));
  EXPECT_FALSE(take_deferred(*stream_, taken));
}

TEST_F(PartsTest, OpenCallsAreAStackInChunks) {
  constexpr uint64_t kOfAChunk = kOpenCallChunkBytes / sizeof(OpenCall) - 2;
  constexpr uint64_t kCalls = 3 * kOfAChunk + 7;
  EXPECT_EQ(newest_open_call(*stream_).function, 0u);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t n = 1; n <= kCalls; ++n) {
      ASSERT_TRUE(push_open_call(*stream_, {n, 10 * n}));
      ASSERT_EQ(newest_open_call(*stream_).function, n);
    }
    OpenCall* call = &newest_open_call(*stream_);
    for (uint64_t n = kCalls; n > 0; --n) {
      ASSERT_EQ(call->function, n);
      ASSERT_EQ(call->place, 10 * n);
      call = &older_open_call(*call);
    }
    EXPECT_EQ(call->function, 0u);
    for (uint64_t n = kCalls; n > 0; --n) {
      ASSERT_EQ(newest_open_call(*stream_).function, n);
      pop_open_call(*stream_);
    }
    EXPECT_EQ(newest_open_call(*stream_).function, 0u);
  }
}

TEST_F(PartsTest, LimitsOpenCalls) {
  constexpr uint64_t kMost = kMaxOpenCallChunks * (kOpenCallChunkBytes / sizeof(OpenCall) - 2);
  uint64_t pushed = 0;
  while (pushed <= kMost && push_open_call(*stream_, {pushed + 1, 8})) ++pushed;
  EXPECT_EQ(pushed, kMost);
  EXPECT_EQ(newest_open_call(*stream_).function, kMost) << "the last that found room";
  pop_open_call(*stream_);
  EXPECT_TRUE(push_open_call(*stream_, {5, 8}));
  EXPECT_FALSE(push_open_call(*stream_, {6, 8}));
}

// A thread that finds no stream is not recorded, and its events are counted.
TEST_F(PartsTest, WithoutAStreamEventsAreCounted) {
  for (uint32_t i = 1; i < kMaxStreams; ++i) ASSERT_NE(stream_take(), nullptr) << i;
  ASSERT_EQ(stream_take(), nullptr);
  start_recording();
  EXPECT_EQ(recorder_stats().lost_without_stream, 0u);
  const HookFrame frame;
  for (int i = 0; i < 5; ++i) {
    on_event(reinterpret_cast<uint64_t>(&event_of), atf::EventKind::kCall, frame);
  }
  const RecorderStats stats = recorder_stats();
  EXPECT_EQ(stats.lost_without_stream, 5u);
  EXPECT_EQ(lost_without_stream(), 5u);
  EXPECT_EQ(stats.recorded, 0u);
  EXPECT_EQ(stats.lost, 0u);
  EXPECT_EQ(stats.threads, 0u);
  EXPECT_EQ(stats.buffer_bytes, 1u << 20);
  EXPECT_EQ(published_stats().lost_without_stream, 5u);
}

TEST_F(PartsTest, DoesNotWaitForAPageInVain) {
  start_recording();
  stream_->recording = current_recording();
  // There is room: the answer is to try again at once.
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kRetry);
  EXPECT_EQ(wait_for_page(*stream_, Lane::kDetail, kLostRingFull), Wait::kRetry);
  EXPECT_EQ(stream_->waiting, 0u);
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostNoMemory), Wait::kGiveUp)
      << "the system's memory is not waited for";
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull | kLostNoMemory), Wait::kGiveUp);
  // Nothing has moved since its wait timed out; then something does.
  stream_->wait_timed_out = true;
  stream_->turns_at_timeout = pool_turns();
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kGiveUp);
  uint32_t reasons = 0;
  pool_give(pool_take(&reasons));
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kRetry);
  EXPECT_FALSE(stream_->wait_timed_out);
  allow_waiting(false);
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kGiveUp);
  allow_waiting(true);
  for (const FullPolicy other : {FullPolicy::kDrop, FullPolicy::kOverwrite}) {
    set_full_policy(other);
    EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kGiveUp);
  }
  set_full_policy(FullPolicy::kWait);
  // Of another recording, or of one that is over.
  stream_->recording = current_recording() + 1;
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kOver);
  stream_->recording = current_recording();
  stop_recording();
  EXPECT_EQ(wait_for_page(*stream_, Lane::kIndex, kLostRingFull), Wait::kOver);
}

}  // namespace
}  // namespace collect::agent
