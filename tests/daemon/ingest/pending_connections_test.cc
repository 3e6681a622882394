#include "daemon/ingest/pending_connections.h"

#include <gtest/gtest.h>

#include <vector>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

TEST(PendingConnectionsTest, OldestGivesWayWhenAllSlotsAreTaken) {
  const auto pending = std::make_shared<PendingConnections>();
  std::vector<std::shared_ptr<void>> leases;
  std::vector<uint32_t> gone;
  for (uint32_t index = 0; index < kMaxPendingConnections + 2; ++index) {
    leases.push_back(pending->admit("", [&gone, index](const std::string& why) {
      EXPECT_EQ(why, "more than 1024 connections have not sent a hello");
      gone.push_back(index);
    }));
  }
  EXPECT_EQ(gone, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(pending->count(), kMaxPendingConnections);
  leases.clear();  // those of who gave way too
  EXPECT_EQ(pending->count(), 0u);
}

TEST(PendingConnectionsTest, AddressUsesUpItsOwnShareOnly) {
  const auto pending = std::make_shared<PendingConnections>();
  std::vector<std::shared_ptr<void>> leases;
  std::vector<std::string> gone;
  const auto admit = [&](const std::string& origin) {
    leases.push_back(pending->admit(origin, [&gone, origin](const std::string& why) {
      EXPECT_EQ(why, "more than 128 connections of this address have not sent a hello");
      gone.push_back(origin);
    }));
  };
  admit("10.0.0.1");
  for (uint32_t index = 0; index < kMaxPendingPerAddress + 1; ++index) admit("10.0.0.2");
  EXPECT_EQ(gone, std::vector<std::string>{"10.0.0.2"});
  leases.erase(leases.begin() + 2);  // one has said hello: there is room again
  admit("10.0.0.2");
  EXPECT_EQ(gone.size(), 1u);
}

TEST(PendingConnectionsTest, LeaseMayEndWithinTheEviction) {
  const auto pending = std::make_shared<PendingConnections>();
  std::shared_ptr<void> lease;
  lease = pending->admit("a", [&lease](const std::string&) { lease.reset(); });
  pending->evict_oldest("test");
  pending->evict_oldest("no one is there");
  EXPECT_EQ(pending->count(), 0u);
  lease = pending->admit("a", [](const std::string&) {});
  EXPECT_EQ(pending->count(), 1u);
}

TEST(PendingConnectionsTest, EvictsTheOldestOfAPrincipal) {
  const auto pending = std::make_shared<PendingConnections>();
  std::vector<std::string> gone;
  std::vector<std::shared_ptr<void>> leases;
  const principal::Principal one = principal::Principal::of_uid(1);
  const principal::Principal two = principal::Principal::of_uid(2);
  const auto admit = [&](const std::string& name, const principal::Principal& owner) {
    leases.push_back(pending->admit(
        "", [&gone, name](const std::string& why) { gone.push_back(name + ": " + why); }, owner));
  };
  admit("a", one);
  admit("b", two);
  admit("c", two);
  EXPECT_TRUE(pending->evict_oldest_of(two, "full"));
  EXPECT_EQ(gone, std::vector<std::string>{"b: full"});
  EXPECT_FALSE(pending->evict_oldest_of(principal::Principal::of_uid(3), "full"));
  EXPECT_TRUE(pending->evict_oldest_of(two, "full"));
  EXPECT_FALSE(pending->evict_oldest_of(two, "full"));
  EXPECT_EQ(pending->count(), 1u);
  pending->evict_oldest("all full");
  EXPECT_EQ(gone.back(), "a: all full");
}

TEST(PendingConnectionsTest, ConnectionsOfOneAddressAreCounted) {
  const auto counts = std::make_shared<OriginCounts>();
  auto first = counts->enter("10.0.0.1", 2);
  auto second = counts->enter("10.0.0.1", 2);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(counts->enter("10.0.0.1", 2));
  EXPECT_TRUE(counts->enter("10.0.0.2", 2));
  second.reset();
  second = counts->enter("10.0.0.1", 2);
  EXPECT_TRUE(second);
  EXPECT_FALSE(counts->enter("10.0.0.1", 2)) << "the first is still there";
  first.reset();
  second.reset();
  first = counts->enter("10.0.0.1", 1);
  EXPECT_TRUE(first);
  EXPECT_FALSE(counts->enter("10.0.0.1", 1));
}

}  // namespace
}  // namespace collect::ingest
