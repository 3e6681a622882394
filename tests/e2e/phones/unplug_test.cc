// A busy program, and a cable that comes out and goes in at any moment. Alone on the machine: what
// is drained has to get a processor before the rings are full. COLLECT_UNPLUGS (default 10) says
// how often.
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/e2e/faults/spool_fixture.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kBufferMb = 16;

// Unplugged, or plugged in and silent, at any moment, while about a million events a second come:
// in neither do the rings have to hold what the spool has room for.
TEST_P(SpoolE2eTest, KeepsAllEventsOverManyUnplugs) {
  const char* const wanted = std::getenv("COLLECT_UNPLUGS");
  const int unplugs = wanted == nullptr ? 10 : std::atoi(wanted);
  start("drop", "spool", 1024, kBufferMb);
  std::mt19937 random(4711);
  const auto some_ms = [&random](int most) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(0, most)(random)));
  };
  for (int i = 0; i < unplugs; ++i) {
    some_ms(200);
    proxy_.hold(true);
    if (i % 2 == 0) proxy_.cut_all(i % 4 == 0);
    // Now and then for longer than the rings last.
    if (i % 5 == 0) run_on(2 * kBufferMb * kBufferBytes / kEventBytes / kThreads);
    some_ms(200);
    proxy_.hold(false);
  }
  const ChaosTally tally = finish(false);
  EXPECT_EQ(tally.lost, 0u);
  EXPECT_GT(tally.events, 2 * kBufferMb * kBufferBytes / kEventBytes);
}

// Before there ever was one.
TEST_P(SpoolE2eTest, KeepsAllEventsBeforeTheFirstCollector) {
  proxy_.hold(true);
  begin("drop", "spool", 256, kBufferMb);
  ASSERT_TRUE(eventually(kJobLimit, [&] {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(scratch_ / "progress", none);
    return !none && bytes != 0;
  })) << job_->errors();
  run_on(2 * kBufferMb * kBufferBytes / kEventBytes / kThreads);
  proxy_.hold(false);
  EXPECT_EQ(finish(false).lost, 0u);
}

INSTANTIATE_TEST_SUITE_P(Drain, SpoolE2eTest, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
