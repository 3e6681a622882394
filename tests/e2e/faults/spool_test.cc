// The cable is out for longer than the rings last: what is recorded meanwhile waits in the spool,
// and arrives in the same session.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/e2e/faults/spool_fixture.h"

namespace collect::e2e {
namespace {

// Bytes a second: less than the program makes, so that the spool grows while it is handed over.
constexpr uint64_t kSlowLink = 200'000;

TEST_P(SpoolE2eTest, KeepsAllEventsWhileTheCableIsOut) {
  start("wait", "spool", 64);
  for (int unplugged = 0; unplugged < 3; ++unplugged) {
    unplug();
    run_on(8 * kBufferBytes / kEventBytes / kThreads);
    proxy_.limit_rate(kSlowLink);
    proxy_.hold(false);
    // The next time in the middle of it.
    ASSERT_TRUE(eventually(kJobLimit, [&] { return number("agents", "spooled_bytes") > 0; }));
  }
  proxy_.limit_rate(0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "spool")) << "its file has no name";
  EXPECT_EQ(finish(true).lost, 0u);
}

TEST_P(SpoolE2eTest, CountsEventsBeyondASmallSpool) {
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

// A million events a second, and something else on every core.
class BusyMachineTest : public SpoolE2eTest {
 protected:
  void begin_burst(uint64_t ms) {
    begin("wait", "spool", 512, 64, {traced_program("steady"), "burst", std::to_string(ms), "500"});
  }
  void expect_everything() {
    const Ending& ending = job_->wait(kJobLimit);
    ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const auto sessions = sealed_sessions(collector_.root(), job_->pid());
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    EXPECT_EQ(sessions[0].totals().lost, 0u);
    EXPECT_EQ(sessions[0].totals().events, 2 * (std::stoull(ending.output) + 1))
        << "main, and each step";
    const Ending verified = collector_.ctl({"verify", sessions[0].directory()}, kJobLimit);
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  std::atomic<bool> over_{false};
  std::vector<std::jthread> load_;

  void SetUp() override {
    for (unsigned core = 0; core < std::max(2u, std::thread::hardware_concurrency()); ++core) {
      load_.emplace_back([this] {
        while (!over_) std::atomic_signal_fence(std::memory_order_seq_cst);
      });
    }
  }
  void TearDown() override { over_ = true; }
};

TEST_P(BusyMachineTest, HundredUnpluggedCablesLoseNothing) {
  std::mt19937 random(20260131);
  const auto pause = [&random](int most_ms) {
    std::uniform_int_distribution<int> ms(0, most_ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms(random)));
  };
  begin_burst(5'000);
  ASSERT_TRUE(eventually(kJobLimit, [&] { return number("sessions", "events") > 0; }));
  for (int times = 0; times < 100; ++times) {
    unplug();
    pause(25);
    proxy_.hold(false);
    pause(50);
  }
  expect_everything();
}

// From its first event on, to a collector that comes when it has ended nearly.
TEST_P(BusyMachineTest, DeliversEventsRecordedBeforeTheFirstCollector) {
  proxy_.hold(true);
  begin_burst(2'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  proxy_.hold(false);
  expect_everything();
}

INSTANTIATE_TEST_SUITE_P(Drain, BusyMachineTest, testing::Values("thread", "process"));
INSTANTIATE_TEST_SUITE_P(Drain, SpoolE2eTest, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
