#include "daemon/ingest/link/address.h"

#include <gtest/gtest.h>
#include <sys/un.h>

#include <cstring>

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

TEST(AddressTest, EndpointsAreShownAsAddressesAreWritten) {
  for (const char* text : {"127.0.0.1:80", "[2001:db8::1]:443", "unix:/run/x", "abstract:name"}) {
    EXPECT_EQ(endpoint_text(*numeric_endpoint(*parse_address(text))), text);
  }
  EXPECT_EQ(endpoint_text(*numeric_endpoint(*parse_address("localhost:7"))), "127.0.0.1:7");
}

// As the kernel gives them: peers of Unix sockets mostly have no name.
TEST(AddressTest, UnixEndpointsMayHaveNoNameAndNoTerminator) {
  const auto text = [](const std::string& name) {
    sockaddr_un raw{};
    raw.sun_family = AF_UNIX;
    std::memcpy(raw.sun_path, name.data(), name.size());
    return endpoint_text(Endpoint(&raw, offsetof(sockaddr_un, sun_path) + name.size(), 0));
  };
  EXPECT_EQ(text(""), "unix");
  EXPECT_EQ(text(std::string(1, '\0')), "unix");
  EXPECT_EQ(text("/s"), "unix:/s");
  EXPECT_EQ(text(std::string("/s\0", 3)), "unix:/s");
  EXPECT_EQ(text(std::string("\0n", 2)), "abstract:n");
  EXPECT_EQ(text("/" + std::string(107, 'x')), "unix:/" + std::string(107, 'x'));
}

}  // namespace
}  // namespace collect::ingest
