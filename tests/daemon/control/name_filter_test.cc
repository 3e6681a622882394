#include "daemon/control/name_filter.h"

#include <gtest/gtest.h>

namespace collect::control {
namespace {

TEST(NameFilterTest, AgentsByEveryWord) {
  v1::Agent agent;
  agent.set_name("agents/7f");
  agent.set_process_name("lua");
  agent.set_pid(4711);
  agent.set_device_id("emulator-5554");
  agent.set_tag("run-1");
  for (const char* word : {"", "agents/7f", "7f", "lua", "4711", "emulator-5554", "run-1"}) {
    EXPECT_TRUE(matches(agent, word)) << word;
  }
  for (const char* word : {"lu", "471", "agents/", "47110", "7"}) {
    EXPECT_FALSE(matches(agent, word)) << word;
  }
}

TEST(NameFilterTest, SessionsByShortName) {
  v1::Session session;
  session.set_name("sessions/session_20250101_000000/pid_12");
  session.set_pid(12);
  EXPECT_TRUE(matches(session, "session_20250101_000000/pid_12"));
  EXPECT_TRUE(matches(session, "12"));
  EXPECT_FALSE(matches(session, "session_20250101_000000"));
}

TEST(NameFilterTest, DevicesByEveryWord) {
  v1::Device device;
  device.set_name("devices/R58M");
  device.set_serial("R58M");
  device.set_model("SM_G991B");
  device.set_via("adb");
  for (const char* word : {"", "devices/R58M", "R58M", "SM_G991B", "adb"}) {
    EXPECT_TRUE(matches(device, word)) << word;
  }
  for (const char* word : {"R58", "usbmux", "devices/"}) {
    EXPECT_FALSE(matches(device, word)) << word;
  }
}

}  // namespace
}  // namespace collect::control
