// Every command of collectctl says when its output could not be written. The commands come from
// --help, so a new one fails here until it has a line in the table.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>

#include "daemon/control/control_server.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/ctl/check/session.h"
#include "tests/daemon/ctl/help_text.h"
#include "tests/daemon/ctl/program_runner.h"

namespace collect::ctl {

using Arguments = std::vector<std::string>;

namespace {

using ::testing::HasSubstr;

constexpr char kSessionName[] = "session_20250102_030405/pid_42";

class StandardOutputTest : public testing::OfflineTest {
 protected:
  void SetUp() override {
    OfflineTest::SetUp();
    write_planned_session();
    collector_.add_agent("1", "lua", control::api::AGENT_STATE_RECORDING);
    collector_.add_session(kSessionName, control::api::SESSION_STATE_COMPLETE);
    collector_.add_file("manifest.json", "{}");
    control::api::CallBatch calls;
    calls.set_session(std::string("sessions/") + kSessionName);
    calls.add_calls()->set_function("main");
    collector_.answer_calls_with(calls);
    auto started = control::ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    runner_.environment["COLLECT_CONTROL"] = server_->address();
  }

  // One call of every command that prints something and ends with exit code 0.
  std::map<std::string, std::vector<Arguments>> calls() const {
    const std::string session = session_.string();
    const std::string container = (root_ / "made.rtc").string();
    return {
        {"run", {{"run", "--help"}}},  // prints nothing else on standard output
        // Without an adb server they say nothing there.
        {"android", {{"android", "--help"}}},
        {"ios", {{"ios", "--help"}}},
        {"doctor", {{"doctor", "--help"}}},  // it ends with 1 where there is no phone
        {"detail", {{"detail", "start"}, {"detail", "start", "--arm"}, {"detail", "stop"}}},
        {"trigger", {{"trigger", "--set", "--function", "x"}, {"trigger"}, {"trigger", "--clear"}}},
        {"filter", {{"filter", "--clear"}}},
        {"watch", {{"watch"}}},
        {"top", {{"top", "--once"}, {"top", "--json"}}},
        {"agents", {{"agents"}, {"agents", "--threads"}}},
        {"devices", {{"devices"}}},
        {"attach", {{"attach", "127.0.0.1:7720"}}},
        {"detach", {{"detach", "1"}}},
        {"sessions", {{"sessions"}}},
        {"start", {{"start"}}},
        {"stop", {{"stop"}}},
        {"download", {{"download", "-o", "copy"}}},
        {"snapshot", {{"snapshot"}}},
        {"delete", {{"delete", kSessionName}}},
        {"annotate", {{"annotate", "door opens"}}},
        {"rules", {{"rules"}}},
        {"collectors", {{"collectors"}}},
        {"inspect", {{"inspect", session}, {"inspect", "--at-collector"}}},
        {"verify", {{"verify", "--allow-incomplete", session}}},
        {"dump",
         {{"dump", session},
          {"dump", "--json", session},
          {"dump", "--follow"},
          {"dump", "--follow", "--json"}}},
        {"open", {{"open", session, "--no-browser", "-o", "page.html", "--force"}}},
        {"convert",
         {{"convert", session, "--to", "rtc", "-o", container, "--force"},
          {"convert", "--at-collector", kSessionName, "--atf-version", "1"}}},
        {"merge", {{"merge", "--help"}}},    // the sample does not say which process it is of
        {"upload", {{"upload", "--help"}}},  // by another program
        {"pack", {{"pack", "--help"}}},      // by another program
        {"unpack", {{"unpack", "--help"}}},  // the same
        {"recover", {{"recover", session}}},
        {"symbolize", {{"symbolize", session}}},
        {"list",
         {{"list", "/usr/bin/perl"},
          {"list", "--json", "/usr/bin/perl"},
          {"list", "--plan", "/usr/bin/perl"}}},
        {"query", {{"query", "--help"}}},  // the answer is printed by another program
        {"report", {{"report", session}, {"report", "--by", "thread", session}}},
    };
  }

  std::set<std::string> commands_of_help() {
    const std::vector<std::string> commands = testing::commands_in(runner_.run({"--help"}).out);
    return {commands.begin(), commands.end()};
  }

  Ran run_into(int output, const Arguments& arguments) {
    runner_.output = output;
    Ran ran = runner_.run(arguments);
    runner_.output = -1;
    return ran;
  }

  control::FakeCollector collector_;
  std::unique_ptr<control::ControlServer> server_;
  ProgramRunner runner_;
};

TEST_F(StandardOutputTest, EveryCommandIsTested) {
  std::set<std::string> tested;
  for (const auto& [command, lines] : calls()) tested.insert(command);
  EXPECT_EQ(commands_of_help(), tested);
}

TEST_F(StandardOutputTest, FullDiskIsSaidAndExitCode1) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "/dev/full is not there";
  for (const auto& [command, lines] : calls()) {
    for (const Arguments& line : lines) {
      const Ran whole = runner_.run(line);
      // The sample has no files to take names from, and the fake's session lacks something.
      const bool is_incomplete =
          command == "symbolize" || (command == "convert" && line[1] == "--at-collector");
      EXPECT_EQ(whole.exit_code, is_incomplete ? 1 : 0)
          << ::testing::PrintToString(line) << whole.err;
      EXPECT_NE(whole.out, "") << ::testing::PrintToString(line);
      const Ran ran = run_into(full, line);
      EXPECT_EQ(ran.exit_code, 1) << ::testing::PrintToString(line);
      EXPECT_THAT(ran.err, HasSubstr("collectctl: cannot write standard output: No space left"))
          << ::testing::PrintToString(line);
    }
  }
  for (const char* flag : {"--help", "--version"}) {
    EXPECT_EQ(run_into(full, {flag}).exit_code, 1) << flag;
  }
  ::close(full);
}

// As behind `| head`: its reader has what it wanted, so nothing is said.
TEST_F(StandardOutputTest, ClosedPipeIsExitCode1WithoutAWord) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  for (const auto& [command, lines] : calls()) {
    for (const Arguments& line : lines) {
      const std::string said = runner_.run(line).err;
      const Ran ran = run_into(ends[1], line);
      EXPECT_EQ(ran.exit_code, 1) << ::testing::PrintToString(line);
      EXPECT_EQ(ran.err, said) << ::testing::PrintToString(line);
    }
  }
  ::close(ends[1]);
}

// The first error is kept, and a failure of the command itself keeps its own code.
TEST_F(StandardOutputTest, CodeOfAFailureStays) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "/dev/full is not there";
  EXPECT_EQ(run_into(full, {"dump", (root_ / "missing").string()}).exit_code, 2);
  ::close(full);
}

}  // namespace
}  // namespace collect::ctl
