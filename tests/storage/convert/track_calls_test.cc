#include "storage/convert/timeline/track_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace collect::convert {
namespace {

using ::testing::ElementsAre;

// "f(1 g(2 g)3": function f is called at 1, g at 2 and returns at 3.
class Written final : public CallSteps {
 public:
  Status call(int64_t ns, uint32_t function) override {
    steps.push_back(name(function) + "(" + std::to_string(ns));
    return {};
  }
  Status returned(int64_t ns, uint32_t function) override {
    steps.push_back(name(function) + ")" + std::to_string(ns));
    return {};
  }
  std::vector<std::string> steps;

 private:
  static std::string name(uint32_t function) { return {static_cast<char>('a' + function)}; }
};

TimelineRecord begin(int64_t ns, char name) {
  TimelineRecord record;
  record.ns = ns;
  record.kind = RecordKind::kBegin;
  record.function = static_cast<uint32_t>(name - 'a');
  return record;
}
TimelineRecord end(int64_t ns) {
  TimelineRecord record;
  record.ns = ns;
  record.kind = RecordKind::kEnd;
  return record;
}
TimelineRecord call(int64_t ns, uint64_t duration, char name) {
  TimelineRecord record = begin(ns, name);
  record.kind = RecordKind::kCall;
  record.duration_ns = duration;
  return record;
}

class TrackCallsTest : public ::testing::Test {
 protected:
  std::vector<std::string> steps_of(const std::vector<TimelineRecord>& records) {
    Written written;
    counts_ = {};
    TrackCalls calls(written, counts_);
    for (const TimelineRecord& record : records) EXPECT_TRUE(calls.take(record).ok());
    EXPECT_TRUE(calls.finish().ok());
    return written.steps;
  }
  TrackCounts counts_;
};

TEST_F(TrackCallsTest, BeginsAndEndsNest) {
  EXPECT_THAT(steps_of({begin(1, 'a'), begin(2, 'b'), end(3), end(4)}),
              ElementsAre("a(1", "b(2", "b)3", "a)4"));
}

TEST_F(TrackCallsTest, CallsWithADurationNest) {
  EXPECT_THAT(steps_of({call(1, 9, 'a'), call(2, 3, 'b'), call(5, 5, 'c'), call(10, 0, 'd')}),
              ElementsAre("a(1", "b(2", "b)5", "c(5", "c)10", "a)10", "d(10", "d)10"));
  EXPECT_EQ(counts_.cut_calls, 0u);
}

TEST_F(TrackCallsTest, LongerOfTwoIsTheCaller) {
  EXPECT_THAT(steps_of({call(1, 2, 'b'), call(1, 9, 'a'), call(1, 0, 'c')}),
              ElementsAre("a(1", "b(1", "c(1", "c)1", "b)3", "a)10"));
}

TEST_F(TrackCallsTest, EndWithoutABeginIsCounted) {
  EXPECT_THAT(steps_of({end(1), call(2, 5, 'a'), end(3)}), ElementsAre("a(2", "a)7"));
  EXPECT_EQ(counts_.lone_ends, 2u);
}

TEST_F(TrackCallsTest, OverlapEndsWithTheCaller) {
  EXPECT_THAT(steps_of({call(1, 4, 'a'), call(3, 9, 'b')}),
              ElementsAre("a(1", "b(3", "b)5", "a)5"));
  EXPECT_EQ(counts_.cut_calls, 1u);
  EXPECT_THAT(steps_of({begin(1, 'a'), call(2, 9, 'b'), end(4)}),
              ElementsAre("a(1", "b(2", "b)4", "a)4"));
  EXPECT_EQ(counts_.cut_calls, 1u);
  EXPECT_THAT(steps_of({call(1, 4, 'a'), begin(2, 'b'), begin(7, 'c')}),
              ElementsAre("a(1", "b(2", "b)5", "a)5", "c(7"));
  EXPECT_EQ(counts_.unended_calls, 1u);
}

TEST_F(TrackCallsTest, BeginWithoutAnEndStaysOpen) {
  EXPECT_THAT(steps_of({begin(1, 'a'), call(2, 3, 'b')}), ElementsAre("a(1", "b(2", "b)5"));
  EXPECT_EQ(counts_.unended_calls, 0u);
}

TEST_F(TrackCallsTest, DepthHasALimit) {
  std::vector<TimelineRecord> records(kMaxOpenTrackCalls + 2, begin(1, 'a'));
  records.resize(2 * records.size(), end(2));
  EXPECT_EQ(steps_of(records).size(), 2 * kMaxOpenTrackCalls);
  EXPECT_EQ(counts_.too_deep, 2u);
  EXPECT_EQ(counts_.lone_ends, 0u);
}

TEST_F(TrackCallsTest, DurationOfAnyLengthEndsAtTheLastTime) {
  EXPECT_THAT(steps_of({call(5, UINT64_MAX, 'a')}),
              ElementsAre("a(5", "a)" + std::to_string(INT64_MAX)));
}

TEST(RecordStore, PutsRunsInOrder) {
  for (const size_t run : {size_t{4}, size_t{1000}}) {
    RecordStore store(std::filesystem::temp_directory_path().string(), run);
    std::mt19937 random(3);
    for (uint32_t i = 0; i < 103; ++i) {
      TimelineRecord record;
      record.ns = static_cast<int64_t>(random() % 10) - 5;
      record.track = static_cast<uint32_t>(random() % 3);
      record.function = i;
      ASSERT_TRUE(store.add(record).ok());
    }
    ASSERT_TRUE(store.sort().ok());
    TimelineRecord before, record;
    size_t count = 0;
    for (; store.next(record); ++count) {
      EXPECT_EQ(record.function, record.order);
      if (count != 0) EXPECT_LT(before.key(), record.key());
      before = record;
    }
    EXPECT_EQ(count, 103u);
    EXPECT_EQ(store.size(), 103u);
  }
}

TEST(RecordStore, EmptyOneHasNothing) {
  RecordStore store("/nowhere");
  ASSERT_TRUE(store.sort().ok());
  TimelineRecord record;
  EXPECT_FALSE(store.next(record));
}

TEST(RecordStore, SaysThatItsDirectoryIsMissing) {
  RecordStore store("/nowhere", 1);
  const Status added = store.add({});
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message, ::testing::HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace collect::convert
