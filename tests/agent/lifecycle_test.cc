// The agent's beginning and end in a program that links it in: by its environment, at exit, over a
// fork. The program is this one, started again with a mode of its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "collect/agent.h"
#include "tests/agent/scripted_collector.h"

namespace collect::agent {
namespace {

using testing::HasSubstr;
using testing::Not;
using wire::FrameType;

constexpr uint64_t kPairs = 1000;
constexpr uint32_t kSilentMs = 60'000;  // a script that serves one process says nothing to another
constexpr char kMode[] = "LIFECYCLE_MODE";

void called_function() {}

void make_events(uint64_t pairs) {
  const auto* function = reinterpret_cast<const void*>(&called_function);
  for (uint64_t i = 0; i < pairs; ++i) {
    collect_enter(function, function);
    collect_exit(function, function);
  }
}

[[noreturn]] void run_mode(const std::string& mode) {
  alarm(60);
  make_events(kPairs);
  if (mode == "at once") _exit(7);
  if (mode == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      make_events(2 * kPairs);
      std::exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::exit(WEXITSTATUS(status));
  }
  if (mode == "vfork") {
    // It has the parent's memory, and must not end the parent's agent.
    const pid_t child = vfork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    make_events(kPairs);
  }
  if (mode == "stop") {
    collect_agent_stop(20'000);
    make_events(kPairs);
    collect_agent_stop(20'000);
  }
  if (mode == "status") {
    const std::string status = collect_agent_status();
    if (write(STDERR_FILENO, status.data(), status.size()) < 0) std::exit(1);
  }
  std::exit(7);
}

// Not a test of its own: what the others start.
TEST(Program, DISABLED_Runs) {
  run_mode(std::getenv(kMode));
}

using Environment = std::vector<std::string>;

class LifecycleTest : public testing::Test {
 protected:
  void start(const std::string& mode, Environment environment) {
    ASSERT_EQ(pipe(output), 0);
    environment.push_back(std::string(kMode) + "=" + mode);
    for (const char* kept : {"MUTANT_ID", "MUTANT_REACH", "TMPDIR"}) {
      const char* const value = std::getenv(kept);
      if (value != nullptr) environment.push_back(std::string(kept) + "=" + value);
    }
    program = fork();
    if (program != 0) {
      close(output[1]);
      return;
    }
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);  // what GoogleTest says
    dup2(output[1], STDERR_FILENO);
    close(output[0]);
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    char name[] = "lifecycle", filter[] = "--gtest_filter=Program.DISABLED_Runs",
         disabled[] = "--gtest_also_run_disabled_tests", brief[] = "--gtest_brief=1";
    char* arguments[] = {name, filter, disabled, brief, nullptr};
    execve("/proc/self/exe", arguments, variables.data());
    _exit(99);
  }
  Environment connecting() const { return {"COLLECT_CONNECT=" + collector.address()}; }

  // What was written to standard error.
  std::string end_of_program(int code) {
    std::string text;
    char bytes[4096];
    for (ssize_t got = 0; (got = read(output[0], bytes, sizeof bytes)) > 0;) {
      text.append(bytes, static_cast<size_t>(got));
    }
    close(output[0]);
    int status = 0;
    EXPECT_EQ(waitpid(program, &status, 0), program);
    EXPECT_TRUE(WIFEXITED(status)) << status << text;
    EXPECT_EQ(WEXITSTATUS(status), code) << text;
    return text;
  }
  // Everything up to the end of the recording of the pair that is there, which is sealed.
  wire::RecordingEnd take_recording() {
    const GotFrame frame = collector.take_until(FrameType::kRecordingEnd);
    wire::RecordingEnd end;
    EXPECT_TRUE(end.ParseFromString(frame.body));
    wire::Ack sealed = collector.ack();
    sealed.set_recording_ended(end.recording());
    collector.control.send(FrameType::kAck, sealed);
    EXPECT_TRUE(collector.control.next_of(FrameType::kBye));
    collector.control.close();
    collector.data.close();
    return end;
  }
  uint64_t stored() {
    uint64_t records = 0;
    for (const auto& [stream_id, end] : collector.closed) {
      EXPECT_EQ(collector.lane(stream_id, 0).next, end.index_count());
      EXPECT_EQ(end.index_lost(), 0u);
      records += end.index_count();
    }
    return records;
  }

  ScriptedCollector collector;
  pid_t program = -1;
  int output[2] = {-1, -1};
};

TEST_F(LifecycleTest, StartsWithTheProgramAndShipsTheRestAtItsEnd) {
  for (const char* mode : {"plain", "at once", "vfork"}) {
    start(mode, connecting());
    collector.welcome_pair(false, kSilentMs);
    const wire::RecordingEnd end = take_recording();
    EXPECT_EQ(end_of_program(7), "");
    EXPECT_EQ(stored(), (mode == std::string("vfork") ? 4 : 2) * kPairs) << mode;
    EXPECT_EQ(end.reason(), "exit");
    EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
    EXPECT_EQ(end.process_end().exit_code(), 7) << mode;
    EXPECT_EQ(collector.data_hello.pid(), static_cast<uint32_t>(program));
    collector.forget();
  }
}

TEST_F(LifecycleTest, WhatIsStoppedStaysSo) {
  start("stop", connecting());
  collector.welcome_pair(false, kSilentMs);
  EXPECT_FALSE(take_recording().has_process_end());
  EXPECT_EQ(end_of_program(7), "");
  EXPECT_EQ(stored(), 2 * kPairs);
}

// The child is a process of its own, with a pair and a recording of its own.
TEST_F(LifecycleTest, AForkedChildBeginsAnew) {
  start("fork", connecting());
  collector.welcome_pair(false, kSilentMs);
  const std::string parent_id = collector.data_hello.process_id();
  Peer control = std::move(collector.control);
  Peer data = std::move(collector.data);
  collector.welcome_pair(false, kSilentMs);
  EXPECT_NE(collector.data_hello.process_id(), parent_id);
  EXPECT_EQ(collector.data_hello.parent_pid(), static_cast<uint32_t>(program));
  EXPECT_NE(collector.data_hello.pid(), static_cast<uint32_t>(program));
  const wire::RecordingEnd of_child = take_recording();
  EXPECT_EQ(of_child.process_end().exit_code(), 3);
  EXPECT_EQ(stored(), 4 * kPairs) << "nothing of the parent's";
  collector.forget();
  collector.control = std::move(control);
  collector.data = std::move(data);
  EXPECT_EQ(take_recording().process_end().exit_code(), 3);
  EXPECT_EQ(end_of_program(3), "");
  EXPECT_EQ(stored(), 2 * kPairs);
}

TEST_F(LifecycleTest, OneProcessAndNotItsChildren) {
  Environment environment = connecting();
  environment.push_back("COLLECT_CHILD_OF=" + std::to_string(getpid()));
  start("fork", environment);
  collector.welcome_pair(false, kSilentMs);
  EXPECT_EQ(take_recording().process_end().exit_code(), 3);
  EXPECT_EQ(end_of_program(3), "");
  EXPECT_EQ(stored(), 2 * kPairs);
}

TEST_F(LifecycleTest, SaysWhyItIsOff) {
  struct Case {
    Environment variables;
    const char* status;
    const char* log;
  };
  const std::string connect = "COLLECT_CONNECT=127.0.0.1:1";
  for (const Case& given :
       {Case{{}, "the agent was not started", ""},
        Case{{"COLLECT_LOG=1", connect, "COLLECT_FULL=never"},
             "the agent was not started",
             "COLLECT_FULL must be drop, overwrite or wait"},
        Case{{"COLLECT_LOG=1", connect, "COLLECT_CHILD_OF=1"},
             "the agent is off: this process was not to be recorded",
             "the agent is off: this process was not to be recorded"},
        Case{{"COLLECT_LOG=1", "COLLECT_CONECT=x"}, "the agent was not started", "COLLECT_CONNECT"},
        Case{{"COLLECT_LOG=1", "COLLECT_CONNECT=nonsense"},
             "the agent is off: the address is not host:port",
             "the address is not host:port"}}) {
    start("status", given.variables);
    const std::string text = end_of_program(7);
    const size_t status = text.rfind("the agent ");
    ASSERT_NE(status, std::string::npos) << text;
    EXPECT_THAT(text.substr(status), HasSubstr(given.status));
    EXPECT_THAT(text, HasSubstr(given.log));
    if (given.log[0] == '\0') {
      EXPECT_EQ(text, given.status);
    } else {
      EXPECT_THAT(text, HasSubstr("collect agent (" + std::to_string(program) + "): "));
    }
  }
  // Without COLLECT_LOG nothing is said.
  start("status", {connect, "COLLECT_FULL=never"});
  EXPECT_EQ(end_of_program(7), "the agent was not started");
  start("status", {"COLLECT_CONECT=x"});
  EXPECT_EQ(end_of_program(7), "the agent was not started");
}

TEST_F(LifecycleTest, AProgramWithoutACollectorIsNotHeldUp) {
  Environment environment{"COLLECT_LISTEN=tcp:0", "COLLECT_LOG=1"};
  start("status", environment);
  const std::string text = end_of_program(7);
  EXPECT_THAT(text, HasSubstr("the agent was stopped"));
  EXPECT_THAT(text, Not(HasSubstr("connected to")));
}

}  // namespace
}  // namespace collect::agent
