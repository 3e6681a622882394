// Whether tests may rely on their processes: bounds, ends, streams, and what a failing test prints.
#include "tests/child/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "tests/child/forked_child.h"

namespace collect::child {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Run by the test below, in a program of its own.
TEST(Failing, DISABLED_Program) {
  const Scratch scratch;
  run(scratch.path(), {"/bin/sh", "-c", "echo written; echo problem >&2; exit 3"});
  forked([] { return 4; });
  ChildProcess killed(scratch.path(), {"/bin/sleep", "60"}, {{"NAME", "value"}});
  killed.wait(seconds(0));
  FAIL();
}

TEST(ChildProcessTest, FailingTestPrintsItsProcesses) {
  const Scratch scratch;
  const Ending ending = run(scratch.path(), {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                             "--gtest_filter=Failing.*"});
  EXPECT_EQ(ending.describe(), "exit 1");
  EXPECT_THAT(ending.output, HasSubstr("$ /bin/sh -c echo written; echo problem >&2; exit 3"));
  EXPECT_THAT(ending.output, HasSubstr(": exit 3\n  stdout ("));
  EXPECT_THAT(ending.output, HasSubstr(".out):\nwritten\n  stderr ("));
  EXPECT_THAT(ending.output, HasSubstr(".err):\nproblem\n$ forked child "));
  EXPECT_THAT(ending.output, HasSubstr("exit 4\n$ NAME=value /bin/sleep 60"));
  EXPECT_THAT(ending.output, HasSubstr(": killed by the test after its time\n"));
}

TEST(ChildProcessTest, WaitKillsWhenItsTimeIsOver) {
  const Scratch scratch;
  ChildProcess program(scratch.path(), {"/bin/sleep", "60"});
  EXPECT_TRUE(program.running());
  EXPECT_TRUE(program.wait(seconds(0)).timed_out);
  EXPECT_FALSE(program.running());
  EXPECT_TRUE(program.wait().timed_out) << "it stays so";
  EXPECT_FALSE(program.wait().exited_with(0));
}

TEST(ChildProcessTest, ProcessesEndWithTheirObjects) {
  const Scratch scratch;
  pid_t program = 0;
  pid_t forked = 0;
  {
    const ChildProcess one(scratch.path(), {"/bin/sleep", "60"});
    const ForkedChild other(pause_until_killed);
    program = one.pid();
    forked = other.pid();
    EXPECT_EQ(kill(program, 0), 0);
    EXPECT_EQ(kill(forked, 0), 0);
  }
  EXPECT_EQ(kill(program, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_EQ(kill(forked, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, KeepsSettingsOfTheTestFromItsPrograms) {
  const Scratch scratch;
  setenv("COLLECT_SETTING_OF_THE_TEST", "1", 1);
  setenv("OTHER_SETTING", "2", 1);
  const std::string all = run(scratch.path(), {"/usr/bin/env"}, {{"GIVEN", "3"}}).output;
  unsetenv("COLLECT_SETTING_OF_THE_TEST");
  unsetenv("OTHER_SETTING");
  EXPECT_THAT(all, Not(HasSubstr("COLLECT_SETTING_OF_THE_TEST")));
  EXPECT_THAT(all, HasSubstr("OTHER_SETTING=2\n"));
  EXPECT_THAT(all, HasSubstr("GIVEN=3\n"));
  EXPECT_THAT(all, HasSubstr("TEST_SCRATCH=" + scratch.path() + "\n"));
}

TEST(ChildProcessTest, HasWhatItsSettingSays) {
  const Scratch scratch;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ChildProcess program(
      scratch.path(), {"/bin/sh", "-c", "read -r line; pwd; echo $line; env >&2"},
      {{"ONLY", "this"}},
      {.folder = "/usr", .input = ends[0], .inherits_environment = false, .leads_group = true});
  EXPECT_EQ(getpgid(program.pid()), program.pid());
  ASSERT_EQ(write(ends[1], "said\n", 5), 5);
  const Ending& ending = program.wait();
  EXPECT_EQ(ending.output, "/usr\nsaid\n");
  EXPECT_THAT(ending.errors, HasSubstr("ONLY=this\n"));
  EXPECT_THAT(ending.errors, Not(HasSubstr("TEST_SCRATCH")));
  close(ends[0]);
  close(ends[1]);
}

TEST(ForkedChildTest, SaysWhetherItWasReady) {
  const ForkedChild ready([](const ForkedChild::Ready& say) {
    say();
    return pause_until_killed();
  });
  EXPECT_TRUE(ready.was_ready());
  ForkedChild ended([](const ForkedChild::Ready&) { return 7; });
  EXPECT_FALSE(ended.was_ready());
  EXPECT_EQ(ended.wait().describe(), "exit 7");
}

}  // namespace
}  // namespace collect::child
