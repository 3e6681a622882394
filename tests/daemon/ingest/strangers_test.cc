#include "daemon/ingest/strangers.h"

#include <gtest/gtest.h>

#include <vector>

#include "daemon/ingest/limits.h"

namespace collect::ingest {
namespace {

TEST(StrangersTest, OldestGivesWayWhenAllPlacesAreTaken) {
  const auto strangers = std::make_shared<Strangers>();
  std::vector<std::shared_ptr<void>> leases;
  std::vector<uint32_t> gone;
  for (uint32_t index = 0; index < kMaxStrangers + 2; ++index) {
    leases.push_back(strangers->admit("", [&gone, index](const std::string& why) {
      EXPECT_EQ(why, "more than 1024 connections have not said hello");
      gone.push_back(index);
    }));
  }
  EXPECT_EQ(gone, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(strangers->count(), kMaxStrangers);
  leases.clear();  // those of who gave way too
  EXPECT_EQ(strangers->count(), 0u);
}

TEST(StrangersTest, AddressUsesUpItsOwnShareOnly) {
  const auto strangers = std::make_shared<Strangers>();
  std::vector<std::shared_ptr<void>> leases;
  std::vector<std::string> gone;
  const auto admit = [&](const std::string& origin) {
    leases.push_back(strangers->admit(origin, [&gone, origin](const std::string& why) {
      EXPECT_EQ(why, "more than 128 connections of this address have not said hello");
      gone.push_back(origin);
    }));
  };
  admit("10.0.0.1");
  for (uint32_t index = 0; index < kMaxStrangersPerAddress + 1; ++index) admit("10.0.0.2");
  EXPECT_EQ(gone, std::vector<std::string>{"10.0.0.2"});
  leases.erase(leases.begin() + 2);  // one has said hello: there is room again
  admit("10.0.0.2");
  EXPECT_EQ(gone.size(), 1u);
}

TEST(StrangersTest, LeaseThatEndsWithinGiveWayIsNoHarm) {
  const auto strangers = std::make_shared<Strangers>();
  std::shared_ptr<void> lease;
  lease = strangers->admit("a", [&lease](const std::string&) { lease.reset(); });
  strangers->make_room("test");
  strangers->make_room("nobody is there");
  EXPECT_EQ(strangers->count(), 0u);
  lease = strangers->admit("a", [](const std::string&) {});
  EXPECT_EQ(strangers->count(), 1u);
}

TEST(StrangersTest, TheOldestOfAPrincipalMakesRoom) {
  const auto strangers = std::make_shared<Strangers>();
  std::vector<std::string> gone;
  std::vector<std::shared_ptr<void>> leases;
  const principal::Principal one = principal::Principal::of_uid(1);
  const principal::Principal two = principal::Principal::of_uid(2);
  const auto admit = [&](const std::string& name, const principal::Principal& owner) {
    leases.push_back(strangers->admit(
        "", [&gone, name](const std::string& why) { gone.push_back(name + ": " + why); }, owner));
  };
  admit("a", one);
  admit("b", two);
  admit("c", two);
  EXPECT_TRUE(strangers->make_room_of(two, "full"));
  EXPECT_EQ(gone, std::vector<std::string>{"b: full"});
  EXPECT_FALSE(strangers->make_room_of(principal::Principal::of_uid(3), "full"));
  EXPECT_TRUE(strangers->make_room_of(two, "full"));
  EXPECT_FALSE(strangers->make_room_of(two, "full"));
  EXPECT_EQ(strangers->count(), 1u);
  strangers->make_room("all full");
  EXPECT_EQ(gone.back(), "a: all full");
}

TEST(StrangersTest, ConnectionsOfOneAddressAreCounted) {
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
