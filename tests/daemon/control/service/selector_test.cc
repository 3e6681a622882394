#include "daemon/control/service/selector.h"

#include <gtest/gtest.h>

namespace collect::control {
namespace {

v1::Agent lua_agent() {
  v1::Agent agent;
  agent.set_name("agents/7");
  agent.set_session("sessions/session_20260131_235959/pid_4711");
  agent.set_device("devices/R58M");
  agent.set_device_id("phone of J");
  agent.set_process_name("lua");
  agent.set_pid(4711);
  agent.set_tag("run-1");
  return agent;
}

bool matches_any(const auto& resource, const std::string& word) {
  v1::Selector selector;
  selector.set_any(word);
  return matches(resource, selector);
}

TEST(SelectorTest, AnyWordOfAnAgent) {
  for (const char* word :
       {"", "agents/7", "7", "lua", "4711", "phone of J", "devices/R58M", "R58M", "run-1",
        "session_20260131_235959/pid_4711", "sessions/session_20260131_235959/pid_4711"}) {
    EXPECT_TRUE(matches_any(lua_agent(), word)) << word;
  }
  for (const char* word : {"lu", "lu*", "471", "agents/", "47110", "R58"}) {
    EXPECT_FALSE(matches_any(lua_agent(), word)) << word;
  }
}

TEST(SelectorTest, AnyWordOfASession) {
  v1::Session session;
  session.set_name("sessions/session_20250101_000000/pid_12");
  session.set_agent("agents/3");
  session.set_pid(12);
  for (const char* word : {"session_20250101_000000/pid_12", "12", "agents/3"}) {
    EXPECT_TRUE(matches_any(session, word)) << word;
  }
  EXPECT_FALSE(matches_any(session, "session_20250101_000000"));
  EXPECT_FALSE(matches_any(session, "3")) << "it may be a pid";
}

TEST(SelectorTest, MatchesOnlyWhenAllFieldsHold) {
  const auto holds = [](auto set) {
    v1::Selector selector;
    set(selector);
    return matches(lua_agent(), selector);
  };
  EXPECT_TRUE(holds([](auto& to) { to.set_agent("7"); }));
  EXPECT_FALSE(holds([](auto& to) { to.set_agent("4711"); }));
  EXPECT_TRUE(holds([](auto& to) { to.set_session("session_20260131_235959/pid_4711"); }));
  EXPECT_FALSE(holds([](auto& to) { to.set_session("7"); }));
  EXPECT_TRUE(holds([](auto& to) { to.set_device("R58M"); }));
  EXPECT_TRUE(holds([](auto& to) { to.set_device("phone of J"); }));
  EXPECT_FALSE(holds([](auto& to) { to.set_device("lua"); }));
  EXPECT_TRUE(holds([](auto& to) { to.set_process_name("l*a"); }));
  EXPECT_FALSE(holds([](auto& to) { to.set_process_name("l?"); }));
  EXPECT_TRUE(holds([](auto& to) { to.set_pid(4711); }));
  EXPECT_FALSE(holds([](auto& to) { to.set_pid(4712); }));
  EXPECT_TRUE(holds([](auto& to) { to.set_tag("run-1"); }));
  EXPECT_FALSE(holds([](auto& to) { to.set_tag("run*"); }));
  EXPECT_FALSE(holds([](auto& to) {
    to.set_pid(4711);
    to.set_tag("run-2");
  }));
}

TEST(SelectorTest, NoWordMeansWhatHasNone) {
  EXPECT_FALSE(matches_any(v1::Session(), "0")) << "no process has the id 0";
  v1::Selector selector;
  EXPECT_TRUE(is_empty(selector));
  selector.set_session("sessions/");
  EXPECT_FALSE(is_empty(selector));
  EXPECT_FALSE(matches(v1::Agent(), selector));
}

TEST(SelectorTest, ItsTextNamesWhatIsGiven) {
  v1::Selector selector;
  EXPECT_EQ(text_of(selector), "");
  selector.set_pid(7);
  selector.set_tag("x");
  EXPECT_EQ(text_of(selector), "pid 7 and tag \"x\"");
  selector.Clear();
  selector.set_any("lua");
  EXPECT_EQ(text_of(selector), "\"lua\"");
}

TEST(SelectorTest, DevicesByEveryWord) {
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
