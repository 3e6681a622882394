// What else is at work in the program's process: filters of system calls, other preloaded
// libraries, threads that share thread-local memory. The program ends as it does without the agent,
// and each call of it is recorded or counted as lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr seconds kProgramLimit{90};

struct Ran {
  Ending ending;
  std::vector<RecordedSession> sessions;
};

// By collectctl run, with a cache of plans of its own.
Ran record(const Scratch& scratch, const Arguments& options, const Arguments& command,
           const Environment& more = {}) {
  Arguments line{program("collectctl"), "run", "-o", scratch / "traces"};
  line.insert(line.end(), options.begin(), options.end());
  line.emplace_back("--");
  line.insert(line.end(), command.begin(), command.end());
  std::filesystem::create_directory(scratch / "cache");
  Environment environment{{"XDG_CACHE_HOME", scratch / "cache"}};
  environment.insert(more.begin(), more.end());
  Ran ran{run(scratch.path(), line, environment, kProgramLimit), {}};
  for (const std::string& directory : session_directories(scratch / "traces")) {
    ran.sessions.emplace_back(directory);
  }
  return ran;
}

struct Sum {
  uint64_t recorded = 0;
  uint64_t lost = 0;
};
Sum sum_of(const Ran& ran) {
  Sum sum;
  for (const RecordedSession& session : ran.sessions) {
    EXPECT_EQ(session.state(), "complete") << session.directory();
    sum.recorded += session.totals().events;
    sum.lost += session.totals().lost;
  }
  return sum;
}

struct Way {
  const char* name;
  const char* program;
  Arguments options;
};
std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

class FilteredTest : public testing::TestWithParam<std::tuple<const char*, Way>> {};

// The hook asks the system for nothing, not even for memory: 300,000 calls fill some 300 pages.
TEST_P(FilteredTest, EndsAsItDoesWithoutTheAgent) {
  constexpr uint64_t kCalls = 300'000;
  const auto& [filter, way] = GetParam();
  const Arguments command{traced_program(way.program), filter, std::to_string(kCalls)};
  Scratch scratch;
  const Ending plain = run(scratch.path(), command, {}, kProgramLimit);
  if (plain.exited_with(3)) GTEST_SKIP() << "no such filter here";
  const Ran ran = record(scratch, way.options, command);
  EXPECT_TRUE(ran.ending.exited_with(0)) << ran.ending.describe() << ran.ending.errors;
  EXPECT_EQ(ran.ending.output, "done 301000\n");
  EXPECT_EQ(ran.ending.output, plain.output);
  ASSERT_EQ(ran.sessions.size(), 1u) << ran.ending.errors;
  const Sum sum = sum_of(ran);
  // main, where it ends by exit, and what prepares the filter come on top.
  EXPECT_GE(sum.recorded + sum.lost, 2 * (kCalls + 1000));
  EXPECT_LE(sum.recorded + sum.lost, 2 * (kCalls + 1000) + 8);
  EXPECT_GE(sum.recorded, 2 * 1000u);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, FilteredTest,
    testing::Combine(
        testing::Values("strict", "kill", "errno"),
        testing::Values(Way{"process", "filtered", {}},
                        Way{"small_ring", "filtered", {"--buffer", "1"}},
                        Way{"drop", "filtered", {"--when-full", "drop", "--buffer", "1"}},
                        Way{"thread", "filtered", {"--drain", "thread"}},
                        Way{"dynamic", "filtered_unprepared", {"--dynamic"}})),
    [](const auto& test) {
      return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
    });

class TakenOverTest : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// A library replaces the C library in all that the agent could ask of it. No one comes there.
TEST_P(TakenOverTest, AgentAsksTheSystemItself) {
  constexpr uint64_t kCalls = 200'000;
  const auto& [how, drain] = GetParam();
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  environment["COLLECT_DRAIN"] = drain;
  environment["TAKEN_OVER"] = how;
  environment["LD_PRELOAD"] = traced_program("libtaken_over.so") + ":" + environment["LD_PRELOAD"];
  ChildProcess child(scratch.path(), {traced_program("quiet"), std::to_string(kCalls)},
                     environment);
  const Ending ending = child.wait(kProgramLimit);
  EXPECT_TRUE(ending.exited_with(7)) << ending.describe();
  EXPECT_EQ(ending.errors, "") << "functions that someone called";
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child.pid());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].totals().events, 2 * (kCalls + 1));
  EXPECT_EQ(sessions[0].totals().lost, 0u);
}

// The library does what the other test relies on: the program itself comes there.
TEST(HostNeighboursTest, WhoComesToTheTakenOverLibraryIsNamed) {
  Scratch scratch;
  const Ending ending =
      run(scratch.path(), {traced_program("same_tls"), "threads", "10"},
          {{"LD_PRELOAD", traced_program("libtaken_over.so")}, {"TAKEN_OVER", "abort"}});
  EXPECT_TRUE(ending.exited_with(99)) << ending.describe();
  EXPECT_EQ(ending.errors, "mmap\n");
}

INSTANTIATE_TEST_SUITE_P(Libraries, TakenOverTest,
                         testing::Combine(testing::Values("abort", "lock"),
                                          testing::Values("thread", "process")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

bool is_installed(const std::string& tool) {
  Scratch scratch;
  return run(scratch.path(), {"sh", "-c", "command -v " + tool}).exited_with(0);
}

class OthersTest : public testing::TestWithParam<const char*> {};

// libfaketime: the program sees another day, and its times are still those that passed.
TEST_P(OthersTest, FakedClocksAreTheProgramsAlone) {
  if (!is_installed("faketime")) GTEST_SKIP() << "faketime is not installed";
  Scratch scratch;
  const Ran ran = record(scratch, {"--drain", GetParam()},
                         {"faketime", "2001-02-03 04:05:06", traced_program("manners")});
  EXPECT_TRUE(ran.ending.exited_with(0)) << ran.ending.describe() << ran.ending.errors;
  EXPECT_THAT(ran.ending.errors, Not(HasSubstr("not instrumented")));
  const Sum sum = sum_of(ran);
  EXPECT_GT(sum.recorded, 0u);
  EXPECT_EQ(sum.lost, 0u);
  for (const RecordedSession& session : ran.sessions) {
    EXPECT_THAT(session.directory(), Not(HasSubstr("2001"))) << "the day is the machine's";
  }
}

// fakeroot: files and users are another library's.
TEST_P(OthersTest, FakedUsersAreTheProgramsAlone) {
  if (!is_installed("fakeroot")) GTEST_SKIP() << "fakeroot is not installed";
  Scratch scratch;
  constexpr uint64_t kCalls = 5'000;
  const Ran ran = record(scratch, {"--drain", GetParam()},
                         {"fakeroot", traced_program("quiet"), std::to_string(kCalls)});
  EXPECT_TRUE(ran.ending.exited_with(7)) << ran.ending.describe() << ran.ending.errors;
  const Sum sum = sum_of(ran);
  EXPECT_EQ(sum.recorded, 2 * (kCalls + 1));
  EXPECT_EQ(sum.lost, 0u);
}

// Threads and processes that have their parent's thread-local memory are left out while they live,
// and so is the parent; afterwards it is recorded again.
TEST_P(OthersTest, ThreadsThatShareTheirMemoryAreCountedAsLost) {
  constexpr uint64_t kCalls = 100'000;
  for (const char* kind : {"threads", "processes"}) {
    Scratch scratch;
    const Ran ran = record(scratch, {"--drain", GetParam()},
                           {traced_program("same_tls"), kind, std::to_string(kCalls)});
    EXPECT_TRUE(ran.ending.exited_with(0)) << ran.ending.describe() << ran.ending.errors;
    EXPECT_EQ(ran.ending.output, "f 500000\n");
    ASSERT_EQ(ran.sessions.size(), 1u) << ran.ending.errors;
    const Sum sum = sum_of(ran);
    EXPECT_EQ(sum.recorded + sum.lost, 2 * (5 * kCalls + 1)) << kind;
    EXPECT_GE(sum.lost, 2 * 3 * kCalls) << "what the threads did";
    EXPECT_GE(sum.recorded, 2 * kCalls) << "what the main thread did afterwards";
  }
}

INSTANTIATE_TEST_SUITE_P(Drains, OthersTest, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
