#include "agent/ring/counters.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

class CountersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(shared_memory_init(false));
    counters_after_fork_in_child();
    ASSERT_TRUE(counters_init());
  }

  static std::vector<CounterReading> read_all() {
    std::vector<CounterReading> all;
    for (uint32_t index = 0; index < wire::kMaxCounters; ++index) {
      CounterReading reading;
      if (read_counter(index, reading)) all.push_back(reading);
    }
    return all;
  }
};

TEST_F(CountersTest, ForkedChildHasNoneOfItsParents) {
  for (uint32_t n = 0; n < wire::kMaxCounters; ++n) set_counter(std::to_string(n).c_str(), n);
  counters_after_fork_in_child();
  ASSERT_TRUE(counters_init());
  EXPECT_TRUE(read_all().empty());
  set_counter("its own", 5);
  const auto readings = read_all();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_STREQ(readings[0].name, "its own");
  EXPECT_EQ(readings[0].value, 5);
  EXPECT_EQ(readings[0].highest, 5);
  counters_after_fork_in_child();
  ASSERT_TRUE(counters_init());
  EXPECT_EQ(counter_changes(), 0u);
  set_counter("its own", INT64_MIN);
  EXPECT_EQ(read_all().at(0).highest, INT64_MIN);
}

TEST_F(CountersTest, ReadsTheNewestAndTheHighestValue) {
  const uint32_t changes = counter_changes();
  set_counter("depth", -5);
  EXPECT_NE(counter_changes(), changes);
  set_counter("depth", 900);
  set_counter("depth", 3);
  auto readings = read_all();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_STREQ(readings[0].name, "depth");
  EXPECT_EQ(readings[0].value, 3);
  EXPECT_EQ(readings[0].highest, 900);
  EXPECT_TRUE(read_all().empty());

  set_counter("depth", INT64_MIN);
  readings = read_all();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].value, INT64_MIN);
  EXPECT_EQ(readings[0].highest, INT64_MIN);
  set_counter("depth", -7);
  set_counter("depth", -8);
  EXPECT_EQ(read_all().at(0).highest, -7);

  forget_counter_readings();
  readings = read_all();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_EQ(readings[0].value, -8);
  EXPECT_EQ(readings[0].highest, -8);
}

TEST_F(CountersTest, NamesOutOfBoundsAreIgnored) {
  set_counter("", 1);
  set_counter(nullptr, 1);
  set_counter(std::string(wire::kMaxCounterName + 1, 'x').c_str(), 1);
  EXPECT_TRUE(read_all().empty());
  set_counter(std::string(wire::kMaxCounterName, 'x').c_str(), 1);
  EXPECT_EQ(read_all().at(0).name, std::string(wire::kMaxCounterName, 'x'));
}

TEST_F(CountersTest, DoesNotWriteToRingsOfAnotherProcess) {
  g_owner.mask.store(0);
  set_counter("depth", 1);
  g_owner.mask.store(UINT64_MAX);
  EXPECT_TRUE(read_all().empty());
}

// Runs last: a name is never given back.
TEST_F(CountersTest, ThreadsShareThemAndAtMost64AreKept) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int64_t value = 1; value <= 20000; ++value) set_counter("shared", value);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t highest = 0;
  for (const CounterReading& reading : read_all()) {
    EXPECT_STREQ(reading.name, "shared");
    highest = std::max(highest, reading.highest);
  }
  EXPECT_EQ(highest, 20000);
  for (uint32_t i = 0; i < 2 * wire::kMaxCounters; ++i) {
    set_counter(("counter " + std::to_string(i)).c_str(), i);
  }
  forget_counter_readings();
  EXPECT_EQ(read_all().size(), wire::kMaxCounters);
}

}  // namespace
}  // namespace collect::agent
