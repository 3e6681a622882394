#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "daemon/ctl/record/program/run_environment.h"
#include "daemon/ctl/record/run/embedded_daemon.h"
#include "daemon/ctl/record/summary/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

AgentSettings settings() {
  AgentSettings made;
  made.library = "/opt/lib/agent.so";
  made.connect = "127.0.0.1:1";
  made.tag = "run-1";
  return made;
}

TEST(RunEnvironmentTest, AddsOnlyWhatItMust) {
  const auto environment = agent_environment({"HOME=/root", "LD_PRELOADX=1"}, settings());
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(
      *environment,
      UnorderedElementsAre("HOME=/root", "LD_PRELOADX=1", "LD_PRELOAD=/opt/lib/agent.so",
                           "COLLECT_CONNECT=127.0.0.1:1", "COLLECT_TAG=run-1", "COLLECT_FULL=wait",
                           "COLLECT_DRAIN=process", "COLLECT_LIBCALLS=on", "COLLECT_SWITCHES=on"));
}

TEST(RunEnvironmentTest, VariablesOfTheCallerWinOverOurDefaults) {
  const auto environment = agent_environment(
      {"COLLECT_FULL=drop", "COLLECT_DRAIN=thread", "COLLECT_LIBCALLS=off"}, settings());
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(*environment,
              IsSupersetOf({"COLLECT_FULL=drop", "COLLECT_DRAIN=thread", "COLLECT_LIBCALLS=off"}));
  EXPECT_FALSE(waits_when_full(*environment));
  EXPECT_FALSE(drains_by_process(*environment));
  EXPECT_TRUE(waits_when_full({"HOME=/", "COLLECT_FULL=wait"}));
}

TEST(RunEnvironmentTest, FlagsWinOverTheCallersVariables) {
  AgentSettings given = settings();
  given.detail = "on";
  given.full = "overwrite";
  given.drain = "process";
  given.buffer_mb = 8;
  given.max_depth = 3;
  given.max_rate = 4;
  given.longer_than = "5us";
  given.only = {"parse_*", "lex"};
  given.except = {"parse_char"};
  given.max_time = "10s";
  given.max_time_since_ns = 7;
  given.max_bytes = 4096;
  given.start_idle = true;
  given.libcalls = "malloc";
  given.sample = "2kHz";
  given.only_child_of = 12;
  given.atf_version = 1;
  const auto environment = agent_environment(
      {"COLLECT_DETAIL=off", "COLLECT_FULL=wait", "COLLECT_BUFFER_MB=1", "COLLECT_MAX_DEPTH=9",
       "COLLECT_ONLY=main", "COLLECT_EXCEPT=main", "COLLECT_MAX_TIME=1s", "COLLECT_MAX_SIZE=1G",
       "COLLECT_START=recording", "COLLECT_CHILD_OF=1", "COLLECT_ATF_VERSION=2",
       "COLLECT_CONNECT=elsewhere:1", "COLLECT_TAG=mine", "COLLECT_LISTEN=tcp:1", "COLLECT_LOG=1",
       "LD_PRELOAD=libm.so.6"},
      given);
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(
      *environment,
      UnorderedElementsAre("COLLECT_LOG=1", "LD_PRELOAD=/opt/lib/agent.so:libm.so.6",
                           "COLLECT_CONNECT=127.0.0.1:1", "COLLECT_TAG=run-1", "COLLECT_DETAIL=on",
                           "COLLECT_FULL=overwrite", "COLLECT_DRAIN=process", "COLLECT_BUFFER_MB=8",
                           "COLLECT_MAX_DEPTH=3", "COLLECT_MAX_RATE=4", "COLLECT_LONGER_THAN=5us",
                           "COLLECT_ONLY=parse_*;lex", "COLLECT_EXCEPT=parse_char",
                           "COLLECT_MAX_TIME=10s@7", "COLLECT_MAX_SIZE=4096", "COLLECT_START=idle",
                           "COLLECT_CHILD_OF=12", "COLLECT_LIBCALLS=malloc", "COLLECT_SWITCHES=on",
                           "COLLECT_ATF_VERSION=1", "COLLECT_SAMPLE=2000"));
  EXPECT_TRUE(starts_idle(*environment));
  EXPECT_TRUE(filters_functions(*environment));
  EXPECT_TRUE(limits_rates(*environment));
  EXPECT_TRUE(records_one_process(*environment));
}

// The key is proved instead of a token; and a run within a run is the inner one's.
TEST(RunEnvironmentTest, ProcessesGetWhatTheRunKnowsThemBy) {
  AgentSettings given = settings();
  const std::vector<std::string> outer = {"COLLECT_RUN=/dev/shm/a", "COLLECT_RUN_KEY=1",
                                          "COLLECT_TOKEN_FILE=/token"};
  given.run = "/dev/shm/b";
  given.run_key = "2";
  auto environment = agent_environment(outer, given);
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(*environment, IsSupersetOf({"COLLECT_RUN=/dev/shm/b", "COLLECT_RUN_KEY=2"}));
  EXPECT_EQ(environment->size(), 9u);
  // A collector that ran already asks for its own token.
  given.run_key.clear();
  environment = agent_environment(outer, given);
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(*environment, IsSupersetOf({"COLLECT_RUN=/dev/shm/b", "COLLECT_TOKEN_FILE=/token"}));
  EXPECT_EQ(environment->size(), 9u);
}

TEST(RunEnvironmentTest, PatternsThatTheAgentCannotTakeAreRefused) {
  AgentSettings given = settings();
  for (const std::string& wrong : {std::string(), std::string("a;b"), std::string(4096, 'x')}) {
    given.only = {"good", wrong};
    EXPECT_FALSE(agent_environment({}, given).ok()) << wrong;
  }
  given.only = {std::string(2000, 'x'), std::string(2094, 'y')};
  EXPECT_TRUE(agent_environment({}, given).ok());
  EXPECT_FALSE(filters_functions({"COLLECT_ONLY=", "HOME=/"}));
}

TEST(RunEnvironmentTest, PathThatThePreloaderWouldSplitIsRefused) {
  for (const char* path : {"/with space/agent.so", "/with:colon/agent.so"}) {
    AgentSettings given = settings();
    given.library = path;
    const auto environment = agent_environment({}, given);
    ASSERT_FALSE(environment.ok());
    EXPECT_THAT(environment.error().message, HasSubstr(path));
  }
}

TEST(RunEnvironmentTest, TagOfTheCallerIsKept) {
  EXPECT_EQ(given_tag({"HOME=/root", "COLLECT_TAG=mine"}), "mine");
  EXPECT_EQ(given_tag({"COLLECT_TAG=", "COLLECT_TAGS=x"}), "");
}

TEST(RunEnvironmentTest, TagsFitAndDiffer) {
  const std::string tag = new_run_tag();
  EXPECT_LT(tag.size(), 64u);  // the agent's field
  EXPECT_NE(tag, new_run_tag());
}

TEST(ProgramPathsTest, FindsTheAgentBesideTheProgram) {
  const auto candidates = agent_library_candidates("/usr/bin");
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0], "/usr/bin/../lib/libcollect_agent.so");
  EXPECT_THAT(candidates[1], HasSubstr("/usr/bin/../lib/"));
  EXPECT_THAT(candidates[1], HasSubstr("-linux-gnu/libcollect_agent.so"));
}

TEST(ProgramPathsTest, FindsProgramsLikeAShell) {
  EXPECT_EQ(*find_program("/bin/sh"), "/bin/sh");
  EXPECT_THAT(*find_program("sh"), ::testing::EndsWith("/sh"));
  EXPECT_EQ(find_program("").code(), Code::kNotFound);
  EXPECT_EQ(find_program("/etc/passwd").code(), Code::kPermission);
  EXPECT_EQ(find_program("/etc/no-such-file").code(), Code::kNotFound);
}

TEST(EmbeddedDaemonTest, ReadyLine) {
  const auto addresses =
      parse_ready("{\"pid\":7,\"ingest\":\"127.0.0.1:1\",\"control\":\"unix:/x\"}\n");
  ASSERT_TRUE(addresses.ok());
  EXPECT_EQ(addresses->ingest, "127.0.0.1:1");
  EXPECT_EQ(addresses->control, "unix:/x");
  EXPECT_EQ(addresses->web, "");
  EXPECT_EQ(parse_ready("{\"ingest\":\"a\",\"control\":\"b\",\"web\":\"http://c/\"}")->web,
            "http://c/");
  for (const char* bad :
       {"", "ready\n", "{}", "[]", "7", "{\"ingest\":\"a\"}", "{\"ingest\":\"a\",\"control\":7}",
        "{\"ingest\":\"\",\"control\":\"\"}", "{\"ingest\":\"a\",\"control\":\"b\""}) {
    EXPECT_FALSE(parse_ready(bad).ok()) << bad;
  }
}

TEST(RunSummaryTest, SeveralProcessesOfOneRun) {
  RunOutcome outcome;
  outcome.program = "make";
  outcome.agent_seen = true;
  for (uint32_t i = 0; i < kMaxListedSessions + 2; ++i) {
    control::v1::Session session;
    session.set_process_name("cc\x1b" + std::to_string(i));
    session.set_pid(100 + i);
    session.set_events(i * 10);
    session.set_path("/with space/pid_" + std::to_string(i));
    session.set_state(control::v1::SESSION_STATE_COMPLETE);
    outcome.sessions.push_back(session);
  }
  outcome.top = {{"luaV_execute", 1234, 0.352}};
  const std::string text = run_summary_text(outcome);
  EXPECT_THAT(text, HasSubstr("cc\\x1b3"));
  EXPECT_THAT(text, HasSubstr("and 2 more"));
  EXPECT_THAT(text, HasSubstr("report '/with space/pid_11'"));  // the largest
  EXPECT_THAT(text, HasSubstr("35.2 %  luaV_execute  1,234 calls"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24);  // one screen
}

TEST(RunSummaryTest, SaysHowLongTheProgramWaited) {
  control::v1::Session session;
  session.set_events(10);
  session.set_threads(1);
  session.set_state(control::v1::SESSION_STATE_COMPLETE);
  RunOutcome outcome;
  outcome.agent_seen = true;
  outcome.sessions = {session};
  EXPECT_THAT(run_summary_text(outcome), ::testing::Not(HasSubstr("waited")));
  outcome.sessions[0].set_stall_count(3);
  outcome.sessions[0].set_stalled_ns(1'200'000'000);
  outcome.sessions[0].set_page_wait_ns(1'200'000'000);
  EXPECT_THAT(run_summary_text(outcome),
              HasSubstr("  waited     the program waited 1.2 s for the collector\n"));
  EXPECT_THAT(run_summary_text(outcome), ::testing::Not(HasSubstr("stopped")));
  outcome.sessions[0].set_threads(8);
  outcome.sessions[0].set_stalled_ns(4'200'000'000);
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("its threads waited, all together, 1.2 s"));
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("  stopped    for 3.0 s"));
}

TEST(RunSummaryTest, ClaimsNoLossOnlyWithProgramCount) {
  control::v1::Session session;
  session.set_events(10);
  session.set_state(control::v1::SESSION_STATE_COMPLETE);
  session.set_losses_known(true);
  RunOutcome outcome;
  outcome.agent_seen = true;
  outcome.sessions = {session};
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("  lost       nothing\n"));
  for (const auto state :
       {control::v1::SESSION_STATE_RECOVERED, control::v1::SESSION_STATE_FAILED}) {
    outcome.sessions[0].set_state(state);
    outcome.sessions[0].set_losses_known(false);
    outcome.sessions[0].set_missing("the rest; how much is not known");
    const std::string text = run_summary_text(outcome);
    EXPECT_THAT(text, HasSubstr("  lost       the rest; how much is not known\n"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("nothing")));
  }
  outcome.sessions[0].set_state(control::v1::SESSION_STATE_ACTIVE);
  outcome.sessions[0].clear_missing();
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("  lost       not known yet\n"));
  session.set_losses_known(false);
  EXPECT_EQ(loss_count(session), "?");
  session.set_lost_events(12);
  EXPECT_EQ(loss_count(session), "12+?");
  session.set_losses_known(true);
  EXPECT_EQ(loss_count(session), "12");
  session.set_lost_detail_records(3000);
  EXPECT_EQ(loss_count(session), "12, 3,000 detail") << "they are not the same";
}

TEST(RunSummaryTest, DescribesTheLargestOfSeveralSessions) {
  RunOutcome outcome;
  outcome.sessions.resize(2);
  outcome.sessions[0].set_path("/small");
  outcome.sessions[0].set_events(1);
  outcome.sessions[1].set_path("/large");
  outcome.sessions[1].set_events(2);
  const std::string text = run_summary_text(outcome);
  EXPECT_THAT(text, HasSubstr("  The largest of these 2 sessions:\n  session    /large"));
  outcome.sessions.pop_back();
  EXPECT_THAT(run_summary_text(outcome), ::testing::Not(HasSubstr("largest")));
}

TEST(RunSummaryTest, TroubleIsNotBlamedOnTheProgram) {
  RunOutcome outcome;
  outcome.program = "app";
  outcome.trouble = "lost the connection to the collector";
  const std::string text = run_summary_text(outcome);
  EXPECT_THAT(text, HasSubstr("lost the connection"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("-finstrument-functions")));
}

TEST(RunSummaryTest, NamesTheSignalAndSuggestsARemedy) {
  RunOutcome outcome;
  outcome.program = "./app";
  outcome.exit_code = 139;
  outcome.agent_seen = true;
  const std::string text = run_summary_text(outcome);
  EXPECT_THAT(text, HasSubstr("./app ended with exit code 139 (Segmentation fault)\n"));
  EXPECT_THAT(text, HasSubstr("--drain process"));
  outcome.outlived = true;
  EXPECT_THAT(run_summary_text(outcome), ::testing::Not(HasSubstr("--drain process")));
  outcome.exit_code = 1;
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("ended with exit code 1\n"));
}

}  // namespace
}  // namespace collect::ctl
