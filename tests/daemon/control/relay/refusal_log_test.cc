#include "daemon/control/relay/refusal_log.h"

#include <gtest/gtest.h>

namespace collect::control {
namespace {

using std::chrono::milliseconds;

TEST(RefusalLog, LogsTheFirstThenOneLineEachPeriod) {
  const RefusalLog::Time start{milliseconds(1)};  // of a machine that has just begun
  RefusalLog log(std::chrono::seconds(10));
  EXPECT_EQ(log.count(start), 1u);
  EXPECT_EQ(log.count(start), 0u);
  EXPECT_EQ(log.count(start + milliseconds(9'999)), 0u);
  EXPECT_EQ(log.count(start + milliseconds(10'000)), 3u);
  EXPECT_EQ(log.count(start + milliseconds(10'001)), 0u);
  EXPECT_EQ(log.count(start + milliseconds(90'000)), 2u);
  EXPECT_EQ(log.count(start + milliseconds(190'000)), 1u);
}

}  // namespace
}  // namespace collect::control
