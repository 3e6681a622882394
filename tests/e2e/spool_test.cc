// The cable is out for longer than the rings last: what is recorded meanwhile waits in the spool,
// and arrives in the same session.
#include "tests/e2e/spool_fixture.h"

namespace collect::e2e {
namespace {

// Bytes a second: less than the program makes, so that the spool grows while it is handed over.
constexpr uint64_t kSlowLink = 200'000;

TEST_P(SpoolE2eTest, NothingIsLostWhileTheCableIsOut) {
  start("wait", "spool", 64);
  for (int unplugged = 0; unplugged < 3; ++unplugged) {
    unplug();
    run_on(8 * kBufferBytes / kEventBytes / kThreads);
    proxy_.limit_rate(kSlowLink);
    proxy_.hold(false);
    // The next time in the middle of it.
    ASSERT_TRUE(eventually(kJobLimit, [&] { return number("agents", "spooledBytes") > 0; }));
  }
  proxy_.limit_rate(0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "spool")) << "its file has no name";
  EXPECT_EQ(finish(true).lost, 0u);
}

TEST_P(SpoolE2eTest, WhatASmallSpoolDoesNotHoldIsCounted) {
  start("drop", "spool", 1);
  unplug();
  // More pages than a megabyte has places for.
  run_on(64 * kBufferBytes / kEventBytes / kThreads);
  proxy_.hold(false);
  const ChaosTally tally = finish(false);
  EXPECT_GT(tally.lost, 0u);
  EXPECT_GT(tally.events, 2 * kBufferBytes / kEventBytes) << "the spool held more than the rings";
}

TEST_P(SpoolE2eTest, WithoutAFolderItSaysSoAndRecords) {
  start("drop", "missing", 64);
  EXPECT_NE(job_->errors().find("no spool in " + (scratch_ / "missing") + ": "), std::string::npos)
      << job_->errors();
  EXPECT_NE(job_->errors().find("no such file"), std::string::npos);
  (void)finish(false);
}

INSTANTIATE_TEST_SUITE_P(Drain, SpoolE2eTest, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
