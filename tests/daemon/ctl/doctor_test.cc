// collectctl doctor: each check by itself, and the command before servers of the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "daemon/control/control_server.h"
#include "daemon/ctl/doctor/checks.h"
#include "tests/child/forked_child.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/ctl/program_runner.h"
#include "tests/fakes/phones/fake_adb_server.h"
#include "tests/fakes/phones/fake_usbmuxd.h"

namespace collect::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Verdict = Check::Verdict;

TEST(DoctorChecks, Kernels) {
  EXPECT_EQ(check_kernel("6.1.0-13-amd64").verdict, Verdict::kOk);
  EXPECT_EQ(check_kernel("5.14").verdict, Verdict::kOk);
  EXPECT_EQ(check_kernel("5.13.19").verdict, Verdict::kWarning);
  EXPECT_THAT(check_kernel("5.2.99").found, HasSubstr("a process of their own"));
  EXPECT_THAT(check_kernel("4.19.0").found, HasSubstr("a process of their own"));
  EXPECT_EQ(check_kernel("").verdict, Verdict::kWarning);
  EXPECT_EQ(check_kernel("6").verdict, Verdict::kWarning);
}

// What is missing before 5.3 is not what is missing before 5.14.
TEST(DoctorChecks, KernelsAtTheEdges) {
  const auto lacks = [](const char* release) -> std::string {
    const Check check = check_kernel(release);
    if (check.found.find("a process of their own") != std::string::npos) return check.way_out;
    return check.found.find("page by page") == std::string::npos ? "nothing" : check.way_out;
  };
  EXPECT_EQ(lacks("5.2"), "use Linux 5.3 or later");
  EXPECT_EQ(lacks("4.20.1"), "use Linux 5.3 or later");
  EXPECT_EQ(lacks("5.3"), "use Linux 5.14 or later");
  EXPECT_EQ(lacks("5.13"), "use Linux 5.14 or later");
  EXPECT_EQ(lacks("5.14"), "nothing");
  EXPECT_EQ(lacks("6.0"), "nothing");
  EXPECT_EQ(lacks("10.2"), "nothing");
  EXPECT_EQ(check_kernel("6.1.0-13-amd64 \n").found, "Linux 6.1.0-13-amd64");
  for (const char* unknown : {"6.", "6.x", "6-1", "x6.1", ".1"}) {
    EXPECT_EQ(check_kernel(unknown).found,
              "Linux " + std::string(unknown) + ", of no version that is known");
  }
}

TEST(DoctorChecks, RecognisesClocksByWholeWords) {
  const auto verdict = [](const char* cpuinfo) { return check_clock(cpuinfo, "tsc\n").verdict; };
  EXPECT_EQ(verdict("flags : nonstop_tsc constant_tsc"), Verdict::kOk) << "at the end of the text";
  EXPECT_EQ(verdict("flags : nonstop_tsc constant_tsc\nbugs :\n"), Verdict::kOk);
  EXPECT_EQ(verdict("flags : constant_tsc_x constant_tsc nonstop_tsc\n"), Verdict::kOk);
  EXPECT_EQ(verdict("flags : constant_tsc_x nonstop_tsc\n"), Verdict::kWarning);
  EXPECT_EQ(verdict("flags : xconstant_tsc nonstop_tsc\n"), Verdict::kWarning);
  EXPECT_EQ(verdict("flags : constant_tsc\nother : nonstop_tsc\n"), Verdict::kWarning);
  EXPECT_EQ(check_clock("flags : constant_tsc nonstop_tsc\n", "tsc\n").found,
            "the processor's counter is even, clocksource tsc");
  EXPECT_EQ(check_clock("processor : 0\n", "\n").found, "the processor's counter");
}

TEST(DoctorChecks, MemoryAtTheEdges) {
  const Check least = check_memory("MemAvailable: 524288 kB\n", "0\n");
  EXPECT_EQ(least.verdict, Verdict::kOk);
  EXPECT_EQ(least.found, "537 MB available; an agent takes 64 MiB");
  EXPECT_EQ(check_memory("MemAvailable: 524287 kB\n", "2\n").way_out,
            "end something, or use --buffer");
  EXPECT_THAT(check_memory("MemAvailable: 524288 kB\n", "2 \n").found,
              HasSubstr("vm.overcommit_memory is 2"));
  EXPECT_EQ(check_memory("MemAvailable: much\n", "0\n").found, "the system does not say how much");
}

// Where the collector that runs writes is its own affair; what is wrong elsewhere is a problem.
TEST(DoctorChecks, StoreThatCannotBe) {
  for (const bool is_served : {true, false}) {
    const std::vector<Check> checks = check_store("/proc/self/x", is_served);
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_EQ(checks[0].what, "disk space");
    EXPECT_EQ(checks[0].verdict, Verdict::kProblem);
  }
}

TEST(DoctorChecks, Clocks) {
  const std::string even = "processor : 0\nflags\t\t: fpu tsc constant_tsc nopl nonstop_tsc sse\n";
  EXPECT_EQ(check_clock(even, "tsc\n").verdict, Verdict::kOk);
  EXPECT_EQ(check_clock("processor : 0\nflags\t\t: fpu tsc constant_tsc\n", "hpet\n").verdict,
            Verdict::kWarning);
  EXPECT_EQ(check_clock("flags : nonstop_tsc_s3 constant_tsc\n", "tsc").verdict, Verdict::kWarning);
  EXPECT_EQ(check_clock("processor : 0\nFeatures : fp asimd\n", "arch_sys_counter\n").found,
            "arch_sys_counter");
}

TEST(DoctorChecks, Memory) {
  EXPECT_EQ(check_memory("MemTotal: 1 kB\nMemAvailable:    8000000 kB\n", "0\n").verdict,
            Verdict::kOk);
  EXPECT_EQ(check_memory("MemAvailable: 8000000 kB\n", "2\n").verdict, Verdict::kWarning);
  EXPECT_EQ(check_memory("MemAvailable: 400000 kB\n", "0\n").verdict, Verdict::kWarning);
  EXPECT_EQ(check_memory("MemTotal: 1 kB\n", "0\n").verdict, Verdict::kWarning);
}

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    runner_.environment["ADB_SERVER_SOCKET"] = "tcp:127.0.0.1:9";
    runner_.environment["USBMUXD_SOCKET_ADDRESS"] = "UNIX:" + path("usbmuxd");
    runner_.environment["COLLECT_CONTROL"] = "";
    runner_.environment["COLLECT_AGENT_LIBRARY"] = FAKE_AGENT_LIBRARY;
    runner_.environment["COLLECT_COLLECTORD"] = FAKE_COLLECTORD_PROGRAM;
  }
  std::string path(const std::string& name) const { return (runner_.directory() / name).string(); }
  nlohmann::json doctor(int code, std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"doctor", "--json"});
    const Ran ran = runner_.run(arguments);
    EXPECT_EQ(ran.exit_code, code) << ran.out << ran.err;
    return nlohmann::json::parse(ran.out);
  }
  static nlohmann::json check(const nlohmann::json& all, const std::string& what) {
    for (const auto& one : all["checks"]) {
      if (one["what"].get<std::string>().starts_with(what)) return one;
    }
    ADD_FAILURE() << "no " << what << " in " << all;
    return {};
  }

  ProgramRunner runner_;
};

TEST(DoctorChecks, ReportsWhoMayAttachToRunningProcesses) {
  EXPECT_EQ(check_attach("", false).verdict, Verdict::kOk) << "no Yama";
  EXPECT_EQ(check_attach("0\n", false).found, "your own processes");
  EXPECT_EQ(check_attach("0\n", true).found, "any process");
  const Check children = check_attach("1\n", false);
  EXPECT_EQ(children.verdict, Verdict::kWarning);
  EXPECT_EQ(children.found, "root alone may (kernel.yama.ptrace_scope is 1)");
  EXPECT_THAT(children.way_out, HasSubstr("sysctl -w kernel.yama.ptrace_scope=0"));
  EXPECT_EQ(check_attach("2\n", true).verdict, Verdict::kOk);
  EXPECT_EQ(check_attach("2\n", false).verdict, Verdict::kWarning);
  EXPECT_EQ(check_attach("3\n", true).verdict, Verdict::kWarning);
}

TEST(DoctorSwitches, SaysWhetherTheyAreEstimated) {
  EXPECT_EQ(check_switches(true, "2\n").verdict, Verdict::kOk);
  EXPECT_THAT(check_switches(false, "3\n").found, HasSubstr("kernel.perf_event_paranoid is 3"));
  EXPECT_THAT(check_switches(false, "3\n").way_out, HasSubstr("sysctl"));
  EXPECT_THAT(check_switches(false, "2\n").found, HasSubstr("perf_event_open is refused"));
  EXPECT_THAT(check_switches(false, "").way_out, HasSubstr("seccomp"));
}

TEST_F(DoctorTest, SaysWhatKeepsItFromRecording) {
  nlohmann::json all = doctor(0, {"-o", path("not/there/yet")});
  EXPECT_TRUE(all["works"]);
  EXPECT_EQ(check(all, "collector")["verdict"], "ok");
  EXPECT_EQ(check(all, "agent, this machine")["verdict"], "ok");
  EXPECT_EQ(check(all, "agent, Android arm64-v8a")["verdict"], "warning");
  EXPECT_EQ(check(all, "adb server")["verdict"], "warning");
  EXPECT_THAT(check(all, "adb server")["found"], HasSubstr("adb start-server"));
  EXPECT_THAT(check(all, "usbmuxd")["found"], HasSubstr("no usbmuxd at unix:" + path("usbmuxd")));
  EXPECT_EQ(check(all, "kernel")["verdict"], "ok");
  EXPECT_THAT(check(all, "disk speed")["found"], HasSubstr("written and synced"));
  // Nothing of it stays.
  EXPECT_FALSE(std::filesystem::exists(path("not")));
  for (const auto& entry : std::filesystem::directory_iterator(runner_.directory())) {
    EXPECT_LT(std::filesystem::file_size(entry), 1u << 20) << entry.path();
  }

  runner_.environment["COLLECT_AGENT_LIBRARY"] = path("nothing.so");
  runner_.environment["COLLECT_COLLECTORD"] = path("nothing");
  all = doctor(1);
  EXPECT_FALSE(all["works"]);
  EXPECT_EQ(check(all, "collector")["verdict"], "problem");
  EXPECT_THAT(check(all, "agent, this machine")["way_out"], HasSubstr("COLLECT_AGENT_LIBRARY"));
  runner_.environment["COLLECT_AGENT_LIBRARY"] = FAKE_AGENT_LIBRARY;
  runner_.environment["COLLECT_COLLECTORD"] = FAKE_COLLECTORD_PROGRAM;

  all = doctor(1, {"-o", "/proc/self"});
  EXPECT_EQ(check(all, "disk space")["verdict"], "problem");

  const Ran text = runner_.run({"doctor"});
  EXPECT_EQ(text.exit_code, 0) << text.out;
  EXPECT_THAT(text.out, AllOf(HasSubstr("VERDICT"), HasSubstr("programs of this machine can be"),
                              HasSubstr("that is only for apps on Android phones")));
}

TEST_F(DoctorTest, KnowsServersThatAnswer) {
  fakes::FakeAdbServer adb;
  adb.start();
  adb.plug("R58M", {});
  runner_.environment["ADB_SERVER_SOCKET"] = "tcp:" + adb.address();
  fakes::FakeUsbmuxd usbmuxd(path("usbmuxd"));
  usbmuxd.attach("00008110-001A2B3C4D5E801E");
  usbmuxd.attach("00008030-000A11112222802E");
  control::FakeCollector collector;
  auto server = control::ControlServer::start("127.0.0.1:0", collector);
  ASSERT_TRUE(server.ok());
  nlohmann::json all = doctor(0, {"--control", (*server)->address(), "-o", path("")});
  EXPECT_THAT(check(all, "adb server")["found"], ::testing::EndsWith("version 1.0.41, 1 device"));
  EXPECT_THAT(check(all, "usbmuxd")["found"], ::testing::EndsWith(", 2 devices"));
  EXPECT_EQ(check(all, "control " + (*server)->address())["found"],
            "a collector answers; it records to /data");
  EXPECT_EQ(all["android"]["devices"][0]["serial"], "R58M");
  EXPECT_EQ(all["ios"]["devices"].size(), 2u);
  // A phone that is named has to be one that can be recorded on.
  all = doctor(1, {"--serial", "R58M", "--udid", "00008110-001A2B3C4D5E801E"});
  EXPECT_EQ(check(all, "Android phone R58M")["verdict"], "problem");
  EXPECT_EQ(check(all, "iPhone 00008110-001A2B3C4D5E801E")["verdict"], "ok");
  EXPECT_EQ(check(doctor(1, {"-u", "0"}), "iPhone 0")["found"], "it is not connected");
  (*server)->shutdown(control::ControlServer::kShutdownDeadline);
  all = doctor(1, {"--control", (*server)->address()});
  EXPECT_EQ(check(all, "control")["verdict"], "problem");
  usbmuxd.stop();
  all = doctor(0);
  EXPECT_EQ(check(all, "usbmuxd")["verdict"], "warning");
}

TEST_F(DoctorTest, FewOpenFilesAreAProblem) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto with = [](uint64_t most) {
    // A hard limit can't be raised again: in a child alone.
    const child::Ending ending = child::forked([most] {
      const rlimit few{most, most};
      setrlimit(RLIMIT_NOFILE, &few);
      return static_cast<int>(check_open_files().verdict);
    });
    return static_cast<Verdict>(ending.exit_code);
  };
  EXPECT_EQ(with(2'047), Verdict::kProblem);
  EXPECT_EQ(with(2'048), Verdict::kWarning);
  EXPECT_EQ(with(16'383), Verdict::kWarning);
  if (before.rlim_max >= 16'384) {
    EXPECT_EQ(with(16'384), Verdict::kOk);
  }
}

}  // namespace
}  // namespace collect::ctl
