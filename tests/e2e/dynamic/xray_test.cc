// Programs built with -fxray-instrument, by a real compiler, linked as AGENT.md says: in the
// executable, in a library that it is linked with, and in one that it opens and closes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

class XrayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(traced_program("xray_plain"))) {
      GTEST_SKIP() << "no clang here: nothing was built with -fxray-instrument";
    }
  }
};

std::vector<json> dump(const CollectorProcess& collector, const RecordedSession& session,
                       const Arguments& more = {}) {
  Arguments arguments{"dump", "--json", session.directory()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ending ending = collector.ctl(arguments);
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  std::vector<json> events;
  std::istringstream lines(ending.output);
  for (std::string line; std::getline(lines, line);) {
    json event = json::parse(line);
    if (event.at("kind") != "stall") events.push_back(std::move(event));
  }
  return events;
}

void expect_verified(const CollectorProcess& collector, const RecordedSession& session) {
  const Ending verified = collector.ctl({"verify", session.directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

// Calls, returns and exceptions of each function.
using Ends = std::array<uint64_t, 3>;
std::map<std::string, Ends> calls_and_ends(const std::vector<json>& events) {
  std::map<std::string, Ends> counts;
  for (const json& event : events) {
    const std::string kind = event.at("kind");
    ++counts[event.at("name").get<std::string>()][kind == "call" ? 0 : kind == "return" ? 1 : 2];
  }
  return counts;
}

void expect_every_event(const Environment& more) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  environment["COUNT_FILE"] = scratch / "count";
  environment["COUNT_MODULES"] = "1";
  environment.insert(more.begin(), more.end());
  ChildProcess job(
      scratch.path(),
      {traced_program("xray_counted"), "counted", traced_program("xray_plugin_counted.so")},
      environment);
  ASSERT_TRUE(job.wait(seconds(60)).exited_with(0)) << job.errors();
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  const IndependentCount count = read_count(scratch / "count", job.pid());
  ASSERT_GT(count.events(), 100'000u);
  EXPECT_EQ(sessions[0].totals().lost, 0u);
  // Thread by thread. The hash holds for functions of the executable alone.
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> recorded;
  for (const CountedThread& thread : sessions[0].count_threads()) {
    recorded[thread.thread_id] = {thread.calls, thread.returns};
  }
  ASSERT_EQ(recorded.size(), count.threads.size());
  for (const CountedThread& thread : count.threads) {
    EXPECT_EQ(recorded[thread.thread_id].first, thread.calls) << thread.thread_id;
    EXPECT_EQ(recorded[thread.thread_id].second, thread.returns) << thread.thread_id;
  }
  EXPECT_EQ(sessions[0].count_functions(), count.functions);
  expect_verified(collector, sessions[0]);
}

TEST_F(XrayTest, EveryCallAndReturnOfExecutableLibraryAndPlugin) {
  expect_every_event({});
}
TEST_F(XrayTest, EveryCallAndReturnWithDetail) {
  expect_every_event({{"COLLECT_DETAIL", "on"}, {"COLLECT_BUFFER_MB", "256"}});
}
TEST_F(XrayTest, EveryCallAndReturnByTheDrainProcess) {
  expect_every_event({{"COLLECT_DRAIN", "process"}});
}

std::string word(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

TEST_F(XrayTest, ArgumentsAndResultsAreFaithful) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  const Arguments command{traced_program("xray_plain"), "registers"};
  const Ending untraced = run(scratch.path(), command);
  ASSERT_TRUE(untraced.exited_with(0)) << untraced.errors;
  environment["COLLECT_DETAIL"] = "on";
  ChildProcess job(scratch.path(), command, environment);
  ASSERT_TRUE(job.wait(seconds(60)).exited_with(0)) << job.errors();
  // What the functions computed from their registers, vector registers among them.
  EXPECT_EQ(job.output(), untraced.output);
  EXPECT_NE(untraced.output.find(" 204.0 1 6\n"), std::string::npos) << untraced.output;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  std::map<std::string, json> calls;
  std::map<std::string, json> returns;
  for (const json& event : dump(collector, sessions[0], {"--detail"})) {
    ASSERT_TRUE(event.contains("detail")) << event;
    auto& place = event.at("kind") == "call" ? calls : returns;
    place[event.at("name").get<std::string>()] = event.at("detail");
  }
  const json& words = calls["eight_words"].at("registers");
#if defined(__x86_64__)
  constexpr uint64_t kArguments = 6;
#else
  constexpr uint64_t kArguments = 8;
#endif
  for (uint64_t i = 0; i < kArguments; ++i) {
    EXPECT_EQ(words.at("x" + std::to_string(i)), word(0x1111 * (i + 1))) << words;
  }
  EXPECT_FALSE(words.contains("x" + std::to_string(kArguments))) << words;
  uint64_t sum = 0;
  for (uint64_t i = 1; i <= 8; ++i) sum += i * 0x1111 * i;
  EXPECT_EQ(returns["eight_words"].at("registers").at("x0"), word(sum));
  EXPECT_EQ(returns["two_words"].at("registers").at("x0"), word(~uint64_t{0x0123456789abcdef}));
  EXPECT_EQ(returns["two_words"].at("registers").at("x1"),
            word(0x0123456789abcdef ^ 0x5555555555555555));
  EXPECT_EQ(calls["tail_caller"].at("registers").at("x0"), word(0xAAAA));
  EXPECT_EQ(calls["tail_target"].at("registers").at("x0"), word(0xBBBB));
  EXPECT_EQ(calls["tail_target"].at("registers").at("x1"), word(0xAAAA));
  EXPECT_FALSE(returns["tail_caller"].at("registers").contains("x0"));
  EXPECT_EQ(returns["tail_target"].at("registers").at("x0"), word(0xAAAA ^ 0xBBBB));
  // Both were called from `registers`, tail_target by a jump out of tail_caller.
  EXPECT_EQ(calls["tail_target"].at("registers").at("lr"),
            calls["tail_caller"].at("registers").at("lr"));
  expect_verified(collector, sessions[0]);
}

TEST_F(XrayTest, ExceptionsEndCallsAndLongjmpLeavesThem) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  for (const char* mode : {"off", "on"}) {
    Environment environment = collector.tracing();
    environment["COLLECT_DETAIL"] = mode;
    ChildProcess job(scratch.path(), {traced_program("xray_plain"), "shortcuts"}, environment);
    ASSERT_TRUE(job.wait(seconds(60)).exited_with(0)) << job.errors();
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    auto counts = calls_and_ends(dump(collector, sessions[0]));
    EXPECT_EQ(counts["catcher"], (Ends{100, 100, 0}));
    EXPECT_EQ(counts["jump_catcher"], (Ends{100, 100, 0}));
    // 1 + 2 + … + 7 calls in each 7 rounds, and 1 + 2 in the last two; 1 + … + 5 in each 5.
    EXPECT_EQ(counts["thrower"], (Ends{14 * 28 + 3, 0, 14 * 28 + 3}));
    EXPECT_EQ(counts["jumper"], (Ends{20 * 15, 0, 0}));
    expect_verified(collector, sessions[0]);
  }
}

// Nothing is patched while nothing is recorded, and the program is the same.
TEST_F(XrayTest, RunsWithoutAgentAndIdle) {
  Scratch scratch;
  EXPECT_TRUE(run(scratch.path(), {traced_program("xray_plain"), "shortcuts"}).exited_with(0));
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  environment["COLLECT_START"] = "idle";
  EXPECT_TRUE(
      run(scratch.path(), {traced_program("xray_plain"), "shortcuts"}, environment).exited_with(0));
}

// Recordings of a program that is in the middle of its calls: what was patched in is patched out,
// again and again.
TEST_F(XrayTest, RecordingsStartAndStopWhileItRuns) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing("drop");
  environment["COLLECT_START"] = "idle";
  ASSERT_EQ(mkfifo((scratch / "input").c_str(), 0600), 0);
  ChildProcess job(scratch.path(), {traced_program("xray_plain"), "busy", scratch / "input"},
                   environment);
  const int input = open((scratch / "input").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(input, 0);
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return collector.ctl({"agents"}).output.find(std::to_string(job.pid())) != std::string::npos;
  }));
  constexpr int kRecordings = 20;
  for (int i = 0; i < kRecordings; ++i) {
    // Until the session before is sealed there is no idle agent to start, and then none to stop.
    for (const char* order : {"start", "stop"}) {
      ASSERT_TRUE(eventually(seconds(30),
                             [&] {
                               return collector.ctl({order}).output.find(
                                          "pid_" + std::to_string(job.pid())) != std::string::npos;
                             }))
          << order << i;
    }
  }
  close(input);
  ASSERT_TRUE(job.wait(seconds(30)).exited_with(0)) << job.errors();
  EXPECT_EQ(job.output(), "at work\ndone\n");
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), size_t{kRecordings});
  for (const RecordedSession& session : sessions) {
    EXPECT_GT(session.totals().events, 0u) << session.directory();
    expect_verified(collector, session);
  }
}

}  // namespace
}  // namespace collect::e2e
