#include "daemon/attach/adb/adb_routes.h"

#include <gmock/gmock.h>

namespace collect::attach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kWiFi[] = "192.168.1.5:5555";

SourceDevice entry(const std::string& serial, const std::string& connection,
                   bool is_usable = true) {
  SourceDevice device;
  device.serial = serial;
  device.connection = connection;
  device.is_usable = is_usable;
  return device;
}

class AdbRoutesTest : public testing::Test {
 protected:
  std::vector<std::string> shown() const {
    std::vector<std::string> all;
    for (const SourceDevice& phone : routes_.phones()) {
      all.push_back(phone.serial + " by " + phone.connection);
    }
    return all;
  }
  void take(std::vector<SourceDevice> list) { routes_.take(std::move(list)); }

  AdbRoutes routes_;
};

TEST_F(AdbRoutesTest, ByCableAndInTheNetworkIsOnePhone) {
  take({entry("R58M", "usb"), entry(kWiFi, "network")});
  EXPECT_THAT(shown(), ElementsAre("R58M by usb")) << "the other has not answered yet";
  EXPECT_THAT(routes_.to_ask(), ElementsAre(kWiFi));
  EXPECT_THAT(routes_.to_ask(), IsEmpty()) << "once";
  routes_.answered(kWiFi, "R58M");
  EXPECT_THAT(shown(), ElementsAre("R58M by usb"));
  EXPECT_THAT(routes_.phones()[0].routes, ElementsAre("R58M", kWiFi));
  EXPECT_EQ(routes_.route("R58M"), "R58M");
  // It continues under its name while any of its entries is there.
  take({entry(kWiFi, "network")});
  EXPECT_THAT(shown(), ElementsAre("R58M by network"));
  EXPECT_EQ(routes_.route("R58M"), kWiFi);
  take({entry("R58M", "usb", false), entry(kWiFi, "network")});
  EXPECT_THAT(shown(), ElementsAre("R58M by network")) << "one that can be used, rather";
  take({entry("R58M", "usb"), entry(kWiFi, "network", false)});
  EXPECT_THAT(shown(), ElementsAre("R58M by usb"))
      << "no one is informed that the other can't be used";
  take({});
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(AdbRoutesTest, LaterCableIsAnotherRouteToTheSamePhone) {
  take({entry(kWiFi, "network")});
  (void)routes_.to_ask();
  routes_.answered(kWiFi, "R58M");
  EXPECT_THAT(shown(), ElementsAre(std::string(kWiFi) + " by network"));
  EXPECT_THAT(routes_.phones()[0].routes, IsEmpty());
  take({entry(kWiFi, "network"), entry("R58M", "usb")});
  EXPECT_THAT(shown(), ElementsAre(std::string(kWiFi) + " by usb"));
  EXPECT_EQ(routes_.route(kWiFi), "R58M");
  take({entry("R58M", "usb")});
  EXPECT_THAT(shown(), ElementsAre(std::string(kWiFi) + " by usb"));
  take({});
  take({entry("R58M", "usb")});
  EXPECT_THAT(shown(), ElementsAre("R58M by usb"));
}

// Emulators share a number; some phones have none.
TEST_F(AdbRoutesTest, PhonesInTheNetworkAloneAreKeptApart) {
  take({entry("10.0.0.1:5555", "network"), entry("10.0.0.2:5555", "network"),
        entry("10.0.0.3:5555", "network"), entry("R58M", "usb")});
  EXPECT_EQ(routes_.to_ask().size(), 3u);
  routes_.answered("10.0.0.1:5555", "EMULATOR");
  routes_.answered("10.0.0.2:5555", "EMULATOR");
  routes_.answered("10.0.0.3:5555", "");
  EXPECT_EQ(routes_.phones().size(), 4u);
  routes_.answered("10.0.0.9:5555", "R58M");  // it has left
  EXPECT_EQ(routes_.phones().size(), 4u);
}

TEST_F(AdbRoutesTest, AddressThatComesBackMayBeAnotherPhones) {
  take({entry("R58M", "usb"), entry(kWiFi, "network")});
  (void)routes_.to_ask();
  routes_.answered(kWiFi, "R58M");
  take({entry("R58M", "usb"), entry(kWiFi, "network", false)});
  take({entry("R58M", "usb"), entry(kWiFi, "network")});
  EXPECT_THAT(routes_.to_ask(), ElementsAre(kWiFi));
  routes_.answered(kWiFi, "HT12");
  EXPECT_EQ(routes_.phones().size(), 2u);
}

}  // namespace
}  // namespace collect::attach
