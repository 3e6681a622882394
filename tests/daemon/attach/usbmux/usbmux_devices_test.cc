#include "daemon/attach/usbmux/usbmux_devices.h"

#include <gtest/gtest.h>

#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {
namespace {

using Ids = std::vector<uint32_t>;

TEST(UsbmuxDevices, OneEntryForEachSerial) {
  UsbmuxDevices devices;
  EXPECT_TRUE(devices.attached(1, "B", "Network"));
  EXPECT_TRUE(devices.attached(2, "A", "USB"));
  EXPECT_TRUE(devices.attached(3, "B", "USB"));
  const auto list = devices.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].serial, "A");
  EXPECT_EQ(list[0].connection, "usb");
  EXPECT_EQ(list[0].reported_state, "attached");
  EXPECT_TRUE(list[0].is_usable);
  EXPECT_EQ(list[1].connection, "usb");
  EXPECT_EQ(devices.ids_of("B"), (Ids{3, 1}));
  devices.detached(3);
  EXPECT_EQ(devices.list()[1].connection, "network");
  EXPECT_EQ(devices.ids_of("B"), Ids{1});
  devices.detached(1);
  devices.detached(99);
  EXPECT_EQ(devices.list().size(), 1u);
  EXPECT_EQ(devices.ids_of("B"), Ids{});
}

// The old entry's Detached may come after the new Attached.
TEST(UsbmuxDevices, LatestIdComesFirst) {
  UsbmuxDevices devices;
  EXPECT_TRUE(devices.attached(9, "A", "USB"));
  EXPECT_TRUE(devices.attached(4, "A", "USB"));
  EXPECT_EQ(devices.ids_of("A"), (Ids{4, 9}));
}

TEST(UsbmuxDevices, WithoutASerialItIsShownAndSaysWhy) {
  UsbmuxDevices devices;
  EXPECT_TRUE(devices.attached(1, "", "USB"));
  const auto list = devices.list();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_FALSE(list[0].is_usable);
  EXPECT_FALSE(list[0].reason.empty());
  EXPECT_FALSE(list[0].advice.empty());
}

TEST(UsbmuxDevices, OneTooManyIsNotTaken) {
  UsbmuxDevices devices;
  for (uint32_t id = 0; id < kMaxUsbmuxDevices; ++id) {
    EXPECT_TRUE(devices.attached(id, std::to_string(id), "USB"));
  }
  EXPECT_FALSE(devices.attached(kMaxUsbmuxDevices, "more", "USB"));
  EXPECT_TRUE(devices.attached(0, "again", "USB"));
  EXPECT_EQ(devices.list().size(), kMaxUsbmuxDevices);
}

}  // namespace
}  // namespace collect::attach
