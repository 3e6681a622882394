// The host program behaves exactly as without the agent, and every event of it is recorded or
// counted as lost. Each program runs twice, without and with the agent, and both runs are compared.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <tuple>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

enum class Expected : uint8_t {
  kExactly,    // every thread: same counts, same order
  kAccounted,  // recorded + lost = counted
  kReadable,   // it ended in the middle of things: the session is sealed and verifies
};

struct Manners {
  const char* name;
  Arguments command;  // "@" is the scratch directory
  Expected expected;
  bool is_ordered_output = true;  // several processes write to one file
  Environment more = {};
};

std::ostream& operator<<(std::ostream& out, const Manners& manners) {
  return out << manners.name;
}

// Longer than any of them takes on a busy machine, shorter than CTest's patience.
constexpr seconds kProgramLimit{90};

Arguments command_line(const Manners& manners, const Scratch& scratch) {
  Arguments command = {traced_program(manners.command[0])};
  for (size_t i = 1; i < manners.command.size(); ++i) {
    std::string word = manners.command[i];
    if (const size_t at = word.find('@'); at != std::string::npos) {
      word.replace(at, 1, scratch.path());
    }
    if (word.ends_with(".so")) word = traced_program(word);
    command.push_back(word);
  }
  return command;
}

std::string comparable(const std::string& output, bool ordered) {
  if (ordered) return output;
  std::istringstream in(output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string sorted;
  for (const std::string& line : lines) sorted += line + "\n";
  return sorted;
}

void check_session(const CollectorProcess& collector, const Manners& manners, int pid,
                   const std::string& count_path) {
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), pid);
  ASSERT_EQ(sessions.size(), 1u) << "of process " << pid;
  Arguments verify{program("collectctl"), "verify", sessions[0].directory()};
  // What a crash takes with it no one can count.
  if (manners.expected == Expected::kReadable) verify.push_back("--allow-incomplete");
  const Ending verified =
      run(std::filesystem::path(collector.root()).parent_path().string(), verify);
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  if (manners.expected == Expected::kReadable) return;
  const IndependentCount count = read_count(count_path, pid);
  if (manners.expected == Expected::kExactly) {
    expect_exactly(sessions[0], count);
  } else {
    expect_accounted(sessions[0], count);
  }
  if (manners.more.contains("COUNT_MODULES")) {
    EXPECT_EQ(sessions[0].count_functions(), count.functions);
  }
}

// With a program, and by whom the agent drains: COLLECT_DRAIN.
class HostManners : public testing::TestWithParam<std::tuple<Manners, const char*>> {};

TEST_P(HostManners, AreThoseWithoutTheAgent) {
  const auto& [manners, drain] = GetParam();
  Scratch scratch;
  std::filesystem::create_directories(scratch / "plain");
  std::filesystem::create_directories(scratch / "traced");
  const Arguments command = command_line(manners, scratch);
  const Ending plain = run(scratch / "plain", command, {}, kProgramLimit);

  // An agent that died is not waited for as long as usual.
  CollectorProcess collector(scratch, {"--resume-ms", "2000"});
  Environment environment = collector.tracing();
  const std::string count_path = scratch / "traced/count";
  environment["COUNT_FILE"] = count_path;
  environment["COLLECT_DRAIN"] = drain;
  environment.insert(manners.more.begin(), manners.more.end());
  std::filesystem::remove(scratch / "answer");
  ChildProcess child(scratch / "traced", command, environment);
  const Ending traced = child.wait(kProgramLimit);

  EXPECT_EQ(traced.describe(), plain.describe());
  EXPECT_EQ(comparable(traced.output, manners.is_ordered_output),
            comparable(plain.output, manners.is_ordered_output));
  EXPECT_EQ(traced.errors, plain.errors) << "the agent writes nothing unless asked";
  check_session(collector, manners, child.pid(), count_path);
  // Forked children that ended by exit() have written a count too, and have sessions of their own.
  for (const int pid : counted_processes(count_path)) {
    if (pid != child.pid()) check_session(collector, manners, pid, count_path);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, HostManners,
    testing::Combine(
        testing::Values(
            Manners{"errno_and_process", {"manners"}, Expected::kExactly},
            Manners{"signal_timer", {"signals", "timer"}, Expected::kAccounted},
            Manners{"signal_altstack", {"signals", "altstack"}, Expected::kAccounted},
            Manners{"signal_masks", {"signals", "blocked"}, Expected::kExactly},
            Manners{"signal_segv", {"signals", "segv"}, Expected::kReadable},
            Manners{"short_threads", {"threads", "short"}, Expected::kExactly},
            Manners{"many_threads", {"threads", "many"}, Expected::kExactly},
            Manners{"small_stacks", {"threads", "small"}, Expected::kExactly},
            Manners{"late_threads", {"threads", "late"}, Expected::kReadable},
            Manners{"main_leaves", {"threads", "pthread_exit"}, Expected::kExactly},
            Manners{"exceptions", {"threads", "thrown"}, Expected::kExactly},
            Manners{"fork_work", {"forks", "work"}, Expected::kExactly, false},
            Manners{"fork_quick", {"forks", "quick"}, Expected::kExactly, false},
            Manners{"fork_killed", {"forks", "killed"}, Expected::kExactly, false},
            Manners{"fork_exec", {"forks", "exec"}, Expected::kExactly, false},
            Manners{"vfork", {"forks", "vfork"}, Expected::kExactly, false},
            Manners{"posix_spawn", {"forks", "spawn"}, Expected::kExactly, false},
            Manners{"daemonize", {"forks", "daemonize", "@/answer"}, Expected::kExactly},
            Manners{"close_range", {"descriptors", "close_range", "@"}, Expected::kAccounted},
            Manners{"close_loop", {"descriptors", "close_loop", "@"}, Expected::kAccounted},
            Manners{"dup_over", {"descriptors", "dup_over", "@"}, Expected::kReadable},
            Manners{"few_descriptors", {"descriptors", "few", "@"}, Expected::kAccounted},
            Manners{"lowest_descriptor", {"descriptors", "lowest", "@"}, Expected::kExactly},
            Manners{"memory_limit", {"memory", "limit"}, Expected::kAccounted},
            Manners{"early_memory_limit", {"memory", "early"}, Expected::kAccounted},
            Manners{"plugins",
                    {"plugins", "plugin_first.so", "plugin_second.so"},
                    Expected::kAccounted,
                    true,
                    {{"COUNT_MODULES", "1"}}}),
        testing::Values("thread", "process")),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param);
    });

// A handler that leaves by siglongjmp may interrupt the counter or the agent in the middle of one
// hook: that one event may be counted and not recorded. The hooks after it work as before.
TEST(HostMannersTest, LongjmpLosesAtMostTheInterruptedHooks) {
  constexpr uint64_t kJumps = 50;
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  environment["COUNT_FILE"] = scratch / "count";
  ChildProcess child(scratch.path(), {traced_program("signals"), "longjmp"}, environment);
  const Ending ending = child.wait(kProgramLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_EQ(ending.output, "jumped out of 50 handlers, then worked: 3320406573\n");
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child.pid());
  ASSERT_EQ(sessions.size(), 1u);
  const uint64_t counted = read_count(scratch / "count", child.pid()).events();
  const SessionTotals totals = sessions[0].totals();
  EXPECT_LE(totals.events + totals.lost, counted);
  EXPECT_GE(totals.events + totals.lost + kJumps, counted);
  EXPECT_LE(totals.lost, 20 * kJumps) << "a hook that was left must not look like one that runs";
}

// /dev/shm with no space left: in a mount namespace of its own, which takes root.
TEST(HostMannersTest, FullSharedMemoryIsALossAndNoSignal) {
  Scratch scratch;
  const std::string small_shm = "mount -t tmpfs -o size=4m tmpfs /dev/shm && exec \"$@\"";
  const Arguments in_namespace = {"unshare", "--mount", "sh", "-c", small_shm, "sh", "/bin/true"};
  if (!run(scratch.path(), in_namespace).exited_with(0)) {
    GTEST_SKIP() << "mounting in a namespace is not permitted here (it takes root)";
  }
  CollectorProcess collector(scratch);
  std::filesystem::create_directories(scratch / "traced");
  Arguments command = in_namespace;
  // The agent is for the program alone, not for unshare and the shell.
  command.pop_back();
  command.push_back("env");
  for (const auto& [name, value] : collector.tracing()) command.push_back(name + "=" + value);
  command.push_back("COUNT_FILE=" + (scratch / "count"));
  command.push_back(traced_program("memory"));
  command.push_back("shm");
  ChildProcess child(scratch / "traced", command);
  const Ending ending = child.wait(kProgramLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << "\n" << ending.errors;
  EXPECT_EQ(ending.output, "/dev/shm is full: yes; worked: 11645\n");
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_accounted(sessions[0], read_count(scratch / "count", child.pid()));
}

std::vector<std::string> thread_names(const RecordedSession& session) {
  std::vector<std::string> names;
  for (const auto& thread : session.manifest().at("threads"))
    names.push_back(thread.at("name").get<std::string>());
  return names;
}

// The last name of each thread, given by any thread, also when it ended right after that.
// Bytes that are no UTF-8 are shown as such; JSON stays JSON.
TEST(HostMannersTest, ThreadsHaveTheirLastNames) {
  for (const char* drain : {"thread", "process"}) {
    Scratch scratch;
    CollectorProcess collector(scratch);
    Environment environment = collector.tracing();
    environment["COLLECT_DRAIN"] = drain;
    ChildProcess child(scratch.path(), {traced_program("thread_names")}, environment);
    const Ending ending = child.wait(kProgramLimit);
    EXPECT_EQ(ending.output, "named\n") << ending.errors;
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child.pid());
    ASSERT_EQ(sessions.size(), 1u);
    std::vector<std::string> expected = {"renamed-main",    "net/rx \"0\"", "w\xc3\xb6rker",
                                         "bad??",           "tab\there",    "new\nline",
                                         "longest-15-byte", "<b>&amp;",     "late"};
    std::vector<std::string> names = thread_names(sessions[0]);
    // Those of two threads that did not say it themselves, and that live until the process ends: a
    // drain thread looks once more, a drain process finds no one there any more.
    if (drain == std::string("thread")) {
      expected.insert(expected.end(), {"by-system-call", "by-another"});
    } else {
      ASSERT_EQ(names.size(), expected.size() + 2);
      names.resize(expected.size());
    }
    EXPECT_EQ(names, expected) << drain;
    const auto& late = sessions[0].manifest().at("threads").at(8);
    EXPECT_EQ(late.at("names").back().at("name"), "late");
    EXPECT_GT(late.at("names").back().at("from_ns"), late.at("start_ns"));
    const Ending report = run(scratch.path(), {program("collectctl"), "report", "--by", "thread",
                                               "--json", sessions[0].directory()});
    const auto json = nlohmann::json::parse(report.output, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << report.output;
    for (const char* name : {"late", "renamed-main", "tab\\there", "<b>&amp;"}) {
      EXPECT_NE(report.output.find(name), std::string::npos) << name << report.output;
    }
  }
}

// Its paths are those of its own root directory; the parent's lead to the same files.
TEST(HostMannersTest, ChildAfterChrootHasNames) {
  if (::geteuid() != 0) GTEST_SKIP() << "chroot takes root";
  for (const char* drain : {"thread", "process"}) {
    Scratch scratch;
    std::filesystem::create_directories(scratch / "jail");
    CollectorProcess collector(scratch);
    Environment environment = collector.tracing();
    environment["COLLECT_DRAIN"] = drain;
    const Ending ending =
        run(scratch.path(), {traced_program("jailed"), scratch / "jail"}, environment);
    int child = 0;
    int code = 0;
    std::istringstream(ending.output) >> child >> code;
    ASSERT_EQ(code, 4) << ending.describe() << ending.output << ending.errors;
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].totals().events, 200u);
    const std::string directory = sessions[0].directory();
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    nlohmann::json manifest = sessions[0].manifest();
    while (manifest.value("symbols_state", "") == "pending" &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      manifest = RecordedSession(directory).manifest();
    }
    ASSERT_EQ(manifest.at("symbols").size(), 1u) << manifest.at("module_symbols").dump();
    EXPECT_EQ(manifest.at("symbols")[0].at("name"), "work_in_jail") << drain;
  }
}

// Constructors of libraries run before the agent's: the first event starts the agent. What comes
// while the dynamic linker is still at work is counted.
TEST(HostMannersTest, CallsBeforeTheAgentsConstructorAreRecorded) {
  struct Case {
    const char* program;
    uint64_t events;
    uint64_t lost;
  };
  // before_all, early_work 100, before_main, library_work 100, main; and once more by the resolver.
  for (const Case& one : {Case{"early", 2 * 203, 0}, Case{"early_resolver", 2 * 203, 2}}) {
    for (const char* drain : {"thread", "process"}) {
      Scratch scratch;
      CollectorProcess collector(scratch);
      Environment environment = collector.tracing();
      environment["COLLECT_DRAIN"] = drain;
      ChildProcess child(scratch.path(), {traced_program(one.program)}, environment);
      const Ending ending = child.wait(kProgramLimit);
      EXPECT_EQ(ending.output, "early_work 100, library_work 100, 7\n") << ending.errors;
      const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child.pid());
      ASSERT_EQ(sessions.size(), 1u);
      EXPECT_EQ(sessions[0].totals().events, one.events) << one.program << " " << drain;
      EXPECT_EQ(sessions[0].totals().lost, one.lost) << one.program << " " << drain;
    }
  }
}

// No one listens: the program neither waits nor fails, at its begin and at its end.
TEST(HostMannersTest, NoCollectorCostsNothingButTheRing) {
  Scratch scratch;
  const Environment environment = {{"LD_PRELOAD", agent_library()},
                                   {"COLLECT_CONNECT", "127.0.0.1:" + std::to_string(free_port())},
                                   {"COLLECT_BUFFER_MB", "1"}};
  const Ending plain = run(scratch.path(), {traced_program("threads"), "short"});
  const Ending traced = run(scratch.path(), {traced_program("threads"), "short"}, environment);
  EXPECT_EQ(traced.describe(), plain.describe());
  EXPECT_EQ(traced.output, plain.output);
  EXPECT_EQ(traced.errors, "");
}

// Settings that say nothing sensible leave the agent off, not the program broken.
TEST(HostMannersTest, WrongSettingsLeaveTheProgramAlone) {
  Scratch scratch;
  const Environment wrong[] = {
      {{"COLLECT_CONNECT", "nowhere"}},
      {{"COLLECT_CONNECT", "127.0.0.1:99999"}},
      {{"COLLECT_LISTEN", "abstract:"}},
      {{"COLLECT_CONNECT", "127.0.0.1:1"}, {"COLLECT_FULL", "sometimes"}},
      {{"COLLECT_CONNECT", "127.0.0.1:1"}, {"COLLECT_BUFFER_MB", "-4"}},
      {{"COLLECT_CONNECT", "127.0.0.1:1"}, {"COLLECT_ATF_VERSION", "3"}},
      {{"COLLECT_LISTEN", "unix:/nowhere/at/all"}},
      {},
  };
  for (Environment environment : wrong) {
    environment["LD_PRELOAD"] = agent_library();
    const Ending ending = run(scratch.path(), {traced_program("manners")}, environment);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
    EXPECT_EQ(ending.errors, "");
    EXPECT_TRUE(ending.output.starts_with("errno kept: main 1, thread 1")) << ending.output;
  }
}

// A misspelt variable is named where the agent was asked to speak, and nowhere else.
TEST(HostMannersTest, MisspeltVariablesAreNamedInTheLog) {
  Scratch scratch;
  Environment environment = {{"LD_PRELOAD", agent_library()}, {"COLLECT_BUFER_MB", "1"}};
  EXPECT_EQ(run(scratch.path(), {traced_program("manners")}, environment).errors, "");
  environment["COLLECT_LOG"] = "1";
  const Ending ending = run(scratch.path(), {traced_program("manners")}, environment);
  EXPECT_NE(ending.errors.find("unknown variable COLLECT_BUFER_MB; did you mean "
                               "COLLECT_BUFFER_MB?\n"),
            std::string::npos)
      << ending.errors;
}

}  // namespace
}  // namespace collect::e2e
