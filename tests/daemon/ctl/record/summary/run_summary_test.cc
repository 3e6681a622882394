// What `run` says at its end, line for line.
#include "daemon/ctl/record/summary/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl/control/messages/text.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

api::Session recorded() {
  api::Session session;
  session.set_path("/data/pid_1");
  session.set_process_name("app");
  session.set_pid(1);
  session.set_state(api::SESSION_STATE_COMPLETE);
  session.set_status("process exit");
  session.set_events(3000);
  session.set_threads(1);
  session.set_stored_bytes(72'000);
  session.set_losses_known(true);
  session.mutable_start_time()->set_seconds(100);
  session.mutable_end_time()->set_seconds(102);
  session.mutable_end_time()->set_nanos(500'000'000);
  return session;
}

RunOutcome outcome_of(std::vector<api::Session> sessions) {
  RunOutcome outcome;
  outcome.program = "./app";
  outcome.agent_seen = true;
  outcome.sessions = std::move(sessions);
  return outcome;
}

constexpr char kNext[] =
    "  next       collectctl report /data/pid_1\n"
    "             collectctl dump --merged /data/pid_1 | less\n"
    "             collectctl open /data/pid_1\n";

TEST(RunSummaryLines, DescribesACompleteSession) {
  EXPECT_EQ(run_summary_text(outcome_of({recorded()})),
            std::string("collectctl: ./app ended with exit code 0\n"
                        "  session    /data/pid_1  (complete)\n"
                        "  recorded   3,000 events of 1 thread in 2.5 s (1.2 k/s), 72.0 kB\n"
                        "  detail     none (--detail on, or collectctl detail start)\n"
                        "  lost       nothing\n") +
                kNext);
}

TEST(RunSummaryLines, NamesLibrariesThatWereNotCovered) {
  RunOutcome outcome = outcome_of({recorded()});
  outcome.dynamic = true;
  EXPECT_THAT(run_summary_text(outcome), Not(HasSubstr("covered")));
  outcome.not_covered = {"/lib/libsqlite3.so.0", "/lib/libz.so.1"};
  EXPECT_THAT(
      run_summary_text(outcome),
      HasSubstr("  covered    the program alone; --dynamic='*' also records libsqlite3.so.0, "
                "libz.so.1\n"));
  EXPECT_THAT(run_summary_json(outcome),
              HasSubstr(R"("not_covered":["/lib/libsqlite3.so.0","/lib/libz.so.1"])"));
  outcome.not_covered.insert(outcome.not_covered.end(), {"/a/libodd\n.so", "/b/libc4.so"});
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("libz.so.1, libodd"));
  EXPECT_THAT(run_summary_text(outcome), HasSubstr(" and 1 more\n"));
  EXPECT_THAT(run_summary_text(outcome), Not(HasSubstr("libodd\n")));
}

TEST(RunSummaryLines, DescribesAStalledAndCutSession) {
  api::Session session = recorded();
  session.set_events(1);
  session.set_threads(2);
  session.clear_start_time();
  session.set_status("size limit");
  session.set_detail_records(1);
  session.set_lost_events(1);
  session.set_lost_detail_records(2);
  session.set_calls_left_out(1);
  session.set_stalled_ns(3'000'000'000);
  session.set_page_wait_ns(1'000'000'000);
  session.mutable_start_filter()->set_functions_matched(4);
  session.set_late_ns(20'000'000);
  session.set_symbols(api::SYMBOLS_STATE_PENDING);
  RunOutcome outcome = outcome_of({session});
  outcome.one_process = true;
  outcome.waits = true;
  outcome.trouble = "lost touch";
  outcome.unmatched = {"pars", "x*"};
  outcome.filter_error = "too many";
  outcome.top = {{"luaV_execute", 1, 0.75}, {"main", 2, 0.052}};
  EXPECT_EQ(
      run_summary_text(outcome),
      std::string(
          "collectctl: ./app ended with exit code 0\n"
          "  trouble    lost touch\n"
          "  trouble    no function matches \"pars\"\n"
          "  trouble    no function matches \"x*\"\n"
          "  trouble    no function filter, so nothing was recorded: too many\n"
          "  session    /data/pid_1  (complete)\n"
          "  recorded   1 event of 2 threads in 0 ms, 72.0 kB\n"
          "  filter     by --only and --except: 4 functions matched\n"
          "  late       the filter came 20 ms late; what was called before is not recorded\n"
          "  ended      at the size that --max-size allows; the program continued untraced\n"
          "  children   not recorded, as --no-follow asks\n"
          "  detail     1 record\n"
          "  lost       1 event and 2 detail records\n"
          "  left out   1 call, as function filter, --max-depth and --longer-than ask\n"
          "  waited     its threads waited, all together, 1.0 s for the collector\n"
          "             (reports leave that out; --when-full drop does not wait)\n"
          "  stopped    for 2.0 s, which reports leave out\n"
          "  names      not all functions have names yet; the collector continues to look them up\n"
          "             (collectctl symbolize looks them up)\n"
          "             (although the program waited for room; collectctl inspect says why)\n"
          "  self time   75.0 %  luaV_execute  1 call\n"
          "               5.2 %  main  2 calls\n") +
          kNext);
}

TEST(RunSummaryLines, FunctionsThatWereSwitchedOffAreNamed) {
  RunOutcome outcome = outcome_of({recorded()});
  outcome.rated = true;
  EXPECT_THAT(run_summary_json(outcome), HasSubstr("\"switched_off\":[]"));
  outcome.switched_off = {{"next", 2'100'000}};
  EXPECT_THAT(run_summary_text(outcome),
              HasSubstr("  off        1 function, as --max-rate asks; calls from then on are "
                        "missing:\n             next (2,100,000 calls/s)\n"));
  EXPECT_THAT(run_summary_json(outcome),
              HasSubstr("\"switched_off\":[{\"name\":\"next\",\"calls_per_second\":2100000}]"));
  for (const char* name : {"a", "b", "c", "d", "e"}) outcome.switched_off.push_back({name, 1});
  EXPECT_THAT(run_summary_text(outcome),
              HasSubstr("next (2,100,000 calls/s), a (1 calls/s), b (1 calls/s), c (1 calls/s), "
                        "d (1 calls/s) and 1 more\n"));
}

TEST(RunSummaryLines, LossNamesItsRemedy) {
  api::Session session = recorded();
  session.set_lost_detail_records(1);
  const std::string text = run_summary_text(outcome_of({session}));
  EXPECT_THAT(text, HasSubstr("  lost       1 detail record\n"));
  EXPECT_THAT(text,
              HasSubstr("             a larger ring may hold them (--buffer 512); --when-full wait "
                        "loses nothing and\n"
                        "             slows the program down to what the disk takes\n"));
}

// A limit ends a recording that is complete; any other end has its own sentence.
TEST(RunSummaryLines, EndsByALimit) {
  api::Session session = recorded();
  session.set_status("time limit");
  EXPECT_THAT(run_summary_text(outcome_of({session})),
              HasSubstr("  ended      after the time that --max-time allows; the program continued "
                        "untraced\n"));
  session.set_state(api::SESSION_STATE_RECOVERED);
  const std::string recovered = run_summary_text(outcome_of({session}));
  EXPECT_THAT(recovered, Not(HasSubstr("--max-time")));
  EXPECT_THAT(recovered, HasSubstr("/data/pid_1  (recovered)\n             time limit\n"));
  session = recorded();
  EXPECT_THAT(run_summary_text(outcome_of({session})), Not(HasSubstr("  ended  ")));
}

TEST(RunSummaryLines, DescribesAnUnsealedSession) {
  api::Session session = recorded();
  session.set_state(api::SESSION_STATE_ACTIVE);
  session.clear_status();
  session.set_losses_known(false);
  session.set_lost_events(7);
  const std::string text = run_summary_text(outcome_of({session}));
  EXPECT_THAT(text, HasSubstr("/data/pid_1  (recording, not sealed yet)\n  recorded"));
  EXPECT_THAT(text, HasSubstr("  lost       7 events so far\n"));
}

// The drain process would have shipped what a crash took along: said where that is the remedy.
TEST(RunSummaryLines, SuggestsTheDrainProcessOnlyForRecoveredSessions) {
  api::Session session = recorded();
  session.set_losses_known(false);
  session.set_missing("the rest");
  session.set_state(api::SESSION_STATE_RECOVERED);
  RunOutcome outcome = outcome_of({session});
  const std::string remedy = "             (--drain process ships it after any end)\n";
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("  lost       the rest\n" + remedy));
  outcome.outlived = true;
  EXPECT_THAT(run_summary_text(outcome), Not(HasSubstr(remedy)));
  outcome.outlived = false;
  outcome.app_ending = "on R58M was ended by the system";
  const std::string app = run_summary_text(outcome);
  EXPECT_THAT(app, Not(HasSubstr(remedy)));
  EXPECT_THAT(app, StartsWith("collectctl: ./app on R58M was ended by the system\n"));
  outcome.app_ending.clear();
  outcome.sessions[0].set_state(api::SESSION_STATE_FAILED);
  EXPECT_THAT(run_summary_text(outcome), Not(HasSubstr(remedy)));
}

TEST(RunSummaryLines, FunctionsWithoutNames) {
  api::Session session = recorded();
  EXPECT_THAT(run_summary_text(outcome_of({session})), Not(HasSubstr("  names")));
  session.set_symbols(api::SYMBOLS_STATE_FAILED);
  EXPECT_THAT(run_summary_text(outcome_of({session})),
              HasSubstr("  names      functions have no names (collectctl inspect says why)\n"
                        "             (collectctl symbolize looks them up)\n"));
}

// As many as fit a screen; the largest is the one that is informed about.
TEST(RunSummaryLines, SeveralSessions) {
  std::vector<api::Session> sessions;
  for (size_t i = 0; i < kMaxListedSessions; ++i) {
    sessions.push_back(recorded());
    sessions.back().set_pid(static_cast<uint32_t>(i));
  }
  sessions[3].set_events(99'000);
  sessions[3].set_lost_events(5);
  sessions[3].set_path("/data/pid_3");
  std::string text = run_summary_text(outcome_of(sessions));
  EXPECT_THAT(text, StartsWith("collectctl: ./app ended with exit code 0\n"
                               "  PROCESS  PID  EVENTS  LOST  STATE     SESSION\n"
                               "  app        0   3,000     0  complete  /data/pid_1\n"));
  EXPECT_THAT(text, HasSubstr("  app        3  99,000     5  complete  /data/pid_3\n"));
  EXPECT_THAT(text, HasSubstr("  app        9   3,000     0  complete  /data/pid_1\n\n"
                              "  The largest of these 10 sessions:\n"
                              "  session    /data/pid_3  (complete)\n"));
  EXPECT_THAT(text, Not(HasSubstr(" more: ")));
  sessions.push_back(recorded());
  sessions.back().set_pid(77);
  text = run_summary_text(outcome_of(sessions));
  EXPECT_THAT(text, HasSubstr("/data/pid_1\n  and 1 more: collectctl sessions\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("77")));
}

// Of causes that hold together the first one is said.
TEST(RunSummaryLines, WhyNothingWasRecorded) {
  RunOutcome outcome = outcome_of({});
  const auto text = [&outcome] { return run_summary_text(outcome); };
  outcome.exit_code = 128;
  EXPECT_THAT(text(), StartsWith("collectctl: ./app ended with exit code 128\n"));
  EXPECT_THAT(text(), HasSubstr("  The program ran with the agent, but called no traced function"));
  outcome.exit_code = 128 + 32;
  EXPECT_THAT(text(), StartsWith("collectctl: ./app ended with exit code 160\n"));
  outcome.exit_code = 128 + 31;
  EXPECT_THAT(text(), StartsWith("collectctl: ./app ended with exit code 159 (Bad system call)\n"));
  outcome.exit_code = 129;
  outcome.outlived = true;
  EXPECT_THAT(text(),
              HasSubstr("  The program was ended by a signal (Hangup), and no traced function"));
  outcome.agent_seen = false;
  EXPECT_THAT(text(), HasSubstr("(Hangup) before its agent reached the\n  collector"));
  outcome.exit_code = 1;
  EXPECT_THAT(text(), HasSubstr("  No process of this run reached the collector"));
  outcome.exit_code = 129;
  outcome.outlived = false;
  EXPECT_THAT(text(), HasSubstr("(Hangup) before anything of it was shipped.\n"));
  outcome.no_preload = "is linked statically";
  EXPECT_THAT(text(), HasSubstr("into the program: it is linked statically,\n"));
  // These three are known of an agent that was there alone.
  outcome.timed = true;
  outcome.filtered = true;
  outcome.start_command = "collectctl start";
  EXPECT_THAT(text(), HasSubstr("it is linked statically,\n"));
  outcome.agent_seen = true;
  EXPECT_THAT(text(), HasSubstr("with --idle, a recording begins when someone asks for it, by\n"
                                "      collectctl start\n"));
  outcome.start_command.clear();
  EXPECT_THAT(text(), HasSubstr("no function that --only and --except leave was called"));
  outcome.filtered = false;
  EXPECT_THAT(text(), HasSubstr("in the time that --max-time allows"));
  outcome.start_command = "collectctl start";
  api::Session empty = recorded();
  empty.set_events(0);
  outcome.sessions = {empty, empty};
  EXPECT_THAT(text(), HasSubstr("in the time that --max-time allows")) << "someone asked for it";
  outcome.sessions[0].set_calls_left_out(5);
  outcome.sessions[1].set_calls_left_out(1);
  EXPECT_THAT(text(), HasSubstr("  Nothing was recorded: 6 calls left out, as function filter"));
  EXPECT_THAT(text(), Not(HasSubstr("next")));
}

TEST(RunSummaryLines, Json) {
  RunOutcome outcome = outcome_of({});
  outcome.exit_code = 3;
  outcome.trouble = "a\nb";
  EXPECT_EQ(run_summary_json(outcome),
            "{\"version\":1,\"exit_code\":3,\"agent_seen\":true,\"sessions\":[],\"trouble\":"
            "\"a\\nb\"}\n");
  outcome.filtered = true;
  outcome.unmatched = {"pars"};
  EXPECT_EQ(
      run_summary_json(outcome),
      "{\"version\":1,\"exit_code\":3,\"agent_seen\":true,\"sessions\":[],\"trouble\":\"a\\nb\","
      "\"unmatched\":[\"pars\"]}\n");
  outcome.sessions = {recorded()};
  EXPECT_THAT(run_summary_json(outcome), HasSubstr("\"events\":3000"));
}

// ---- the words and figures that these lines are made of

TEST(RunSummaryLines, SecondsOfASession) {
  api::Session session = recorded();
  EXPECT_EQ(session_seconds(session), 2.5);
  session.mutable_end_time()->set_seconds(99);
  EXPECT_EQ(session_seconds(session), 0) << "a clock that went back";
  session.clear_end_time();
  EXPECT_GT(session_seconds(session), 1e9) << "to now";
  session.clear_start_time();
  EXPECT_EQ(session_seconds(session), 0);
}

TEST(RunSummaryLines, WordsOfStates) {
  EXPECT_EQ(state_word(api::AGENT_STATE_DIALING), "dialling");
  EXPECT_EQ(state_word(api::AGENT_STATE_CONNECTED), "idle");
  EXPECT_EQ(state_word(api::AGENT_STATE_RECORDING), "recording");
  EXPECT_EQ(state_word(api::AGENT_STATE_DISCONNECTED), "disconnected");
  EXPECT_EQ(state_word(api::AGENT_STATE_GONE), "gone");
  EXPECT_EQ(state_word(api::AGENT_STATE_UNSPECIFIED), "unknown");
  EXPECT_EQ(state_word(api::SESSION_STATE_INTERRUPTED), "interrupted");
  EXPECT_EQ(state_word(api::SESSION_STATE_SEALING), "sealing");
  EXPECT_EQ(state_word(api::DEVICE_STATE_NO_AGENT), "no agent");
  EXPECT_EQ(state_word(api::DEVICE_STATE_ABSENT), "absent");
  EXPECT_EQ(mode_word(api::DETAIL_MODE_ARMED), "armed");
  EXPECT_EQ(mode_word(api::DETAIL_MODE_ON), "on");
  EXPECT_EQ(mode_word(api::DETAIL_MODE_OFF), "off");
  EXPECT_EQ(event_word(api::CHANGE_KIND_PRESENT), "present");
}

TEST(RunSummaryLines, WordsOfAShell) {
  EXPECT_EQ(shell_word("/data/pid_1"), "/data/pid_1");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
}

TEST(RunSummaryLines, FiguresAtTheEdgesOfTheirUnits) {
  EXPECT_EQ(short_bytes(99'949), "99.9 kB");
  EXPECT_EQ(short_bytes(99'950), "100 kB");
  EXPECT_EQ(short_bytes(999'499), "999 kB");
  EXPECT_EQ(short_bytes(999'500), "1.0 MB");
  EXPECT_EQ(short_bytes(UINT64_MAX), "18447 PB");
  EXPECT_EQ(short_rate(999.4), "999/s");
  EXPECT_EQ(short_rate(999.5), "1.0 k/s");
  EXPECT_EQ(short_duration(0.9994), "999 ms");
  EXPECT_EQ(short_duration(0.9995), "1.0 s");
  EXPECT_EQ(short_duration(60), "1 min 00 s");
  EXPECT_EQ(short_duration(3599), "59 min 59 s");
  EXPECT_EQ(short_duration(3600), "1 h 00 min");
  EXPECT_EQ(short_duration(7199), "1 h 59 min");
}

// Storing that failed is not the program's doing.
TEST(RunSummaryLines, ExplainsAnEmptySessionAfterStoringFailed) {
  api::Session session = recorded();
  session.set_events(0);
  session.set_state(api::SESSION_STATE_FAILED);
  session.set_losses_known(false);
  session.set_missing("storing ended (no space), and everything after it is missing");
  EXPECT_EQ(run_summary_text(outcome_of({session})),
            "collectctl: ./app ended with exit code 0\n"
            "  Nothing was recorded, /data/pid_1 is failed:\n"
            "  storing ended (no space), and everything after it is missing\n");
  session.set_state(api::SESSION_STATE_RECOVERED);
  session.set_missing("the program's end of the recording never came");
  EXPECT_THAT(run_summary_text(outcome_of({session})),
              HasSubstr("/data/pid_1 is recovered:\n  the program's end of the recording never"));
  session.set_calls_left_out(3);
  EXPECT_THAT(run_summary_text(outcome_of({session})), HasSubstr("3 calls left out"));
}

class TopFunctions : public testing::OfflineTest {
 protected:
  // A stack of six functions, each of which ends 1000 ns after the one that it called.
  void SetUp() override {
    OfflineTest::SetUp();
    std::vector<testing::Step> steps;
    std::string symbols;
    for (uint64_t i = 0; i < 6; ++i) {
      steps.push_back({1000, testing::kCall, 0x10 + i});
      symbols += std::string(i == 0 ? "" : ",") + R"({"function_id":"0x1)" + std::to_string(i) +
                 R"(","name":"f)" + std::to_string(i) + "\"}";
    }
    for (uint64_t i = 6; i-- > 0;) {
      steps.push_back({1000 + (6 - i) * (6 - i) * 100, testing::kReturn, 0x10 + i});
    }
    write_thread(0, testing::index_of(steps, 1));
    write_text(session_ / "manifest.json", R"({"threads":[{"id":0}],"symbols":[)" + symbols + "]}");
    recorded_.set_path(session_.string());
    recorded_.set_state(api::SESSION_STATE_COMPLETE);
    recorded_.set_events(12);
  }
  api::Session recorded_;
};

// Self times are 100, 300, 500, 700, 900 and 1100 of 3600 ns.
TEST_F(TopFunctions, AreThoseWithTheMostSelfTime) {
  const std::vector<TopFunction> top = top_functions(recorded_);
  ASSERT_EQ(top.size(), kTopFunctions);
  for (size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].name, "f" + std::to_string(i));
    EXPECT_EQ(top[i].calls, 1u);
    EXPECT_DOUBLE_EQ(top[i].self_share, (1100.0 - 200.0 * static_cast<double>(i)) / 3600.0);
  }
}

TEST_F(TopFunctions, SkipsLargeAndUnsealedSessions) {
  recorded_.set_events(kMaxQuickEvents);
  EXPECT_FALSE(top_functions(recorded_).empty());
  recorded_.set_events(kMaxQuickEvents + 1);
  EXPECT_TRUE(top_functions(recorded_).empty());
  EXPECT_FALSE(has_quick_top(recorded_));
  const std::vector<TopFunction> slow = slow_top_functions(recorded_);
  EXPECT_EQ(slow.size(), kTopFunctions);
  EXPECT_TRUE(top_functions_text(slow).starts_with("  self time   30.6 %  f0  1 call\n"))
      << top_functions_text(slow);
  recorded_.set_events(12);
  recorded_.set_state(api::SESSION_STATE_ACTIVE);
  EXPECT_TRUE(top_functions(recorded_).empty());
  recorded_.set_state(api::SESSION_STATE_RECOVERED);
  EXPECT_FALSE(top_functions(recorded_).empty());
  recorded_.set_path((root_ / "none").string());
  EXPECT_TRUE(top_functions(recorded_).empty());
  // Calls that took no time have no shares.
  write_thread(0, testing::index_of({{5, testing::kCall, 0x10}, {5, testing::kReturn, 0x10}}, 1));
  recorded_.set_path(session_.string());
  EXPECT_TRUE(top_functions(recorded_).empty());
}

TEST(RunSummaryLines, LargestOfNoneIsNone) {
  EXPECT_EQ(largest_session({}), nullptr);
  api::Session empty = recorded();
  empty.set_events(0);
  EXPECT_EQ(largest_session({empty, empty}), nullptr);
  const std::vector<api::Session> two = {empty, recorded()};
  EXPECT_EQ(largest_session(two), &two[1]);
}

// ---- every process

TEST(ProcessesOfASummary, MissingOneHasItsReason) {
  RunOutcome outcome = outcome_of({recorded()});
  EXPECT_TRUE(is_whole(outcome));
  EXPECT_THAT(run_summary_text(outcome), Not(HasSubstr("missing")));
  for (uint32_t pid = 7; pid < 7 + kMaxListedProcesses + 1; ++pid) {
    outcome.missing.push_back({pid, 65534, "/bin/worker\x1b", "refused by the collector: no"});
  }
  EXPECT_FALSE(is_whole(outcome));
  const std::string text = run_summary_text(outcome);
  EXPECT_THAT(text, HasSubstr("  missing    process 7 (/bin/worker\\x1b, user 65534):\n"
                              "             refused by the collector: no\n"));
  EXPECT_THAT(text, HasSubstr("process 16 ("));
  EXPECT_THAT(text, Not(HasSubstr("process 17 (")));
  EXPECT_THAT(text, HasSubstr("             and 1 process more\n"));
  const auto said = nlohmann::json::parse(run_summary_json(outcome));
  ASSERT_EQ(said["missing"].size(), kMaxListedProcesses + 1);
  EXPECT_EQ(said["missing"][0]["pid"], 7);
  EXPECT_EQ(said["missing"][0]["uid"], 65534);
  EXPECT_EQ(said["missing"][0]["reason"], "refused by the collector: no");
}

TEST(ProcessesOfASummary, ThoseOfWhichNothingIsKnownAreCounted) {
  RunOutcome outcome = outcome_of({recorded()});
  outcome.unknown_processes = 2;
  EXPECT_FALSE(is_whole(outcome));
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("nothing is known of 2 processes"));
  EXPECT_EQ(nlohmann::json::parse(run_summary_json(outcome))["unknown_processes"], 2);
}

// A version manager's python3: the plans are of the shell that runs it.
TEST(ProcessesOfASummary, ProgramThatBecameAnotherIsNamed) {
  RunOutcome outcome = outcome_of({});
  outcome.program = "python3";
  outcome.dynamic = true;
  outcome.planned = "/bin/bash";
  outcome.became = "/opt/python 3/bin/python3.11";
  outcome.quiet = {{"/bin/sed", 55}, {"/opt/python 3/bin/python3.11", 1}};
  EXPECT_FALSE(is_whole(outcome));
  const std::string text = run_summary_text(outcome);
  EXPECT_THAT(text, HasSubstr("  missing    /opt/python 3/bin/python3.11 was not recorded: "
                              "--dynamic is for\n             /bin/bash, which python3 starts it "
                              "by.\n"));
  EXPECT_THAT(text, HasSubstr("collectctl run --dynamic -- '/opt/python 3/bin/python3.11'\n"));
  EXPECT_THAT(text, HasSubstr("  ran        with the agent, but called no traced function:\n"
                              "             55 processes of /bin/sed\n"));
}

// Its parts are no news where the recording is what was asked for.
TEST(ProcessesOfASummary, NamesQuietProgramsWithoutAnySession) {
  RunOutcome outcome = outcome_of({recorded()});
  outcome.quiet = {{"/bin/sh", 3}};
  EXPECT_THAT(run_summary_text(outcome), Not(HasSubstr("/bin/sh")));
  EXPECT_TRUE(is_whole(outcome));
  outcome.sessions.clear();
  EXPECT_THAT(run_summary_text(outcome), HasSubstr("3 processes of /bin/sh"));
}

TEST(ProcessesOfASummary, TroubleIsNotWhole) {
  RunOutcome outcome = outcome_of({recorded()});
  outcome.trouble = "the collector was ended by a signal (Killed)";
  EXPECT_FALSE(is_whole(outcome));
}

}  // namespace
}  // namespace collect::ctl
