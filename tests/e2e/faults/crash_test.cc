// Programs that end in the middle of things, with the agent's drain process draining: everything
// that was recorded before the end is in the session, once, and the manifest says how the program
// ended.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr seconds kProgramLimit{30};
constexpr size_t kIndexHeaderBytes = 64;
constexpr uint32_t kSeed = 20240607;  // of the moments at which programs are killed

// One thread's counts as shared_counter.c keeps them.
struct SharedCount {
  uint64_t begun = 0;
  uint64_t done = 0;
};

std::map<uint32_t, SharedCount> read_shared(const std::string& path, int pid) {
  constexpr size_t kSlot = 24;
  const std::string bytes = read_text_file(path + "." + std::to_string(pid));
  EXPECT_FALSE(bytes.empty()) << path << "." << pid;
  std::map<uint32_t, SharedCount> counts;
  for (size_t at = 0; at + kSlot <= bytes.size(); at += kSlot) {
    uint32_t thread_id = 0;
    SharedCount one;
    std::memcpy(&thread_id, bytes.data() + at, 4);
    std::memcpy(&one.begun, bytes.data() + at + 8, 8);
    std::memcpy(&one.done, bytes.data() + at + 16, 8);
    if (thread_id == 0) break;
    counts[thread_id].begun += one.begun;
    counts[thread_id].done += one.done;
  }
  return counts;
}

SharedCount sum(const std::map<uint32_t, SharedCount>& counts) {
  SharedCount all;
  for (const auto& [thread, one] : counts) {
    all.begun += one.begun;
    all.done += one.done;
  }
  return all;
}

json process_end(const RecordedSession& session) {
  const json& process = session.manifest()["process"];
  if (!process.contains("end")) return {};
  json end = process["end"];
  end.erase("core_dumped");  // the machine's business
  return end;
}

std::vector<json> ends_of(const std::vector<RecordedSession>& sessions) {
  std::vector<json> ends;
  for (const RecordedSession& session : sessions) ends.push_back(process_end(session));
  return ends;
}

json signaled(int signal) {
  return {{"how", "signaled"}, {"signal", signal}};
}
json exited(int code) {
  return {{"how", "exited"}, {"exit_code", code}};
}

class CrashTest : public testing::Test {
 protected:
  Environment environment(const std::string& full = "wait") {
    Environment more = collector.tracing(full);
    more["COLLECT_DRAIN"] = "process";
    more["COUNT_SHARED"] = scratch / "count";
    return more;
  }

  Arguments crash(const std::string& mode, uint64_t after) {
    return {traced_program("crash"), mode, std::to_string(after)};
  }

  void expect_verified(const RecordedSession& session) {
    const Ending verified =
        run(scratch.path(), {program("collectctl"), "verify", session.directory()});
    EXPECT_TRUE(verified.exited_with(session.state() == "complete" ? 0 : 1))
        << verified.output << verified.errors;
    const Ending files = run(scratch.path(), {program("collectctl"), "verify", "--allow-incomplete",
                                              session.directory()});
    EXPECT_TRUE(files.exited_with(0)) << files.output << files.errors;
  }

  std::vector<RecordedSession> expect_all_of(int pid, const json& end) {
    std::vector<RecordedSession> sessions = expect_all_of(pid);
    for (const RecordedSession& session : sessions) EXPECT_EQ(process_end(session), end);
    return sessions;
  }

  // Everything that came back from the agent is stored or counted as lost, in sessions that are
  // complete; and nothing that was not begun.
  std::vector<RecordedSession> expect_all_of(int pid) {
    std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), pid);
    std::map<uint32_t, uint64_t> stored;
    uint64_t events = 0;
    uint64_t lost = 0;
    for (const RecordedSession& session : sessions) {
      EXPECT_EQ(session.state(), "complete") << session.manifest().value("reason", "");
      expect_verified(session);
      for (const CountedThread& thread : session.count_threads()) {
        stored[thread.thread_id] += thread.calls + thread.returns;
      }
      events += session.totals().events;
      // The frames of a thread that leaves by pthread_exit: no hook is called for them.
      for (const json& thread : session.manifest()["threads"]) {
        session.for_each_event(thread.value("id", 0u),
                               [&](const RecordedSession::StoredEvent& event) {
                                 if (!event.is_exception) return;
                                 --events;
                                 --stored[thread.value("thread_id", 0u)];
                               });
      }
      lost += session.totals().lost;
    }
    const std::map<uint32_t, SharedCount> counts = read_shared(scratch / "count", pid);
    EXPECT_GE(events + lost, sum(counts).done) << "process " << pid;
    EXPECT_LE(events + lost, sum(counts).begun) << "process " << pid;
    for (const auto& [thread, count] : counts) {
      EXPECT_LE(stored[thread], count.begun) << "thread " << thread;
      if (lost == 0) {
        EXPECT_GE(stored[thread], count.done) << "thread " << thread;
      }
    }
    return sessions;
  }

  void expect_no_drain_process() {
    EXPECT_TRUE(eventually(seconds(10), [this] { return drain_processes(scratch.path()).empty(); }))
        << "a drain process is still there";
  }

  // Whether a session of this process holds events by now.
  bool stores_events_of(int pid) {
    for (const std::string& directory : session_directories(collector.root(), pid)) {
      std::error_code none;
      const auto bytes = std::filesystem::file_size(directory + "/thread_0/index.atf", none);
      if (!none && bytes > kIndexHeaderBytes) return true;
    }
    return false;
  }

  // When the program says that it is at work, a random while later.
  void kill_at_work(ChildProcess& child, std::mt19937& random) {
    ASSERT_TRUE(eventually(kProgramLimit, [&] { return child.output() == "worked\n"; }));
    kill_soon(child, random);
  }

  void kill_soon(ChildProcess& child, std::mt19937& random) {
    const auto pause = std::chrono::microseconds(random() % 60000);
    const auto until = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < until) usleep(100);
    child.send_signal(SIGKILL);
    EXPECT_EQ(child.wait(kProgramLimit).signal, SIGKILL);
  }

  Scratch scratch;
  CollectorProcess collector{scratch};
};

struct OwnEnd {
  const char* mode;
  int signal;
  int code;
};

TEST_F(CrashTest, EndsOfAllKindsLoseNothing) {
  // `kill` represents the system's own SIGKILL when memory is short, `memory` for a program that
  // takes that as an error.
  const OwnEnd ends[] = {{"segv", SIGSEGV, 0},   {"abort", SIGABRT, 0}, {"kill", SIGKILL, 0},
                         {"memory", SIGABRT, 0}, {"leave", SIGABRT, 0}, {"exit", 0, 9},
                         {"_exit", 0, 7},        {"quick", 0, 5}};
  for (const OwnEnd& end : ends) {
    SCOPED_TRACE(end.mode);
    ChildProcess child(scratch.path(), crash(end.mode, 20000), environment());
    const Ending& ending = child.wait(kProgramLimit);
    EXPECT_EQ(ending.signal, end.signal) << ending.describe();
    if (end.signal == 0) {
      EXPECT_EQ(ending.exit_code, end.code);
    }
    EXPECT_EQ(ending.output, "worked\n");
    EXPECT_EQ(ending.errors, "");
    const auto sessions =
        expect_all_of(child.pid(), end.signal != 0 ? signaled(end.signal) : exited(end.code));
    EXPECT_EQ(sessions.size(), 1u);
  }
  expect_no_drain_process();
}

// A control group with a memory limit; empty where making one is not permitted. With the other
// hierarchy it is elsewhere and its limit has another name.
std::string memory_group(const std::string& name, uint64_t limit_bytes) {
  const std::pair<const char*, const char*> places[] = {
      {"/sys/fs/cgroup/memory/", "memory.limit_in_bytes"}, {"/sys/fs/cgroup/", "memory.max"}};
  for (const auto& [place, limit] : places) {
    const std::string path = place + name;
    std::error_code error;
    if (!std::filesystem::create_directory(path, error)) continue;
    std::ofstream file(path + "/" + limit);
    file << limit_bytes << std::flush;
    if (file.good()) return path;
    std::filesystem::remove(path, error);
  }
  return {};
}

// How many processes of the group the kernel killed because of its limit; asked when all have
// ended.
uint64_t killed_for_memory(const std::string& group) {
  EXPECT_TRUE(eventually(seconds(60), [&] {
    std::ifstream processes(group + "/cgroup.procs");
    return processes.peek() == std::ifstream::traits_type::eof();
  })) << group;
  for (const char* name : {"/memory.oom_control", "/memory.events"}) {
    std::ifstream events(group + name);
    std::string word;
    for (uint64_t count = 0; events >> word >> count;) {
      if (word == "oom_kill") return count;
    }
  }
  return 0;
}

// The real thing. The drain process shares the limit and is the smaller of the two; but on a busy
// machine the kernel kills it too now and then, while the program is still giving its memory back.
TEST_F(CrashTest, OutOfMemoryKillerLosesNothing) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    const std::string group = memory_group("collect_crash_" + std::to_string(getpid()), 150 << 20);
    if (group.empty()) GTEST_SKIP() << "memory groups are not permitted here (they take root)";
    std::string line = "echo $$ > " + group + "/cgroup.procs && exec env";
    for (const auto& [name, value] : environment()) line += " " + name + "=" + value;
    line += " " + traced_program("crash") + " hog 20000";
    ChildProcess child(scratch.path(), {"/bin/sh", "-c", line});
    const Ending& ending = child.wait(kProgramLimit);
    EXPECT_EQ(ending.signal, SIGKILL) << ending.describe() << ending.errors;
    const uint64_t killed = killed_for_memory(group);
    EXPECT_TRUE(eventually(seconds(10), [&] { return rmdir(group.c_str()) == 0; })) << group;
    ASSERT_GE(killed, 1u);
    if (killed > 1) continue;
    std::vector<RecordedSession> sessions = expect_all_of(child.pid());
    ASSERT_FALSE(sessions.empty());
    EXPECT_EQ(process_end(sessions.back()), signaled(SIGKILL));
    expect_no_drain_process();
    return;
  }
  GTEST_SKIP() << "the kernel killed the drain process too, " << kTries << " times";
}

TEST_F(CrashTest, KilledAtRandomMomentsLosesNothing) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    ChildProcess child(scratch.path(), crash("wait", 1000), environment());
    kill_at_work(child, random);
    expect_all_of(child.pid(), signaled(SIGKILL));
  }
  expect_no_drain_process();
}

// A ring of 1 MB that overflows all the time: what is dropped or overwritten is counted, also when
// its thread died in the middle of that. Every second round with detail, which takes more room.
TEST_F(CrashTest, KilledWithAFullRingKeepsTheCount) {
  std::mt19937 random(kSeed + 1);
  for (const char* full : {"drop", "overwrite"}) {
    for (int round = 0; round < 6; ++round) {
      SCOPED_TRACE(std::string(full) + " " + std::to_string(round));
      Environment more = environment(full);
      more["COLLECT_BUFFER_MB"] = "1";
      if (round % 2 == 1) more["COLLECT_DETAIL"] = round == 1 ? "armed" : "on";
      ChildProcess child(scratch.path(), crash("wait", 200000), more);
      kill_at_work(child, random);
      expect_all_of(child.pid(), signaled(SIGKILL));
    }
  }
  expect_no_drain_process();
}

// The collector is away when the program is killed, and comes back. What the ring can't hold
// meanwhile is counted.
TEST_F(CrashTest, KilledWhileTheLinkIsCutArrivesLater) {
  std::mt19937 random(kSeed + 2);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    ChildProcess child(scratch.path(), crash("wait", 20000), environment("drop"));
    ASSERT_TRUE(eventually(kProgramLimit, [&] { return child.output() == "worked\n"; }));
    collector.process().send_signal(SIGKILL);
    collector.process().wait(kProgramLimit);
    const uint64_t before = sum(read_shared(scratch / "count", child.pid())).done;
    ASSERT_TRUE(eventually(kProgramLimit, [&] {
      return sum(read_shared(scratch / "count", child.pid())).done > before + 10000;
    }));
    kill_at_work(child, random);
    collector.start_again();
    EXPECT_EQ(expect_all_of(child.pid(), signaled(SIGKILL)).size(), 1u);
  }
  expect_no_drain_process();
}

// A collector that is asked to stop leaves the session to its next start. What the agent still
// holds, and how the program ended, come into the same one.
TEST_F(CrashTest, KilledWithoutACollectorKeepsItsSession) {
  std::mt19937 random(kSeed + 4);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    ChildProcess child(scratch.path(), crash("wait", 20000), environment("wait"));
    ASSERT_TRUE(eventually(kProgramLimit, [&] { return stores_events_of(child.pid()); }));
    EXPECT_TRUE(collector.stop().exited_with(0));
    kill_at_work(child, random);
    collector.start_again();
    EXPECT_EQ(expect_all_of(child.pid(), signaled(SIGKILL)).size(), 1u);
  }
  expect_no_drain_process();
}

// The process continues under its number as another program: the recording is over all the same.
TEST_F(CrashTest, ExecEndsTheRecording) {
  const std::string gate = scratch / "gate";
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  Arguments command = crash("exec", 20000);
  command.push_back(gate);
  ChildProcess child(scratch.path(), command, environment());
  EXPECT_EQ(expect_all_of(child.pid(), {{"how", "execed"}}).size(), 1u);
  expect_no_drain_process();
  EXPECT_TRUE(child.running()) << "the other program waits for someone to open the gate";
  {
    std::ofstream(gate) << "the other program\n";
  }
  const Ending& ending = child.wait(kProgramLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_EQ(ending.output, "worked\nthe other program\n");
}

// The other program is traced too: two sessions of one process number.
TEST_F(CrashTest, ExecIntoATracedProgramBeginsANewSession) {
  ChildProcess child(scratch.path(), crash("again", 500000), environment());
  EXPECT_TRUE(child.wait(kProgramLimit).exited_with(9));
  expect_no_drain_process();  // so that both have shipped all: the second session may begin late
  std::vector<RecordedSession> sessions = expect_all_of(child.pid());
  // Both ship at once, so either may be the first that is stored.
  std::sort(sessions.begin(), sessions.end(),
            [](const RecordedSession& a, const RecordedSession& b) {
              return a.manifest()["process"]["start_ns"] < b.manifest()["process"]["start_ns"];
            });
  EXPECT_EQ(ends_of(sessions), (std::vector<json>{{{"how", "execed"}}, exited(9)}));
}

// Forked children have drain processes of their own, and continue when the parent is killed.
TEST_F(CrashTest, ChildrenOutliveTheirParent) {
  std::mt19937 random(kSeed + 3);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    ChildProcess parent(scratch.path(), crash("fork", 100000), environment());
    ASSERT_TRUE(eventually(kProgramLimit, [&] {
      return parent.output().ends_with("\n") && parent.output().find("child ") != std::string::npos;
    }));
    const int child = std::stoi(parent.output().substr(parent.output().find("child ") + 6));
    kill_soon(parent, random);
    expect_all_of(parent.pid(), signaled(SIGKILL));
    expect_all_of(child, exited(4));
  }
  expect_no_drain_process();
}

// It stops its agent, and nothing that it could wait for is there: no child, no zombie.
TEST_F(CrashTest, StoppingLeavesNoChild) {
  ChildProcess child(scratch.path(), crash("stop", 20000), environment());
  const Ending& ending = child.wait(kProgramLimit);
  EXPECT_TRUE(ending.exited_with(3)) << ending.describe();
  EXPECT_EQ(ending.output, "worked\nchildren: none\n");
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child.pid());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  expect_verified(sessions[0]);
  expect_no_drain_process();
}

// No one asked for a process that drains: a plain run keeps what a crash leaves, also when the
// program had run for a moment only.
TEST_F(CrashTest, RunWaitsForTheRestAndReportsTheEnd) {
  Environment more = {{"COUNT_SHARED", scratch / "count"}};
  for (const uint64_t after : {20000, 10}) {
    Arguments command = {
        program("collectctl"), "--control", collector.control(), "run", "--json", "--"};
    for (const std::string& word : crash("segv", after)) command.push_back(word);
    const Ending ending = run(scratch.path(), command, more, kProgramLimit);
    EXPECT_TRUE(ending.exited_with(128 + SIGSEGV)) << ending.describe() << ending.errors;
    const json summary = json::parse(ending.errors, nullptr, false);
    ASSERT_TRUE(summary.is_object()) << ending.errors;
    EXPECT_FALSE(summary.contains("trouble")) << ending.errors;
    ASSERT_EQ(summary["sessions"].size(), 1u);
    const json& session = summary["sessions"][0];
    EXPECT_EQ(session.value("state", ""), "complete");
    EXPECT_EQ(session["process_end"].value("signal", 0), SIGSEGV);
    expect_all_of(session.value("pid", 0), signaled(SIGSEGV));
  }
}

// A shell and its children that are not instrumented reach the collector, and leave no session.
TEST_F(CrashTest, ProgramsThatAreNotInstrumentedLeaveNoSession) {
  for (const char* drain : {"thread", "process"}) {
    const Arguments command = {program("collectctl"),
                               "--control",
                               collector.control(),
                               "run",
                               "--json",
                               "--drain",
                               drain,
                               "--",
                               "/bin/sh",
                               "-c",
                               "/bin/true; " + traced_program("crash") + " exit 10; /bin/true"};
    const Ending ending =
        run(scratch.path(), command, {{"COUNT_SHARED", scratch / "count"}}, kProgramLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const json summary = json::parse(ending.errors, nullptr, false);
    ASSERT_TRUE(summary.is_object()) << ending.errors;
    EXPECT_FALSE(summary.contains("trouble")) << ending.errors;
    ASSERT_EQ(summary["sessions"].size(), 1u) << drain << ending.errors;
    EXPECT_EQ(summary["sessions"][0].value("process_name", ""), "crash");
  }
  EXPECT_EQ(session_directories(collector.root()).size(), 2u);
}

// No one is there to take what was recorded: the drain process waits no longer than it was asked
// to, and holds nothing of the program's meanwhile. What reads its output sees the end with the
// program's.
TEST_F(CrashTest, WithoutACollectorItEndsByItself) {
  Environment more = environment();
  more["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(free_port());
  more["COLLECT_EXIT_FLUSH_MS"] = "2000";
  more["COLLECT_FULL"] = "drop";
  const std::string line = traced_program("crash") + " kill 20000 | { cat; echo end; }";
  ChildProcess shell(scratch.path(), {"/bin/sh", "-c", line}, more);
  EXPECT_TRUE(eventually(kProgramLimit, [&] { return shell.output() == "worked\nend\n"; }));
  EXPECT_FALSE(drain_processes(scratch.path()).empty()) << "it should still wait for a collector";
  EXPECT_TRUE(shell.wait(kProgramLimit).exited_with(0));
  expect_no_drain_process();
}

}  // namespace
}  // namespace collect::e2e
