// Limits of `collectctl run` that end a recording, put it off, or leave processes out: the program
// continues as if nothing were, and the session is complete.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/e2e/run_test.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

using RunLimitsTest = RunTest;

TEST_P(RunLimitsTest, RecordingEndsAtItsSize) {
  const Ending ending =
      record({"--max-size", "256K"}, {traced_program("steady"), "fill", "1000000"});
  EXPECT_EQ(ending.output, "1000000 steps\n");
  EXPECT_THAT(ending.errors, HasSubstr("at the size that --max-size allows"));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].manifest().value("reason", ""), "size limit");
  EXPECT_EQ(recorded[0].totals().events, (256u << 10) / 32);
}

TEST_P(RunLimitsTest, RecordingIsShownAtTheEnd) {
  const std::string page_of = scratch_ / "cache";
  const Ending ending = record({"--open", "--quiet"}, {traced_program("steady"), "fill", "10"},
                               {{"XDG_CACHE_HOME", page_of}, {"BROWSER", "/bin/true"}});
  ASSERT_EQ(sessions().size(), 1u);
  EXPECT_THAT(ending.errors, HasSubstr("file://" + page_of + "/collectord/session_"));
}

// By the variable, and with detail records, which count too.
TEST_P(RunLimitsTest, DetailRecordsCount) {
  record({"--detail", "on"}, {traced_program("steady"), "fill", "200000"},
         {{"COLLECT_MAX_SIZE", "1M"}});
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].manifest().value("reason", ""), "size limit");
  EXPECT_LT(recorded[0].totals().events, (1u << 20) / 32 / 2);
  EXPECT_EQ(recorded[0].totals().detail_records, recorded[0].totals().events);
}

TEST_P(RunLimitsTest, SmallerRecordingEndsWithItsProgram) {
  const Ending ending =
      record({"--max-size", "1G", "--max-time", "1h"}, {traced_program("steady"), "fill", "1000"});
  EXPECT_THAT(ending.errors, Not(HasSubstr("untraced")));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].manifest().value("reason", ""), "exit");
  EXPECT_EQ(recorded[0].totals().events, 2002u);
}

TEST_P(RunLimitsTest, DoesNotRecordAfterMaxTime) {
  const Ending ending = record({"--max-time", "1us"}, {traced_program("steady"), "fill", "10"});
  EXPECT_EQ(ending.output, "10 steps\n");
  // A thread that drains ends with its program, whether it has reached the collector or not.
  EXPECT_THAT(ending.errors, AnyOf(HasSubstr("Nothing was recorded in the time that --max-time"),
                                   HasSubstr("No process of this run reached the collector")));
  EXPECT_TRUE(sessions().empty());
}

// What the shell starts is left out, what it becomes is not: it is the same process.
TEST_P(RunLimitsTest, NoFollowLeavesOutChildren) {
  const std::string steady = traced_program("steady");
  const Arguments job{"sh", "-c", steady + " fill 10; exec " + steady + " fill 20"};
  const Ending ending = record({"--no-follow"}, job);
  EXPECT_EQ(ending.output, "10 steps\n20 steps\n");
  EXPECT_THAT(ending.errors, HasSubstr("children   not recorded, as --no-follow asks"));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].totals().events, 42u);
}

TEST_P(RunLimitsTest, ForkedChildrenAreLeftOut) {
  record({"--no-follow"}, {traced_program("forks"), "work"}, {}, 3);
  const auto alone = sessions();
  ASSERT_EQ(alone.size(), 1u);
  record({}, {traced_program("forks"), "work"}, {}, 3);
  EXPECT_EQ(sessions().size(), 1 + 6u) << "five children follow";
}

TEST_P(RunLimitsTest, VariableNamesAnotherParent) {
  const Ending ending = run(scratch_.path(), {traced_program("steady"), "fill", "10"},
                            {{"LD_PRELOAD", agent_library()},
                             {"COLLECT_CONNECT", "127.0.0.1:1"},
                             {"COLLECT_CHILD_OF", "1"},
                             {"COLLECT_LOG", "1"}});
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("the agent is off: this process was not to be recorded"));
}

TEST_P(RunLimitsTest, RejectsInvalidLimits) {
  const std::pair<const char*, const char*> wrong[] = {{"--max-size", "0"},
                                                       {"--max-size", "10MB"},
                                                       {"--max-time", "0s"},
                                                       {"--max-time", "soon"},
                                                       {"--max-time", "24001h"}};
  for (const auto& [option, value] : wrong) {
    const Ending ending =
        run(scratch_.path(), {program("collectctl"), "run", option, value, "--", "true"});
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe();
    EXPECT_THAT(ending.errors, HasSubstr(value));
  }
}

INSTANTIATE_TEST_SUITE_P(Drains, RunLimitsTest, ::testing::Values("thread", "process"));

// A program that works until it is asked to stop, under `run` with a collector that stays.
class RunningJobTest : public ::testing::TestWithParam<const char*> {
 protected:
  ~RunningJobTest() override {
    if (input_ >= 0) close(input_);
  }
  void start(const Arguments& options) {
    ASSERT_EQ(mkfifo((scratch_ / "input").c_str(), 0600), 0);
    run_job(options, {traced_program("busy"), "busy", scratch_ / "input"});
    input_ = open((scratch_ / "input").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(input_, 0);
  }
  void run_job(const Arguments& options, const Arguments& traced) {
    const Arguments ours{program("collectctl"), "run",     "--control",
                         collector_.control(),  "--drain", GetParam()};
    job_ =
        std::make_unique<ChildProcess>(scratch_.path(), ours + options + Arguments{"--"} + traced);
  }
  const Ending& finish() {
    close(input_);
    input_ = -1;
    return job_->wait(seconds(60));
  }
  json listed(const char* what) {
    const json answer = json::parse(collector_.ctl({what, "--json"}).output, nullptr, false);
    return answer.contains(what) ? answer[what] : json::array();
  }
  bool sessions_are(size_t count, const std::string& state) {
    const json sessions = listed("sessions");
    return sessions.size() == count &&
           std::all_of(sessions.begin(), sessions.end(),
                       [&](const json& session) { return session.value("state", "") == state; });
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_};
  std::unique_ptr<ChildProcess> job_;
  int input_ = -1;
};

TEST_P(RunningJobTest, RecordingEndsAfterItsTimeAndProgramContinues) {
  run_job({"--max-time", "3s"}, {traced_program("steady"), "pace", "600000"});
  ASSERT_TRUE(eventually(seconds(60), [&] { return sessions_are(1, "complete"); }))
      << job_->errors();
  EXPECT_TRUE(job_->running());
  const json agents = listed("agents");
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_EQ(agents[0].value("state", ""), "idle");
  // One that is asked for has its own time.
  EXPECT_TRUE(collector_.ctl({"start"}).exited_with(0));
  ASSERT_TRUE(eventually(seconds(60), [&] { return sessions_are(2, "complete"); }));
  EXPECT_TRUE(job_->running());
  job_->send_signal(SIGTERM);  // which run hands on
  const Ending& ending = job_->wait(seconds(60));
  EXPECT_TRUE(ending.exited_with(128 + SIGTERM)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("after the time that --max-time allows"));
  for (const std::string& directory : session_directories(collector_.root())) {
    const RecordedSession session(directory);
    EXPECT_EQ(session.manifest().value("reason", ""), "time limit");
    EXPECT_GT(session.totals().events, 0u);
    EXPECT_EQ(session.totals().lost, 0u);
  }
}

TEST_P(RunningJobTest, IdleRunRecordsWhenItIsAskedTo) {
  start({"--idle"});
  ASSERT_TRUE(eventually(seconds(60), [&] { return listed("agents").size() == 1; }));
  EXPECT_THAT(job_->errors(), HasSubstr("collectctl --control " + collector_.control() + " start"));
  EXPECT_EQ(listed("sessions").size(), 0u);
  EXPECT_TRUE(collector_.ctl({"start"}).exited_with(0));
  ASSERT_TRUE(eventually(seconds(60), [&] { return sessions_are(1, "recording"); }));
  const Ending& ending = finish();
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_TRUE(sessions_are(1, "complete"));
}

TEST_P(RunningJobTest, ReportsAnIdleRunWithoutARecording) {
  start({"--idle"});
  ASSERT_TRUE(eventually(seconds(60), [&] { return listed("agents").size() == 1; }));
  const Ending& ending = finish();
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("Nothing was recorded: with --idle"));
  EXPECT_EQ(listed("sessions").size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Drains, RunningJobTest, ::testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
