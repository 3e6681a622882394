// What collectctl says to a wrong command line: one line, and exit code 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/daemon/ctl/program_runner.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class UsageTest : public ::testing::Test {
 protected:
  ProgramRunner runner_;
};

TEST_F(UsageTest, MistakesGetOneLineAndExitCode2) {
  const std::vector<std::vector<std::string>> mistakes = {
      {"bogus"},
      {"--bogus"},
      {"agents", "--bogus"},
      {"attach"},
      {"convert", "--at-collector"},
      {"convert", "--at-collector", "one", "--atf-version", "3"},
      {"detach"},
      {"agents", "one", "two"},
      {"detail"},
      {"detail", "sideways"},
      {"detail", "start", "--duration", "soon"},
      {"detail", "start", "--duration", "-1s"},
      {"detail", "start", "--thread", "x"},
      {"dump", "--thread", "main", "path"},
      {"report", "--thread", "thread_", "path"},
      {"detail", "stop", "--duration", "1s"},
      {"trigger", "--set", "--clear"},
      {"trigger", "--function", "x"},
      {"trigger", "--set", "--function", "x", "--longer-than", "5ms", "--throws"},
      {"trigger", "--set", "--function", "x", "--counter", "y", "--above", "1"},
      {"trigger", "--set", "--counter", "y"},
      {"trigger", "--set", "--above", "1"},
      {"detail", "start", "--arm", "--duration", "1s"},
      {"filter", "--set", "--only", "x", "--clear"},
      {"rules", "--set", "x", "--clear"},
      {"dump", "--slower-than", "1ms"},
      {"dump", "--follow", "--merged"},
      {"inspect", "--files"},
      {"watch", "--interval", "x"},
      {"watch", "--filter", "x"},
      {"report", "--sort", "color", "path"},
      {"report", "--by", "color", "path"},
  };
  for (const auto& mistake : mistakes) {
    const Ran ran = runner_.run(mistake);
    const std::string line = ::testing::PrintToString(mistake);
    EXPECT_EQ(ran.exit_code, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << line << ran.err;
    EXPECT_THAT(ran.err, ::testing::StartsWith("collectctl: ")) << line;
    EXPECT_THAT(ran.err, HasSubstr("--help")) << line;
  }
}

TEST_F(UsageTest, RunExitsWith125ForItsOwnMistakes) {
  const std::vector<std::vector<std::string>> mistakes = {{"run"},
                                                          {"run", "--"},
                                                          {"run", "--bogus", "--", "true"},
                                                          {"run", "--detail", "maybe", "true"},
                                                          {"run", "--when-full", "maybe", "true"},
                                                          {"run", "--buffer", "0", "true"},
                                                          {"run", "--buffer", "16385", "true"},
                                                          {"run", "--atf-version", "3", "true"}};
  for (const auto& mistake : mistakes) {
    const Ran ran = runner_.run(mistake);
    EXPECT_EQ(ran.exit_code, 125) << ::testing::PrintToString(mistake);
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("collectctl run --help"));
  }
}

TEST_F(UsageTest, SuggestsTheCommandWithNearlyThatName) {
  const Ran ran = runner_.run({"repport", "path"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.err,
            "collectctl: there is no command \"repport\" (did you mean report?); see collectctl "
            "--help\n");
  EXPECT_THAT(runner_.run({"frobnicate"}).err, ::testing::Not(HasSubstr("did you mean")));
}

TEST_F(UsageTest, UnknownOptionBeforeTheCommandIsNamed) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--bogus"},
                                             {"--bogus=1", "report"},
                                             {"--control", "a:1", "--bogus", "report", "path"}}) {
    const Ran ran = runner_.run(words);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_EQ(ran.err, "collectctl: there is no option --bogus; see collectctl --help\n");
  }
  const Ran json = runner_.run({"--json", "--bogus", "report", "path"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(
      json.out,
      "{\"version\":1,\"error\":{\"code\":\"invalid_argument\",\"message\":\"there is no option "
      "--bogus; see collectctl --help\"}}\n");
  EXPECT_EQ(runner_.run({"-x", "report"}).err,
            "collectctl: there is no option -x; see collectctl --help\n");
}

TEST_F(UsageTest, SuggestsTheNearestForAnUnknownOption) {
  const auto said = [this](const std::vector<std::string>& words) {
    const Ran ran = runner_.run(words);
    EXPECT_EQ(ran.exit_code, 2);
    return ran.err;
  };
  EXPECT_EQ(said({"report", "--sorty", "self", "path"}),
            "collectctl: there is no option --sorty (did you mean --sort?); see collectctl report "
            "--help\n");
  EXPECT_EQ(said({"dump", "path", "--functoin=f"}),
            "collectctl: there is no option --functoin (did you mean --function?); see collectctl "
            "dump --help\n");
  EXPECT_EQ(said({"detail", "stop", "--duration", "5s"}),
            "collectctl: there is no option --duration; see collectctl detail stop --help\n");
  EXPECT_EQ(said({"report", "-s", "self", "path"}),
            "collectctl: there is no option -s; see collectctl report --help\n");
  EXPECT_EQ(said({"agents", "one", "two"}),
            "collectctl: The following argument was not expected: two; see collectctl agents "
            "--help\n");
}

TEST_F(UsageTest, TimesAreNamedWithTheWaysToWriteThem) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"dump", "--from", "-1", "path"},
           {"dump", "--until", "-1", "path"},
           {"report", "--from", "-1", "path"},
           {"open", "--from", "-1", "path"},
           {"convert", "--until", "-1", "--to", "html", "path", "-o", "out"}}) {
    const Ran ran = runner_.run(words);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, ::testing::StartsWith("collectctl: " + words[1] +
                                               ": \"-1\" is no time; write 1ms or 2.5s "));
  }
}

TEST_F(UsageTest, CountsAreWholeNumbers) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"dump", "--limit", "-1", "path"},
           {"report", "--limit=-1", "path"},
           {"trigger", "--set", "agent", "--function", "f", "--times", "-1"}}) {
    const Ran ran = runner_.run(words);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("-1 is not a whole number")) << ran.err;
  }
}

TEST_F(UsageTest, HelpIsACommandToo) {
  EXPECT_EQ(runner_.run({"help", "run"}).out, runner_.run({"run", "--help"}).out);
  EXPECT_EQ(runner_.run({"help", "detail", "start"}).out,
            runner_.run({"detail", "start", "--help"}).out);
  const Ran whole = runner_.run({"help"});
  EXPECT_EQ(whole.exit_code, 0);
  EXPECT_EQ(whole.out, runner_.run({"--help"}).out);
  EXPECT_THAT(whole.out, HasSubstr("\nRecord:\n  run "));
  EXPECT_EQ(runner_.run({"-V"}).out, runner_.run({"--version"}).out);
}

TEST_F(UsageTest, ListOfCommandsFitsOneScreen) {
  const Ran list = runner_.run({});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_EQ(list.out, runner_.run({"--help"}).out);
  EXPECT_LE(std::count(list.out.begin(), list.out.end(), '\n'), 45);
  std::istringstream lines(list.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST_F(UsageTest, HelpAndVersion) {
  for (const char* command :
       {"run", "agents", "attach", "detach", "sessions", "start", "stop", "detail", "watch",
        "collectors", "inspect", "verify", "dump", "report"}) {
    const Ran ran = runner_.run({command, "--help"});
    EXPECT_EQ(ran.exit_code, 0) << command;
    EXPECT_THAT(ran.out, HasSubstr("Usage: collectctl " + std::string(command)));
    EXPECT_EQ(ran.err, "");
  }
  const Ran all = runner_.run({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(runner_.run({"help", "options"}).out, HasSubstr("Examples:"));
  EXPECT_THAT(runner_.run({"run", "--help"}).out, HasSubstr("128 + N"));
  const Ran version = runner_.run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::StartsWith("collectctl "));
}

TEST_F(UsageTest, NoCollectorIsExitCode1AndOneLine) {
  // Port 1 of the loopback is privileged and unused.
  const Ran ran = runner_.run({"--control", "127.0.0.1:1", "agents"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("127.0.0.1:1"));
  runner_.environment["COLLECT_CONTROL"] = "127.0.0.1:2";
  EXPECT_THAT(runner_.run({"collectors"}).err, HasSubstr("127.0.0.1:2"));
}

}  // namespace
}  // namespace collect::ctl
