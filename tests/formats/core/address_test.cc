#include "formats/core/address.h"

#include <gtest/gtest.h>

#include "tests/fakes/addresses.h"

namespace collect {
namespace {

TEST(Address, ItsParts) {
  const auto tcp = parse_address("localhost:7710");
  ASSERT_TRUE(tcp.ok());
  EXPECT_EQ(tcp->kind, Address::Kind::kTcp);
  EXPECT_EQ(tcp->host, "localhost");
  EXPECT_EQ(tcp->port, 7710);
  const auto v6 = parse_address("[::1]:1");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 1);
  const auto path = parse_address("unix:/run/a:b");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->kind, Address::Kind::kUnix);
  EXPECT_EQ(path->host, "/run/a:b");
  const auto name = parse_address("abstract:collect_agent_1");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->kind, Address::Kind::kAbstract);
  EXPECT_EQ(name->host, "collect_agent_1");
}

TEST(Address, IsPrintedAsItIsRead) {
  for (const std::string& text : fakes::good_addresses()) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.error().message;
    EXPECT_EQ(to_string(*address), text);
  }
}

TEST(Address, RejectsInvalidAddressesWithTheRightForm) {
  for (const std::string& text : fakes::bad_addresses()) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.code(), Code::kInvalidArgument);
    EXPECT_NE(address.error().message.find("write host:port"), std::string::npos) << text;
  }
}

// Seen: "tcp:7720", as agents receive it, looked up a host of that name for ever.
TEST(Address, PortOfThisMachine) {
  EXPECT_EQ(to_string(*parse_address("tcp:7720")), "127.0.0.1:7720");
  for (const char* text : {"tcp:", "tcp:7720-7729", "tcp:70000", "tcp:host:7720"}) {
    const auto refused = parse_address(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message.find("behind tcp: is one port"), std::string::npos);
  }
}

}  // namespace
}  // namespace collect
