// `collectctl run --only, --except`: a function filter that holds from the first event on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/e2e/run_test.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Calls of each function, by its name.
std::map<std::string, uint64_t> calls_of(const RecordedSession& session) {
  std::map<uint64_t, std::string> names;
  for (const json& symbol : session.manifest().value("symbols", json::array())) {
    names[std::stoull(symbol["function_id"].get<std::string>(), nullptr, 16)] =
        symbol["name"].get<std::string>();
  }
  std::map<std::string, uint64_t> calls;
  for (uint32_t thread = 0; thread < session.totals().threads; ++thread) {
    session.for_each_event(thread, [&](const RecordedSession::StoredEvent& event) {
      if (!event.is_return) ++calls[names[event.function_id]];
    });
  }
  return calls;
}

class StartFilterTest : public RunTest {
 protected:
  using Calls = std::map<std::string, uint64_t>;
  Arguments steady(const char* rounds) { return {traced_program("steady"), "fill", rounds}; }
};

TEST_P(StartFilterTest, OnlyHoldsFromTheFirstEventOn) {
  const Ending ending = record({"--only", "step"}, steady("1000"));
  EXPECT_EQ(ending.output, "1000 steps\n");
  EXPECT_THAT(ending.errors, HasSubstr("filter     by --only and --except: "));
  EXPECT_THAT(ending.errors, Not(HasSubstr("late")));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(calls_of(recorded[0]), (Calls{{"step", 1000}}));
  const json& held = recorded[0].manifest()["function_filters"];
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0]["mode"], "only");
  EXPECT_EQ(held[0]["only"], json::array({"step"}));
  EXPECT_GE(held[0].value("functions", 0), 1) << "libraries may have a step too";
}

TEST_P(StartFilterTest, ExceptLeavesOutFromTheFirstEventOn) {
  record({"--except", "st*p"}, steady("1000"));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(calls_of(recorded[0]), (Calls{{"main", 1}}));
  EXPECT_EQ(recorded[0].manifest()["function_filters"][0]["mode"], "all_but");
  EXPECT_EQ(recorded[0].manifest()["totals"].value("calls_left_out", 0), 1000);
}

TEST_P(StartFilterTest, VariablesHoldTwoPatternsAndBothSides) {
  record({}, steady("1000"), {{"COLLECT_ONLY", "ma*;step"}, {"COLLECT_EXCEPT", "step"}});
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(calls_of(recorded[0]), (Calls{{"main", 1}}));
}

TEST_P(StartFilterTest, UnmatchedPatternRecordsNothingAndIsReported) {
  const Ending ending = record({"--only", "no_such_function"}, steady("1000"), {}, 125);
  EXPECT_EQ(ending.output, "1000 steps\n") << "the program is not touched";
  EXPECT_THAT(ending.errors, HasSubstr("no function matches \"no_such_function\""));
  EXPECT_THAT(ending.errors, HasSubstr("Nothing was recorded"));
  for (const RecordedSession& session : sessions()) EXPECT_EQ(session.totals().events, 0u);
}

TEST_P(StartFilterTest, RecordsMatchesDespiteAnUnmatchedPattern) {
  const Ending ending =
      record({"--json", "--only", "step", "--except", "no_such_function"}, steady("1000"), {}, 125);
  const json summary = json::parse(ending.errors, nullptr, false);
  EXPECT_EQ(summary.value("unmatched", json()), json::array({"no_such_function"}));
  EXPECT_FALSE(summary.contains("filter_error")) << ending.errors;
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(calls_of(recorded[0]), (Calls{{"step", 1000}}));
}

// A pattern is for the whole run: it is enough that one process has such a function.
TEST_P(StartFilterTest, EveryProcessHasTheFilter) {
  const std::string steady = traced_program("steady");
  record({"--only", "step", "--only", "chain"},
         {"sh", "-c", steady + " fill 10; " + traced_program("depths") + " 5"});
  std::vector<Calls> calls;
  for (const RecordedSession& session : sessions()) calls.push_back(calls_of(session));
  EXPECT_THAT(calls, ::testing::UnorderedElementsAre(Calls{{"step", 10}}, Calls{{"chain", 40}}));
}

TEST_P(StartFilterTest, ForkedChildrenHaveTheFilter) {
  record({"--only", "step"}, {traced_program("forks"), "work"}, {}, 3);
  const auto recorded = sessions();
  EXPECT_EQ(recorded.size(), 6u);
  for (const RecordedSession& session : recorded) {
    const Calls calls = calls_of(session);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls.begin()->first, "step");
  }
}

// As with `collectctl filter`: what is loaded later is in no list.
TEST_P(StartFilterTest, LibrariesThatAreLoadedLaterAreInNoList) {
  const Arguments plugins{traced_program("plugins"), traced_program("plugin_first.so"),
                          traced_program("plugin_second.so")};
  record({"--except", "call"}, plugins);
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  const Calls calls = calls_of(recorded[0]);
  EXPECT_EQ(calls.count("call"), 0u);
  EXPECT_EQ(calls.count("main"), 1u);
  EXPECT_EQ(calls.at("first_work"), 20u);
}

TEST_P(StartFilterTest, XRayFunctionsAreFilteredToo) {
  const std::string traced = traced_program("xray_plain");
  if (::access(traced.c_str(), X_OK) != 0) GTEST_SKIP() << "nothing was built with XRay";
  write_text_file(scratch_ / "input", "+");  // every thread calls on for a while
  record({"--only", "leaf"}, {traced, "busy", scratch_ / "input"});
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  const Calls calls = calls_of(recorded[0]);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_THAT(calls.begin()->first, HasSubstr("leaf"));
}

// Nothing is recorded that was not asked for, and no one waits for ever.
TEST_P(StartFilterTest, ProgramContinuesWithoutACollector) {
  const Ending ending = run(scratch_.path(), steady("1000"),
                            {{"LD_PRELOAD", agent_library()},
                             {"COLLECT_CONNECT", "127.0.0.1:1"},
                             {"COLLECT_DRAIN", GetParam()},
                             {"COLLECT_ONLY", "step"}});
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_EQ(ending.output, "1000 steps\n");
}

TEST_P(StartFilterTest, PatternThatCannotBeHandedOnIsWrongUsage) {
  for (const char* option : {"--only", "--except"}) {
    record({option, "a;b"}, {"true"}, {}, 125);
  }
}

INSTANTIATE_TEST_SUITE_P(Drains, StartFilterTest, ::testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
