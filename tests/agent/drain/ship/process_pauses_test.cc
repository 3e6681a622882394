// Stops and sleeps of the process, from readings of the test's and of a process that is stopped.
#include "agent/drain/ship/process_pauses.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/agent/drain/drain_parts.h"
#include "tests/child/forked_child.h"

namespace collect::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kHourNs = 3'600'000 * kMs;

class ProcessPausesTest : public DrainPartsTest {
 protected:
  ProcessPausesTest() {
    start_recording();
    fake::begin_at(1);  // since the machine was started, which may be minutes ago
    pauses().look(now_, 0, true);
  }
  void stop_for(uint64_t ms, bool is_recorded = true) {
    now_.monotonic_ns += ms * kMs;
    now_.continuous_ns += ms * kMs;
    now_.voluntary_switches += 2;
    pauses().look(now_, 0, is_recorded);
  }
  void sleep_for(uint64_t ms, bool is_recorded = true) {
    now_.continuous_ns += ms * kMs;
    pauses().look(now_, 0, is_recorded);
  }
  ProcessPauses& pauses() { return parts_->pauses; }

  PauseReadings now_{5000 * kMs, 9000 * kMs, 0, 77};
};

TEST_F(ProcessPausesTest, StopEndsNow) {
  const uint64_t before_ns = now_ns();
  stop_for(300);
  const auto all = stalls();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind(), wire::Stall::STOPPED);
  EXPECT_EQ(all[0].last_ns() - all[0].first_ns(), 300 * kMs);
  EXPECT_GE(all[0].last_ns(), before_ns);
  EXPECT_LE(all[0].last_ns(), now_ns());
  EXPECT_EQ(fake::clock_fits(), 0u);
}

TEST_F(ProcessPausesTest, AfterASleepTheClockIsFittedAtOnce) {
  sleep_for(60'000);
  EXPECT_EQ(fake::clock_fits(), 1u);
  const auto all = stalls();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind(), wire::Stall::SUSPENDED);
  EXPECT_EQ(all[0].last_ns() - all[0].first_ns(), 60'000 * kMs);
}

TEST_F(ProcessPausesTest, ClipsPausesToTheRecording) {
  fake::begin_at(now_ns());
  stop_for(300);
  const auto all = stalls();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].first_ns(), recording_start_ns());
  fake::begin_at(now_ns() + kHourNs);
  stop_for(300);
  EXPECT_TRUE(stalls().empty()) << "it was over when the recording began";
}

TEST_F(ProcessPausesTest, IgnoresTimeWhileNotRecording) {
  stop_for(300, false);
  sleep_for(60'000, false);
  EXPECT_EQ(fake::clock_fits(), 0u);
  pauses().look(now_, 0, true);
  EXPECT_TRUE(stalls().empty());
}

TEST_F(ProcessPausesTest, IgnoresOneLookAfterTheDrainMayHaveBlocked) {
  pauses().note_blocking();
  stop_for(300);
  EXPECT_TRUE(stalls().empty());
  stop_for(300);
  EXPECT_EQ(stalls().size(), 1u);
  // The machine sleeps, with or without a blocked drain.
  pauses().note_blocking();
  sleep_for(60'000);
  EXPECT_EQ(stalls().size(), 1u);
}

// A child that waits, and that the drain process would drain for.
class TracedPausesTest : public ProcessPausesTest {
 protected:
  TracedPausesTest() {
    traced_.watch(child_.pid(), -1, -1);
    pauses().watch(traced_);
  }
  void stop_child() {
    int status = 0;
    ASSERT_EQ(kill(child_.pid(), SIGSTOP), 0);
    ASSERT_EQ(waitpid(child_.pid(), &status, WUNTRACED), child_.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void continue_child() {
    int status = 0;
    ASSERT_EQ(kill(child_.pid(), SIGCONT), 0);
    ASSERT_EQ(waitpid(child_.pid(), &status, WCONTINUED), child_.pid());
    ASSERT_TRUE(WIFCONTINUED(status));
  }

  child::ForkedChild child_{child::pause_until_killed};
  TracedProcess traced_;
};

TEST_F(TracedPausesTest, StopLastsFromTheFirstLookToTheLast) {
  pauses().look_for_stop(1000, true);
  stop_child();
  pauses().look_for_stop(1000 + kStopLookMs - 1, true);  // too soon for another look
  const uint64_t first_ns = now_ns();
  pauses().look_for_stop(1000 + kStopLookMs, true);
  pauses().look_for_stop(1000 + 2 * kStopLookMs, true);
  const uint64_t last_ns = now_ns();
  EXPECT_TRUE(stalls().empty()) << "it lasts";
  continue_child();
  pauses().look_for_stop(1000 + 3 * kStopLookMs, true);
  const auto all = stalls();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind(), wire::Stall::STOPPED);
  EXPECT_GE(all[0].first_ns(), first_ns);
  EXPECT_GT(all[0].last_ns(), all[0].first_ns());
  EXPECT_LE(all[0].last_ns(), last_ns);
  pauses().look_for_stop(1000 + 4 * kStopLookMs, true);
  EXPECT_TRUE(stalls().empty()) << "it is reported once";
}

TEST_F(TracedPausesTest, StopThatLastsIsReportedWhenTheRecordingEnds) {
  stop_child();
  pauses().look_for_stop(1000, true);
  pauses().look_for_stop(2000, true);
  pauses().recording_ends();
  EXPECT_EQ(stalls().size(), 1u);
  pauses().recording_ends();
  EXPECT_TRUE(stalls().empty());
}

TEST_F(TracedPausesTest, DoesNotLookWhileNotRecording) {
  stop_child();
  pauses().look_for_stop(1000, false);
  pauses().look_for_stop(2000, false);
  pauses().recording_ends();
  EXPECT_TRUE(stalls().empty());
}

TEST_F(TracedPausesTest, DrainProcessReportsItsSleepNotItsStop) {
  stop_for(300);
  EXPECT_TRUE(stalls().empty());
  sleep_for(60'000);
  EXPECT_EQ(stalls().size(), 1u);
}

}  // namespace
}  // namespace collect::agent
