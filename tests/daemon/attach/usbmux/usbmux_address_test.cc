#include "daemon/attach/usbmux/usbmux_address.h"

#include <gtest/gtest.h>

namespace collect::attach {
namespace {

std::string text_of(const Result<UsbmuxAddress>& address) {
  return address.ok() ? address->text : to_string(address.error());
}

TEST(UsbmuxAddress, WaysToWriteIt) {
  EXPECT_EQ(text_of(parse_usbmux_address("UNIX:/a/b")), "unix:/a/b");
  EXPECT_EQ(text_of(parse_usbmux_address("unix:/a/b")), "unix:/a/b");
  EXPECT_EQ(text_of(parse_usbmux_address("/a/b")), "unix:/a/b");
  EXPECT_EQ(text_of(parse_usbmux_address("127.0.0.1:27015")), "127.0.0.1:27015");
  EXPECT_EQ(text_of(parse_usbmux_address("localhost:27015")), "127.0.0.1:27015");
  EXPECT_EQ(text_of(parse_usbmux_address("[::1]:27015")), "[::1]:27015");
  EXPECT_EQ(text_of(parse_usbmux_address("UNIX:/" + std::string(106, 'x'))),
            "unix:/" + std::string(106, 'x'));
}

TEST(UsbmuxAddress, RejectsInvalidAddresses) {
  const std::string bad[] = {"",
                             "UNIX:",
                             "UNIX:relative",
                             "nowhere",
                             "127.0.0.1:",
                             "127.0.0.1:0",
                             ":27015",
                             "127.0.0.1:65536",
                             "127.0.0.1:1x",
                             "[::1:1",
                             "x::1]:1",
                             "UNIX:/" + std::string(107, 'x'),
                             std::string("/a\0b", 4)};
  for (const std::string& text : bad) {
    const auto address = parse_usbmux_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.code(), Code::kInvalidArgument);
  }
  EXPECT_NE(text_of(parse_usbmux_address("/" + std::string(107, 'x'))).find("the 107 bytes"),
            std::string::npos);
}

// What goes through usbmuxd is not encrypted.
TEST(UsbmuxAddress, OtherMachinesAreRefusedWithTheWayOut) {
  for (const char* text : {"192.0.2.1:27015", "[2001:db8::1]:27015", "mac.example:27015"}) {
    const auto address = parse_usbmux_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_NE(address.error().message.find("ssh -L"), std::string::npos);
  }
}

TEST(UsbmuxAddress, AutoIsTheVariableThenTheUsualPlace) {
  EXPECT_EQ(text_of(usbmux_address("auto", "UNIX:/x")), "unix:/x");
  EXPECT_EQ(text_of(usbmux_address("auto", nullptr)), "unix:/var/run/usbmuxd");
  EXPECT_EQ(text_of(usbmux_address("auto", "")), "unix:/var/run/usbmuxd");
  EXPECT_EQ(text_of(usbmux_address("127.0.0.1:1", "UNIX:/x")), "127.0.0.1:1");
  EXPECT_FALSE(usbmux_address("auto", "nonsense").ok());
}

}  // namespace
}  // namespace collect::attach
