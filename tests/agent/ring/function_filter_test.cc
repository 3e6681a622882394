// Which functions are recorded: what a filter lets through, and that calls and returns stay paired
// when it changes in between.
#include "agent/ring/function_filter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "agent/ring/hooks/hooks.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

void call(uint64_t n) {
  on_event(function(n), atf::EventKind::kCall, HookFrame{});
}
void leave(uint64_t n) {
  on_event(function(n), atf::EventKind::kReturn, HookFrame{});
}

void set_filter(FunctionFilterMode mode, const std::vector<uint64_t>& functions) {
  begin_function_filter(mode);
  for (const uint64_t n : functions) {
    const uint64_t id = id_of(n);
    ASSERT_TRUE(add_to_function_filter(&id, 1));
  }
  (void)commit_function_filter();
}

// "+1 -1": calls and returns in order, by number.
std::string events_of(const TakenStream& stream) {
  std::string text;
  for (const atf::IndexEventV2& event : stream.events()) {
    text += event.event_kind == 1 ? '+' : '-';
    text += std::to_string(event.function_id - id_of(0)) + " ";
  }
  return text;
}

class FunctionFilterTest : public ::testing::TestWithParam<int> {
 protected:
  // By the short path, and by the general one, which writes detail.
  void SetUp() override {
    Settings settings;
    settings.buffer_mb = 8;
    settings.detail = GetParam() == 2 ? 2 : 0;
    ASSERT_TRUE(recorder_init(settings));
  }
  std::string finish() {
    RingDrain drain;
    drain.finish();
    EXPECT_EQ(drain.lost(), 0u);
    EXPECT_LE(drain.streams.size(), 1u);
    if (drain.streams.empty()) return "";
    left_out_ = drain.streams.begin()->second.left_out;
    return events_of(drain.streams.begin()->second);
  }

  uint64_t left_out_ = 0;
};

void call_and_leave(uint64_t n) {
  call(n);
  leave(n);
}

// Ids whose places in the table are the same, or the last one, after which it begins again.
TEST(FunctionTable, IdsThatShareAPlace) {
  ASSERT_TRUE(recorder_init(Settings{}));
  const auto place_of = [](uint64_t id) {
    return static_cast<uint32_t>((id * 0x9E3779B97F4A7C15ull) >> 40) & (kFilterSlots - 1);
  };
  for (const uint32_t place : {kFilterSlots - 1, 0u, 777u}) {
    std::vector<uint64_t> ids;
    for (uint64_t id = 1; ids.size() < 8; ++id) {
      if (place_of(id) == place) ids.push_back(id);
    }
    begin_function_filter(FunctionFilterMode::kOnly);
    ASSERT_TRUE(add_to_function_filter(ids.data(), 6));
    ASSERT_TRUE(add_to_function_filter(ids.data(), 6)) << "each of them once more";
    (void)commit_function_filter();
    const uint32_t filter = function_filter_generation();
    ASSERT_NE(filter, 0u);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(function_filter_takes(filter, ids[i]), i < 6) << i;
      EXPECT_FALSE(function_filter_takes(filter, ids[i] + 1));
      EXPECT_TRUE(function_filter_takes(0, ids[i]));
    }
  }
  begin_function_filter(FunctionFilterMode::kEverything);
  (void)commit_function_filter();
  EXPECT_EQ(function_filter_generation(), 0u);
  const uint64_t none = UINT64_MAX;
  EXPECT_FALSE(add_to_function_filter(&none, 0)) << "nothing was begun";
  begin_function_filter(FunctionFilterMode::kOnly);
  EXPECT_FALSE(add_to_function_filter(&none, 1)) << "no function has it";
}

// Taken out of a list in any order: the others that share a slot are still found.
TEST(FunctionTable, LessOfAList) {
  ASSERT_TRUE(recorder_init(Settings{}));
  std::vector<uint64_t> ids;
  for (uint64_t id = 1; ids.size() < 12; ++id) {
    const auto place =
        static_cast<uint32_t>((id * 0x9E3779B97F4A7C15ull) >> 40) & (kFilterSlots - 1);
    if (place == kFilterSlots - 2 || place == kFilterSlots - 1 || place == 0) ids.push_back(id);
  }
  for (size_t first = 0; first < ids.size(); ++first) {
    begin_function_filter(FunctionFilterMode::kOnly);
    ASSERT_TRUE(add_to_function_filter(ids.data(), 12));
    (void)commit_function_filter();
    begin_function_filter(FunctionFilterMode::kLess);
    const uint64_t taken[] = {ids[first], ids[(first + 5) % 12], ids[first], 1u << 30};
    ASSERT_TRUE(add_to_function_filter(taken, 4));
    (void)commit_function_filter();
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(function_filter_takes(function_filter_generation(), ids[i]),
                i != first && i != (first + 5) % 12)
          << first << " " << i;
    }
    EXPECT_FALSE(function_filter_takes(function_filter_generation(), 1u << 30));
  }
  begin_function_filter(FunctionFilterMode::kEverything);
  (void)commit_function_filter();
}

TEST_P(FunctionFilterTest, LessThanEverythingAndStillLess) {
  start_recording();
  call(7);
  set_filter(FunctionFilterMode::kLess, {1});
  for (uint64_t n = 0; n < 4; ++n) call_and_leave(n);
  set_filter(FunctionFilterMode::kLess, {3});
  for (uint64_t n = 0; n < 4; ++n) call_and_leave(n);
  leave(7);
  EXPECT_EQ(finish(), "+7 +0 -0 +2 -2 +3 -3 +0 -0 +2 -2 -7 ");
  EXPECT_EQ(left_out_, 3u);
}

TEST_P(FunctionFilterTest, OnlyTheListed) {
  start_recording();
  set_filter(FunctionFilterMode::kOnly, {1, 3});
  for (uint64_t n = 0; n < 5; ++n) call_and_leave(n);
  EXPECT_EQ(finish(), "+1 -1 +3 -3 ");
  EXPECT_EQ(left_out_, 3u);
}

TEST_P(FunctionFilterTest, AllButTheListed) {
  set_filter(FunctionFilterMode::kAllBut, {1, 3});
  start_recording();
  for (uint64_t n = 0; n < 5; ++n) call_and_leave(n);
  EXPECT_EQ(finish(), "+0 -0 +2 -2 +4 -4 ");
  EXPECT_EQ(left_out_, 2u);
}

TEST_P(FunctionFilterTest, EmptyListRecordsNothing) {
  set_filter(FunctionFilterMode::kOnly, {});
  start_recording();
  for (uint64_t n = 0; n < 5; ++n) call_and_leave(n);
  EXPECT_EQ(finish(), "");
}

TEST_P(FunctionFilterTest, HoldsForTheNextRecordingAndEndsWhenCleared) {
  set_filter(FunctionFilterMode::kOnly, {1});
  start_recording();
  for (uint64_t n = 0; n < 3; ++n) call_and_leave(n);
  EXPECT_EQ(finish(), "+1 -1 ");
  start_recording();
  for (uint64_t n = 0; n < 3; ++n) call_and_leave(n);
  set_filter(FunctionFilterMode::kEverything, {});
  for (uint64_t n = 0; n < 3; ++n) call_and_leave(n);
  EXPECT_EQ(finish(), "+1 -1 +0 -0 +1 -1 +2 -2 ");
}

// Called before the filter, which does not list it: its return is recorded, as its call was. Called
// under the filter that leaves it out: its return is left out, though nothing is any more.
TEST_P(FunctionFilterTest, ReturnGoesWithItsCallAcrossChanges) {
  start_recording();
  call(1);
  call(2);
  set_filter(FunctionFilterMode::kOnly, {3});
  call(2);  // out
  call(3);
  call(1);  // out
  set_filter(FunctionFilterMode::kEverything, {});
  call(4);
  leave(4);
  leave(1);  // out
  leave(3);
  call_and_leave(2);
  leave(2);  // out
  leave(2);
  leave(1);
  call_and_leave(1);
  EXPECT_EQ(finish(), "+1 +2 +3 +4 -4 -3 +2 -2 -2 -1 +1 -1 ");
}

TEST_P(FunctionFilterTest, FromFilterToFilter) {
  start_recording();
  set_filter(FunctionFilterMode::kOnly, {1});
  call(1);
  call(2);  // out
  set_filter(FunctionFilterMode::kOnly, {2});
  call(2);
  call(1);  // out
  leave(1);
  leave(2);
  leave(2);  // out
  leave(1);
  EXPECT_EQ(finish(), "+1 +2 -2 -1 ");
}

// More changes than tables are kept: what is judged may be wrong then, but nothing breaks.
TEST_P(FunctionFilterTest, MoreChangesThanAreRemembered) {
  start_recording();
  for (uint64_t i = 0; i < 20; ++i) {
    set_filter(FunctionFilterMode::kOnly, {i % 5});
    call(i % 5);
  }
  for (uint64_t i = 20; i-- > 0;) leave(i % 5);
  const std::string events = finish();
  EXPECT_EQ(std::count(events.begin(), events.end(), '+'), 20);
}

TEST_P(FunctionFilterTest, LimitPlusOne) {
  begin_function_filter(FunctionFilterMode::kOnly);
  for (uint64_t id = 0; id < kMaxFunctionFilter; ++id) {
    const uint64_t spread = id * 0x10000;
    ASSERT_TRUE(add_to_function_filter(&spread, 1));
  }
  const uint64_t again = 0x10000;
  EXPECT_TRUE(add_to_function_filter(&again, 1)) << "is there already";
  const uint64_t more = 1;
  EXPECT_FALSE(add_to_function_filter(&more, 1));
  const uint64_t no_function = UINT64_MAX;
  EXPECT_FALSE(add_to_function_filter(&no_function, 1));
  (void)commit_function_filter();
  EXPECT_TRUE(function_filter_takes(function_filter_generation(), 0x20000));
  EXPECT_FALSE(function_filter_takes(function_filter_generation(), 0x20001));
}

// Hooks continue while filters come and go. Each thread's events stay paired: between two changes
// every thread does its share, so that none sleeps through more of them than are remembered.
TEST_P(FunctionFilterTest, ChangesWhileThreadsRecord) {
  constexpr uint64_t kShare = 500;
  start_recording();
  std::atomic<bool> done{false};
  std::atomic<uint64_t> allowed{0};
  std::atomic<uint64_t> rounds[2] = {};
  std::vector<std::thread> threads;
  for (std::atomic<uint64_t>& mine : rounds) {
    threads.emplace_back([&] {
      while (!done.load()) {
        if (mine.load() == allowed.load()) {
          std::this_thread::yield();
          continue;
        }
        call(1);
        call(2);
        leave(2);
        call(3);
        leave(3);
        leave(1);
        ++mine;
      }
    });
  }
  RingDrain drain;
  for (int i = 0; i < 60; ++i) {
    allowed += kShare;
    const auto mode = static_cast<FunctionFilterMode>(i % 3);
    set_filter(mode, i % 2 == 0 ? std::vector<uint64_t>{1} : std::vector<uint64_t>{2, 3});
    while (rounds[0] != allowed || rounds[1] != allowed) {
      drain.take();
      std::this_thread::yield();
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  drain.finish();
  for (const auto& [id, stream] : drain.streams) {
    EXPECT_EQ(stream.index.lost_total, 0u) << "then the pairs are torn";
    std::vector<uint64_t> open;
    for (const atf::IndexEventV2& event : stream.events()) {
      if (event.event_kind == 1) {
        open.push_back(event.function_id);
      } else {
        ASSERT_FALSE(open.empty());
        ASSERT_EQ(open.back(), event.function_id);
        open.pop_back();
      }
    }
    EXPECT_TRUE(open.empty());
  }
}

// A call that waits for a page was made before the filter that leaves it out.
TEST_P(FunctionFilterTest, CallsWaitingForAPagePrecedeTheFilter) {
  Settings settings;
  settings.buffer_mb = 1;
  settings.full = FullPolicy::kWait;
  settings.detail = GetParam() == 2 ? 2 : 0;
  ASSERT_TRUE(recorder_init(settings));
  start_recording();
  std::atomic<bool> done{false};
  std::atomic<uint64_t> rounds{0};
  std::thread thread([&] {
    while (!done.load()) {
      call_and_leave(1);
      ++rounds;
    }
  });
  RingDrain drain;
  for (int i = 0; i < 10; ++i) {
    // It waits, or is about to.
    const uint64_t least = settings.detail == 0 ? 1u << 20 : 3u << 18;
    while (recorder_stats().buffer_used < least) std::this_thread::yield();
    begin_function_filter(FunctionFilterMode::kOnly);
    const FunctionFilterChange out = commit_function_filter();
    const uint64_t before = rounds.load();
    while (rounds.load() < before + 1000) drain.take();
    const uint64_t until_ns = now_ns();
    set_filter(FunctionFilterMode::kEverything, {});
    drain.take();
    for (auto& [id, stream] : drain.streams) {
      for (const atf::IndexEventV2& event : stream.events()) {
        EXPECT_FALSE(event.event_kind == 1 && event.timestamp_ns > out.at_ns &&
                     event.timestamp_ns < until_ns)
            << event.timestamp_ns - out.at_ns << " ns after the change";
      }
      stream.index.pieces.clear();
    }
  }
  done = true;
  allow_waiting(false);
  thread.join();
  drain.finish();
}

INSTANTIATE_TEST_SUITE_P(Paths, FunctionFilterTest, ::testing::Values(0, 2),
                         [](const ::testing::TestParamInfo<int>& param) {
                           return param.param == 0 ? "ShortPath" : "WithDetail";
                         });

}  // namespace
}  // namespace collect::agent
