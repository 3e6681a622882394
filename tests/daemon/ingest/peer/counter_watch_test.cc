#include "daemon/ingest/peer/counter_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::Pair;

class CounterWatchTest : public ::testing::Test {
 protected:
  static WatchedEvent passes(const std::string& counter, int64_t above) {
    WatchedEvent event;
    event.kind = WatchedEvent::Kind::kCounter;
    event.counter = counter;
    event.above = above;
    return event;
  }
  void watch(const std::vector<WatchedEvent>& events) {
    watch_.watch(events, [this](const SeenEvent& seen) { seen_.push_back(seen); });
  }
  Status report(const std::string& name, int64_t value, int64_t highest) {
    wire::Counters counters;
    counters.set_at_ns(42);
    wire::Counter& counter = *counters.add_counters();
    counter.set_name(name);
    counter.set_value(value);
    counter.set_highest(highest);
    return watch_.take(counters);
  }
  void set(const std::string& name, int64_t value) {
    const Status taken = report(name, value, value);
    EXPECT_TRUE(taken.ok()) << to_string(taken.error());
  }

  CounterWatch watch_;
  std::vector<SeenEvent> seen_;
};

TEST_F(CounterWatchTest, FiresWhenItPassesTheBoundAgain) {
  watch({WatchedEvent{}, passes("depth", 10)});
  set("depth", 10);
  set("other", 99);
  EXPECT_TRUE(seen_.empty());
  set("depth", 11);
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].number, 1u);
  EXPECT_EQ(seen_[0].at_ns, 42u);
  EXPECT_EQ(seen_[0].value, 11);
  set("depth", 12);
  EXPECT_EQ(seen_.size(), 1u) << "it is above still";
  set("depth", 10);
  set("depth", 11);
  EXPECT_EQ(seen_.size(), 2u);
}

TEST_F(CounterWatchTest, PeakBetweenTwoReportsCountsEachTime) {
  watch({passes("depth", 10)});
  ASSERT_TRUE(report("depth", 3, 50).ok());
  ASSERT_TRUE(report("depth", 4, 11).ok());
  ASSERT_TRUE(report("depth", 4, 10).ok());
  ASSERT_EQ(seen_.size(), 2u);
  EXPECT_EQ(seen_[0].value, 50);
  EXPECT_EQ(seen_[1].value, 11);
  EXPECT_THAT(watch_.values(), ElementsAre(Pair("depth", 4)));
}

TEST_F(CounterWatchTest, OneThatIsAboveAlreadyIsNotSeen) {
  set("depth", 20);
  set("low", -20);
  watch({passes("depth", 10), passes("low", -21), passes("low", -20)});
  set("depth", 21);
  set("low", -20);
  EXPECT_TRUE(seen_.empty());
  set("low", -19);
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].number, 2u);
  watch({});
  set("depth", 0);
  set("depth", 21);
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(CounterWatchTest, LimitsPlusOneAreDamage) {
  EXPECT_EQ(report("", 1, 1).code(), Code::kDamaged);
  EXPECT_TRUE(report(std::string(63, 'x'), 1, 1).ok());
  EXPECT_EQ(report(std::string(64, 'x'), 1, 1).code(), Code::kDamaged);
  for (int i = 1; i < 64; ++i) set("counter " + std::to_string(i), i);
  EXPECT_EQ(report("one more", 1, 1).code(), Code::kDamaged);
  set("counter 7", 8);

  wire::Counters many;
  for (int i = 0; i < 65; ++i) many.add_counters()->set_name("counter 1");
  EXPECT_EQ(watch_.take(many).code(), Code::kDamaged);
  many.mutable_counters()->RemoveLast();
  EXPECT_TRUE(watch_.take(many).ok());
}

TEST_F(CounterWatchTest, FiresWhenItPassesFromTheBound) {
  set("depth", 10);
  watch({passes("depth", 10)});
  set("depth", 11);
  EXPECT_EQ(seen_.size(), 1u);
}

}  // namespace
}  // namespace collect::ingest
