// `collectctl run` accounts for every process that loaded the agent below it: it is a session, or a
// line of the summary with its reason and exit code 125. Every count is in programs/system/apart.c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/run_test.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kUnavailable = 77;  // of the program: this machine does not let it
constexpr uint64_t kOfParent = 2 * (1000 + 3000);
constexpr uint64_t kOfChild = 2 * 7000;

class AccountingTest : public RunTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user or leave a namespace";
  }
  Ending trace(const Arguments& words, int exit_code = 0, const Arguments& options = {}) {
    const Arguments ours{program("collectctl"), "run",     "-o",
                         scratch_ / "traces",   "--drain", GetParam()};
    const Ending ending = run(scratch_.path(), ours + options + Arguments{"--", self_} + words);
    if (ending.exit_code == kUnavailable) return ending;
    EXPECT_TRUE(ending.exited_with(exit_code)) << ending.describe() << ending.errors;
    return ending;
  }
  // Of complete sessions, sorted.
  std::vector<uint64_t> events() {
    std::vector<uint64_t> counts;
    for (const RecordedSession& session : sessions()) counts.push_back(session.totals().events);
    std::sort(counts.begin(), counts.end());
    return counts;
  }

  const std::string self_ = traced_program("apart");
};

TEST_P(AccountingTest, WorkersOfAnotherUserAreRecorded) {
  trace({"setuid", "fork"});
  EXPECT_THAT(events(), ElementsAre(kOfParent, kOfChild, kOfChild));
}

TEST_P(AccountingTest, ProgramStartedByAnotherUserIsRecorded) {
  for (const char* way : {"exec", "spawn", "vfork"}) {
    trace({"setuid", way});
  }
  EXPECT_THAT(events(), ElementsAre(kOfParent, kOfParent, kOfParent, kOfChild, kOfChild, kOfChild));
}

TEST_P(AccountingTest, AnotherPidNamespaceIsRecorded) {
  if (trace({"pidns", "fork"}).exit_code == kUnavailable) GTEST_SKIP() << "no PID namespaces";
  EXPECT_THAT(events(), ElementsAre(kOfParent, kOfChild, kOfChild));
}

TEST_P(AccountingTest, AnotherRootDirectoryIsRecorded) {
  ASSERT_EQ(::mkdir((scratch_ / "empty").c_str(), 0755), 0);
  trace({"chroot=" + scratch_ / "empty", "setuid", "fork"});
  EXPECT_THAT(events(), ElementsAre(kOfParent, kOfChild, kOfChild));
}

TEST_P(AccountingTest, AnotherMountNamespaceIsRecorded) {
  if (trace({"mntns", "exec"}).exit_code == kUnavailable) GTEST_SKIP() << "no mount namespaces";
  EXPECT_THAT(events(), ElementsAre(kOfParent, kOfChild));
}

// No one there is the collector: each process is a line.
TEST_P(AccountingTest, AnotherNetworkNamespaceIsALine) {
  const Ending ending = trace({"netns", "fork"}, 125);
  if (ending.exit_code == kUnavailable) GTEST_SKIP() << "no network namespaces";
  EXPECT_THAT(events(), ElementsAre(kOfParent));
  EXPECT_THAT(ending.errors, HasSubstr("missing    process "));
  EXPECT_THAT(ending.errors, HasSubstr("no collector at 127.0.0.1:"));
  size_t lines = 0;
  for (size_t at = 0; (at = ending.errors.find("missing ", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 2u) << ending.errors;
}

TEST_P(AccountingTest, DaemonThatClosesEverythingIsWaitedFor) {
  trace({"daemon"});
  EXPECT_THAT(events(), ElementsAre(kOfParent, kOfChild));
}

// It never loads the agent, so there is nothing to account for.
TEST_P(AccountingTest, ClearedEnvironmentIsNoLoss) {
  const Ending ending = trace({"clear"});
  EXPECT_THAT(events(), ElementsAre(kOfParent));
  EXPECT_THAT(ending.errors, Not(HasSubstr("missing")));
}

// One that ran already goes by its own rule, which `run` cannot widen: nothing is lost in silence.
TEST_P(AccountingTest, CollectorThatRanAlreadyRefusesByName) {
  const Scratch other;
  CollectorProcess collector(other);
  struct Case {
    Arguments options;
    const char* way;
    size_t processes;
  };
  // A filter has to come from the collector that refuses.
  for (const auto& [options, way, processes] :
       {Case{{}, "fork", 3}, Case{{}, "exec", 2}, Case{{"--only", "work"}, "exec", 2}}) {
    const Arguments ours{program("collectctl"),
                         "--control",
                         "127.0.0.1:" + std::to_string(collector.control_port()),
                         "run",
                         "--drain",
                         GetParam(),
                         "--json"};
    const Ending ending =
        run(scratch_.path(), ours + options + Arguments{"--", self_, "setuid", way});
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
    const json said = json::parse(ending.errors.substr(ending.errors.find('{')), nullptr, false);
    ASSERT_TRUE(said.is_object()) << ending.errors;
    // The parent may be refused as well: its agent may come to connect after the change of user.
    EXPECT_EQ(said["sessions"].size() + said["missing"].size(), processes) << ending.errors;
    EXPECT_GE(said["missing"].size(), processes - 1) << ending.errors;
    for (const json& process : said["missing"]) {
      EXPECT_TRUE(process["program"].get<std::string>().ends_with("/apart"));
      EXPECT_THAT(process["reason"].get<std::string>(), HasSubstr("user 65534 may not connect"));
    }
  }
}

// Without collectctl, byte for byte: two children of another user, in the file of their parent.
TEST_P(AccountingTest, ProcessesWriteTheirRecords) {
  const std::string folder = scratch_ / "run";
  ASSERT_EQ(::mkdir(folder.c_str(), 0755), 0);
  const Ending ending = run(scratch_.path(), {self_, "setuid", "fork"},
                            {{"LD_PRELOAD", agent_library()},
                             {"COLLECT_CONNECT", "127.0.0.1:1"},
                             {"COLLECT_DRAIN", GetParam()},
                             {"COLLECT_EXIT_FLUSH_MS", "200"},
                             {"COLLECT_RUN", folder}});
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_EQ(ending.errors, "");
  std::string bytes;
  const auto all_ended = [&] {
    bytes.clear();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      bytes += read_text_file(entry.path());
    }
    size_t ended = 0;
    for (size_t at = 512; at + 512 <= bytes.size(); at += 512) {
      if (bytes[at] == 3 && (bytes[at + 4] & 4) != 0) ++ended;
    }
    return ended == 3;
  };
  ASSERT_TRUE(eventually(seconds(20), all_ended));
  ASSERT_EQ(bytes.size(), 65536u) << "one file";
  for (size_t at = 512; at < 512 + 3 * 512; at += 512) {
    EXPECT_EQ(bytes[at + 4] & 3, 1) << "it recorded, and reached no collector";
    const std::string program = bytes.substr(at + 40, 120).c_str();
    EXPECT_TRUE(program.ends_with("/apart")) << program;
    EXPECT_STREQ(bytes.substr(at + 160, 352).c_str(),
                 "no collector at 127.0.0.1:1: no one listens there");
    const std::string user = bytes.substr(at + 12, 4);
    EXPECT_EQ(user, at == 512 ? std::string(4, '\0') : std::string("\xfe\xff\0\0", 4));
  }
}

// A collector with the key in a file, and a program that has it in its environment.
TEST_P(AccountingTest, KeyLetsAnotherUserIn) {
  const std::string key(64, '7');
  write_text_file(scratch_ / "key", key + "\n");
  CollectorProcess collector(scratch_, {"--guest-token-file", scratch_ / "key"});
  Environment tracing = collector.tracing();
  tracing["COLLECT_DRAIN"] = GetParam();
  tracing["COLLECT_RUN_KEY"] = key;
  const Ending ending = run(scratch_.path(), {self_, "setuid", "exec"}, tracing);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    const auto found = session_directories(collector.root());
    return found.size() == 2 && std::all_of(found.begin(), found.end(), [](const auto& directory) {
             return RecordedSession(directory).state() == "complete";
           });
  }));
}

// A worker that is killed with its drain: no one waits for a minute to learn that it is gone.
TEST_P(AccountingTest, KilledProcessIsKnownToBeGone) {
  CollectorProcess collector(scratch_);
  Environment tracing = collector.tracing();
  tracing["COLLECT_DRAIN"] = GetParam();
  ChildProcess traced(scratch_.path(), {self_, "linger"}, tracing);
  ASSERT_TRUE(eventually(
      seconds(20), [&] { return !session_directories(collector.root(), traced.pid()).empty(); }));
  // The drain first: it would say how the program ended.
  const std::vector<int> drains = drain_processes(scratch_.path());
  EXPECT_EQ(drains.size(), GetParam() == std::string("process") ? 1u : 0u);
  for (const int drain : drains) ::kill(drain, SIGKILL);
  traced.send_signal(SIGKILL);
  (void)traced.wait(seconds(20));
  // Below the 60 s that it would be waited for otherwise.
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.ctl({"sessions", "--json"}).output.find("recovered") != std::string::npos;
  }));
}

// The program is none the worse; what it lost is said, and no one stays behind.
TEST_P(AccountingTest, KilledCollectorIsSaid) {
  ChildProcess job(scratch_.path(), {program("collectctl"), "run", "-o", scratch_ / "traces",
                                     "--drain", GetParam(), "--", self_, "linger"});
  ASSERT_TRUE(eventually(seconds(20), [&] {
    const auto found = session_directories(scratch_ / "traces");
    return !found.empty() && job.output().find("lingers") != std::string::npos;
  })) << job.errors();
  const std::string children = read_text_file("/proc/" + std::to_string(job.pid()) + "/task/" +
                                              std::to_string(job.pid()) + "/children");
  pid_t collector = 0;
  pid_t traced = 0;
  for (size_t at = 0; at < children.size(); at = children.find(' ', at) + 1) {
    const pid_t child = std::stoi(children.substr(at));
    const std::string name = read_text_file("/proc/" + std::to_string(child) + "/comm");
    (name.starts_with("collectord") ? collector : traced) = child;
    if (children.find(' ', at) == std::string::npos) break;
  }
  ASSERT_GT(collector, 0) << children;
  ASSERT_GT(traced, 0) << children;
  ::kill(collector, SIGKILL);
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return job.errors().find("the collector was ended by a signal (Killed)") != std::string::npos;
  })) << job.errors();
  EXPECT_TRUE(eventually(seconds(10), [&] { return drain_processes(scratch_.path()).empty(); }))
      << "the program still runs, but no one reads what it records";
  ::kill(traced, SIGTERM);
  const Ending& ending = job.wait(seconds(60));
  EXPECT_TRUE(ending.exited_with(128 + SIGTERM)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("trouble"));
}

INSTANTIATE_TEST_SUITE_P(Drains, AccountingTest, ::testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
