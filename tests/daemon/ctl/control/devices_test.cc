// collectctl devices against a real server with a scripted collector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "daemon/ctl/control/devices.h"
#include "tests/daemon/ctl/control/fixture.h"

namespace collect::ctl {
namespace {

namespace api = ::collect::control::v1;
using ::testing::HasSubstr;
using ::testing::Not;

class OnlineDevicesTest : public OnlineTest {
 protected:
  api::Device phone() {
    api::Device device;
    device.set_name("devices/R58M");
    device.set_serial("R58M");
    device.set_via("adb");
    device.set_connection("usb");
    device.set_model("Sim\x1b[2J");
    device.set_state(api::DEVICE_STATE_SERVING);
    api::DeviceAgent* agent = device.add_agents();
    agent->set_socket("collect_agent_7");
    agent->set_agent("agents/3");
    agent = device.add_agents();
    agent->set_socket("collect_agent_8");
    agent->set_status("wrong token");
    return device;
  }
};

TEST_F(OnlineDevicesTest, TableWithWhyAndWhatToDo) {
  collector_.change_device(api::CHANGE_KIND_ADDED, phone());
  api::Device blocked;
  blocked.set_name("devices/HT12");
  blocked.set_serial("HT12");
  blocked.set_via("adb");
  blocked.set_state(api::DEVICE_STATE_BLOCKED);
  blocked.set_reason("no trust");
  blocked.set_advice("confirm the prompt");
  collector_.change_device(api::CHANGE_KIND_ADDED, blocked);
  EXPECT_EQ(devices(online_, {}), 0);
  EXPECT_EQ(out_.str(),
            "DEVICE  VIA        MODEL       STATE    AGENTS\n"
            "HT12    adb                    blocked\n"
            "R58M    adb (usb)  Sim\\x1b[2J  serving  3\n"
            "HT12: no trust\n"
            "  confirm the prompt\n"
            "R58M collect_agent_8: wrong token\n");
  out_.str("");
  EXPECT_EQ(devices(json_, {}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\"serial\":\"R58M\""));
  out_.str("");
  EXPECT_EQ(devices(online_, {.filter = "absent", .watch = false}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("no device matches"));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(OnlineDevicesTest, ServersThatAreNotThere) {
  EXPECT_EQ(devices(online_, {}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("looks for none"));
  api::DeviceServer server;
  server.set_via("adb");
  server.set_status("no adb server at 127.0.0.1:1: start it with `adb start-server`");
  collector_.set_device_servers({server});
  out_.str("");
  EXPECT_EQ(devices(online_, {}), 0);
  EXPECT_EQ(out_.str(),
            "no devices\nno adb server at 127.0.0.1:1: start it with `adb start-server`\n");
  server.set_connected(true);
  collector_.set_device_servers({server});
  out_.str("");
  EXPECT_EQ(devices(online_, {}), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("start-server")));
}

TEST_F(OnlineDevicesTest, WatchPrintsALineForEachChange) {
  collector_.change_device(api::CHANGE_KIND_ADDED, phone());
  std::thread watching([this] { EXPECT_EQ(devices(online_, {.filter = "", .watch = true}), 1); });
  collector_.wait_for_watches(1);
  api::Device gone = phone();
  gone.set_state(api::DEVICE_STATE_ABSENT);
  gone.set_reason("unplugged");
  gone.clear_agents();
  collector_.change_device(api::CHANGE_KIND_REMOVED, gone);
  server_->shutdown(std::chrono::milliseconds(2000));
  watching.join();
  EXPECT_THAT(out_.str(), HasSubstr("removed  R58M  adb (usb)  Sim\\x1b[2J  absent  unplugged\n"));
  EXPECT_THAT(err_.str(), HasSubstr("shutting down"));
}

}  // namespace
}  // namespace collect::ctl
