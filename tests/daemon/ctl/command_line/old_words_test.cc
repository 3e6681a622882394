// Old names of commands and options: each row of the table, in the words of a user.
#include "daemon/ctl/command_line/old_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/daemon/ctl/help_text.h"
#include "tests/daemon/ctl/program_runner.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Case {
  Words typed;
  Words means;
  std::string note;
};

const Case kCases[] = {
    {{"plan", "--functions", "f"},
     {"list", "--plan", "--all", "f"},
     "plan --functions is now plan --all; plan is now list --plan"},
    {{"plan", "f", "--json"}, {"list", "--plan", "f", "--json"}, "plan is now list --plan"},
    {{"dump", "--to", "5ms", "p"},
     {"dump", "--until", "5ms", "p"},
     "dump --to is now dump --until"},
    {{"report", "p", "--to=5ms"},
     {"report", "p", "--until=5ms"},
     "report --to is now report --until"},
    {{"filter", "--only", "a", "--only=b", "--except", "c"},
     {"filter", "--set", "--only", "a", "--only=b", "--except", "c"},
     "filter --only is now filter --set --only"},
    {{"filter", "7", "--except", "c"},
     {"filter", "7", "--set", "--except", "c"},
     "filter --except is now filter --set --except"},
    {{"android", "doctor", "-s", "x"}, {"doctor", "-s", "x"}, "android doctor is now doctor"},
    {{"ios", "doctor"}, {"doctor"}, "ios doctor is now doctor"},
    {{"android", "stop", "app"}, {"android", "undo", "app"}, "android stop is now android undo"},
    {{"convert-session", "s", "--atf-version", "1"},
     {"convert", "--at-collector", "s", "--atf-version", "1"},
     "convert-session is now convert --at-collector"},
    {{"detail", "arm", "7"},
     {"detail", "start", "--arm", "7"},
     "detail arm is now detail start --arm"},
    {{"--json", "files", "s"},
     {"--json", "inspect", "--at-collector", "--files", "s"},
     "files is now inspect --at-collector --files"},
    {{"--control", "files", "manifest"},
     {"--control", "files", "inspect", "--at-collector"},
     "manifest is now inspect --at-collector"},
    {{"--control=a:1", "stats"}, {"--control=a:1", "collectors"}, "stats is now collectors"},
    {{"help", "tail"}, {"help", "dump", "--follow"}, "tail is now dump --follow"},
    {{"threads"}, {"agents", "--threads"}, "threads is now agents --threads"},
    {{"trigger", "clear"}, {"trigger", "--clear"}, "trigger clear is now trigger --clear"},
    {{"trigger", "set", "--function", "f"},
     {"trigger", "--set", "--function", "f"},
     "trigger set is now trigger --set"},
    {{"trigger", "show", "7"}, {"trigger", "7"}, "trigger show is now trigger"},
};

TEST(OldWords, EachRowMeansTodaysWords) {
  std::string notes;
  for (const Case& one : kCases) {
    const Renamed renamed = rename_old_words(one.typed);
    EXPECT_EQ(renamed.arguments, one.means);
    EXPECT_EQ(renamed.note, one.note);
    EXPECT_EQ(renamed.program, "");
    notes += one.note + "; ";
  }
  for (const OldWords& row : old_words()) {
    const std::string command = row.command[0] == '\0' ? "" : std::string(row.command) + " ";
    EXPECT_THAT(notes, HasSubstr(command + row.old + " is now " + command + row.now + "; "));
  }
}

TEST(OldWords, TodaysWordsStay) {
  for (const Words& words : std::initializer_list<Words>{{},
                                                         {"help"},
                                                         {"--control"},
                                                         {"dump", "--until", "1", "p"},
                                                         {"filter", "--set", "--only", "a"},
                                                         {"convert", "--to", "rtc"},
                                                         {"detail", "start"},
                                                         {"detail"},
                                                         {"sessions", "stats"},
                                                         {"trigger", "7"}}) {
    const Renamed renamed = rename_old_words(words);
    EXPECT_EQ(renamed.arguments, words);
    EXPECT_EQ(renamed.note, "");
  }
}

TEST(OldWords, ProgramsGetTheArgumentsBehindTheirName) {
  for (const OldProgram& row : old_programs()) {
    const Renamed renamed = rename_old_words({row.old, "--list", "--", "x"});
    EXPECT_EQ(renamed.program, row.program);
    EXPECT_EQ(renamed.arguments, (Words{"--list", "--", "x"}));
    EXPECT_EQ(renamed.note, std::string(row.old) + " is now " + row.program + ", a program");
  }
}

TEST(OldWords, OldCommandsRunAndAreInNoHelp) {
  ProgramRunner runner;
  const std::vector<std::string> listed = testing::commands_in(runner.run({"--help"}).out);
  const std::set<std::string> commands(listed.begin(), listed.end());
  for (const Case& one : kCases) {
    Words old = one.typed, now = one.means;
    for (Words* words : {&old, &now}) words->push_back("--help");
    const Ran ran = runner.run(old);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out, runner.run(now).out);
    EXPECT_EQ(ran.err, "collectctl: " + one.note + "\n");
  }
  for (const OldWords& row : old_words()) {
    EXPECT_TRUE(row.command[0] != '\0' || commands.count(row.old) == 0) << row.old;
  }
  for (const char* group : {"android", "detail", "ios", "trigger"}) {
    const std::string help = runner.run({group, "--help"}).out;
    for (const char* old : {"\n  arm ", "\n  doctor ", "\n  stop  ", "\n  show ", "\n  clear "}) {
      if (std::string(group) == "detail" && std::string(old) == "\n  stop  ") continue;
      EXPECT_EQ(help.find(old), std::string::npos) << group << old;
    }
  }
}

}  // namespace
}  // namespace collect::ctl
