// Ten phones with five apps each, whose cables come out and go in a thousand times while all of
// them record: nothing is lost, and the collector keeps nothing of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/phones/fake_usbmuxd.h"

namespace collect::e2e {
namespace {

constexpr size_t kPhones = 10;
constexpr size_t kApps = 5;   // of a phone
constexpr int kRounds = 100;  // in which each phone is unplugged and plugged in once
constexpr uint16_t kFirstPort = 7720;
constexpr uint64_t kMemoryBound = 64u << 20;  // what allocators keep of a storm, by far

// What each is, sorted.
std::vector<std::string> descriptors_of(int pid) {
  std::vector<std::string> found;
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    found.push_back(std::filesystem::read_symlink(entry.path(), gone).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class ReplugStorm : public testing::Test {
 protected:
  static std::string serial_of(size_t phone) {
    return "00008110-00000000000000" + std::to_string(10 + phone);
  }
  void plug_in(size_t phone) { ids_[phone] = usbmuxd_.attach(serial_of(phone)); }
  void start_apps() {
    for (size_t phone = 0; phone < kPhones; ++phone) {
      for (size_t app = 0; app < kApps; ++app) {
        const uint16_t port = free_port();
        usbmuxd_.map_port(serial_of(phone), static_cast<uint16_t>(kFirstPort + app), port);
        apps_.push_back(std::make_unique<ChildProcess>(
            scratch_.path(), Arguments{traced_program("steady"), "pace", "600000"},
            Environment{{"LD_PRELOAD", agent_library()},
                        {"COLLECT_LISTEN", "tcp:" + std::to_string(port)},
                        {"COLLECT_FULL", "wait"},
                        {"COLLECT_BUFFER_MB", "4"},
                        {"COLLECT_EXIT_FLUSH_MS", "120000"}}));
      }
    }
  }
  // Of all apps.
  bool all_record() {
    return eventually(seconds(60), [&] {
      return std::all_of(apps_.begin(), apps_.end(), [&](const auto& app) {
        return !session_directories(collector_.root(), app->pid()).empty();
      });
    });
  }

  Scratch scratch_;
  fakes::FakeUsbmuxd usbmuxd_{scratch_ / "usbmuxd"};
  CollectorProcess collector_{scratch_, {"--usbmux", usbmuxd_.address(), "--heartbeat-ms", "500"}};
  std::vector<std::unique_ptr<ChildProcess>> apps_;
  uint32_t ids_[kPhones] = {};
};

TEST_F(ReplugStorm, ThousandTimesAndNothingIsLost) {
  std::mt19937 random(20260131);
  const auto pause = [&random] {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 20)(random)));
  };
  // All there is without an app: threads and connections that come with the first phone too.
  for (size_t phone = 0; phone < kPhones; ++phone) plug_in(phone);
  ASSERT_TRUE(eventually(seconds(60), [&] {
    const std::string shown = collector_.ctl({"devices"}).output;
    return usbmuxd_.listeners() == 1 && shown.find("no agent") != std::string::npos;
  }));
  for (const uint32_t id : ids_) usbmuxd_.detach(id);
  ASSERT_TRUE(eventually(seconds(60), [&] {
    return collector_.ctl({"devices"}).output.find("no agent") == std::string::npos;
  }));
  const auto descriptors = descriptors_of(collector_.process().pid());
  const uint64_t resident = collector_.process().resident_bytes();
  for (size_t phone = 0; phone < kPhones; ++phone) plug_in(phone);
  start_apps();
  ASSERT_TRUE(all_record());
  std::vector<size_t> order(kPhones);
  std::iota(order.begin(), order.end(), 0u);
  for (int round = 0; round < kRounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t phone : order) usbmuxd_.detach(ids_[phone]);
    pause();
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t phone : order) plug_in(phone);
    // Some rounds let them come back, others cut them off in the middle of their handshakes.
    pause();
    if (round % 10 == 0) {
      EXPECT_TRUE(eventually(seconds(60), [&] { return usbmuxd_.streams() >= kPhones * kApps; }));
    }
  }
  // A program that ends while it is cut off has no one to give its last events to.
  ASSERT_TRUE(eventually(seconds(60), [&] {
    const std::string shown = collector_.ctl({"agents"}).output;
    size_t recording = 0;
    for (size_t at = 0; (at = shown.find("recording", at)) != std::string::npos; ++at) ++recording;
    return recording >= kPhones * kApps;
  })) << collector_.ctl({"agents"}).output;
  for (const auto& app : apps_) app->send_signal(SIGUSR2);
  for (const auto& app : apps_) {
    const Ending& ending = app->wait(seconds(180));
    ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const uint64_t steps = std::stoull(ending.output);
    const auto sessions = sealed_sessions(collector_.root(), app->pid());
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    EXPECT_EQ(sessions[0].totals().lost, 0u);
    EXPECT_EQ(sessions[0].totals().events, 2 * (steps + 1)) << "main, and each step";
  }
  for (const uint32_t id : ids_) usbmuxd_.detach(id);
  EXPECT_TRUE(eventually(
      seconds(30),
      [&] { return descriptors_of(collector_.process().pid()).size() <= descriptors.size(); }))
      << ::testing::PrintToString(descriptors_of(collector_.process().pid()))
      << "\nbefore: " << ::testing::PrintToString(descriptors);
  EXPECT_LT(collector_.process().resident_bytes(), resident + kMemoryBound);
}

}  // namespace
}  // namespace collect::e2e
