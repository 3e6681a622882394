// A phone is plugged in and is recorded: a real collectord, a real traced program that listens on
// its abstract socket, and an adb server made up by the test between them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/phones/device_fixture.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/phones/fake_adb_server.h"

namespace collect::e2e {
namespace {

using fakes::FakeAdbServer;
using fakes::FakePhone;

class Devices : public DeviceFixture {
 protected:
  void start_daemon() {
    collector_ = std::make_unique<CollectorProcess>(
        scratch_, Arguments{"--adb", adb_.address(), "--heartbeat-ms", "500"});
  }
  // A program on the phone.
  std::unique_ptr<ChildProcess> run_on(const std::string& serial, const std::string& rounds,
                                       const std::string& listen = "abstract:") {
    auto job = start_program(rounds, listen);
    adb_.add_socket(serial, listen == "abstract:" ? socket_of(*job) : listen.substr(9));
    return job;
  }

  FakeAdbServer adb_;
};

TEST_F(Devices, ShowsEveryStageAndSurvivesUnplugging) {
  adb_.start();
  adb_.stop();  // the port is known, and no one is there
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
  EXPECT_EQ(wait_shown(R"("reported_state":"unauthorized")", {"--json"}), "");
  EXPECT_EQ(wait_shown(R"("advice":"unlock the phone and confirm)", {"--json"}), "");
  EXPECT_EQ(wait_shown(R"("via":"adb")", {"--json", "R58M"}), "") << "by its serial";
  EXPECT_EQ(wait_shown("no device matches", {"another"}), "");
  adb_.plug("R58M", FakePhone{});
  EXPECT_EQ(wait_shown("COLLECT_LISTEN=abstract:"), "");
  EXPECT_EQ(wait_shown("Sim_Phone  no agent"), "");

  const auto job = run_on("R58M", "2000");
  EXPECT_EQ(wait_shown("serving"), "");
  EXPECT_EQ(wait_shown("\"state\":\"serving\"", {"--json"}), "");
  adb_.unplug_after("R58M", 3'000'001);  // in the middle of a frame
  EXPECT_EQ(wait_shown("absent"), "");
  EXPECT_TRUE(job->running()) << "too short a job for this test";
  FakePhone again;
  again.sockets = {socket_of(*job)};
  adb_.plug("R58M", again);  // with another transport id
  EXPECT_EQ(wait_shown("serving"), "");
  expect_whole(*job);
  EXPECT_EQ(wait_shown("no agent"), "") << "the program is over";
  adb_.unplug("R58M");
  EXPECT_EQ(wait_shown("no devices"), "");
}

// A name of its own is nothing that a search finds.
TEST_F(Devices, AttachesAConfiguredEndpointWithItsDevice) {
  adb_.start();
  const std::string config = scratch_ / "collectord.toml";
  const std::string name = "own_name_" + std::to_string(getpid());
  write_text_file(config, "attach = [\"adb:R58M:" + name + "\"]\n");
  collector_ = std::make_unique<CollectorProcess>(
      scratch_, Arguments{"--adb", adb_.address(), "--config", config, "--heartbeat-ms", "500"});
  adb_.plug("R58M", FakePhone{});
  EXPECT_EQ(wait_shown(name), "") << "it is dialled, and no one listens yet";
  const auto job = run_on("R58M", "1500", "abstract:" + name);
  EXPECT_EQ(wait_shown("serving"), "");
  adb_.unplug("R58M");
  EXPECT_EQ(wait_shown("absent"), "");
  FakePhone again;
  again.sockets = {name};
  adb_.plug("R58M", again);
  EXPECT_EQ(wait_shown("serving"), "");
  expect_whole(*job);
}

TEST_F(Devices, ServerIsStartedAgainWhileItRecords) {
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

TEST_F(Devices, StalledCableLosesNothing) {
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

TEST_F(Devices, DoesNotRedialDetachedAgents) {
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

// By the address that the collector shows.
TEST_F(Devices, AttachesDetachedAgentsAgainByAddress) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  start_daemon();
  const auto job = run_on("R58M", "100000");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 16));
  const std::string address = "adb:R58M:" + socket_of(*job);
  EXPECT_NE(collector_->ctl({"agents", "--json"}).output.find(address), std::string::npos);
  ASSERT_TRUE(collector_->ctl({"detach", std::to_string(job->pid())}).exited_with(0));
  EXPECT_EQ(wait_shown("detached by command"), "");
  const Ending attached = collector_->ctl({"attach", address});
  EXPECT_TRUE(attached.exited_with(0)) << attached.errors;
  EXPECT_EQ(wait_shown("serving"), "");
  const Ending started = collector_->ctl({"start", std::to_string(job->pid())});
  EXPECT_TRUE(started.exited_with(0)) << started.errors;
  EXPECT_TRUE(eventually(
      kSoon, [&] { return session_directories(collector_->root(), job->pid()).size() == 2; }));
  std::ifstream file(session_directories(collector_->root(), job->pid())[0] + "/manifest.json");
  const auto process = nlohmann::json::parse(file)["process"];
  EXPECT_EQ(process["route"], address) << process;
  EXPECT_EQ(process["device_model"], "") << "as its agent says, which runs here; " << process;
  const Ending absent = collector_->ctl({"attach", "adb:R58M:collect_agent_absent"});
  EXPECT_FALSE(absent.exited_with(0));
  EXPECT_NE(absent.errors.find("no one listens there"), std::string::npos) << absent.errors;
  job->send_signal(SIGKILL);
}

TEST_F(Devices, CableAndNetworkAreOneDevice) {
  constexpr char kWiFi[] = "192.168.1.5:5555";
  adb_.start();
  FakePhone phone;
  phone.number = "R58M";
  adb_.plug("R58M", phone);
  phone.attributes = "product:sim model:Sim_Phone device:sim";
  adb_.plug(kWiFi, phone);
  start_daemon();
  const auto job = run_on("R58M", "1500");
  adb_.add_socket(kWiFi, socket_of(*job));
  EXPECT_EQ(wait_shown("serving"), "");
  ASSERT_TRUE(has_stored(job->pid(), 1u << 20));
  const std::string shown = collector_->ctl({"devices"}).output;
  EXPECT_EQ(shown.find(kWiFi), std::string::npos) << shown;
  EXPECT_EQ(shown.find("blocked"), std::string::npos) << shown;
  EXPECT_EQ(wait_shown("\"routes\":[\"R58M\",\"" + std::string(kWiFi) + "\"]", {"--json"}), "");
  adb_.unplug("R58M");
  EXPECT_EQ(wait_shown("network"), "");
  EXPECT_EQ(wait_shown("serving"), "") << "it continues without the cable";
  expect_whole(*job);
}

// Through adb the connections of an agent have ways of their own.
TEST_F(Devices, ProgramThatEndsIsGone) {
  adb_.start();
  adb_.plug("R58M", FakePhone{});
  start_daemon();
  for (int times = 0; times < 3; ++times) {
    const auto job = run_on("R58M", "10");
    expect_whole(*job);
    std::string agents;
    EXPECT_TRUE(eventually(kSoon, [&] {
      agents = collector_->ctl({"agents"}).output;
      return agents.find("recording") == std::string::npos;
    }));
    EXPECT_EQ(agents.find("disconnected"), std::string::npos) << agents;
  }
}

}  // namespace
}  // namespace collect::e2e
