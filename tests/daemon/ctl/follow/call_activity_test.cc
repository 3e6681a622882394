#include "daemon/ctl/follow/call_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::ctl::follow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SeenCall call(uint64_t start_ns, uint64_t duration_ns) {
  SeenCall call;
  call.start_ns = start_ns;
  call.end_ns = start_ns + duration_ns;
  return call;
}

std::vector<uint64_t> durations(const std::vector<SeenCall>& calls) {
  std::vector<uint64_t> all;
  for (const SeenCall& one : calls) all.push_back(one.duration_ns());
  return all;
}

TEST(LongestCalls, KeepsTheLongestInEndOrder) {
  LongestCalls calls(3);
  const uint64_t taken[] = {5, 1, 9, 2, 8, 7, 3};
  for (uint64_t i = 0; i < 7; ++i) calls.add(call(100 * i, taken[i]));
  EXPECT_EQ(calls.skipped(), 4u);
  EXPECT_THAT(durations(calls.take()), ElementsAre(9, 8, 7));
  EXPECT_EQ(calls.skipped(), 0u);
  EXPECT_THAT(calls.take(), IsEmpty());
  calls.add(call(50, 1));
  calls.add(call(10, 2));
  EXPECT_THAT(durations(calls.take()), ElementsAre(2, 1));
}

TEST(LongestCalls, KeepsNoCallsWithALimitOfZero) {
  LongestCalls calls(0);
  calls.add(call(1, 1));
  EXPECT_EQ(calls.skipped(), 1u);
  EXPECT_THAT(calls.take(), IsEmpty());
}

TEST(SeenCall, TimesThatStepBackAreNoDuration) {
  SeenCall back;
  back.start_ns = 10;
  back.end_ns = 9;
  EXPECT_EQ(back.duration_ns(), 0u);
}

TEST(ActivityTable, ClearResetsTouchedFunctions) {
  ActivityTable table;
  table.at(7).calls = 3;
  table.at(2).self_ns = 4;
  table.at(7).calls += 1;
  EXPECT_THAT(table.touched(), ElementsAre(7u, 2u));
  EXPECT_EQ(table.at(7).calls, 4u);
  table.clear();
  EXPECT_THAT(table.touched(), IsEmpty());
  EXPECT_EQ(table.at(7).calls, 0u);
  EXPECT_THAT(table.touched(), ElementsAre(7u));
}

}  // namespace
}  // namespace collect::ctl::follow
