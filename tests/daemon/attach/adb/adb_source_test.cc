// The client against a server made up by the test: every way in which the other end misbehaves.
#include "daemon/attach/adb/adb_source.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/read.hpp>
#include <asio/write.hpp>
#include <optional>

#include "tests/daemon/attach/closing_listener.h"
#include "tests/fakes/phones/fake_adb_server.h"

namespace collect::attach {
namespace {

using fakes::FakeAdbServer;
using fakes::FakePhone;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr seconds kSoon{20};

void echo(int fd) {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::recv(fd, buffer, sizeof buffer, 0)) > 0) {
    if (::send(fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL) != got) break;
  }
  ::close(fd);
}

class AdbSourceTest : public testing::Test {
 protected:
  void SetUp() override { server_.start(); }
  void TearDown() override {
    if (source_) source_->stop();
  }
  void start() { start_at(server_.port()); }
  void start_at(uint16_t port) {
    AdbAddress address;
    address.server.host = "127.0.0.1";
    address.server.port = port;
    source_ = std::make_unique<AdbSource>(io_, address);
    source_->start([this](const ServerState& state) { states_.push_back(state); },
                   [this](const std::vector<SourceDevice>& list) {
                     devices_ = list;
                     ++lists_;
                   });
  }
  // Runs the source's thread, which is this one, until it holds.
  template <class Condition>
  bool wait(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  bool wait_state(const std::string& serial, const std::string& state) {
    return wait([&] {
      for (const SourceDevice& device : devices_) {
        if (device.serial == serial && device.reported_state == state) return true;
      }
      return false;
    });
  }
  const SourceDevice* device(const std::string& serial) const {
    for (const SourceDevice& shown : devices_) {
      if (shown.serial == serial) return &shown;
    }
    return nullptr;
  }
  Result<std::vector<std::string>> find(const std::string& serial) {
    std::optional<Result<std::vector<std::string>>> answer;
    source_->find_agents(serial, [&answer](auto found) { answer.emplace(std::move(found)); });
    EXPECT_FALSE(answer.has_value()) << "answered inside the call";
    if (!wait([&] { return answer.has_value(); })) return Error{Code::kIo, "no answer"};
    return *answer;
  }
  Result<Socket> open(const std::string& serial, const std::string& endpoint) {
    std::optional<Result<Socket>> answer;
    source_->open(serial, endpoint,
                  [&answer](Result<Socket> got) { answer.emplace(std::move(got)); });
    EXPECT_FALSE(answer.has_value()) << "answered inside the call";
    if (!wait([&] { return answer.has_value(); })) return Error{Code::kIo, "no answer"};
    return std::move(*answer);
  }
  static void expect_echo(Socket& socket, const std::string& text) {
    asio::write(socket, asio::buffer(text));
    std::string back(text.size(), '\0');
    asio::read(socket, asio::buffer(back));
    EXPECT_EQ(back, text);
  }

  FakeAdbServer server_;
  asio::io_context io_{1};
  std::unique_ptr<AdbSource> source_;
  std::vector<ServerState> states_;
  std::vector<SourceDevice> devices_;
  size_t lists_ = 0;
};

TEST_F(AdbSourceTest, EmptyListThenDevicesOfEveryState) {
  start();
  ASSERT_TRUE(wait([&] { return lists_ == 1; }));
  EXPECT_TRUE(devices_.empty());
  ASSERT_EQ(states_.size(), 1u);
  EXPECT_TRUE(states_[0].connected);
  FakePhone phone;
  phone.state = "unauthorized";
  phone.attributes = "";  // no model either
  server_.plug("A", phone);
  ASSERT_TRUE(wait_state("A", "unauthorized"));
  EXPECT_FALSE(devices_[0].is_usable);
  EXPECT_EQ(devices_[0].model, "");
  server_.set_state("A", "device");
  ASSERT_TRUE(wait_state("A", "device"));
  server_.plug("B", FakePhone{});
  ASSERT_TRUE(wait([&] { return devices_.size() == 2; }));
  server_.unplug("A");
  ASSERT_TRUE(wait([&] { return devices_.size() == 1; }));
  EXPECT_EQ(devices_[0].serial, "B");
}

TEST_F(AdbSourceTest, AnswersInPiecesOfOneByte) {
  server_.split_answers(1);
  FakePhone phone;
  server_.plug("A", phone);
  server_.serve("A", "collect_agent_7", echo);
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  const auto found = find("A");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(*found, ElementsAre("collect_agent_7"));
  Result<Socket> socket = open("A", "collect_agent_7");
  ASSERT_TRUE(socket.ok());
  expect_echo(*socket, "hello");
}

TEST_F(AdbSourceTest, PlainShellWhereTheDeviceHasNoOther) {
  FakePhone phone;
  phone.features = "cmd,stat_v2";
  server_.plug("A", phone);
  server_.serve("A", "collect_agent_7", echo);
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  EXPECT_THAT(*find("A"), ElementsAre("collect_agent_7"));
  EXPECT_EQ(server_.requests("shell:"), 1u);
  EXPECT_EQ(server_.requests("shell,v2"), 0u);
  EXPECT_THAT(*find("A"), ElementsAre("collect_agent_7"));
  EXPECT_EQ(server_.requests("host-serial:A:features"), 1u) << "asked once for each arrival";
}

// The phone may have been updated meanwhile.
TEST_F(AdbSourceTest, FeaturesAreAskedAgainAfterAReplug) {
  FakePhone phone;
  server_.plug("A", phone);
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  ASSERT_TRUE(find("A").ok());
  EXPECT_EQ(server_.requests("shell,v2"), 1u);
  server_.unplug("A");
  ASSERT_TRUE(wait([&] { return devices_.empty(); }));
  phone.features = "cmd";
  server_.plug("A", phone);
  ASSERT_TRUE(wait_state("A", "device"));
  ASSERT_TRUE(find("A").ok());
  EXPECT_EQ(server_.requests("shell,v2"), 1u);
  EXPECT_EQ(server_.requests("shell:"), 1u);
}

TEST_F(AdbSourceTest, OpenReportsNotFoundWithoutAListener) {
  server_.plug("A", FakePhone{});
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  EXPECT_TRUE(find("A")->empty());
  const Result<Socket> socket = open("A", "collect_agent_7");
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.code(), Code::kNotFound);
  const Result<Socket> elsewhere = open("B", "collect_agent_7");
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.code(), Code::kUnavailable);
  EXPECT_NE(elsewhere.error().message.find("device 'B' not found"), std::string::npos);
  EXPECT_EQ(open("A", std::string(kMaxAdbRequestBytes, 'x')).code(), Code::kLimit);
}

TEST_F(AdbSourceTest, FailuresCarryTheServersWords) {
  server_.plug("A", FakePhone{});
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  server_.fail_next("shell", "error: no shell for you");
  const auto found = find("A");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.code(), Code::kUnavailable);
  EXPECT_NE(found.error().message.find("no shell for you"), std::string::npos);
  EXPECT_TRUE(find("A").ok()) << "and the next time it works";
}

TEST_F(AdbSourceTest, DeviceThatFallsSilentIsLookedAtAgain) {
  FakePhone phone;
  phone.attributes = "model:M";
  server_.plug("192.168.1.5:5555", phone);
  start();
  ASSERT_TRUE(wait_state("192.168.1.5:5555", "device"));
  server_.fall_silent("192.168.1.5:5555");  // the tracker is not informed
  const Result<Socket> socket = open("192.168.1.5:5555", "collect_agent_7");
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.code(), Code::kUnavailable);
  ASSERT_TRUE(wait_state("192.168.1.5:5555", "offline"));
  EXPECT_NE(devices_[0].advice.find("adb disconnect"), std::string::npos);
}

// As adb 29.0.6 does it with a device that does not trust it: trackers go on saying "offline".
TEST_F(AdbSourceTest, StateOfWhichTheTrackerSaysNothing) {
  FakePhone phone;
  phone.state = "offline";
  server_.plug("A", phone);
  start();
  ASSERT_TRUE(wait_state("A", "offline"));
  const size_t lists = lists_;
  server_.set_state("A", "unauthorized", false);
  ASSERT_TRUE(wait_state("A", "unauthorized"));
  EXPECT_EQ(lists_, lists + 1) << "an unchanged list is not reported";
  server_.set_state("A", "device", false);
  ASSERT_TRUE(wait_state("A", "device"));
}

TEST_F(AdbSourceTest, UnplugEndsTheStreamAndReplugOpensAnother) {
  server_.plug("A", FakePhone{});
  server_.serve("A", "collect_agent_7", echo);
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  Result<Socket> socket = open("A", "collect_agent_7");
  ASSERT_TRUE(socket.ok());
  server_.unplug_after("A", 3);
  asio::write(*socket, asio::buffer("hello", 5));
  std::string back(5, '\0');
  std::error_code error;
  EXPECT_EQ(asio::read(*socket, asio::buffer(back), error), 3u);
  EXPECT_EQ(error, asio::error::eof);
  ASSERT_TRUE(wait([&] { return devices_.empty(); }));
  server_.plug("A", FakePhone{});
  server_.serve("A", "collect_agent_7", echo);
  ASSERT_TRUE(wait_state("A", "device"));
  Result<Socket> again = open("A", "collect_agent_7");
  ASSERT_TRUE(again.ok());
  expect_echo(*again, "again");
}

TEST_F(AdbSourceTest, ServerThatEndsAndComesBack) {
  server_.plug("A", FakePhone{});
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  server_.stop();
  ASSERT_TRUE(wait([&] { return devices_.empty() && states_.size() >= 3; }));
  EXPECT_FALSE(states_.back().connected);
  EXPECT_EQ(states_.back().status,
            "no adb server at " + server_.address() + ": start it with `adb start-server`");
  EXPECT_EQ(find("A").code(), Code::kUnavailable);
  EXPECT_EQ(open("A", "collect_agent_7").code(), Code::kUnavailable);
  const size_t before = states_.size();
  server_.start();
  ASSERT_TRUE(wait_state("A", "device"));
  EXPECT_EQ(states_.size(), before + 1) << "one word for each change";
  EXPECT_TRUE(states_.back().connected);
}

TEST_F(AdbSourceTest, DoesNotAnswerAfterStop) {
  server_.plug("A", FakePhone{});
  start();
  ASSERT_TRUE(wait_state("A", "device"));
  bool answered = false;
  source_->find_agents("A", [&answered](const auto&) { answered = true; });
  source_->open("A", "x", [&answered](const Result<Socket>&) { answered = true; });
  source_->stop();
  server_.unplug("A");
  for (int i = 0; i < 20; ++i) {
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(answered);
  EXPECT_EQ(devices_.size(), 1u);
}

TEST_F(AdbSourceTest, ByCableAndInTheNetworkIsOneDevice) {
  FakePhone phone;
  phone.number = "R58M";
  phone.attributes = "product:sim model:Sim_Phone";
  server_.plug("192.168.1.5:5555", phone);
  phone.attributes = "usb:1-1";
  server_.plug("R58M", phone);
  FakePhone other;  // that does not know the command
  other.attributes = "product:sim";
  server_.plug("192.168.1.6:5555", other);
  start();
  const auto is_one = [&](const std::string& connection) {
    return wait([&] {
      const SourceDevice* const found = device("R58M");
      return found != nullptr && found->routes.size() == 2 && found->connection == connection &&
             devices_.size() == 2;
    });
  };
  ASSERT_TRUE(is_one("usb"));
  EXPECT_NE(device("192.168.1.6:5555"), nullptr);
  EXPECT_EQ(device("192.168.1.5:5555"), nullptr);
  server_.set_state("R58M", "offline");
  ASSERT_TRUE(is_one("network"));
}

TEST_F(AdbSourceTest, RetriesWhenThePortIsNotAnAdbServer) {
  server_.fail_next("host:track", "what?");
  start();
  ASSERT_TRUE(wait([&] { return !states_.empty(); }));
  EXPECT_FALSE(states_[0].connected);
  EXPECT_EQ(states_[0].status, "what?");
  ASSERT_TRUE(wait([&] { return states_.size() == 2; })) << "and it tries again";
  EXPECT_TRUE(states_[1].connected);
}

TEST_F(AdbSourceTest, RetriesAClosingServerAtASteadyPace) {
  using std::chrono::steady_clock;
  ClosingListener listener(io_);
  const auto begun = steady_clock::now();
  start_at(listener.port());
  ASSERT_TRUE(wait([&] { return listener.accepted() == 4; }));
  EXPECT_GE(steady_clock::now() - begun, (1 + 2 + 2) * kFirstServerRetry);
  EXPECT_EQ(states_.size(), 1u) << "said once";
}

TEST_F(AdbSourceTest, LimitsRequestsWithoutAnAnswer) {
  const asio::ip::tcp::acceptor silent(
      io_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  start_at(silent.local_endpoint().port());
  std::vector<Error> answers;
  const auto on_open = [&](const Result<Socket>& opened) { answers.push_back(opened.error()); };
  for (size_t i = 0; i < kMaxAdbConnections; ++i) source_->open("A", "collect_agent_7", on_open);
  io_.poll();
  EXPECT_TRUE(answers.empty());
  source_->open("A", "collect_agent_7", on_open);
  source_->find_agents("A", [&](const auto& found) { answers.push_back(found.error()); });
  ASSERT_TRUE(wait([&] { return answers.size() == 2; }));
  EXPECT_EQ(answers[0].code, Code::kExhausted);
  EXPECT_EQ(answers[1].code, Code::kExhausted);
}

}  // namespace
}  // namespace collect::attach
