// The real adb server between a real collectord and a device made up by the test: what the devices'
// test does with a made-up server holds with Debian's too. Its port, home and keys are its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/e2e/phones/device_fixture.h"
#include "tests/fakes/phones/fake_adbd.h"
#include "tests/fakes/phones/plain_socket.h"

namespace collect::e2e {
namespace {

using fakes::FakeAdbd;
using fakes::FakeAdbdOptions;

const char* const kAdb = "/usr/bin/adb";

class AdbServer : public DeviceFixture {
 protected:
  void SetUp() override {
    if (access(kAdb, X_OK) != 0) GTEST_SKIP() << "no " << kAdb << ": package adb";
    start_server();
    collector_ = std::make_unique<CollectorProcess>(
        scratch_, Arguments{"--adb", "127.0.0.1:" + std::to_string(port_)});
  }
  void TearDown() override { server_.reset(); }

  void start_server() {
    server_ = std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{kAdb, "-L", "tcp:localhost:" + std::to_string(port_), "server", "nodaemon"},
        Environment{{"HOME", scratch_.path()},
                    {"ANDROID_ADB_SERVER_PORT", std::to_string(port_)},
                    {"ADB_SERVER_SOCKET", ""},
                    {"ADB_LOCAL_TRANSPORT_MAX_PORT", "5554"}});  // no search for emulators
    ASSERT_TRUE(eventually(kSoon, [this] { return answers(port_); }));
  }
  void plug(FakeAdbdOptions options) {
    device_ = std::make_unique<FakeAdbd>(std::move(options), device_port_);
    device_port_ = device_->port();
    fakes::announce_device(port_, device_port_);
  }
  void unplug() { device_.reset(); }

  std::unique_ptr<ChildProcess> run_on_device(const std::string& rounds) {
    auto job = start_program(rounds);
    device_->add_socket(socket_of(*job));
    return job;
  }

  const uint16_t port_ = free_port();
  uint16_t device_port_ = 0;
  std::unique_ptr<FakeAdbd> device_;
  std::unique_ptr<ChildProcess> server_;
};

TEST_F(AdbServer, UnplugAndReplugWhileItRecords) {
  EXPECT_EQ(wait_shown("no devices"), "");
  plug({});
  EXPECT_EQ(wait_shown("Sim_Adbd  no agent"), "");
  const auto job = run_on_device("2000");
  EXPECT_EQ(wait_shown("serving"), "");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 20));
  unplug();
  EXPECT_EQ(wait_shown("absent"), "");
  FakeAdbdOptions again;
  again.sockets = {socket_of(*job)};
  plug(again);
  EXPECT_EQ(wait_shown("serving"), "");
  expect_whole(*job);
  EXPECT_EQ(wait_shown("no agent"), "");
}

TEST_F(AdbServer, PhoneThatDoesNotTrustThisComputer) {
  FakeAdbdOptions options;
  options.trusts = false;
  plug(options);
  EXPECT_EQ(wait_shown("confirm the prompt"), "");
  unplug();
  EXPECT_EQ(wait_shown("no devices"), "");
}

TEST_F(AdbServer, ServerIsKilledWhileItRecords) {
  plug({});
  EXPECT_EQ(wait_shown("no agent"), "");
  const auto job = run_on_device("1500");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 20));
  server_->send_signal(SIGKILL);
  server_->wait(kSoon);
  EXPECT_EQ(wait_shown("adb start-server"), "");
  unplug();  // an adbd that lost its server waits for the next
  start_server();
  FakeAdbdOptions again;
  again.sockets = {socket_of(*job)};
  plug(again);
  EXPECT_EQ(wait_shown("serving"), "");
  expect_whole(*job);
}

}  // namespace
}  // namespace collect::e2e
