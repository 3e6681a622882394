#include "daemon/web/live/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/web/limits.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::web {
namespace {

namespace api = control::api;
using nlohmann::json;
using std::chrono::milliseconds;

class LiveViewTest : public ::testing::Test {
 protected:
  json look(int at_ms) {
    return json::parse(view_.look(LiveView::Clock::time_point(milliseconds(at_ms))));
  }
  void change(const std::string& name, const std::function<void(api::Session&)>& edit) {
    auto session = *collector_.session("sessions/" + name);
    edit(session);
    collector_.change_session(session, false);
  }

  control::FakeCollector collector_;
  LiveView view_{collector_};
};

TEST_F(LiveViewTest, ShowsEmptyListsWhenEmpty) {
  EXPECT_EQ(look(0), json::parse("{\"version\":1,\"sessions\":[],\"agents\":[],\"devices\":[],"
                                 "\"sessions_left_out\":0,\"agents_left_out\":0,"
                                 "\"devices_left_out\":0}"));
}

TEST_F(LiveViewTest, ShowsWhatTheCollectorSays) {
  collector_.add_agent("7", "render", api::AGENT_STATE_RECORDING);
  collector_.add_session("session_a/pid_7", api::SESSION_STATE_RECOVERED);
  change("session_a/pid_7", [](api::Session& session) {
    session.set_process_name("ren\"der</script>");
    session.set_pid(7);
    session.set_threads(3);
    session.set_events(1000);
    session.set_lost_events(5);
    session.set_stall_count(2);
    session.set_stalled_ns(40);
    session.set_stored_bytes(100);
    session.set_container_bytes(20);
    session.set_missing("its agent did not come back");
    session.set_status("its agent is gone");
    session.set_detail(api::DETAIL_MODE_ARMED);
    session.mutable_start_time()->set_seconds(12);
    session.mutable_start_time()->set_nanos(345'000'000);
    session.mutable_end_time()->set_seconds(13);
  });
  const json view = look(0);
  ASSERT_EQ(view["sessions"].size(), 1u);
  const json& session = view["sessions"][0];
  EXPECT_EQ(session["name"], "session_a/pid_7");
  EXPECT_EQ(session["state"], "recovered");
  EXPECT_EQ(session["sealed"], true);
  EXPECT_EQ(session["health"], "its agent did not come back");
  EXPECT_EQ(session["process"], "ren\"der</script>");
  EXPECT_EQ(session["threads"], 3);
  EXPECT_EQ(session["events"], 1000);
  EXPECT_EQ(session["lost_events"], 5);
  EXPECT_EQ(session["losses_known"], false);
  EXPECT_EQ(session["stalls"], 2);
  EXPECT_EQ(session["stalled_ns"], 40);
  EXPECT_EQ(session["bytes"], 120);
  EXPECT_EQ(session["detail"], "armed");
  EXPECT_EQ(session["start_ms"], 12'345);
  EXPECT_EQ(session["end_ms"], 13'000);
  ASSERT_EQ(view["agents"].size(), 1u);
  EXPECT_EQ(view["agents"][0]["state"], "recording");
  EXPECT_EQ(view["agents"][0]["process"], "render");
}

TEST_F(LiveViewTest, RatesComeFromTwoLooks) {
  collector_.add_session("a/pid_1", api::SESSION_STATE_ACTIVE);
  const auto grow = [this](uint64_t events) {
    change("a/pid_1", [events](api::Session& session) {
      session.set_events(events);
      session.set_stored_bytes(events * 32);
    });
  };
  grow(1000);
  EXPECT_EQ(look(1000)["sessions"][0]["events_per_second"], 0) << "no one knows yet";
  grow(4000);
  const json view = look(1500);
  EXPECT_EQ(view["sessions"][0]["events_per_second"], 6000);
  EXPECT_EQ(view["sessions"][0]["bytes_per_second"], 6000 * 32);
  EXPECT_EQ(look(2500)["sessions"][0]["events_per_second"], 0);
  grow(5000);
  change("a/pid_1", [](auto& session) { session.set_state(api::SESSION_STATE_COMPLETE); });
  EXPECT_EQ(look(3000)["sessions"][0]["events_per_second"], 0) << "it is over";
}

TEST_F(LiveViewTest, EqualStatesAreEqualTexts) {
  collector_.add_session("a/pid_1", api::SESSION_STATE_ACTIVE);
  const std::string first = view_.look(LiveView::Clock::time_point(milliseconds(10)));
  EXPECT_EQ(first, view_.look(LiveView::Clock::time_point(milliseconds(20))));
}

TEST_F(LiveViewTest, ShowsRecordingAndNewestSessionsFirst) {
  collector_.add_session("oldest/pid_1", api::SESSION_STATE_ACTIVE);
  for (size_t i = 0; i < kMaxShownSessions; ++i) {
    collector_.add_session("s" + std::to_string(i) + "/pid_1", api::SESSION_STATE_COMPLETE);
  }
  const json view = look(0);
  ASSERT_EQ(view["sessions"].size(), kMaxShownSessions);
  EXPECT_EQ(view["sessions_left_out"], 1);
  EXPECT_EQ(view["sessions"][0]["name"], "oldest/pid_1");
  EXPECT_EQ(view["sessions"][1]["name"], "s" + std::to_string(kMaxShownSessions - 1) + "/pid_1");
}

TEST_F(LiveViewTest, ShowsConnectedAgentsFirst) {
  for (size_t i = 0; i < kMaxShownAgents; ++i) {
    collector_.add_agent(std::to_string(i), "gone", api::AGENT_STATE_GONE);
  }
  collector_.add_agent("1000", "there", api::AGENT_STATE_CONNECTED);
  const json view = look(0);
  ASSERT_EQ(view["agents"].size(), kMaxShownAgents);
  EXPECT_EQ(view["agents"][0]["process"], "there");
  EXPECT_EQ(view["agents_left_out"], 1);
}

TEST_F(LiveViewTest, DevicesSayWhatToDo) {
  api::Device device;
  device.set_name("devices/1");
  device.set_serial("1");
  device.set_via("adb");
  device.set_state(api::DEVICE_STATE_NO_AGENT);
  device.set_advice("start an app");
  collector_.change_device(api::CHANGE_KIND_ADDED, device);
  const json view = look(0);
  ASSERT_EQ(view["devices"].size(), 1u);
  EXPECT_EQ(view["devices"][0]["state"], "no agent");
  EXPECT_EQ(view["devices"][0]["advice"], "start an app");
}

}  // namespace
}  // namespace collect::web
