#include "daemon/ingest/address.h"

#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

TEST(AddressTest, ReadsWhatPeopleWrite) {
  const auto tcp = parse_address("localhost:7710");
  ASSERT_TRUE(tcp.ok());
  EXPECT_EQ(tcp->host, "localhost");
  EXPECT_EQ(tcp->port, 7710);
  const auto v6 = parse_address("[::1]:1");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(to_string(*v6), "[::1]:1");
  const auto path = parse_address("unix:/run/a:b");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->kind, Address::Kind::kUnix);
  EXPECT_EQ(path->host, "/run/a:b");
  EXPECT_EQ(to_string(*parse_address("abstract:collect_agent_1")), "abstract:collect_agent_1");
}

// Seen: "tcp:7720", as agents are told it, looked up a host of that name for ever.
TEST(AddressTest, ReadsWhatAgentsAreTold) {
  EXPECT_EQ(to_string(*parse_address("tcp:7720")), "127.0.0.1:7720");
  for (const char* text : {"tcp:", "tcp:7720-7729", "tcp:70000", "tcp:host:7720"}) {
    const auto refused = parse_address(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message.find("behind tcp: stands one port"), std::string::npos);
  }
}

TEST(AddressTest, RefusesWhatIsNone) {
  const std::string long_path = "unix:/" + std::string(200, 'x');
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("h:"), std::string("h:99999"),
        std::string("h:1x"), std::string("h:-1"), std::string("unix:"), long_path}) {
    EXPECT_FALSE(parse_address(text).ok()) << text;
  }
}

TEST(AddressTest, KnowsWhatOthersCanReach) {
  const auto local = [](const char* text) {
    return is_local(*resolve_endpoint(*parse_address(text)));
  };
  EXPECT_TRUE(local("127.0.0.1:1"));
  EXPECT_TRUE(local("127.200.0.1:1"));
  EXPECT_TRUE(local("localhost:1"));
  EXPECT_TRUE(local("[::1]:1"));
  EXPECT_TRUE(local("unix:/x"));
  EXPECT_FALSE(local("0.0.0.0:1"));
  EXPECT_FALSE(local("[::]:1"));
  EXPECT_FALSE(local("192.168.1.1:1"));
}

TEST(AddressTest, ConnectionsAreChargedToHostsThatAreElsewhere) {
  const auto origin = [](const char* text) {
    const auto endpoint = numeric_endpoint(*parse_address(text));
    EXPECT_TRUE(endpoint.ok()) << text;
    return origin_of(*endpoint);
  };
  EXPECT_EQ(origin("192.0.2.7:40000"), "192.0.2.7");
  EXPECT_EQ(origin("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::/64");
  EXPECT_EQ(origin("[2001:db8:1:2:ffff::1]:2"), "2001:db8:1:2::/64");
  EXPECT_EQ(origin("[::ffff:192.0.2.7]:3"), "192.0.2.7");
  EXPECT_EQ(origin("[::ffff:127.0.0.1]:3"), "");
  EXPECT_EQ(origin("127.3.2.1:4"), "");
  EXPECT_EQ(origin("[::1]:5"), "");
  EXPECT_EQ(origin("unix:/x"), "");
}

}  // namespace
}  // namespace collect::ingest
