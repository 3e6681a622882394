// A test of `collectctl run` by each drain: a thread of the traced process, and a process beside
// it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

class RunTest : public ::testing::TestWithParam<const char*> {
 protected:
  Ending record(const Arguments& options, const Arguments& traced, const Environment& more = {},
                int exit_code = 0) {
    const Arguments ours{program("collectctl"), "run",     "-o",
                         scratch_ / "traces",   "--drain", GetParam()};
    const Ending ending = run(scratch_.path(), ours + options + Arguments{"--"} + traced, more);
    EXPECT_TRUE(ending.exited_with(exit_code)) << ending.describe() << ending.errors;
    return ending;
  }
  std::vector<RecordedSession> sessions() {
    std::vector<RecordedSession> all;
    for (const std::string& directory : session_directories(scratch_ / "traces")) {
      all.emplace_back(directory);
      EXPECT_EQ(all.back().state(), "complete");
      EXPECT_EQ(all.back().totals().lost, 0u);
    }
    return all;
  }

  Scratch scratch_;
};

}  // namespace collect::e2e
