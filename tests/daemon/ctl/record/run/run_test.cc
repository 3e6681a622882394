// `collectctl run` as a whole, against a scripted collectord and a preloaded library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "daemon/control/control_server.h"
#include "daemon/ctl/control/connection/client.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/ctl/program_runner.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    runner_.environment = {{"COLLECT_COLLECTORD", FAKE_COLLECTORD_PROGRAM},
                           {"COLLECT_AGENT_LIBRARY", FAKE_AGENT_LIBRARY},
                           {"FAKE_COLLECTORD", "session"},
                           {"FAKE_EVENTS", "1234567"},
                           {"LD_PRELOAD", ""}};
  }

  // Always with a collector of its own: the machine's may be running.
  Ran run(const std::vector<std::string>& command, const std::vector<std::string>& options = {}) {
    return runner_.run(line(command, options));
  }

  static std::vector<std::string> line(const std::vector<std::string>& command,
                                       const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"run", "-o", "traces"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    return arguments;
  }

  bool daemon_ended() const {
    return std::filesystem::exists(runner_.directory() / "traces/ended");
  }

  ProgramRunner runner_;
};

TEST_F(RunTest, PassesTheExitCodeOnAndStopsItsCollector) {
  for (int code : {0, 1, 7, 125, 255}) {
    const Ran ran = run({"sh", "-c", "exit " + std::to_string(code)});
    EXPECT_EQ(ran.exit_code, code) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("exit code " + std::to_string(code)));
  }
  EXPECT_TRUE(daemon_ended());
}

TEST_F(RunTest, SignalIsItsNumberPlus128) {
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).exit_code, 128 + SIGKILL);
  EXPECT_EQ(run({"sh", "-c", "kill -SEGV $$"}).exit_code, 128 + SIGSEGV);
}

TEST_F(RunTest, ProgramsThatCannotStart) {
  Ran ran = run({"no-such-program-anywhere"});
  EXPECT_EQ(ran.exit_code, 127);
  EXPECT_THAT(ran.err, HasSubstr("no-such-program-anywhere"));
  EXPECT_EQ(run({"./missing"}).exit_code, 127);
  std::ofstream(runner_.directory() / "data.txt") << "no program";
  EXPECT_EQ(run({"./data.txt"}).exit_code, 126);
  std::filesystem::permissions(runner_.directory() / "data.txt", std::filesystem::perms::owner_all);
  EXPECT_EQ(run({"./data.txt"}).exit_code, 126);
  EXPECT_EQ(run({"."}).exit_code, 127);
}

TEST_F(RunTest, OurOwnFailuresAre125) {
  runner_.environment["FAKE_COLLECTORD"] = "refuse";
  Ran ran = run({"true"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("the disk is on fire"));
  runner_.environment["COLLECT_COLLECTORD"] = "/nonexistent/collectord";
  EXPECT_EQ(run({"true"}).exit_code, 125);
  runner_.environment["COLLECT_AGENT_LIBRARY"] = "/nonexistent/agent.so";
  ran = run({"true"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("COLLECT_AGENT_LIBRARY"));
  std::ofstream(runner_.directory() / "file") << "";
  runner_.environment["COLLECT_AGENT_LIBRARY"] = FAKE_AGENT_LIBRARY;
  runner_.environment["COLLECT_COLLECTORD"] = FAKE_COLLECTORD_PROGRAM;
  EXPECT_EQ(runner_.run({"run", "-o", "file/below", "true"}).exit_code, 125);
}

TEST_F(RunTest, ProgramGetsTheAgentAndItsSettings) {
  runner_.environment["COLLECT_LISTEN"] = "tcp:1";
  runner_.environment["COLLECT_LOG"] = "1";
  const Ran ran =
      run({"sh", "-c",
           "echo \"$LD_PRELOAD|$COLLECT_CONNECT|$COLLECT_DETAIL|$COLLECT_FULL|"
           "$COLLECT_BUFFER_MB|$COLLECT_ATF_VERSION|$COLLECT_LISTEN|$COLLECT_LOG\"; "
           "echo \"$COLLECT_TAG\" >&1"},
          {"--detail", "armed", "--when-full=overwrite", "--buffer", "512", "--atf-version", "1"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(std::string(FAKE_AGENT_LIBRARY) +
                                 "|127.0.0.1:1234|armed|overwrite|512|1||1\nrun-"));
}

// Seen: the caller's COLLECT_TAG was overwritten, against what --help says.
TEST_F(RunTest, TagOfTheCallerStays) {
  EXPECT_THAT(run({"sh", "-c", "echo $COLLECT_TAG"}).out, HasSubstr("run-"));
  runner_.environment["COLLECT_TAG"] = "mine";
  EXPECT_EQ(run({"sh", "-c", "echo $COLLECT_TAG"}).out, "mine\n");
}

TEST_F(RunTest, QuietSaysNothingUnlessSomethingIsWrong) {
  EXPECT_NE(run({"true"}).err, "");
  EXPECT_EQ(run({"true"}, {"--quiet"}).err, "");
  EXPECT_EQ(run({"true"}, {"-q"}).err, "");
  runner_.environment["FAKE_EVENTS"] = "0";
  EXPECT_NE(run({"true"}, {"--quiet"}).err, "");
}

TEST_F(RunTest, MisspeltVariableIsSaid) {
  EXPECT_THAT(run({"true"}).err, Not(HasSubstr("unknown variable")));
  runner_.environment["COLLECT_BUFER_MB"] = "8";
  EXPECT_THAT(run({"true"}).err,
              HasSubstr("collectctl: unknown variable COLLECT_BUFER_MB; did you mean "
                        "COLLECT_BUFFER_MB?\n"));
}

TEST_F(RunTest, EarlierPreloadStays) {
  runner_.environment["LD_PRELOAD"] = "libm.so.6";
  const Ran ran = run({"sh", "-c", "echo $LD_PRELOAD"});
  EXPECT_EQ(ran.out, std::string(FAKE_AGENT_LIBRARY) + ":libm.so.6\n");
}

TEST_F(RunTest, StreamsAndArgumentsAreTheProgramsOwn) {
  runner_.input = "from standard input\n";
  Ran ran = run({"cat", "-"});
  EXPECT_EQ(ran.out, "from standard input\n");
  ran = run({"echo", "--json", "--", "-o", "x"});
  EXPECT_EQ(ran.out, "--json -- -o x\n");
  // Without "--" the first word that is no option of ours is the program.
  ran = runner_.run({"run", "-q", "-o", "traces", "echo", "--detail", "sideways"});
  EXPECT_EQ(ran.out, "--detail sideways\n");
  EXPECT_EQ(ran.err, "");
}

TEST_F(RunTest, TermReachesTheProgram) {
  runner_.start(line({"sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"}));
  ASSERT_TRUE(eventually([&] { return runner_.out_so_far() == "ready\n"; }));
  runner_.send_signal(SIGTERM);
  const Ran ran = runner_.finish();
  EXPECT_EQ(ran.exit_code, 9) << ran.err;
  EXPECT_TRUE(daemon_ended());
}

TEST_F(RunTest, CollectorDoesNotOutliveUs) {
  runner_.start(line({"sh", "-c", "echo ready; exec sleep 2"}));
  ASSERT_TRUE(eventually([&] { return runner_.out_so_far() == "ready\n"; }));
  runner_.send_signal(SIGKILL);
  runner_.finish();
  EXPECT_TRUE(eventually([&] { return daemon_ended(); }));
}

TEST_F(RunTest, RootBelongsToOneRunAtATime) {
  const Ran ran = run({COLLECTCTL, "run", "-o", "traces", "--", "true"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("another run records into"));
}

TEST_F(RunTest, RunsAtTheSameTimeFindRootsByThemselves) {
  if (Client(default_control_address()).stats().ok()) {
    GTEST_SKIP() << "a collector runs at " << default_control_address() << " and would be used";
  }
  const Ran ran = runner_.run({"run", "--", COLLECTCTL, "run", "--", COLLECTCTL, "run", "true"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* root : {"ada_traces", "ada_traces-2", "ada_traces-3"}) {
    EXPECT_TRUE(std::filesystem::exists(runner_.directory() / root / "ended")) << root;
  }
}

TEST_F(RunTest, SummaryOfASession) {
  const Ran ran = run({"true"});
  EXPECT_THAT(ran.err, HasSubstr("grpcurl -plaintext 127.0.0.1:"));
  EXPECT_THAT(ran.err, HasSubstr("/data/session_20250101_000000/pid_1"));
  EXPECT_THAT(ran.err, HasSubstr("1,234,567 events of 2 threads in 2.0 s (617 k/s)"));
  EXPECT_THAT(ran.err, HasSubstr("collectctl report /data/session_20250101_000000/pid_1"));
  EXPECT_THAT(ran.err, Not(HasSubstr("--buffer")));
}

TEST_F(RunTest, LossIsSaidWithItsRemedy) {
  runner_.environment["FAKE_LOST"] = "42";
  Ran ran = run({"true"}, {"--when-full", "drop"});
  EXPECT_THAT(ran.err, HasSubstr("42 events"));
  EXPECT_THAT(ran.err, HasSubstr("--buffer"));
  EXPECT_THAT(ran.err, HasSubstr("--when-full wait"));
  // Who waits already can't be asked to; the old name of the option still holds.
  for (const std::vector<std::string>& options : {{}, std::vector<std::string>{"--full", "wait"}}) {
    ran = run({"true"}, options);
    EXPECT_THAT(ran.err, HasSubstr("42 events"));
    EXPECT_THAT(ran.err, HasSubstr("although the program waited"));
    EXPECT_THAT(ran.err, Not(HasSubstr("--when-full wait")));
  }
}

TEST_F(RunTest, ProgramWithoutInstrumentationIsExplained) {
  runner_.environment["FAKE_COLLECTORD"] = "agent";
  Ran ran = run({"true"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("-finstrument-functions"));
  runner_.environment["FAKE_COLLECTORD"] = "session";
  runner_.environment["FAKE_EVENTS"] = "0";
  EXPECT_THAT(run({"true"}).err, HasSubstr("-finstrument-functions"));
  runner_.environment["FAKE_COLLECTORD"] = "silent";
  ran = run({"true"});
  EXPECT_THAT(ran.err, HasSubstr("No process of this run reached the collector"));
}

// What a crash leaves arrives without anybody asking for it; who asks for a thread gets one.
TEST_F(RunTest, AgentsDrainByAProcessByDefault) {
  const std::vector<std::string> print{"sh", "-c", "echo $COLLECT_DRAIN"};
  EXPECT_EQ(run(print).out, "process\n");
  EXPECT_EQ(run(print, {"--drain", "thread"}).out, "thread\n");
  runner_.environment["COLLECT_DRAIN"] = "thread";
  EXPECT_EQ(run(print).out, "thread\n");
}

TEST_F(RunTest, EmptyRecordingNamesTheTrueCause) {
  runner_.environment["FAKE_COLLECTORD"] = "silent";
  const std::vector<std::string> abort{"sh", "-c", "kill -ABRT $$"};
  std::string err = run(abort, {"--drain", "thread"}).err;
  EXPECT_THAT(err, HasSubstr("ended by a signal (Aborted) before anything of it was shipped"));
  EXPECT_THAT(err, HasSubstr("--drain process"));
  err = run(abort).err;
  EXPECT_THAT(err, HasSubstr("ended by a signal (Aborted) before its agent reached the"));
  EXPECT_THAT(err, Not(HasSubstr("linked statically")));
  runner_.environment["FAKE_COLLECTORD"] = "agent";
  EXPECT_THAT(run(abort).err, HasSubstr("(Aborted), and no traced function had been"));
}

TEST_F(RunTest, StaticProgramIsNamedAsTheCause) {
  runner_.environment["FAKE_COLLECTORD"] = "silent";
  EXPECT_THAT(run({STATIC_PROGRAM}).err, HasSubstr("it is linked statically"));
}

TEST_F(RunTest, CrashedProgramsSessionIsSealedAtOnce) {
  runner_.environment["FAKE_COLLECTORD"] = "crash";
  const Ran ran = run({"sh", "-c", "kill -ABRT $$"}, {"--drain", "thread"});
  EXPECT_EQ(ran.exit_code, 128 + SIGABRT);
  EXPECT_THAT(ran.err, HasSubstr("(recovered)"));
}

// The program did what it should, and yet not all of it is stored.
TEST_F(RunTest, FailedSessionIsNoSuccess) {
  runner_.environment["FAKE_COLLECTORD"] = "failed";
  Ran ran = run({"true"});
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("(failed)"));
  EXPECT_THAT(ran.err, HasSubstr("lost       what was recorded last; how much is not known"));
  EXPECT_THAT(ran.err, ::testing::Not(HasSubstr("nothing")));
  ran = run({"sh", "-c", "exit 3"});
  EXPECT_EQ(ran.exit_code, 3);
}

TEST_F(RunTest, JsonSummaryIsTheLastLine) {
  const Ran ran = run({"sh", "-c", "exit 3"}, {"--json"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.err,
              ::testing::StartsWith("{\"version\":1,\"exit_code\":3,\"agent_seen\":true,"));
  EXPECT_THAT(ran.err, HasSubstr("\"events\":1234567"));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
}

TEST_F(RunTest, RunningCollectorIsUsed) {
  control::FakeCollector collector;
  collector.set_ingest_address("0.0.0.0:9999");
  auto server = control::ControlServer::start("127.0.0.1:0", collector);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  runner_.environment["COLLECT_COLLECTORD"] = "/nonexistent";
  const std::vector<std::string> command = {"sh", "-c", "echo $COLLECT_CONNECT; exit 4"};
  std::vector<std::string> arguments = {"run", "--control", (*server)->address(), "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  Ran ran = runner_.run(arguments);
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_EQ(ran.out, "127.0.0.1:9999\n");
  EXPECT_FALSE(std::filesystem::exists(runner_.directory() / "ada_traces"));

  // No one at the address that the user gave: said before the program starts.
  const std::string address = (*server)->address();
  server->reset();
  arguments[2] = address;
  ran = runner_.run(arguments);
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr(address));
}

}  // namespace
}  // namespace collect::ctl
