#include "daemon/control/control_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::control {
namespace {

TEST(ControlAddressTest, LoopbackAndUnixSockets) {
  for (const char* text : {"127.0.0.1:7711", "127.1.2.3:0", "localhost:65535", "[::1]:7711",
                           "unix:/run/collectord.sock"}) {
    const auto address = parse_control_address(text);
    ASSERT_TRUE(address.ok()) << text << ": " << to_string(address.error());
    EXPECT_EQ(address->target(), text);
    EXPECT_TRUE(address->loopback || address->unix_socket) << text;
  }
}

TEST(ControlAddressTest, EverythingElseIsNotLoopback) {
  for (const char* text : {"0.0.0.0:7711", "[::]:7711", "192.168.1.2:7711", "example.org:7711",
                           "128.0.0.1:7711", "127.0.0.1.example.org:7711"}) {
    const auto address = parse_control_address(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_FALSE(address->loopback) << text;
    EXPECT_EQ(address->target(), text);
  }
}

TEST(ControlAddressTest, BrokenOnesAreRefused) {
  const std::string long_path = "unix:/" + std::string(108, 'x');
  for (const std::string& text :
       {std::string(), std::string(":"), std::string("7711"), std::string(":7711"),
        std::string("127.0.0.1"), std::string("127.0.0.1:"), std::string("127.0.0.1:65536"),
        std::string("127.0.0.1:-1"), std::string("127.0.0.1:77x"), std::string("unix:"),
        std::string("unix:relative"), long_path}) {
    const auto address = parse_control_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace collect::control
