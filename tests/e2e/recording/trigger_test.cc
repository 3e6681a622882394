// Triggers through collectctl on a real program: a call, a call that takes long, an exception, each
// as often as it may, with what led to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TriggerTest : public ::testing::Test {
 protected:
  int fired() {
    const Ending shown = collector_.ctl({"--json", "trigger", "show"});
    const json answer = json::parse(shown.output, nullptr, false);
    if (!answer.is_object() || answer["outcomes"].empty()) return -1;
    return answer["outcomes"][0]["triggers"][0].value("fired_count", 0);
  }
  json session() {
    const Ending listed = collector_.ctl({"--json", "sessions"});
    return json::parse(listed.output, nullptr, false)["sessions"][0];
  }
  // The program's session when it is sealed, with its markers' texts.
  std::vector<std::string> markers_of(ChildProcess& program) {
    EXPECT_TRUE(collector_.ctl({"stop"}).exited_with(0));
    const auto sessions = sealed_sessions(collector_.root(), program.pid());
    EXPECT_EQ(sessions.size(), 1u);
    std::vector<std::string> texts;
    if (sessions.empty()) return texts;
    EXPECT_EQ(sessions[0].state(), "complete");
    const Ending verified = collector_.ctl({"verify", sessions[0].directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
    const json manifest = sessions[0].manifest();
    for (const json& marker : manifest["markers"]) texts.push_back(marker.value("text", ""));
    return texts;
  }
  void await_recording() {
    ASSERT_TRUE(eventually(seconds(30), [&] {
      return collector_.ctl({"trigger", "--set", "--function", "quick", "--times", "1"})
          .exited_with(0);
    }));
    ASSERT_TRUE(eventually(seconds(30), [&] { return fired() == 1; }));
    EXPECT_TRUE(collector_.ctl({"detail", "stop"}).exited_with(0));
  }
  // So often at last, and not more while the program does it again and again.
  void expect_fires(int times, const std::vector<std::string>& options) {
    std::vector<std::string> line = {"trigger", "--set", "--times", std::to_string(times)};
    line.insert(line.end(), options.begin(), options.end());
    const Ending set = collector_.ctl(line);
    ASSERT_TRUE(set.exited_with(0)) << set.output << set.errors;
    ASSERT_TRUE(eventually(seconds(30), [&] { return fired() >= times; }))
        << collector_.ctl({"trigger"}).output;
    const uint64_t then = session().value("events", uint64_t{0});
    ASSERT_TRUE(eventually(seconds(30),
                           [&] { return session().value("events", uint64_t{0}) > then + 300; }));
    EXPECT_EQ(fired(), times);
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_};
  // With a drain process, which sees switches.
  static Environment drained(Environment environment) {
    environment["COLLECT_DRAIN"] = "process";
    return environment;
  }
  ChildProcess program_{
      scratch_.path(), {traced_program("moods"), "600000"}, drained(collector_.tracing())};
};

TEST_F(TriggerTest, LongCallWithWhatLedToIt) {
  await_recording();
  expect_fires(2, {"--function", "slow", "--longer-than", "10ms", "--pre-roll", "30s", "--duration",
                   "100ms"});
  EXPECT_GT(session().value("detail_records", uint64_t{0}), 0u);
  const std::vector<std::string> markers = markers_of(program_);
  ASSERT_EQ(markers.size(), 3u) << ::testing::PrintToString(markers);
  for (const size_t number : {1u, 2u}) {
    EXPECT_THAT(markers[number], HasSubstr("trigger 1: a call of slow (0x"));
    const size_t takes = markers[number].find(" takes ");
    ASSERT_NE(takes, std::string::npos) << markers[number];
    EXPECT_GE(std::stod(markers[number].substr(takes + 7)), 19.0) << markers[number];
  }
  const json manifest = sealed_sessions(collector_.root(), program_.pid())[0].manifest();
  uint64_t pre_roll = 0;
  for (const json& window : manifest["detail_windows"]) {
    pre_roll += window.value("pre_roll_records", uint64_t{0});
  }
  EXPECT_GT(pre_roll, 0u) << manifest["detail_windows"];
}

// From each slow() to the thrower() behind it, and not to the next slow().
TEST_F(TriggerTest, DetailContinuesUntilAnotherFunctionIsCalled) {
  await_recording();
  expect_fires(3, {"--function", "slow", "--until", "thrower"});
  EXPECT_TRUE(eventually(seconds(30), [&] { return session().value("detail", "") == "off"; }))
      << session();
  EXPECT_GT(session().value("detail_records", uint64_t{0}), 0u);
  EXPECT_EQ(markers_of(program_).size(), 4u);
}

TEST_F(TriggerTest, CounterEachTimeItPassesTheBound) {
  await_recording();
  expect_fires(3, {"--counter", "mood", "--above", "40", "--duration", "10ms"});
  const std::vector<std::string> markers = markers_of(program_);
  ASSERT_EQ(markers.size(), 4u) << ::testing::PrintToString(markers);
  for (const size_t number : {1u, 2u, 3u}) {
    EXPECT_THAT(markers[number], HasSubstr("trigger 1: mood is 4"));
    EXPECT_THAT(markers[number], HasSubstr(", above 40"));
  }
}

// slow() sleeps for 20 ms, and what is around it for one.
TEST_F(TriggerTest, ThreadThatIsBlockedForLong) {
  await_recording();
  for (const auto& file : std::filesystem::recursive_directory_iterator(collector_.root())) {
    if (file.path().filename() != "manifest.json") continue;
    const json process = json::parse(std::ifstream(file.path()))["process"];
    if (process.contains("no_switches")) GTEST_SKIP() << process["no_switches"];
  }
  expect_fires(3, {"--blocked-longer-than", "15ms", "--duration", "10ms"});
  const std::vector<std::string> markers = markers_of(program_);
  ASSERT_EQ(markers.size(), 4u) << ::testing::PrintToString(markers);
  for (const size_t number : {1u, 2u, 3u}) {
    EXPECT_THAT(markers[number], HasSubstr("trigger 1: a thread was blocked for "));
  }
}

TEST_F(TriggerTest, ExceptionAndNotEveryCall) {
  await_recording();
  expect_fires(3, {"--function", "thrower", "--throws", "--duration", "10ms"});
  const std::vector<std::string> markers = markers_of(program_);
  ASSERT_EQ(markers.size(), 4u) << ::testing::PrintToString(markers);
  EXPECT_THAT(markers[3], HasSubstr("trigger 1: an exception left thrower (0x"));
}

TEST_F(TriggerTest, DoesNotFireWithoutItsEvent) {
  await_recording();
  for (const std::vector<std::string>& never :
       {std::vector<std::string>{"--function", "slow", "--throws"},
        std::vector<std::string>{"--function", "slow", "--longer-than", "100s"}}) {
    expect_fires(0, never);
  }
  const Ending cleared = collector_.ctl({"trigger", "--clear"});
  EXPECT_TRUE(cleared.exited_with(0)) << cleared.errors;
  EXPECT_EQ(fired(), -1) << "there are none";
  const Ending unknown = collector_.ctl({"trigger", "--set", "--function", "no_such"});
  EXPECT_TRUE(unknown.exited_with(1));
  EXPECT_THAT(unknown.errors, HasSubstr("no_such"));
  EXPECT_EQ(markers_of(program_).size(), 1u);
}

}  // namespace
}  // namespace collect::e2e
