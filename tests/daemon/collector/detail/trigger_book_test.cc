// Which trigger fires when, by times that the test makes up.
#include "daemon/collector/detail/trigger_book.h"

#include <gtest/gtest.h>

namespace collect::daemon {
namespace {

using std::chrono::seconds;

constexpr TriggerBook::Time kNow{seconds(1000)};

google::protobuf::RepeatedPtrField<api::Trigger> triggers(uint32_t times, int64_t duration_s) {
  google::protobuf::RepeatedPtrField<api::Trigger> triggers;
  api::Trigger& trigger = *triggers.Add();
  trigger.add_functions("parse");
  trigger.set_times(times);
  if (duration_s != 0) trigger.mutable_duration()->set_seconds(duration_s);
  trigger.set_fired_count(77);  // only said, never taken
  return triggers;
}

TEST(TriggerBook, FiresAgainWhenItsDetailIsOver) {
  TriggerBook book;
  const uint64_t set = book.set(1, "one", triggers(0, 5));
  EXPECT_TRUE(book.fire(1, set, 0, kNow));
  EXPECT_FALSE(book.fire(1, set, 0, kNow + seconds(4)));
  EXPECT_TRUE(book.fire(1, set, 0, kNow + seconds(5)));
  ASSERT_EQ(book.triggers(1).size(), 1u);
  EXPECT_EQ(book.triggers(1)[0].fired_count(), 2u);
}

TEST(TriggerBook, FiresNoMoreThanItMay) {
  TriggerBook book;
  const uint64_t set = book.set(1, "one", triggers(2, 1));
  EXPECT_TRUE(book.fire(1, set, 0, kNow));
  EXPECT_TRUE(book.fire(1, set, 0, kNow + seconds(10)));
  EXPECT_FALSE(book.fire(1, set, 0, kNow + seconds(20)));
}

TEST(TriggerBook, WithoutAnEndItFiresOnce) {
  TriggerBook book;
  const uint64_t set = book.set(1, "one", triggers(0, 0));
  EXPECT_TRUE(book.fire(1, set, 0, kNow));
  EXPECT_FALSE(book.fire(1, set, 0, kNow + seconds(100'000)));
}

TEST(TriggerBook, DetailEndsOnceAndMayFireAgain) {
  TriggerBook book;
  for (const int64_t duration_s : {0, 100}) {
    const uint64_t set = book.set(1, "one", triggers(0, duration_s));
    EXPECT_FALSE(book.end(1, set, 0, kNow)) << "it has not fired";
    EXPECT_TRUE(book.fire(1, set, 0, kNow));
    EXPECT_FALSE(book.end(1, set + 1, 0, kNow + seconds(1))) << "of other triggers";
    EXPECT_TRUE(book.end(1, set, 0, kNow + seconds(1)));
    EXPECT_FALSE(book.end(1, set, 0, kNow + seconds(2)));
    EXPECT_TRUE(book.fire(1, set, 0, kNow + seconds(2)));
    EXPECT_EQ(book.triggers(1)[0].fired_count(), 2u);
  }
  const uint64_t set = book.set(1, "one", triggers(0, 5));
  EXPECT_TRUE(book.fire(1, set, 0, kNow));
  EXPECT_FALSE(book.end(1, set, 0, kNow + seconds(5))) << "it ended by itself";
}

TEST(TriggerBook, DoesNotFireReplacedForgottenOrForeignTriggers) {
  TriggerBook book;
  const uint64_t old = book.set(1, "one", triggers(0, 1));
  const uint64_t set = book.set(1, "one", triggers(0, 1));
  EXPECT_FALSE(book.fire(1, old, 0, kNow));
  EXPECT_FALSE(book.fire(2, set, 0, kNow));
  book.forget("two");
  EXPECT_TRUE(book.fire(1, set, 0, kNow));
  book.forget("one");
  EXPECT_FALSE(book.fire(1, set, 0, kNow + seconds(10)));
  EXPECT_TRUE(book.triggers(1).empty());
  const uint64_t none = book.set(1, "one", {});
  EXPECT_FALSE(book.fire(1, none, 0, kNow));
}

}  // namespace
}  // namespace collect::daemon
