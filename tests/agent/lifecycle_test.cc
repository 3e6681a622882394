// When the agent of a program that links it in starts and ends: by its environment, by the C API,
// in forked children, and at the end of the process. The program is this one, run once more.
#include "agent/lifecycle.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/drain/drain.h"
#include "agent/ring/recorder.h"
#include "collect/agent.h"
#include "tests/agent/scripted_collector.h"
#include "tests/child/child_process.h"

namespace collect::agent {
namespace {

using testing::HasSubstr;
using wire::FrameType;

constexpr uint32_t kSilentMs = 60'000;  // a script says nothing meanwhile

void called_function() {}

void make_events(uint64_t pairs) {
  const auto* function = reinterpret_cast<const void*>(&called_function);
  for (uint64_t i = 0; i < pairs; ++i) {
    collect_enter(function, function);
    collect_exit(function, function);
  }
}

// What the program does when it is run once more.
TEST(Program, DISABLED_SaysItsStatus) {
  std::printf("status: %s\n", collect_agent_status());
}
TEST(Program, DISABLED_RecordsAndEnds) {
  make_events(10);
  std::exit(7);
}
TEST(Program, DISABLED_RecordsAndLeaves) {
  make_events(10);
  _exit(9);
}
TEST(Program, DISABLED_RecordsAndLeavesByTheOtherName) {
  make_events(10);
  _Exit(11);
}
TEST(Program, DISABLED_ForksAChildThatRecords) {
  make_events(10);
  // The pair of the parent is up before that of the child begins.
  for (int i = 0; i < 60'000 && !drain_connected(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const pid_t child = fork();
  if (child == 0) {
    make_events(5);
    std::printf("child: %d %s\n", agent_running() ? 1 : 0, collect_agent_status());
    std::exit(3);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  make_events(10);
  std::exit(WEXITSTATUS(status));
}
TEST(Program, DISABLED_ForksAChildThatRecordsNothing) {
  make_events(10);
  const pid_t child = fork();
  if (child == 0) std::exit(3);
  (void)waitpid(child, nullptr, 0);
  make_events(10);
  std::exit(0);
}
TEST(Program, DISABLED_BorrowsItsMemoryToAChild) {
  make_events(10);
  const pid_t child = vfork();
  if (child == 0) {
    make_events(1);
    _exit(3);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  make_events(10);
  std::exit(WEXITSTATUS(status));
}

class LifecycleTest : public testing::Test {
 protected:
  using Variables = std::vector<std::string>;  // "NAME=value"

  ~LifecycleTest() override { close(output_); }

  void start(const std::string& what, const Variables& variables) {
    child::Environment environment;
    for (const std::string& variable : variables) {
      const size_t end = variable.find('=');
      environment[variable.substr(0, end)] = variable.substr(end + 1);
    }
    int output[2];
    ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
    program.emplace(child::shared_scratch().path(),
                    child::Arguments{"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                     "--gtest_filter=Program.DISABLED_" + what},
                    environment, child::Setting{.output = output[1], .errors = output[1]});
    close(output[1]);
    close(std::exchange(output_, output[0]));
  }
  // Its exit code. What it said is in `said`.
  int finish() {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = read(output_, bytes, sizeof bytes)) > 0) said.append(bytes, bytes + got);
    return program->wait().exit_code;
  }
  std::string status_with(const Variables& variables) {
    said.clear();
    start("SaysItsStatus", variables);
    EXPECT_EQ(finish(), 0) << said;
    const size_t begin = said.find("status: ");
    if (begin == std::string::npos) return said;
    return said.substr(begin + 8, said.find('\n', begin) - begin - 8);
  }
  std::string address() const { return "COLLECT_CONNECT=" + collector.address(); }

  // Everything of the process that connects next, up to the end of its recording.
  wire::RecordingEnd take_all() {
    collector.welcome_pair(false, kSilentMs);
    wire::RecordingEnd end;
    EXPECT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
    wire::Ack sealed = collector.ack();
    sealed.set_recording_ended(end.recording());
    collector.control.send(FrameType::kAck, sealed);
    EXPECT_TRUE(collector.control.next_of(FrameType::kBye));
    return end;
  }
  uint64_t recorded() const {
    uint64_t records = 0;
    for (const auto& [stream, end] : collector.closed) records += end.index_count();
    return records;
  }

  ScriptedCollector collector;
  std::optional<child::ChildProcess> program;
  std::string said;

 private:
  int output_ = -1;
};

TEST_F(LifecycleTest, IsOffWithoutAnAddress) {
  EXPECT_EQ(status_with({}), "the agent was not started");
  EXPECT_EQ(status_with({"COLLECT_LOG=1"}), "the agent was not started");
  EXPECT_THAT(said, testing::Not(HasSubstr("collect agent (")));
}

TEST_F(LifecycleTest, IsOffWithASettingThatIsNone) {
  EXPECT_EQ(status_with({address(), "COLLECT_FULL=maybe"}), "the agent was not started");
  EXPECT_THAT(said, testing::Not(HasSubstr("COLLECT_FULL must")));
  EXPECT_EQ(status_with({address(), "COLLECT_FULL=maybe", "COLLECT_LOG=1"}),
            "the agent was not started");
  EXPECT_THAT(said, HasSubstr("): COLLECT_FULL must be drop, overwrite or wait\n"));
}

TEST_F(LifecycleTest, IsOffWithAnAddressThatIsNone) {
  EXPECT_EQ(status_with({"COLLECT_CONNECT=nowhere"}),
            "the agent is off: the address is not host:port, unix:/path or abstract:name");
}

TEST_F(LifecycleTest, UnknownVariablesAreNamedInTheLog) {
  (void)status_with({"COLLECT_CONECT=x"});
  EXPECT_THAT(said, testing::Not(HasSubstr("unknown variable")));
  (void)status_with({"COLLECT_CONECT=x", "COLLECT_LOG=1"});
  EXPECT_THAT(said,
              HasSubstr("): unknown variable COLLECT_CONECT; did you mean COLLECT_CONNECT?\n"));
}

TEST_F(LifecycleTest, ChildOfAnotherParentIsNotRecorded) {
  const std::string off = "the agent is off: this process was not to be recorded";
  EXPECT_EQ(status_with({address(), "COLLECT_CHILD_OF=1", "COLLECT_LOG=1"}), off);
  EXPECT_THAT(said, HasSubstr("): " + off + "\n"));
  EXPECT_EQ(status_with({address(), "COLLECT_CHILD_OF=1"}), off);
  EXPECT_THAT(said, testing::Not(HasSubstr("): ")));
  EXPECT_NE(status_with({address(), "COLLECT_CHILD_OF=" + std::to_string(getpid()),
                         "COLLECT_EXIT_FLUSH_MS=0"}),
            off);
}

TEST_F(LifecycleTest, EndByExitHasItsCode) {
  start("RecordsAndEnds", {address()});
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(finish(), 7) << said;
  EXPECT_EQ(end.reason(), "exit");
  ASSERT_TRUE(end.has_process_end());
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
  EXPECT_EQ(end.process_end().exit_code(), 7);
  EXPECT_EQ(recorded(), 20u);
  EXPECT_EQ(collector.control_hello.parent_pid(), static_cast<uint32_t>(getpid()));
}

TEST_F(LifecycleTest, SoHasOneWithoutDestructors) {
  for (const auto& [what, code] :
       {std::pair{"RecordsAndLeaves", 9}, {"RecordsAndLeavesByTheOtherName", 11}}) {
    collector.forget();
    start(what, {address()});
    const wire::RecordingEnd end = take_all();
    EXPECT_EQ(finish(), code) << said;
    EXPECT_EQ(end.reason(), "exit");
    EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
    EXPECT_EQ(end.process_end().exit_code(), code);
    EXPECT_EQ(recorded(), 20u);
  }
}

// A reader of the program's output sees its end without waiting for the drain process, which may
// run for long.
TEST_F(LifecycleTest, DrainProcessHoldsNothingThatTheProgramWroteTo) {
  for (const char* log : {"COLLECT_LOG=0", "COLLECT_LOG=1"}) {
    collector.closed.clear();
    start("RecordsAndEnds", {address(), "COLLECT_DRAIN=process", log});
    // Before the collector has taken anything.
    EXPECT_EQ(finish(), 7) << log;
    const wire::RecordingEnd end = take_all();
    EXPECT_EQ(end.reason(), "exit");
    EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
    EXPECT_EQ(end.process_end().exit_code(), 7);
    EXPECT_EQ(recorded(), 20u);
  }
}

TEST_F(LifecycleTest, ChildIsAProcessOfItsOwn) {
  start("ForksAChildThatRecords", {address()});
  collector.welcome_pair(false, kSilentMs);
  const uint32_t parent = collector.control_hello.pid();
  Peer parents_control = std::move(collector.control);
  Peer parents_data = std::move(collector.data);
  collector.forget();
  wire::RecordingEnd end = take_all();
  EXPECT_EQ(collector.control_hello.parent_pid(), parent);
  EXPECT_NE(collector.control_hello.pid(), parent);
  EXPECT_EQ(recorded(), 10u);
  EXPECT_EQ(end.process_end().exit_code(), 3);
  collector.forget();
  collector.control = std::move(parents_control);
  collector.data = std::move(parents_data);
  ASSERT_TRUE(end.ParseFromString(collector.take_until(FrameType::kRecordingEnd).body));
  EXPECT_EQ(recorded(), 40u);
  EXPECT_EQ(end.process_end().exit_code(), 3);
  wire::Ack sealed = collector.ack();
  sealed.set_recording_ended(1);
  collector.control.send(FrameType::kAck, sealed);
  EXPECT_EQ(finish(), 3) << said;
  EXPECT_THAT(said, HasSubstr("child: 1 "));
}

TEST_F(LifecycleTest, ChildWithADrainProcessIsItsOwnProcess) {
  start("ForksAChildThatRecords", {address(), "COLLECT_DRAIN=process"});
  collector.welcome_pair(false, kSilentMs);
  Peer parents_control = std::move(collector.control);
  Peer parents_data = std::move(collector.data);
  collector.forget();
  (void)take_all();
  EXPECT_EQ(recorded(), 10u);
  collector.forget();
  collector.control = std::move(parents_control);
  collector.data = std::move(parents_data);
  collector.seal();
  EXPECT_EQ(recorded(), 40u);
  EXPECT_EQ(finish(), 3) << said;
  EXPECT_THAT(said, HasSubstr("child: 1 "));
}

TEST_F(LifecycleTest, ChildThatIsNotToBeRecordedIsNot) {
  start("ForksAChildThatRecords", {address(), "COLLECT_CHILD_OF=" + std::to_string(getpid())});
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(finish(), 3) << said;
  EXPECT_EQ(recorded(), 40u);
  EXPECT_EQ(end.process_end().exit_code(), 3);
  EXPECT_THAT(said, HasSubstr("child: 0 the agent is off: this process was not to be recorded\n"));
}

TEST_F(LifecycleTest, ChildThatRecordsNothingDoesNotConnect) {
  start("ForksAChildThatRecordsNothing", {address()});
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(finish(), 0) << said;
  EXPECT_EQ(recorded(), 40u);
  EXPECT_EQ(end.process_end().exit_code(), 0);
}

// The child runs in the memory of its parent, which it must not end.
TEST_F(LifecycleTest, ChildThatBorrowsMemoryEndsNothing) {
  start("BorrowsItsMemoryToAChild", {address()});
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(finish(), 3) << said;
  EXPECT_EQ(recorded(), 42u) << "its events are those of the thread that waits for it";
  EXPECT_EQ(end.process_end().exit_code(), 3);
}

// ---- by the C API, in this process

class StartTest : public testing::Test {
 protected:
  StartTest() {
    address_ = collector.address();
    options_.struct_bytes = sizeof options_;
    options_.connect = address_.c_str();
    options_.buffer_mb = 1;
  }
  ~StartTest() override {
    collector.control.close();
    collector.data.close();
    collect_agent_stop(0);
  }
  collect_agent_stats stats() {
    collect_agent_stats now{};
    now.struct_bytes = sizeof now;
    collect_agent_get_stats(&now);
    return now;
  }

  ScriptedCollector collector;
  std::string address_;
  collect_agent_options options_{};
};

TEST_F(StartTest, SecondStartChangesNothing) {
  ASSERT_EQ(collect_agent_start(&options_), 0);
  EXPECT_TRUE(agent_running());
  EXPECT_EQ(current_recording(), 1u);
  make_events(10);
  EXPECT_EQ(collect_agent_start(&options_), 0);
  EXPECT_EQ(current_recording(), 1u);
  collector.welcome_pair(false, kSilentMs);
  for (int i = 0; i < 60'000 && stats().connected == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(stats().connected, 1u);
  EXPECT_EQ(stats().recording, 1u);
  EXPECT_EQ(collect_agent_status(), "connected to a collector by " + address_);
  std::thread stopping([] { collect_agent_stop(60'000); });
  collector.seal();
  stopping.join();
  EXPECT_FALSE(agent_running());
  EXPECT_STREQ(collect_agent_status(), "the agent was stopped");
  EXPECT_EQ(stats().connected, 0u);
  EXPECT_EQ(stats().recording, 0u);
  collect_agent_stop(60'000);  // once more: nothing is left to do
}

}  // namespace
}  // namespace collect::agent
