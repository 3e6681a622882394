#include "daemon/principal/token_bucket.h"

#include <gtest/gtest.h>

namespace collect::principal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TokenBucket::Clock::time_point kStart{};

TEST(TokenBucketTest, BurstIsThereAtOnce) {
  TokenBucket bucket({10, 5}, kStart);
  bucket.take(4, kStart);
  EXPECT_EQ(bucket.wait(kStart).count(), 0);
  bucket.take(1, kStart);
  EXPECT_GT(bucket.wait(kStart).count(), 0);
}

TEST(TokenBucketTest, DebtIsPaidBeforeTheNext) {
  TokenBucket bucket({10, 5}, kStart);
  bucket.take(105, kStart);
  EXPECT_GT(bucket.wait(kStart + milliseconds(9'900)).count(), 0);
  EXPECT_EQ(bucket.wait(kStart + milliseconds(10'200)).count(), 0);
}

TEST(TokenBucketTest, WaitsUntilThereIsOneAgain) {
  TokenBucket bucket({1, 5}, kStart);
  bucket.take(6, kStart);
  EXPECT_EQ(bucket.wait(kStart), seconds(2) + std::chrono::nanoseconds(1));
  EXPECT_EQ(bucket.wait(kStart - seconds(1)), seconds(2) + std::chrono::nanoseconds(1));
  bucket.give(0.5);
  EXPECT_EQ(bucket.wait(kStart), milliseconds(1500) + std::chrono::nanoseconds(1));
  bucket.give(1000);  // no more than the burst
  bucket.take(5, kStart);
  EXPECT_GT(bucket.wait(kStart).count(), 0);
}

TEST(TokenBucketTest, RestEarnsNoMoreThanTheBurst) {
  TokenBucket bucket({10, 5}, kStart);
  bucket.take(0, kStart + seconds(3600));
  bucket.take(5, kStart + seconds(3600));
  EXPECT_GT(bucket.wait(kStart + seconds(3600)).count(), 0);
}

TEST(TokenBucketTest, NeverWaitsWithoutARate) {
  TokenBucket bucket({}, kStart);
  bucket.take(1e12, kStart);
  EXPECT_EQ(bucket.wait(kStart).count(), 0);
}

}  // namespace
}  // namespace collect::principal
