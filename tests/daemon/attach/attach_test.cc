// Devices on their own thread, found through an adb server made up by the test.
#include "daemon/attach/attach.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <optional>

#include "tests/fakes/phones/fake_adb_server.h"

namespace collect::attach {
namespace {

using fakes::FakeAdbServer;
using fakes::FakePhone;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kSoon{20};
constexpr char kPlace[] = "adb:A:collect_agent_7";

const char* no_variable(const char*) {
  return nullptr;
}

// What was reported on the thread of the devices, for the test's own thread.
class Reports : public DeviceObserver {
 public:
  void device_changed(const DeviceView& device, bool) override {
    change([&] { shown_ = device; });
  }
  void device_removed(const DeviceView&) override {
    change([&] { shown_.reset(); });
  }
  void endpoint_found(const std::string& address) override {
    change([&] { dialled_ = address; });
  }
  void endpoint_gone(const std::string&) override {
    change([&] { dialled_.clear(); });
  }

  bool wait_dialled(const std::string& address) {
    return wait([&] { return dialled_ == address; });
  }
  bool wait_state(std::optional<DeviceState> state) {
    return wait([&] { return shown_ ? state == shown_->state : !state; });
  }
  bool wait_status(const std::string& status) {
    return wait([&] {
      return shown_ && shown_->endpoints.size() == 1 && shown_->endpoints[0].status == status;
    });
  }

 private:
  template <class Change>
  void change(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSoon, condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<DeviceView> shown_;
  std::string dialled_;
};

class AttachTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.start();
    options_.adb = server_.address();
  }
  // A phone with one agent on it, which is attached.
  void serve() {
    auto made = Attach::create(options_, no_variable, reports_);
    ASSERT_TRUE(made.ok()) << made.error().message;
    attach_ = std::move(*made);
    ASSERT_TRUE(attach_->run().ok());
    server_.plug("A", FakePhone{});
    server_.serve("A", "collect_agent_7", [](int fd) { ::close(fd); });
    ASSERT_TRUE(reports_.wait_dialled(kPlace));
    attach_->agent_is(kPlace, "agents/1", true, false);
    ASSERT_TRUE(reports_.wait_state(DeviceState::kServing));
  }
  static Result<Socket> open(Attach& attach, const std::string& address) {
    std::promise<Result<Socket>> answer;
    attach.open(address, [&](Result<Socket> opened) { answer.set_value(std::move(opened)); });
    return answer.get_future().get();
  }

  FakeAdbServer server_;
  AttachOptions options_;
  Reports reports_;
  std::unique_ptr<Attach> attach_;  // ends before what it tells
};

TEST_F(AttachTest, AgentIsFoundOpenedAndDetached) {
  serve();
  ASSERT_EQ(attach_->servers().size(), 1u);
  EXPECT_EQ(attach_->servers()[0].address, server_.address());
  ASSERT_EQ(attach_->devices().size(), 1u);
  EXPECT_TRUE(open(*attach_, kPlace).ok());
  EXPECT_EQ(open(*attach_, "adb:B:collect_agent_7").code(), Code::kUnavailable);
  attach_->report(kPlace, {EndpointReport::Trouble::kNone, "not now"});
  attach_->agent_is(kPlace, "agents/1", false, false);
  EXPECT_TRUE(reports_.wait_status("not now"));
  attach_->release(kPlace);
  EXPECT_TRUE(reports_.wait_status("detached by command"));
}

TEST_F(AttachTest, ShowsAnAbsentDeviceWhileAgentsMayResume) {
  options_.keep_absent = milliseconds(300);
  serve();
  const auto unplugged = steady_clock::now();
  server_.unplug("A");
  ASSERT_TRUE(reports_.wait_state(DeviceState::kAbsent));
  ASSERT_TRUE(reports_.wait_state(std::nullopt));
  EXPECT_GE(steady_clock::now() - unplugged, options_.keep_absent);
}

TEST_F(AttachTest, DoesNotSearchDisabledSources) {
  options_.adb = "off";
  options_.usbmux = "off";
  auto made = Attach::create(options_, no_variable, reports_);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->run().ok());
  EXPECT_EQ(open(**made, kPlace).code(), Code::kUnavailable);  // so its thread was there
  EXPECT_TRUE((*made)->servers().empty());
  EXPECT_EQ(server_.trackers(), 0u);
}

TEST_F(AttachTest, AddressesThatAreNoneAreRefused) {
  options_.adb = "nowhere";
  EXPECT_EQ(Attach::create(options_, no_variable, reports_).code(), Code::kInvalidArgument);
  options_.adb = "off";
  options_.endpoints = {"adb:A:own"};
  const auto off = Attach::create(options_, no_variable, reports_);
  EXPECT_EQ(off.code(), Code::kInvalidArgument);
  EXPECT_NE(off.error().message.find("adb is off: set adb = \"auto\""), std::string::npos);
  options_.endpoints = {};
  options_.usbmux = "192.0.2.1:27015";
  EXPECT_EQ(Attach::create(options_, no_variable, reports_).code(), Code::kInvalidArgument);
  options_.usbmux = "auto";
  const auto elsewhere = [](const char* name) -> const char* {
    return std::string_view(name) == "USBMUXD_SOCKET_ADDRESS" ? "192.0.2.1:27015" : nullptr;
  };
  EXPECT_EQ(Attach::create(options_, elsewhere, reports_).code(), Code::kInvalidArgument);
}

TEST(AttachAddressTest, RecognisesDevicesByTheBeginning) {
  EXPECT_TRUE(is_device_address("adb:A:collect_agent_7"));
  EXPECT_TRUE(is_device_address("usbmux:A:tcp:7720"));
  EXPECT_FALSE(is_device_address("127.0.0.1:7720"));
  EXPECT_FALSE(is_device_address("unix:/run/adb:x"));
}

}  // namespace
}  // namespace collect::attach
