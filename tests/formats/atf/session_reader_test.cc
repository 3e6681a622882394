#include "formats/atf/session_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "tests/formats/atf/built_thread.h"

namespace collect::atf {
namespace {

using testing::build_thread;
using testing::ThreadBytes;
using testing::ThreadPlan;

// An index file with the given times; the function id is the position, to recognise events by.
std::vector<uint8_t> index_with_times(const std::vector<uint64_t>& times,
                                      Version version = Version::kV2) {
  ThreadPlan plan;
  plan.version = version;
  plan.events = times.size();
  plan.finalize = false;
  auto bytes = build_thread(plan).index;
  for (size_t i = 0; i < times.size(); ++i) {
    store_le<uint64_t>(bytes.data() + 64 + 32 * i, times[i]);
    store_le<uint64_t>(bytes.data() + 64 + 32 * i + 8, i);
  }
  return bytes;
}

using Step = std::tuple<uint64_t, size_t, uint64_t>;  // time, thread, seq

std::vector<Step> all_of(MergedCursor cursor) {
  std::vector<Step> steps;
  for (MergedEvent event; cursor.next(event);) {
    EXPECT_EQ(event.event.function_id, event.seq);
    steps.emplace_back(event.event.timestamp_ns, event.thread, event.seq);
  }
  return steps;
}

TEST(SessionReader, MergesByTimeAndTiesByThread) {
  const auto a = index_with_times({10, 20, 20, 40});
  const auto b = index_with_times({5, 20, 50});
  const SessionReader session({{0, a, {}}, {3, b, {}}});
  const std::vector<Step> expected = {{5, 1, 0},  {10, 0, 0}, {20, 0, 1}, {20, 0, 2},
                                      {20, 1, 1}, {40, 0, 3}, {50, 1, 2}};
  EXPECT_EQ(all_of(session.merged()), expected);
  EXPECT_EQ(session.events(), 7u);
  EXPECT_EQ(session.time_range()->first_ns, 5u);
  EXPECT_EQ(session.time_range()->last_ns, 50u);
}

TEST(SessionReader, SeeksOverAllThreads) {
  const auto a = index_with_times({10, 20, 30});
  const auto b = index_with_times({15, 25, 35}, Version::kV1);
  const SessionReader session({{0, a, {}}, {1, b, {}}});
  EXPECT_EQ(all_of(session.merged(20, 30)),
            (std::vector<Step>{{20, 0, 1}, {25, 1, 1}, {30, 0, 2}}));
  EXPECT_TRUE(all_of(session.merged(36)).empty());
  EXPECT_TRUE(all_of(session.merged(0, 9)).empty());
  EXPECT_TRUE(all_of(session.merged(30, 20)).empty());
}

// Random files with steps back, against sorting everything.
TEST(SessionReader, MergingEqualsSortingEverything) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<uint8_t>> files;
    std::vector<Step> expected;
    for (size_t thread = 0; thread < 1 + random() % 6; ++thread) {
      std::vector<uint64_t> times(random() % 60);
      uint64_t now = random() % 100;
      for (size_t i = 0; i < times.size(); ++i) {
        now = random() % 10 == 0 ? random() % 100 : now + random() % 3;
        times[i] = now;
        expected.emplace_back(now, thread, i);
      }
      files.push_back(index_with_times(times));
    }
    std::sort(expected.begin(), expected.end());
    std::vector<ThreadFiles> threads;
    for (size_t i = 0; i < files.size(); ++i) {
      threads.push_back({static_cast<uint32_t>(i), files[i], {}});
    }
    const SessionReader session(threads);
    ASSERT_EQ(all_of(session.merged()), expected) << round;
    const uint64_t from = random() % 120;
    const uint64_t until = random() % 120;
    std::vector<Step> window;
    for (const Step& step : expected) {
      if (std::get<0>(step) >= from && std::get<0>(step) <= until) window.push_back(step);
    }
    ASSERT_EQ(all_of(session.merged(from, until)), window) << round;
  }
}

TEST(SessionReader, OneBadThreadNeverHidesTheOthers) {
  const auto good = index_with_times({10, 20});
  auto bad = good;
  bad[0] = 'X';
  const SessionReader session({{0, bad, {}}, {1, {}, {}}, {2, good, {}}});
  ASSERT_EQ(session.threads().size(), 3u);
  EXPECT_FALSE(session.threads()[0].index);
  EXPECT_EQ(session.threads()[0].findings.errors(), 1u);
  EXPECT_FALSE(session.threads()[1].index);
  EXPECT_EQ(all_of(session.merged()), (std::vector<Step>{{10, 2, 0}, {20, 2, 1}}));
}

TEST(SessionReader, DetailFileBesideABadIndexIsLeftClosed) {
  ThreadPlan plan;
  plan.detail_every = 4;
  ThreadBytes made = build_thread(plan);
  made.index[0] = 'X';
  const SessionReader session({{0, made.index, made.detail}});
  EXPECT_FALSE(session.threads()[0].index);
  EXPECT_FALSE(session.threads()[0].detail);
  EXPECT_EQ(session.threads()[0].findings.errors(), 1u);
  EXPECT_EQ(session.events(), 0u);
  EXPECT_FALSE(session.time_range());
}

TEST(SessionReader, LinksBothWays) {
  ThreadPlan plan;
  plan.detail_every = 4;
  const ThreadBytes made = build_thread(plan);
  const SessionReader session({{0, made.index, made.detail}});
  const IndexReader& index = *session.threads()[0].index;
  for (uint64_t seq = 0; seq < index.size(); ++seq) {
    const IndexEvent event = index.event(seq);
    const auto record = session.detail_of(0, event);
    ASSERT_EQ(record.has_value(), seq % 4 == 0) << seq;
    if (!record) continue;
    EXPECT_EQ(record->index_seq, seq);
    EXPECT_EQ(session.event_of(0, *record)->timestamp_ns, event.timestamp_ns);
  }
  IndexEvent nowhere;
  nowhere.detail_seq = 1000;
  EXPECT_FALSE(session.detail_of(0, nowhere));
  DetailRecord past;
  past.index_seq = 1000;
  EXPECT_FALSE(session.event_of(0, past));
}

TEST(SessionReader, DetailFileOfTheOtherVersionIsRefusedAlone) {
  ThreadPlan plan;
  plan.detail_every = 4;
  ThreadBytes made = build_thread(plan);
  made.detail[5] = 1;
  const SessionReader session({{0, made.index, made.detail}});
  EXPECT_TRUE(session.threads()[0].index);
  EXPECT_FALSE(session.threads()[0].detail);
  EXPECT_EQ(session.threads()[0].findings.errors(), 1u);
}

}  // namespace
}  // namespace collect::atf
