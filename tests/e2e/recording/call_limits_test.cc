// What a user leaves out of a recording: it is counted, and it is no loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Below main, depths makes chains of eight calls.
constexpr uint64_t kRounds = 1000;

class CallLimitsTest : public ::testing::TestWithParam<const char*> {
 protected:
  struct Ran {
    std::string output;
    std::string said;
    json manifest;
    uint64_t events = 0;
  };
  Ran run_limited(const Arguments& options, const Arguments& traced, const Environment& more = {}) {
    Arguments command{program("collectctl"), "run",     "-o",
                      scratch_ / "traces",   "--drain", GetParam()};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("--");
    command.push_back(traced_program(traced[0]));
    command.insert(command.end(), traced.begin() + 1, traced.end());
    const Ending ending = run(scratch_.path(), command, more);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    Ran ran{ending.output, ending.errors, {}, 0};
    const auto directories = session_directories(scratch_ / "traces");
    EXPECT_EQ(directories.size(), 1u);
    if (directories.size() != 1) return ran;
    const RecordedSession session(directories[0]);
    EXPECT_EQ(session.state(), "complete");
    EXPECT_EQ(session.totals().lost, 0u);
    ran.manifest = session.manifest();
    ran.events = session.totals().events;
    return ran;
  }

  Scratch scratch_;
};

TEST_P(CallLimitsTest, DeeperCallsAreLeftOutAndCounted) {
  const Ran ran = run_limited({"--max-depth", "3"}, {"depths", std::to_string(kRounds)});
  EXPECT_EQ(ran.events, 2 + 4 * kRounds);
  EXPECT_EQ(ran.manifest["process"].value("max_depth", 0), 3);
  EXPECT_EQ(ran.manifest["threads"][0].value("calls_left_out", uint64_t{0}), 6 * kRounds);
  EXPECT_EQ(ran.manifest["totals"].value("calls_left_out", uint64_t{0}), 6 * kRounds);
  EXPECT_THAT(ran.said, HasSubstr("left out   6,000 calls"));
  EXPECT_THAT(ran.said, HasSubstr("lost       nothing"));
}

// By the variable, and with calls that a longjmp ends: the depth is right again after each.
TEST_P(CallLimitsTest, DepthIsRightAfterALongjmp) {
  const Ran ran =
      run_limited({}, {"depths", std::to_string(kRounds), "jump"}, {{"COLLECT_MAX_DEPTH", "3"}});
  EXPECT_EQ(ran.events, 2 + 2 * kRounds);
  EXPECT_EQ(ran.manifest["totals"].value("calls_left_out", uint64_t{0}), 6 * kRounds);
}

TEST_P(CallLimitsTest, WithoutALimitNothingIsLeftOut) {
  const Ran ran = run_limited({}, {"depths", std::to_string(kRounds)});
  EXPECT_EQ(ran.events, 2 + 16 * kRounds);
  EXPECT_FALSE(ran.manifest["process"].contains("max_depth"));
  EXPECT_FALSE(ran.manifest["totals"].contains("calls_left_out"));
  EXPECT_EQ(ran.said.find("left out"), std::string::npos) << ran.said;
}

// steady says how often it called step(), which takes no time to speak of; main takes all of it.
TEST_P(CallLimitsTest, ShortCallsAreLeftOutAndCounted) {
  const Ran ran = run_limited({"--longer-than", "20ms"}, {"steady", "pace", "200"});
  const uint64_t steps = std::stoull(ran.output);
  const uint64_t left_out = ran.manifest["totals"].value("calls_left_out", uint64_t{0});
  EXPECT_GT(left_out, 0u);
  EXPECT_GE(ran.events, 2u) << "main";
  EXPECT_EQ(ran.events / 2 + left_out, steps + 1);
  EXPECT_EQ(ran.manifest["process"].value("longer_than_ns", uint64_t{0}), 20'000'000u);
  EXPECT_THAT(ran.said, HasSubstr(" as function filter, --max-depth and --longer-than ask"));
}

TEST_P(CallLimitsTest, WhereEveryCallIsShortTheSummarySaysSo) {
  const Ran ran = run_limited({}, {"steady", "fill", "1000"}, {{"COLLECT_LONGER_THAN", "3600s"}});
  EXPECT_EQ(ran.events, 0u);
  EXPECT_EQ(ran.manifest["totals"].value("calls_left_out", uint64_t{0}), 1001u);
  EXPECT_THAT(ran.said, HasSubstr("Nothing was recorded: 1,001 calls left out"));
}

TEST_P(CallLimitsTest, TimeThatIsNoneIsWrongUsage) {
  for (const char* time : {"0us", "3601s", "soon"}) {
    const Ending ending =
        run(scratch_.path(), {program("collectctl"), "run", "--longer-than", time, "--", "true"});
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe();
    EXPECT_THAT(ending.errors, HasSubstr(time));
  }
}

INSTANTIATE_TEST_SUITE_P(Drains, CallLimitsTest, ::testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
