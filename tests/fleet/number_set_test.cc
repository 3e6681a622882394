#include "tests/fleet/number_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace collect::fleet {
namespace {

TEST(NumberSetTest, CountsWhatANaiveSetCounts) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    NumberSet numbers;
    std::set<uint64_t> naive;
    for (int i = 0; i < 30; ++i) {
      const uint64_t from = random() % 100;
      const uint64_t to = from + random() % 20;
      uint64_t fresh = 0;
      for (uint64_t number = from; number < to; ++number) fresh += naive.insert(number).second;
      ASSERT_EQ(numbers.add({from, to}), fresh) << "seed " << seed;
      ASSERT_EQ(numbers.count(), naive.size());
      const uint64_t first = random() % 100;
      const auto below = std::distance(naive.begin(), naive.lower_bound(first));
      ASSERT_EQ(numbers.count_within({0, first}), static_cast<uint64_t>(below));
      ASSERT_EQ(numbers.end(), naive.empty() ? 0 : *naive.rbegin() + 1);
    }
  }
}

}  // namespace
}  // namespace collect::fleet
