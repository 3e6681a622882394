#include "daemon/principal/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace collect::principal {
namespace {

using testing::HasSubstr;

BudgetLimits limits_of(Resource resource, uint64_t total, uint64_t least = 0) {
  BudgetLimits limits;
  limits[resource] = {total, least, "max_things"};
  return limits;
}

uint64_t take_all(Account& account, Resource resource) {
  uint64_t taken = 0;
  while (account.take(resource, 1).ok()) ++taken;
  return taken;
}

class EachResource : public testing::TestWithParam<Resource> {};

TEST_P(EachResource, OnePrincipalGetsThreeQuarters) {
  Budget budget(limits_of(GetParam(), 1000));
  const auto one = budget.account(Principal::of_uid(1));
  EXPECT_EQ(take_all(*one, GetParam()), 750u);
  EXPECT_EQ(budget.used(GetParam()), 750u);
}

TEST_P(EachResource, AnotherIsNotRefusedForWhatTheFirstHas) {
  Budget budget(limits_of(GetParam(), 1000));
  const auto greedy = budget.account(Principal::of_uid(1));
  const auto innocent = budget.account(Principal::of_uid(2));
  take_all(*greedy, GetParam());
  EXPECT_TRUE(innocent->take(GetParam(), 100).ok());
  EXPECT_TRUE(innocent->has_room(GetParam()));
  EXPECT_FALSE(greedy->has_room(GetParam()));
  EXPECT_FALSE(greedy->take(GetParam(), 1).ok());
}

TEST_P(EachResource, RefusalNamesResourceLimitAndPrincipal) {
  Budget budget(limits_of(GetParam(), 8));
  const auto account = budget.account(Principal::of_uid(4711));
  take_all(*account, GetParam());
  const Status refused = account->take(GetParam(), 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr(resource_name(GetParam())));
  EXPECT_THAT(refused.error().message, HasSubstr("uid 4711"));
  EXPECT_THAT(refused.error().message, HasSubstr("has 6 and wants 1, 2 of 8 are free, and one may "
                                                 "have 3 times what is free"));
  EXPECT_THAT(refused.error().message, HasSubstr("max_things"));
  EXPECT_LT(refused.error().message.size(), 255u);  // fits into a Refuse
}

TEST_P(EachResource, LeaseGivesBack) {
  Budget budget(limits_of(GetParam(), 100));
  const auto account = budget.account({});
  {
    Lease lease(account, GetParam());
    EXPECT_TRUE(lease.grow(10).ok());
    EXPECT_FALSE(lease.grow(90).ok());
    EXPECT_EQ(lease.amount(), 10u);
    lease.set(99);  // not refused, but counted
    Lease& emptied = lease;
    Lease moved = std::move(lease);
    EXPECT_EQ(emptied.amount(), 0u);
    EXPECT_EQ(budget.used(GetParam()), 99u);
    moved.set(5);
    EXPECT_EQ(account->used(GetParam()), 5u);
  }
  EXPECT_EQ(account->used(GetParam()), 0u);
  EXPECT_EQ(budget.used(GetParam()), 0u);
}

TEST_P(EachResource, LeastIsThereUpToTheLast) {
  Budget budget(limits_of(GetParam(), 100, 9));
  const auto greedy = budget.account(Principal::of_uid(1));
  greedy->charge(GetParam(), 90);
  const auto small = budget.account(Principal::of_uid(2));
  for (int taken = 0; taken < 9; ++taken) {
    EXPECT_TRUE(small->has_room(GetParam())) << taken;
    EXPECT_TRUE(small->take(GetParam(), 1).ok()) << taken;
  }
  EXPECT_FALSE(small->has_room(GetParam()));
  EXPECT_FALSE(small->take(GetParam(), 1).ok());
  // Nothing is there beyond the total, however little a user has.
  greedy->charge(GetParam(), 1);
  small->give_back(GetParam(), 9);
  EXPECT_FALSE(small->take(GetParam(), 10).ok());
  EXPECT_TRUE(small->take(GetParam(), 9).ok());
}

TEST_P(EachResource, HasRoomUntilTheShareIsUsed) {
  Budget budget(limits_of(GetParam(), 8));
  const auto account = budget.account(Principal::of_uid(1));
  account->charge(GetParam(), 5);
  EXPECT_TRUE(account->has_room(GetParam()));
  account->charge(GetParam(), 1);
  EXPECT_FALSE(account->has_room(GetParam()));
  account->charge(GetParam(), 100);  // what could not be refused
  EXPECT_FALSE(account->has_room(GetParam()));
  EXPECT_THAT(account->take(GetParam(), 1).error().message, HasSubstr("0 of 8 are free"));
}

TEST_P(EachResource, LeaseThatIsReplacedGivesBackWhatItHad) {
  Budget budget(limits_of(GetParam(), 100));
  Lease lease(budget.account(Principal::of_uid(1)), GetParam());
  Lease other(budget.account(Principal::of_uid(2)), GetParam());
  lease.set(10);
  other.set(3);
  Lease& emptied = other;
  lease = std::move(other);
  EXPECT_EQ(lease.amount(), 3u);
  EXPECT_EQ(emptied.amount(), 0u);
  EXPECT_EQ(budget.used(GetParam()), 3u);
  Lease& itself = lease;
  lease = std::move(itself);
  EXPECT_EQ(lease.amount(), 3u);
  EXPECT_TRUE(lease.grow(2).ok());
  EXPECT_EQ(budget.account(Principal::of_uid(2))->used(GetParam()), 5u);
  lease = Lease();
  EXPECT_EQ(budget.used(GetParam()), 0u);
  EXPECT_TRUE(lease.grow(1).ok()) << "of no one: nothing is counted";
  lease.set(7);
  EXPECT_EQ(lease.amount(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Budget, EachResource,
                         testing::Values(Resource::kDescriptors, Resource::kMemory,
                                         Resource::kInodes, Resource::kSessions,
                                         Resource::kConnections));

TEST(BudgetTest, LeaseThatIsReplacedIsOfTheOthersResource) {
  Budget budget({});
  const auto account = budget.account(Principal::of_uid(1));
  Lease lease(account, Resource::kMemory);
  Lease other(account, Resource::kSessions);
  lease.set(10);
  other.set(3);
  lease = std::move(other);
  lease.set(4);
  EXPECT_EQ(account->used(Resource::kSessions), 4u);
  EXPECT_EQ(account->used(Resource::kMemory), 0u);
}

TEST(BudgetTest, LeastIsThereAsLongAsAnythingIs) {
  Budget budget(limits_of(Resource::kConnections, 10, 4));
  const auto greedy = budget.account(Principal::of_uid(1));
  EXPECT_EQ(take_all(*greedy, Resource::kConnections), 8u);
  const auto second = budget.account(Principal::of_uid(2));
  EXPECT_EQ(take_all(*second, Resource::kConnections), 2u);  // and nothing is left
}

TEST(BudgetTest, ManyGreedyOnesLeaveSomethingForTheNext) {
  Budget budget(limits_of(Resource::kMemory, 1'000'000));
  std::vector<std::shared_ptr<Account>> greedy;
  for (uid_t uid = 0; uid < 100; ++uid) {
    greedy.push_back(budget.account(Principal::of_uid(uid)));
    while (greedy.back()->take(Resource::kMemory, 100).ok()) continue;
  }
  EXPECT_LT(budget.used(Resource::kMemory), 1'000'000u);
}

TEST(BudgetTest, SamePrincipalHasOneAccount) {
  Budget budget({});
  EXPECT_EQ(budget.account(Principal::of_uid(1)), budget.account(Principal::of_uid(1)));
  EXPECT_NE(budget.account(Principal::of_uid(1)), budget.account({Principal::Kind::kAddress, "1"}));
}

TEST(BudgetTest, IdleAccountsAreBounded) {
  Budget budget({});
  const auto used = budget.account(Principal::of_uid(1));
  for (uid_t uid = 2; uid < 3 * kMaxIdleAccounts; ++uid) {
    budget.account(Principal::of_uid(uid));
    ASSERT_LE(budget.accounts(), kMaxIdleAccounts);
  }
  EXPECT_EQ(budget.account(Principal::of_uid(1)), used);
}

TEST(BudgetTest, IdleAccountsAreForgottenAfterTheirTime) {
  using std::chrono::seconds;
  BudgetLimits limits;
  limits.manifest_bytes = {1, 1000};
  Budget budget(limits);
  const std::chrono::steady_clock::time_point start{};
  budget.account(Principal::of_uid(1), start)->count_manifest(1'000'000'000);
  const auto in_use = budget.account(Principal::of_uid(2), start);
  // Another user asks: the owner of an account keeps it.
  const auto later = [&](seconds after) {
    budget.account(Principal::of_uid(3), start + after);
    return budget.accounts();
  };
  EXPECT_EQ(later(kKeepAccount), 3u);
  EXPECT_EQ(later(kKeepAccount + seconds(1)), 2u);
  EXPECT_EQ(budget.account(Principal::of_uid(1))->manifest_wait().count(), 0) << "it is a new one";
  EXPECT_EQ(budget.account(Principal::of_uid(2), start), in_use);
}

TEST(BudgetTest, CountsAreRightWhenThreadsTakeAtOnce) {
  Budget budget(limits_of(Resource::kSessions, 100));
  std::vector<std::thread> threads;
  for (uid_t uid = 0; uid < 4; ++uid) {
    threads.emplace_back([&budget, uid] {
      const auto account = budget.account(Principal::of_uid(uid % 2));
      for (int round = 0; round < 20'000; ++round) {
        Lease lease(account, Resource::kSessions);
        (void)lease.grow(30);
        EXPECT_LE(lease.amount(), 30u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(Resource::kSessions), 0u);
}

TEST(BudgetTest, DividesOpenFilesAmongSessionsOfAPrincipal) {
  Budget budget(limits_of(Resource::kDescriptors, 1000));
  const auto account = budget.account(Principal::of_uid(1));
  EXPECT_EQ(account->open_files_per_session(), 750u);
  account->charge(Resource::kSessions, 10);
  EXPECT_EQ(account->open_files_per_session(), 75u);
  account->charge(Resource::kDescriptors, 400);  // files: they are the share that is divided
  EXPECT_EQ(account->open_files_per_session(), 75u);
  account->charge(Resource::kConnections, 400);  // they were connections
  EXPECT_EQ(account->open_files_per_session(), 45u);
}

TEST(BudgetTest, StreamOpensWaitBeyondTheBurst) {
  BudgetLimits limits;
  limits.stream_opens = {10, 100};
  Budget budget(limits);
  const auto account = budget.account({});
  for (int at = 0; at < 99; ++at) account->count_stream_open();
  EXPECT_EQ(account->stream_open_wait().count(), 0);
  for (int at = 0; at < 1000; ++at) account->count_stream_open();
  EXPECT_GT(account->stream_open_wait(), std::chrono::seconds{50});
}

TEST(BudgetTest, ManifestsWaitAndDataPaysForThem) {
  BudgetLimits limits;
  limits.manifest_bytes = {1, 1000};
  Budget budget(limits);
  const auto account = budget.account({});
  account->count_manifest(5000);
  EXPECT_GT(account->manifest_wait().count(), 0);
  account->count_data(20'000);
  EXPECT_EQ(account->manifest_wait().count(), 0);
}

}  // namespace
}  // namespace collect::principal
