#include "daemon/ingest/address.h"

#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

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
