// Frames that are left by an exception, by a longjmp or with their thread: what was recorded, event
// by event, is what the program itself says (programs/dynamic/account.h), whichever compiler hooked
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using Lines = std::vector<std::string>;

class ExceptionsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(program())) {
      GTEST_SKIP() << "this compiler is not here: " << GetParam();
    }
  }
  std::string program() const { return traced_program(std::string("exceptions_") + GetParam()); }

  // Each thread's account, from $ACCOUNT.<tid>.
  std::map<uint32_t, Lines> accounts() const {
    std::map<uint32_t, Lines> found;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("account.")) continue;
      Lines& lines = found[static_cast<uint32_t>(std::stoul(name.substr(8)))];
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    return found;
  }

  // What was recorded of the functions of the account.
  std::map<uint32_t, Lines> recorded(const RecordedSession& session) const {
    std::map<uint32_t, Lines> found;
    const Ending ending = collector_.ctl({"dump", "--json", session.directory()});
    EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
    std::istringstream lines(ending.output);
    for (std::string line; std::getline(lines, line);) {
      const json event = json::parse(line);
      if (event.at("kind") == "stall") continue;
      std::string name = event.at("name");
      name = name.substr(0, name.find('('));
      if (!name.starts_with("f_")) continue;
      found[event.at("tid").get<uint32_t>()].push_back(event.at("kind").get<std::string>() + " " +
                                                       name);
    }
    return found;
  }

  RecordedSession trace(const std::string& mode, const Environment& more = {}) {
    return trace_command({program(), mode, library("plugin")}, more);
  }
  std::string library(const std::string& which) const {
    return traced_program("exceptions_" + which + "_" + GetParam() + ".so");
  }
  RecordedSession trace_command(const Arguments& command, const Environment& more = {}) {
    Environment environment = collector_.tracing();
    environment["ACCOUNT"] = scratch_ / "account";
    for (const auto& [name, value] : more) environment[name] = value;
    ChildProcess job(scratch_.path(), command, environment);
    EXPECT_TRUE(job.wait(seconds(60)).exited_with(0)) << command[1] << ": " << job.errors();
    std::vector<RecordedSession> sessions = sealed_sessions(collector_.root(), job.pid());
    EXPECT_EQ(sessions.size(), 1u);
    EXPECT_TRUE(eventually(seconds(60), [&] {
      const RecordedSession now(sessions.at(0).directory());
      return now.manifest().value("symbols_state", "done") == "done";
    })) << "names of functions";
    const Ending verified = collector_.ctl({"verify", sessions.at(0).directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
    return std::move(sessions.at(0));
  }

  void expect_as_the_program_says(const std::string& mode, size_t threads, uint64_t exceptions,
                                  const Environment& more = {}) {
    SCOPED_TRACE(more.empty() ? mode : mode + " with " + more.begin()->first);
    const RecordedSession session = trace(mode, more);
    const std::map<uint32_t, Lines> said = accounts();
    const std::map<uint32_t, Lines> events = recorded(session);
    ASSERT_EQ(said.size(), threads) << mode;
    uint64_t exceptions_said = 0;
    for (const auto& [thread, lines] : said) {
      ASSERT_TRUE(events.contains(thread)) << mode;
      const Lines& found = events.at(thread);
      const auto [wanted, got] =
          std::mismatch(lines.begin(), lines.end(), found.begin(), found.end());
      EXPECT_TRUE(wanted == lines.end() && got == found.end())
          << mode << ", event " << wanted - lines.begin() << " of " << lines.size() << ": \""
          << (wanted == lines.end() ? "nothing" : *wanted) << "\", recorded \""
          << (got == found.end() ? "nothing" : *got) << "\" of " << found.size();
      exceptions_said += static_cast<uint64_t>(
          std::count_if(lines.begin(), lines.end(),
                        [](const std::string& line) { return line.starts_with("exception"); }));
    }
    EXPECT_EQ(exceptions_said, exceptions) << mode;
    for (const auto& [thread, lines] : said) {
      std::filesystem::remove(scratch_ / ("account." + std::to_string(thread)));
    }
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_};
};

// On four threads, 1648 times each: cleanups that throw themselves, rethrown and replaced
// exceptions, through other modules and the C library, foreign ones, after a longjmp, out of a
// signal handler.
constexpr uint64_t kEveryWay = 4 * 1648;

TEST_P(ExceptionsTest, EachUnwoundFrameHasOneException) {
  expect_as_the_program_says("all", 4, kEveryWay);
}
TEST_P(ExceptionsTest, AreRecordedWithEachDetailVersionAndDrain) {
  expect_as_the_program_says("all", 4, kEveryWay, {{"COLLECT_DETAIL", "on"}});
  expect_as_the_program_says("all", 4, kEveryWay, {{"COLLECT_ATF_VERSION", "1"}});
  expect_as_the_program_says("all", 4, kEveryWay, {{"COLLECT_DRAIN", "process"}});
}
// Three calls of f_thread_exit or f_wait; in the second thread four, and f_with_cleanup_below.
TEST_P(ExceptionsTest, ThreadsThatExitOrAreCancelled) {
  expect_as_the_program_says("exit", 2, 3 + 5);
  expect_as_the_program_says("cancel", 2, 3 + 5);
}
TEST_P(ExceptionsTest, ThroughMoreFramesThanAChunkHolds) {
  expect_as_the_program_says("deep", 1, 15'001 + 9'001);
}
TEST_P(ExceptionsTest, CallsThatArePartOfTheFrameThatCatches) {
  // For n from 0 to 4: f_throw n + 1 times, f_with_cleanup, f_inlined, f_inlined_twice.
  expect_as_the_program_says("inlined", 1, 1 + 2 + 3 + 4 + 5 + 5 * 3);
}
// Nothing is unwound where no one catches; up to a function that must not be left, all is.
TEST_P(ExceptionsTest, ProgramsThatEndByTerminate) {
  expect_as_the_program_says("noexcept", 1, 3);
  expect_as_the_program_says("uncaught", 1, 0);
}

// The C++ library comes with a library of a C program, and goes with it.
TEST_P(ExceptionsTest, AreRecordedInALibraryOfACProgram) {
  const RecordedSession session =
      trace_command({traced_program("exceptions_host"), library("guest")});
  Lines expected;
  for (int i = 0; i < 3; ++i) {
    for (const char* line :
         {"call f_guest", "call f_throw", "call f_throw", "call f_throw", "exception f_throw",
          "exception f_throw", "exception f_throw", "return f_guest"}) {
      expected.emplace_back(line);
    }
  }
  const std::map<uint32_t, Lines> events = recorded(session);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events.begin()->second, expected);
}

TEST_P(ExceptionsTest, ReportHasNoCallWithoutReturn) {
  const RecordedSession session = trace("inlined");
  const Ending ending = collector_.ctl({"report", "--json", session.directory()});
  ASSERT_TRUE(ending.exited_with(0)) << ending.errors;
  const json document = json::parse(ending.output);
  EXPECT_EQ(document["calls_without_return"], 0);
  EXPECT_EQ(document["unmatched_returns"], 0);
  EXPECT_EQ(document["open_calls"], 0);
}

INSTANTIATE_TEST_SUITE_P(Compilers, ExceptionsTest,
                         ::testing::Values("gcc", "gcc_plain", "clang", "clang_plain", "xray"),
                         [](const auto& compiler) { return std::string(compiler.param); });

}  // namespace
}  // namespace collect::e2e
