#include "daemon/principal/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace collect::principal {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

const Principal kGreedy = Principal::of_uid(1);
const Principal kInnocent = Principal::of_uid(2);

class FairQueueTest : public testing::Test {
 protected:
  void push(const Principal& principal, const std::string& name) {
    queue_.push(principal, [this, name] { done_ += name; });
  }
  // Runs the next one, which takes so long.
  void run(nanoseconds takes = milliseconds(10)) {
    const auto [principal, work] = queue_.pop();
    work();
    queue_.charge(principal, takes);
  }

  FairQueue queue_;
  std::string done_;
};

TEST_F(FairQueueTest, OnePrincipalIsServedInOrder) {
  for (const char* name : {"a", "b", "c"}) push(kGreedy, name);
  for (int round = 0; round < 3; ++round) run();
  EXPECT_EQ(done_, "abc");
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, NewcomerComesNext) {
  for (int at = 0; at < 1000; ++at) push(kGreedy, "g");
  for (int at = 0; at < 10; ++at) run();
  push(kInnocent, "i");
  run();
  run();
  EXPECT_EQ(done_, "ggggggggggig");
}

TEST_F(FairQueueTest, TimeIsDividedAndNotPieces) {
  for (int at = 0; at < 100; ++at) push(kGreedy, "g");
  for (int at = 0; at < 100; ++at) push(kInnocent, "i");
  for (int round = 0; round < 22; ++round) {
    const auto [principal, work] = queue_.pop();
    work();
    queue_.charge(principal, principal == kGreedy ? milliseconds(100) : milliseconds(10));
  }
  const auto count = [this](char name) { return std::count(done_.begin(), done_.end(), name); };
  EXPECT_LE(count('g'), 3);
  EXPECT_GE(count('i'), 19);
}

// Who was away does not get the time back that it did not use.
TEST_F(FairQueueTest, RestIsNotSavedUp) {
  push(kInnocent, "i");
  run();
  for (int at = 0; at < 100; ++at) push(kGreedy, "g");
  for (int at = 0; at < 50; ++at) run();
  for (int at = 0; at < 10; ++at) push(kInnocent, "i");
  done_.clear();
  for (int at = 0; at < 10; ++at) run();
  EXPECT_GE(std::count(done_.begin(), done_.end(), 'g'), 4) << done_;
}

TEST_F(FairQueueTest, ManyPrincipalsAreServedAndForgotten) {
  for (uid_t uid = 0; uid < 5000; ++uid) push(Principal::of_uid(uid), "x");
  for (uid_t uid = 0; uid < 5000; ++uid) run(nanoseconds(uid % 7));
  EXPECT_EQ(done_.size(), 5000u);
  EXPECT_TRUE(queue_.empty());
  for (int at = 0; at < 3; ++at) push(kGreedy, "g");
  for (int at = 0; at < 3; ++at) run();
  EXPECT_LE(queue_.lines(), 1u) << "the others have nothing to make up";
}

TEST_F(FairQueueTest, FewWithoutWorkAreKept) {
  for (uid_t uid = 1; uid < kMaxIdleLines; ++uid) {
    push(Principal::of_uid(uid), "x");
    run(nanoseconds(0));
    EXPECT_EQ(queue_.lines(), uid);
  }
  push(Principal::of_uid(1'000), "x");
  run(nanoseconds(0));
  EXPECT_EQ(queue_.lines(), 0u);
}

// Forgetting those who have no work must not give them their time back.
TEST_F(FairQueueTest, RemembersUsageUntilOthersCaughtUp) {
  push(kGreedy, "");
  run(milliseconds(1000));
  for (uid_t uid = 100; uid < 100 + 2 * kMaxIdleLines; ++uid) {
    push(Principal::of_uid(uid), "");
    run();
  }
  push(kGreedy, "g");
  for (int at = 0; at < 3; ++at) push(kInnocent, "i");
  for (int at = 0; at < 4; ++at) run();
  EXPECT_EQ(done_, "iiig");
}

TEST_F(FairQueueTest, DropsClearedWork) {
  push(kGreedy, "g");
  push(kInnocent, "i");
  queue_.clear();
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.lines(), 0u);
  queue_.charge(kGreedy, milliseconds(1));  // of a piece that was under way
  push(kInnocent, "i");
  run();
  EXPECT_EQ(done_, "i");
}

}  // namespace
}  // namespace collect::principal
