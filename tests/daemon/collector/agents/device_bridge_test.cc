// Agents on phones: an adb server made up by the test before a collector, from the plugged-in phone
// to the agent that is detached.
#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>

#include "daemon/collector/agents/agent_attach.h"
#include "tests/daemon/collector/collector_fixture.h"
#include "tests/fakes/phones/fake_adb_server.h"

namespace collect::daemon {
namespace {

using fakes::FakeAdbServer;
using fakes::FakePhone;
using fakes::FrameSocket;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kPlace[] = "adb:A:collect_agent_7";

// Before the collector, which connects to it.
struct WithAdb {
  WithAdb() {
    adb_.start();
    devices_.adb = adb_.address();
  }

  FakeAdbServer adb_;
  attach::AttachOptions devices_;
};

class CollectorDevicesTest : private WithAdb, public CollectorTest {
 protected:
  CollectorDevicesTest() : CollectorTest(devices_) {}
  ~CollectorDevicesTest() override {
    const std::lock_guard lock(mutex_);
    for (const int fd : opened_) ::close(fd);
  }

  FakeAdbServer& adb() { return adb_; }
  // What the collector opens to the name on the phone waits for accept().
  void listen(const std::string& serial, const std::string& name) {
    adb_.serve(serial, name, [this](int fd) {
      const std::lock_guard lock(mutex_);
      opened_.push_back(fd);
      came_.notify_all();
    });
  }
  FrameSocket accept() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, fakes::kPatience, [this] { return !opened_.empty(); })) return {};
    FrameSocket socket(opened_.front());
    opened_.pop_front();
    return socket;
  }
  void answer(FakeAgent& agent) {
    answer_dials(agent, [this] { return accept(); });
  }
  bool is_shown(api::DeviceState state) {
    return eventually([&] {
      const auto device = collector_->device("A");
      return device.ok() && device->state() == state;
    });
  }
  bool has_status(const std::string& status) {
    return eventually([&] {
      const auto device = collector_->device("A");
      return device.ok() && device->agents_size() == 1 && device->agents(0).status() == status;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<int> opened_;  // guarded by mutex_
};

TEST_F(CollectorDevicesTest, ServersAreShownWithWhatIsWrongWithThem) {
  ASSERT_TRUE(eventually([&] {
    const auto servers = collector_->device_servers();
    return servers.size() == 1 && servers[0].connected();
  }));
  const std::vector<api::DeviceServer> servers = collector_->device_servers();
  EXPECT_EQ(servers[0].via(), "adb");
  EXPECT_EQ(servers[0].address(), adb().address());
  EXPECT_EQ(servers[0].status(), "");
  adb().stop();
  EXPECT_TRUE(eventually([&] {
    const auto now = collector_->device_servers();
    return now.size() == 1 && !now[0].connected() &&
           now[0].status().find("no adb server at " + adb().address()) != std::string::npos;
  }));
}

TEST_F(CollectorDevicesTest, FindsDevicesBySerialOrTheOnlyOne) {
  EXPECT_EQ(collector_->device("").error().message, "there is no device");
  adb().plug("A", FakePhone{});
  ASSERT_TRUE(is_shown(api::DEVICE_STATE_NO_AGENT));
  EXPECT_EQ(collector_->device("")->serial(), "A");
  EXPECT_EQ(collector_->device("devices/A")->serial(), "A");
  EXPECT_THAT(collector_->devices(""), SizeIs(1));
  EXPECT_THAT(collector_->devices("A"), SizeIs(1));
  EXPECT_THAT(collector_->devices("B"), IsEmpty());
  EXPECT_EQ(collector_->device("B").code(), Code::kNotFound);
  EXPECT_EQ(collector_->device("B").error().message, "no device \"B\"; there are: devices/A");
  adb().plug("B", FakePhone{});
  ASSERT_TRUE(eventually([&] { return collector_->devices("").size() == 2; }));
  EXPECT_EQ(collector_->device("").code(), Code::kInvalidArgument);
  EXPECT_EQ(collector_->device("").error().message,
            "name a device; there are: devices/A, devices/B");
  EXPECT_EQ(collector_->device("B")->serial(), "B");
  EXPECT_EQ(collector_->device("C").error().message,
            "no device \"C\"; there are: devices/A, devices/B");
}

TEST_F(CollectorDevicesTest, WatchesHearOfDevicesThatComeChangeAndGo) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<api::DeviceEvent> heard;
  const auto watch = collector_->watch_devices([&](const api::DeviceEvent& event) {
    const std::lock_guard lock(mutex);
    heard.push_back(event);
    changed.notify_all();
  });
  const auto wait_for = [&](api::ChangeKind kind, api::DeviceState state) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, fakes::kPatience, [&] {
      return !heard.empty() && heard.back().kind() == kind &&
             heard.back().device().name() == "devices/A" && heard.back().device().state() == state;
    });
  };
  FakePhone locked;
  locked.state = "unauthorized";
  adb().plug("A", locked);
  EXPECT_TRUE(wait_for(api::CHANGE_KIND_ADDED, api::DEVICE_STATE_BLOCKED));
  adb().set_state("A", "device");
  EXPECT_TRUE(wait_for(api::CHANGE_KIND_CHANGED, api::DEVICE_STATE_NO_AGENT));
  adb().unplug("A");
  EXPECT_TRUE(wait_for(api::CHANGE_KIND_REMOVED, api::DEVICE_STATE_ABSENT) ||
              heard.back().kind() == api::CHANGE_KIND_REMOVED);
  collector_->unwatch(watch);
}

TEST_F(CollectorDevicesTest, FindsDetachesAndReattachesAPhonesAgent) {
  adb().plug("A", FakePhone{});
  listen("A", "collect_agent_7");
  FakeAgent agent(process(1, "app", 7));
  answer(agent);
  const api::Agent app = shown("app", api::AGENT_STATE_CONNECTED);
  EXPECT_EQ(app.address(), kPlace);
  EXPECT_EQ(app.device(), "devices/A");
  ASSERT_TRUE(is_shown(api::DEVICE_STATE_SERVING));
  ASSERT_TRUE(has_status(""));
  const auto device = collector_->device("A");
  EXPECT_EQ(device->agents(0).socket(), "collect_agent_7");
  EXPECT_EQ(device->agents(0).agent(), app.name());
  // Who is up already is the answer.
  const auto again = attach(kPlace);
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(again->name(), app.name());
  EXPECT_EQ(again->state(), api::AGENT_STATE_CONNECTED);

  const auto gone = detach(app.name());
  ASSERT_TRUE(gone.ok()) << to_string(gone.error());
  EXPECT_EQ(gone->name(), app.name());
  EXPECT_EQ(gone->state(), api::AGENT_STATE_GONE);
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
  EXPECT_TRUE(has_status("detached by command"));
  EXPECT_TRUE(is_shown(api::DEVICE_STATE_NO_AGENT));

  Waiting<api::Agent> attached;
  collector_->methods().call(attach_request(kPlace), attached.callback());
  FakeAgent next(process(2, "next", 7));
  answer(next);
  EXPECT_TRUE(attached.get().ok() || attached.get().code() == Code::kUnsupported);
  EXPECT_EQ(shown("next", api::AGENT_STATE_CONNECTED).address(), kPlace);
  EXPECT_TRUE(is_shown(api::DEVICE_STATE_SERVING));
}

TEST_F(CollectorDevicesTest, AgentThatRefusesIsShownWithItsReason) {
  adb().plug("A", FakePhone{});
  listen("A", "collect_agent_7");
  const auto refuse = [this](wire::RefuseCode code, const std::string& why) {
    FrameSocket control = accept();
    ASSERT_TRUE(control.receive_type(wire::FrameType::kDial).has_value());
    wire::Refuse refusal;
    refusal.set_code(code);
    refusal.set_reason(why);
    ASSERT_TRUE(control.send(wire::FrameType::kRefuse, refusal));
    EXPECT_TRUE(control.ends());
  };
  refuse(wire::REFUSE_LIMIT, "I am busy");
  EXPECT_TRUE(eventually([&] {
    const auto device = collector_->device("A");
    return device.ok() && device->agents_size() == 1 &&
           device->agents(0).status().find("I am busy") != std::string::npos;
  }));
  const auto waited_from = std::chrono::steady_clock::now();
  Waiting<api::Agent> attached;
  collector_->methods().call(attach_request(kPlace), attached.callback());
  const auto answer = attached.get();
  EXPECT_GE(std::chrono::steady_clock::now() - waited_from, kAttachWait);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.code(), Code::kUnsupported);
  EXPECT_THAT(answer.error().message, HasSubstr(std::string(kPlace) + ": "));
  EXPECT_THAT(answer.error().message, HasSubstr("; collectctl devices shows its state"));
}

TEST_F(CollectorDevicesTest, TroubleHasItsOwnAdvice) {
  const std::pair<wire::RefuseCode, const char*> all[] = {
      {wire::REFUSE_VERSION, "V"}, {wire::REFUSE_TOKEN, "T"}, {wire::REFUSE_LIMIT, "L"}};
  std::vector<std::string> advice;
  for (const auto& [code, serial] : all) {
    adb().plug(serial, FakePhone{});
    listen(serial, "collect_agent_7");
    FrameSocket control = accept();
    ASSERT_TRUE(control.receive_type(wire::FrameType::kDial).has_value());
    wire::Refuse refusal;
    refusal.set_code(code);
    refusal.set_reason("why");
    ASSERT_TRUE(control.send(wire::FrameType::kRefuse, refusal));
    ASSERT_TRUE(eventually([&] {
      const auto device = collector_->device(serial);
      return device.ok() && !device->advice().empty() && device->agents_size() == 1 &&
             device->agents(0).status().find("why") != std::string::npos;
    })) << serial;
    advice.push_back(collector_->device(serial)->advice());
    adb().unplug(serial);
    ASSERT_TRUE(eventually([&] { return !collector_->device(serial).ok(); })) << serial;
  }
  EXPECT_THAT(advice, ElementsAre("take the agent and collectord from the same release",
                                  "give both the same token: token_file here, COLLECT_TOKEN_FILE "
                                  "there",
                                  "COLLECT_LOG=1 makes the agent say more"));
}

TEST_F(CollectorDevicesTest, PlacesThatAreNotThereAreRefused) {
  EXPECT_EQ(attach("adb:B:collect_agent_1").code(), Code::kNotFound);
  EXPECT_EQ(attach("adb:B:collect_agent_1").error().message,
            "adb:B:collect_agent_1: no such device; collectctl devices lists them");
  adb().plug("A", FakePhone{});
  ASSERT_TRUE(is_shown(api::DEVICE_STATE_NO_AGENT));
  const auto absent = attach("adb:A:collect_agent_1");
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().message, HasSubstr("no one listens there"));
}

}  // namespace
}  // namespace collect::daemon
