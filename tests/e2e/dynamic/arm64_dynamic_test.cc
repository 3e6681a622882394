// Programs for arm64 that no one prepared, run by qemu with a plan that this machine's planner made
// of them. Built by the test agent_arm64_build; without compiler or emulator everything here is
// skipped.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "daemon/patch/plan_maker.h"
#include "formats/core/text/hex.h"
#include "formats/patch/plan_view.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;

constexpr seconds kLimit{60};
constexpr char kSysroot[] = "/usr/aarch64-linux-gnu";
constexpr size_t kOwnFunctions = 16;  // of unprepared.c and unprepared_registers.S

std::string cross(const std::string& path) {
  return std::string(E2E_CROSS) + "/arm64/" + path;
}

class Arm64Dynamic : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& needed :
         {std::string("/usr/bin/qemu-aarch64-static"), cross("bin/unprepared")}) {
      if (!fs::exists(needed)) GTEST_SKIP() << "skipped: there is no " << needed;
    }
    fs::create_directory(scratch_ / "plans");
    ASSERT_EQ(::chmod((scratch_ / "plans").c_str(), 0700), 0);
    fs::create_directory(scratch_ / "sysroot");
    // The emulator's own threads would be threads of the program to the agent, in which it then
    // changes no code. What is below -L comes before the machine's own: a process of one thread.
    for (const auto& entry : fs::directory_iterator(kSysroot)) {
      fs::create_symlink(entry.path(), scratch_ / ("sysroot/" + entry.path().filename().string()));
    }
    fs::create_directories(scratch_ / "sysroot/proc/self/task/1");
  }

  void add_plan(const std::string& path) {
    const auto plan = patch::plan_of_file(path);
    ASSERT_TRUE(plan.ok()) << path << ": " << plan.error().message;
    patch::PlanView view;
    ASSERT_EQ(view.parse(*plan), nullptr);
    const Bytes id = Bytes(view.header().build_id).first(view.header().build_id_bytes);
    write_text_file(scratch_ / ("plans/" + hex_bytes(id) + ".plan"),
                    std::string(plan->begin(), plan->end()));
  }

  Ending run_plain(const std::string& name) {
    return run(scratch_.path(), {"qemu-aarch64-static", "-L", kSysroot, cross("bin/" + name)});
  }
  // Its command, and its variables.
  Arguments traced_command(const std::string& name) {
    return {"qemu-aarch64-static",
            "-L",
            scratch_ / "sysroot",
            "-E",
            "LD_PRELOAD=" + cross("lib/libcollect_agent.so"),
            cross("bin/" + name)};
  }
  Environment traced_environment(CollectorProcess& collector, Environment more) {
    Environment environment = collector.tracing();
    environment["COLLECT_FULL"] = "wait";
    environment["COLLECT_PLANS"] = scratch_ / "plans";
    environment["LD_PRELOAD"] = "";
    environment.merge(more);
    return environment;
  }
  Ending run_traced(const std::string& name, CollectorProcess& collector, const Environment& more,
                    int& pid) {
    ChildProcess job(scratch_.path(), traced_command(name), traced_environment(collector, more));
    pid = job.pid();
    return job.wait(kLimit);
  }

  Scratch scratch_;
};

// By thread id, as the program counts them.
std::map<uint32_t, uint64_t> own_calls(const std::string& output) {
  std::map<uint32_t, uint64_t> calls;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    uint32_t id = 0;
    if (words >> word >> id && word == "thread") words >> calls[id];
  }
  return calls;
}

// What does not differ between two runs.
std::string results(const std::string& output) {
  return output.substr(0, output.find("thread"));
}

void expect_own_counts(const RecordedSession& session, uint32_t main_thread,
                       std::map<uint32_t, uint64_t> expected) {
  std::set<uint64_t> functions;
  for (uint32_t n = 0; n < session.totals().threads; ++n) {
    session.for_each_event(
        n, [&](const RecordedSession::StoredEvent& event) { functions.insert(event.function_id); });
  }
  // Those that the compiler's start files bring along are called once, before main and behind it.
  ASSERT_GE(functions.size(), kOwnFunctions);
  expected[main_thread] += functions.size() - kOwnFunctions;
  std::map<uint32_t, uint64_t> recorded;
  for (const CountedThread& thread : session.count_threads()) {
    EXPECT_EQ(thread.calls, thread.returns);
    recorded[thread.thread_id] = thread.calls;
  }
  EXPECT_EQ(recorded, expected);
  EXPECT_EQ(session.totals().lost, 0u);
}

TEST_F(Arm64Dynamic, CallsAreThoseThatTheProgramCounts) {
  add_plan(cross("bin/unprepared"));
  const Ending plain = run_plain("unprepared");
  ASSERT_TRUE(plain.exited_with(7)) << plain.describe() << plain.errors;
  EXPECT_NE(plain.output.find("wrong 0\n"), std::string::npos) << plain.output;
  for (const char* detail : {"off", "on"}) {
    SCOPED_TRACE(detail);
    CollectorProcess collector(scratch_);
    int pid = 0;
    const Ending traced = run_traced("unprepared", collector, {{"COLLECT_DETAIL", detail}}, pid);
    ASSERT_TRUE(traced.exited_with(7)) << traced.describe() << traced.errors;
    EXPECT_EQ(results(traced.output), results(plain.output)) << "with registers that are not kept";
    const std::map<uint32_t, uint64_t> calls = own_calls(traced.output);
    ASSERT_EQ(calls.size(), 5u);
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), pid);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    expect_own_counts(sessions[0], static_cast<uint32_t>(pid), calls);
    const Ending verified = collector.ctl({"verify", sessions[0].directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }
}

// Functions that sign their return address have done so before they are recorded.
TEST_F(Arm64Dynamic, ReturnAddressesAreRecordedWithoutTheirSignature) {
  add_plan(cross("bin/unprepared"));
  CollectorProcess collector(scratch_);
  int pid = 0;
  const Ending traced = run_traced("unprepared", collector, {{"COLLECT_DETAIL", "on"}}, pid);
  ASSERT_TRUE(traced.exited_with(7)) << traced.describe() << traced.errors;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), pid);
  ASSERT_EQ(sessions.size(), 1u);
  constexpr size_t kLines = 2000;
  const Ending dumped = collector.ctl(
      {"dump", "--json", "--detail", "--limit", std::to_string(kLines), sessions[0].directory()});
  ASSERT_TRUE(dumped.exited_with(0)) << dumped.errors;
  std::istringstream lines(dumped.output);
  size_t seen = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (!event.contains("detail")) continue;
    const auto address =
        std::stoull(event["detail"]["registers"]["lr"].get<std::string>(), nullptr, 16);
    ASSERT_EQ(address >> 48, 0u) << line;
    ++seen;
  }
  EXPECT_GT(seen, kLines / 2);
}

TEST_F(Arm64Dynamic, IdleSledsRecordNothing) {
  add_plan(cross("bin/unprepared"));
  const Ending plain = run_plain("unprepared");
  CollectorProcess collector(scratch_);
  int pid = 0;
  const Ending traced = run_traced("unprepared", collector, {{"COLLECT_START", "idle"}}, pid);
  ASSERT_TRUE(traced.exited_with(7)) << traced.describe() << traced.errors;
  EXPECT_EQ(results(traced.output), results(plain.output));
  EXPECT_TRUE(session_directories(collector.root()).empty());
}

// One word of each sled is written while five threads run it.
TEST_F(Arm64Dynamic, SledsAreSwitchedWhileThreadsRunThem) {
  constexpr int kRecordings = 6;
  add_plan(cross("bin/unprepared"));
  const Ending plain = run_plain("unprepared");
  CollectorProcess collector(scratch_);
  Arguments command = traced_command("unprepared");
  command.push_back(scratch_ / "go-on");
  Environment environment = traced_environment(collector, {{"COLLECT_START", "idle"}});
  environment["COLLECT_FULL"] = "drop";
  environment["COLLECT_DRAIN"] = "thread";
  ChildProcess job(scratch_.path(), command, environment);
  const std::string pid = std::to_string(job.pid());
  ASSERT_TRUE(eventually(
      kLimit, [&] { return collector.ctl({"agents"}).output.find(pid) != std::string::npos; }));
  for (int i = 0; i < kRecordings; ++i) {
    for (const char* order : {"start", "stop"}) {
      ASSERT_TRUE(eventually(
          kLimit,
          [&] { return collector.ctl({order}).output.find("pid_" + pid) != std::string::npos; }))
          << order << i;
    }
  }
  write_text_file(scratch_ / "go-on", "");
  const Ending& ending = job.wait(kLimit);
  ASSERT_TRUE(ending.exited_with(7)) << ending.describe() << ending.errors;
  EXPECT_EQ(results(ending.output), results(plain.output));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), size_t{kRecordings});
  for (const RecordedSession& session : sessions) {
    EXPECT_GT(session.totals().events, 0u) << session.directory();
    const Ending verified = collector.ctl({"verify", session.directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }
}

// The program and the C++ library, in which exceptions leave frames.
TEST_F(Arm64Dynamic, ExceptionsLeaveFramesAsWithoutAPlan) {
  add_plan(cross("bin/unprepared_exceptions"));
  add_plan(std::string(kSysroot) + "/lib/libstdc++.so.6");
  const Ending plain = run_plain("unprepared_exceptions");
  ASSERT_TRUE(plain.exited_with(5)) << plain.describe() << plain.errors;
  CollectorProcess collector(scratch_);
  int pid = 0;
  const Ending traced = run_traced("unprepared_exceptions", collector, {}, pid);
  ASSERT_TRUE(traced.exited_with(5)) << traced.describe() << traced.errors;
  EXPECT_EQ(traced.output, plain.output);
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), pid);
  ASSERT_EQ(sessions.size(), 1u);
  uint64_t calls = 0;
  uint64_t returns = 0;
  uint64_t exceptions = 0;
  sessions[0].for_each_event(0, [&](const RecordedSession::StoredEvent& event) {
    if (!event.is_return) {
      ++calls;
    } else if (event.is_exception) {
      ++exceptions;
    } else {
      ++returns;
    }
  });
  EXPECT_EQ(calls, returns + exceptions);
  // 500 times deep(n), n being 0 to 6 in turn: n + 1 frames.
  uint64_t left = 0;
  for (int i = 0; i < 500; ++i) left += static_cast<uint64_t>(i % 7) + 1;
  EXPECT_GE(exceptions, left);
  EXPECT_GT(calls, 50000u) << "the library's functions are among them";
}

}  // namespace
}  // namespace collect::e2e
