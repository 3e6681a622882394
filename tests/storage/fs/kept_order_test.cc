#include "storage/fs/kept_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace collect::storage {
namespace {

std::vector<uint64_t> kept_of(const std::vector<uint64_t>& values, bool strict) {
  std::vector<uint64_t> kept;
  KeptOrder order(strict, [&](const Candidate& one) {
    EXPECT_EQ(values[one.number], one.value);
    kept.push_back(one.value);
    return Status();
  });
  for (const uint64_t value : values) order.survey(value);
  order.end_survey();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(order.add({i, 0, 0, values[i]}).ok());
  EXPECT_TRUE(order.finish().ok());
  return kept;
}

// Each end compared with each before it.
size_t longest_by_comparison(const std::vector<uint64_t>& values, bool strict) {
  std::vector<size_t> longest(values.size(), 1);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool rises = strict ? values[j] < values[i] : values[j] <= values[i];
      if (rises) longest[i] = std::max(longest[i], longest[j] + 1);
    }
  }
  return values.empty() ? 0 : *std::max_element(longest.begin(), longest.end());
}

TEST(KeptOrder, KeepsTheMostThatCanStay) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<uint64_t> values(random() % 60);
    for (uint64_t& value : values) value = random() % 40;
    for (const bool strict : {false, true}) {
      const std::vector<uint64_t> kept = kept_of(values, strict);
      EXPECT_EQ(kept.size(), longest_by_comparison(values, strict));
      for (size_t i = 1; i < kept.size(); ++i) {
        EXPECT_TRUE(strict ? kept[i - 1] < kept[i] : kept[i - 1] <= kept[i]);
      }
    }
  }
}

// More than it holds at once, with single bits changed, and a run.
TEST(KeptOrder, ValueOfALargeFileCostsItself) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> values(KeptOrder::kMaxPending * 3 + 17);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1'000'000 + 7 * i;
  size_t changed = 0;
  for (size_t i = 0; i < values.size(); i += 1 + random() % 5000, ++changed) {
    values[i] ^= 1ull << (random() % 62);
  }
  for (size_t i = 100'000; i < 110'000; ++i, ++changed) values[i] /= 2;
  const std::vector<uint64_t> kept = kept_of(values, false);
  EXPECT_GE(kept.size(), values.size() - changed);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

}  // namespace
}  // namespace collect::storage
