// The real adb on both sides: Debian's server, and AOSP's adbd built for this machine
// (build_adbd.sh), in a network of their own, where no other test's agents are seen and every port
// is free.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tests/e2e/collector_process.h"
#include "tests/fakes/machine/own_network.h"
#include "tests/fakes/phones/plain_socket.h"

namespace collect::e2e {

class AdbdFixture : public testing::Test {
 protected:
  static constexpr seconds kSoon{60};

  void SetUp() override {
    const char* const given = std::getenv("COLLECT_ADBD");
    adbd_ = given == nullptr || *given == '\0' ? E2E_ADBD : given;
    if (adbd_ == "no") GTEST_SKIP() << "COLLECT_ADBD=no";
    if (access(adbd_.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "no " << adbd_ << ": ctest -R adbd_build -V says why";
    }
    if (access(kAdb, X_OK) != 0) GTEST_SKIP() << "no " << kAdb << ": package adb";
    if (!network_.fault().empty()) GTEST_SKIP() << network_.fault();
    start_server();
  }
  void TearDown() override {
    unplug();
    stop_server();
  }

  // Its keys in a home of its own, and no search for emulators.
  Environment environment() const {
    return {{"HOME", scratch_.path()},
            {"ANDROID_ADB_SERVER_PORT", std::to_string(port_)},
            {"ANDROID_ADB_SERVER_ADDRESS", ""},
            {"ADB_SERVER_SOCKET", ""},
            {"ANDROID_SERIAL", ""},
            {"ADB_LOCAL_TRANSPORT_MAX_PORT", "5554"}};
  }
  void start_server() {
    server_ = std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{kAdb, "-L", "tcp:localhost:" + std::to_string(port_), "server", "nodaemon"},
        environment());
    ASSERT_TRUE(eventually(kSoon, [this] { return answers(port_); }));
  }
  void stop_server() { end(server_); }
  Ending adb(Arguments arguments) {
    arguments.insert(arguments.begin(), kAdb);
    return run(scratch_.path(), arguments, environment());
  }

  // A phone on a cable: `launcher` is what starts adbd.
  void plug(Arguments launcher = {}) {
    start_device(std::move(launcher));
    announce(device_port_);
  }
  void unplug() { end(device_); }

  void start_device(Arguments launcher = {}) {
    launcher.push_back(adbd_);
    device_ = std::make_unique<ChildProcess>(
        scratch_.path(), launcher, Environment{{"ADBD_PORT", std::to_string(device_port_)}});
    ASSERT_TRUE(eventually(kSoon, [this] { return answers(device_port_); })) << device_->errors();
  }
  void announce(uint16_t port) {
    serial_ = "emulator-" + std::to_string(port - 1);
    ASSERT_TRUE(eventually(kSoon, [&] {
      fakes::announce_device(port_, port);
      return adb({"-s", serial_, "shell", "true"}).exited_with(0);
    })) << adb({"devices", "-l"}).output;
  }
  const std::string& serial() const { return serial_; }

  static constexpr char kAdb[] = "/usr/bin/adb";
  fakes::OwnNetwork network_;
  Scratch scratch_;
  std::string adbd_;
  const uint16_t port_ = free_port();
  const uint16_t device_port_ = free_port();
  std::string serial_;
  std::unique_ptr<ChildProcess> server_;
  std::unique_ptr<ChildProcess> device_;

 private:
  static void end(std::unique_ptr<ChildProcess>& process) {
    if (process) process->send_signal(SIGKILL);
    if (process) process->wait(kSoon);
    process.reset();
  }
};

}  // namespace collect::e2e
