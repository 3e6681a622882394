// The daemon dials an agent that listens: by AttachAgent, from the configuration, over TCP, a Unix
// socket and an abstract one. And collectctl run, with a daemon and without one.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

constexpr seconds kJobLimit{120};

Environment listening(const std::string& address) {
  return {{"LD_PRELOAD", agent_library()}, {"COLLECT_LISTEN", address}, {"COLLECT_FULL", "wait"}};
}

void expect_whole_session(const std::string& root, int pid, const std::string& count_path) {
  const std::vector<RecordedSession> sessions = sealed_sessions(root, pid);
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(count_path, pid));
}

// What the agent is asked to listen on, and what the daemon dials.
struct Place {
  const char* name;
  const char* listen;  // @: scratch directory, #: a free port
  const char* dial;
};

class Attach : public testing::TestWithParam<Place> {
 protected:
  std::string fill(std::string text) const {
    if (const size_t at = text.find('@'); at != std::string::npos) {
      text.replace(at, 1, scratch_.path());
    }
    if (const size_t at = text.find('#'); at != std::string::npos) {
      text.replace(at, 1, std::to_string(port_));
    }
    return text;
  }
  Scratch scratch_;
  uint16_t port_ = free_port();
};

TEST_P(Attach, ByHandWhileTheProgramRuns) {
  CollectorProcess collector(scratch_);
  Environment environment = listening(fill(GetParam().listen));
  environment["COUNT_FILE"] = scratch_ / "count";
  ChildProcess job(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "2", "300"},
                   environment);
  const Ending attached = collector.ctl({"attach", fill(GetParam().dial)});
  EXPECT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
  ASSERT_TRUE(job.wait(kJobLimit).exited_with(0));
  expect_whole_session(collector.root(), job.pid(), scratch_ / "count");
}

TEST_P(Attach, FromTheConfiguration) {
  const std::string config = scratch_ / "collectord.toml";
  write_text_file(config, "attach = [\"" + fill(GetParam().dial) + "\"]\n");
  CollectorProcess collector(scratch_, {"--config", config});
  Environment environment = listening(fill(GetParam().listen));
  environment["COUNT_FILE"] = scratch_ / "count";
  // The daemon dials first and finds no one; it keeps dialling.
  ChildProcess job(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "2", "300"},
                   environment);
  ASSERT_TRUE(job.wait(kJobLimit).exited_with(0));
  expect_whole_session(collector.root(), job.pid(), scratch_ / "count");
}

INSTANTIATE_TEST_SUITE_P(Places, Attach,
                         testing::Values(Place{"tcp", "tcp:#", "127.0.0.1:#"},
                                         Place{"unix", "unix:@/agent.sock", "unix:@/agent.sock"},
                                         Place{"abstract", "abstract:collect_e2e_#",
                                               "abstract:collect_e2e_#"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(CollectctlRun, UsesTheRunningDaemon) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Arguments command = {program("collectctl"), "--control", collector.control(), "run", "--"};
  command.insert(command.end(), {traced_program("forks"), "work"});
  ChildProcess runner(scratch.path(), command,
                      {{"COUNT_FILE", scratch / "count"}, {"COLLECT_FULL", "wait"}});
  const Ending ending = runner.wait(kJobLimit);
  EXPECT_TRUE(ending.exited_with(3))
      << "the program's own exit code; " << ending.describe() << ending.errors;
  EXPECT_NE((ending.output + ending.errors).find(collector.root() + "/session_"), std::string::npos)
      << "it says where the files are:\n"
      << ending.output << ending.errors;
  for (const int pid : counted_processes(scratch / "count")) {
    expect_whole_session(collector.root(), pid, scratch / "count");
  }
}

TEST(CollectctlRun, BringsADaemonWhenNoneRuns) {
  Scratch scratch;
  const std::string absent = "127.0.0.1:" + std::to_string(free_port());
  const std::string out = scratch / "traces";
  Arguments command = {program("collectctl"), "--control", absent, "run", "-o", out, "--"};
  command.insert(command.end(), {traced_program("threads"), "late"});
  const Ending ending = run(scratch.path(), command, {}, kJobLimit);
  EXPECT_TRUE(ending.exited_with(7)) << ending.describe() << ending.errors;
  const std::vector<std::string> directories = session_directories(out);
  ASSERT_EQ(directories.size(), 1u) << ending.output << ending.errors;
  EXPECT_NE(RecordedSession(directories[0]).state(), "recording");
  EXPECT_NE((ending.output + ending.errors).find(directories[0]), std::string::npos)
      << ending.output << ending.errors;
  const Ending verified = run(scratch.path(), {program("collectctl"), "verify", directories[0]});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

// As a shell says it: 128 + the signal.
TEST(CollectctlRun, PassesTheSignalOn) {
  Scratch scratch;
  const std::string absent = "127.0.0.1:" + std::to_string(free_port());
  const Ending ending =
      run(scratch.path(), {program("collectctl"), "--control", absent, "run", "-o",
                           scratch / "traces", "--", traced_program("signals"), "segv"});
  EXPECT_TRUE(ending.exited_with(139)) << ending.describe() << ending.errors;
}

TEST(CollectctlRun, ProgramThatIsNotThere) {
  Scratch scratch;
  const std::string absent = "127.0.0.1:" + std::to_string(free_port());
  const Ending ending = run(scratch.path(), {program("collectctl"), "--control", absent, "run",
                                             "-o", scratch / "traces", "--", "/no/such/program"});
  EXPECT_TRUE(ending.exited_with(127)) << ending.describe();
  EXPECT_NE(ending.errors.find("/no/such/program"), std::string::npos) << ending.errors;
}

}  // namespace
}  // namespace collect::e2e
