#include "daemon/upload/s3/retry.h"

#include <gtest/gtest.h>

#include <vector>

namespace collect::upload {
namespace {

class CountedPauses final : public Pauses {
 public:
  bool pause(uint64_t ns) override {
    taken.push_back(ns);
    return taken.size() < most;
  }
  std::vector<uint64_t> taken;
  size_t most = SIZE_MAX;
};

TEST(BackoffTest, BoundsDoubleUpToTheLimit) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> longest(12, 0);
  std::vector<uint64_t> shortest(12, UINT64_MAX);
  for (int round = 0; round < 2000; ++round) {
    Backoff backoff({}, random);
    for (size_t i = 0; i < longest.size(); ++i) {
      const uint64_t pause = backoff.next_ns();
      longest[i] = std::max(longest[i], pause);
      shortest[i] = std::min(shortest[i], pause);
    }
  }
  for (size_t i = 0; i < longest.size(); ++i) {
    const uint64_t bound = std::min<uint64_t>(100ull << i, 20'000) * kNsPerMs;
    EXPECT_LE(longest[i], bound) << i;
    EXPECT_GE(longest[i], bound / 100 * 95) << i;
    EXPECT_LE(shortest[i], bound / 100 * 5) << i;
  }
}

TEST(RetriesTest, RetriesOnlyTransientErrors) {
  CountedPauses pauses;
  size_t noticed = 0;
  Retries retries({}, pauses, 1, [&](const Error&) { ++noticed; });
  int calls = 0;
  const auto third = retries.run([&]() -> Result<int> {
    if (++calls < 3) return Error{Code::kUnavailable, "503"};
    return calls;
  });
  EXPECT_EQ(*third, 3);
  EXPECT_EQ(noticed, 2u);
  EXPECT_EQ(pauses.taken.size(), 2u);
  for (const Code code : {Code::kPermission, Code::kNotFound, Code::kDamaged, Code::kCancelled}) {
    calls = 0;
    const Status refused = retries.run([&]() -> Status {
      ++calls;
      return Error{code, "no"};
    });
    EXPECT_EQ(refused.code(), code);
    EXPECT_EQ(calls, 1);
  }
}

TEST(RetriesTest, AttemptsHaveALimit) {
  CountedPauses pauses;
  Retries retries({100, 20'000, 4}, pauses, 1, [](const Error&) {});
  int calls = 0;
  const auto never = [&]() -> Status {
    ++calls;
    return Error{Code::kUnavailable, "503"};
  };
  EXPECT_EQ(retries.run(never).code(), Code::kUnavailable);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(pauses.taken.size(), 3u);
  pauses.most = 4;
  EXPECT_EQ(retries.run(never).code(), Code::kCancelled);
  EXPECT_EQ(calls, 5);
}

}  // namespace
}  // namespace collect::upload
