// A phone is plugged in and is recorded: a real collectord, a real traced program that listens on
// its abstract socket, and an adb server made up by the test between them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/fake_adb_server.h"

namespace collect::e2e {
namespace {

using fakes::FakeAdbServer;
using fakes::FakePhone;

constexpr seconds kSoon{30};
constexpr seconds kJobLimit{120};

class Devices : public testing::Test {
 protected:
  void start_daemon() {
    collector_ = std::make_unique<CollectorProcess>(
        scratch_, Arguments{"--adb", adb_.address(), "--heartbeat-ms", "500"});
  }
  // `collectctl devices` says so, now or soon; empty, or what it said last.
  std::string wait_shown(const std::string& wanted, const Arguments& more = {}) {
    std::string last;
    const bool shown = eventually(kSoon, [&] {
      Arguments command = {"devices"};
      command.insert(command.end(), more.begin(), more.end());
      const Ending ending = collector_->ctl(command);
      EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
      last = ending.output;
      return last.find(wanted) != std::string::npos;
    });
    return shown ? "" : "\"" + wanted + "\" is not in:\n" + last;
  }
  // A program on the phone; it works until its listed rounds are done.
  std::unique_ptr<ChildProcess> run_on(const std::string& serial, const std::string& rounds,
                                       const std::string& listen = "abstract:") {
    auto job = std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program("json_iso_codes_counted"), "1", "2", rounds},
        Environment{{"LD_PRELOAD", agent_library()},
                    {"COLLECT_LISTEN", listen},
                    {"COLLECT_FULL", "wait"},
                    {"COUNT_FILE", scratch_ / "count"},
                    // It waits for the collector at its end.
                    {"COLLECT_EXIT_FLUSH_MS", "60000"}});
    adb_.add_socket(serial, listen == "abstract:" ? "collect_agent_" + std::to_string(job->pid())
                                                  : listen.substr(9));
    return job;
  }
  void expect_whole(ChildProcess& job) {
    const Ending& ending = job.wait(kJobLimit);
    ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const auto sessions = sealed_sessions(collector_->root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
  }
  bool has_stored(int pid, uint64_t bytes) {
    return eventually(kSoon, [&] {
      const auto directories = session_directories(collector_->root(), pid);
      if (directories.empty()) return false;
      std::ifstream file(directories[0] + "/thread_0/index.atf", std::ios::ate);
      return file && static_cast<uint64_t>(file.tellg()) >= bytes;
    });
  }

  Scratch scratch_;
  FakeAdbServer adb_;
  std::unique_ptr<CollectorProcess> collector_;
};

TEST_F(Devices, EveryStageIsShownAndTheCableMayComeOut) {
  adb_.start();
  adb_.stop();  // the port is known, and nobody is there
  start_daemon();
  EXPECT_EQ(wait_shown("no adb server at " + adb_.address() + ": start it with `adb start-server`"),
            "");
  adb_.start();
  EXPECT_EQ(wait_shown("no devices"), "");

  FakePhone phone;
  phone.state = "unauthorized";
  phone.attributes = "usb:1-1";
  adb_.plug("R58M", phone);
  EXPECT_EQ(wait_shown("confirm the prompt"), "");
  EXPECT_EQ(wait_shown("blocked"), "");
  adb_.plug("R58M", FakePhone{});
  EXPECT_EQ(wait_shown("COLLECT_LISTEN=abstract:"), "");
  EXPECT_EQ(wait_shown("Sim_Phone  no agent"), "");

  const auto job = run_on("R58M", "2000");
  EXPECT_EQ(wait_shown("serving"), "");
  EXPECT_EQ(wait_shown("\"state\":\"SERVING\"", {"--json"}), "");
  adb_.unplug_after("R58M", 3'000'001);  // in the middle of a frame
  EXPECT_EQ(wait_shown("absent"), "");
  EXPECT_TRUE(job->running()) << "too short a job for this test";
  FakePhone again;
  again.sockets = {"collect_agent_" + std::to_string(job->pid())};
  adb_.plug("R58M", again);  // with another transport id
  EXPECT_EQ(wait_shown("serving"), "");
  expect_whole(*job);
  EXPECT_EQ(wait_shown("no agent"), "") << "the program is over";
  adb_.unplug("R58M");
  EXPECT_EQ(wait_shown("no devices"), "");
}

TEST_F(Devices, TheServerIsStartedAgainWhileItRecords) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  start_daemon();
  const auto job = run_on("R58M", "1500");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 20));
  for (int times = 0; times < 2; ++times) {
    adb_.stop();
    EXPECT_EQ(wait_shown("no adb server"), "");
    adb_.start();
    EXPECT_EQ(wait_shown("serving"), "");
  }
  expect_whole(*job);
}

TEST_F(Devices, TwoPhonesAtOnce) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  FakePhone plain;  // an old one: no shell,v2, no model
  plain.features = "cmd";
  plain.attributes = "usb:1-2";
  adb_.plug("HT12", plain);
  start_daemon();
  const auto first = run_on("R58M", "300");
  const auto second = run_on("HT12", "300");
  expect_whole(*first);
  expect_whole(*second);
}

TEST_F(Devices, AStalledCableLosesNothing) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  // No heartbeat gets through meanwhile: the link may end, what was recorded may not.
  start_daemon();
  const auto job = run_on("R58M", "600");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 20));
  adb_.stall(true);
  EXPECT_TRUE(eventually(kSoon, [&] {
    return collector_->ctl({"agents"}).output.find("recording") == std::string::npos;
  }));
  adb_.stall(false);
  expect_whole(*job);
}

TEST_F(Devices, AnotherProgramUnderTheSameName) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  start_daemon();
  const std::string name = "abstract:collect_agent_" + std::to_string(::getpid());
  const auto first = run_on("R58M", "100", name);
  expect_whole(*first);
  const auto second = run_on("R58M", "100", name);
  expect_whole(*second);
}

TEST_F(Devices, WhatIsDetachedIsLeftAlone) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  start_daemon();
  const auto job = run_on("R58M", "100000");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 16));
  const Ending detached = collector_->ctl({"detach", std::to_string(job->pid())});
  EXPECT_TRUE(detached.exited_with(0)) << detached.errors;
  EXPECT_EQ(wait_shown("detached by command"), "") << collector_->process().errors();
  job->send_signal(SIGKILL);
  EXPECT_EQ(sealed_sessions(collector_->root(), job->pid()).size(), 1u);
}

}  // namespace
}  // namespace collect::e2e
