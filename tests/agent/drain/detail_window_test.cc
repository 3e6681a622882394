// Detail for a limited time: when it ends, and what it returns to.
#include "agent/drain/detail_window.h"

#include "tests/agent/drain/drain_parts.h"

namespace collect::agent {
namespace {

constexpr uint32_t kOff = collect_wire_DetailMode_DETAIL_OFF;
constexpr uint32_t kArmed = collect_wire_DetailMode_DETAIL_ARMED;
constexpr uint32_t kOn = collect_wire_DetailMode_DETAIL_ON;

class DetailWindowTest : public DrainPartsTest {
 protected:
  // A recording that the collector may be informed of.
  void begin_recording() {
    start_recording();
    parts_->shipper.begin_recording(false);
  }
  DetailChange change(uint32_t mode, uint64_t duration_ns = 0, pb_size_t threads = 0,
                      pb_size_t functions = 0, bool is_recorded = true) {
    const auto wanted = std::make_unique<collect_wire_SetDetail>();
    wanted->mode = static_cast<collect_wire_DetailMode>(mode);
    wanted->duration_ns = duration_ns;
    wanted->thread_ids_count = threads;
    wanted->function_ids_count = functions;
    return detail().change(*wanted, is_recorded);
  }
  DetailWindow& detail() { return parts_->detail; }
};

TEST_F(DetailWindowTest, RecordingBeginsWithTheModeThatIsSet) {
  begin_recording();
  detail().recording_begins();
  EXPECT_TRUE(detail_states().empty()) << "off is what the collector takes for granted";
  (void)set_detail(kArmed, 0, nullptr);
  detail().recording_begins();
  const auto states = detail_states();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].mode(), wire::DETAIL_ARMED);
  EXPECT_EQ(states[0].at_ns(), recording_start_ns());
  EXPECT_EQ(states[0].reason(), "start");
}

TEST_F(DetailWindowTest, RestoresModeAndFilterAfterItsDuration) {
  begin_recording();
  (void)change(kArmed, 0, 3);
  EXPECT_EQ(detail().until_ns(), 0u);
  const DetailChange limited = change(kOn, 5000, 0, 2);
  EXPECT_EQ(detail().until_ns(), limited.at_ns + 5000);
  EXPECT_EQ(detail_mode(), kOn);
  EXPECT_EQ(fake::detail_filter_threads(), 0u);
  EXPECT_EQ(fake::detail_filter_functions(), 2u);
  EXPECT_EQ(detail_states().size(), 2u);

  detail().end_when_due(limited.at_ns + 4999, true);
  EXPECT_EQ(detail_mode(), kOn);
  detail().end_when_due(limited.at_ns + 5000, true);
  EXPECT_EQ(detail_mode(), kArmed);
  EXPECT_EQ(fake::detail_filter_threads(), 3u);
  EXPECT_EQ(fake::detail_filter_functions(), 0u);
  EXPECT_EQ(detail().until_ns(), 0u);
  const auto states = detail_states();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].mode(), wire::DETAIL_ARMED);
  EXPECT_EQ(states[0].reason(), "duration");

  (void)change(kOff);
  detail().end_when_due(UINT64_MAX, true);
  EXPECT_EQ(detail_mode(), kOff) << "it ended once";
}

TEST_F(DetailWindowTest, SecondTimedCommandRestoresTheSameMode) {
  begin_recording();
  (void)change(kOn, 5000, 1);
  const DetailChange second = change(kOn, 9000, 0, 4);
  EXPECT_EQ(detail().until_ns(), second.at_ns + 9000);
  detail().end_when_due(second.at_ns + 9000, true);
  EXPECT_EQ(detail_mode(), kOff);
  EXPECT_EQ(fake::detail_filter_functions(), 0u);
}

TEST_F(DetailWindowTest, OnlyModeOnHasADuration) {
  (void)change(kArmed, 5000);
  EXPECT_EQ(detail().until_ns(), 0u);
  (void)change(kOff, 5000);
  EXPECT_EQ(detail().until_ns(), 0u);
  (void)change(kOn, UINT64_MAX);
  EXPECT_EQ(detail().until_ns(), 0u);
  detail().end_when_due(UINT64_MAX, true);
  EXPECT_EQ(detail_mode(), kOn);
}

TEST_F(DetailWindowTest, EndsWithItsRecordingAndRestoresTheSettings) {
  settings().detail = kArmed;
  begin_recording();
  (void)change(kOn, 5000, 7);
  (void)detail_states();
  detail().recording_ends(123);
  EXPECT_EQ(detail().until_ns(), 0u);
  EXPECT_EQ(detail_mode(), kArmed);
  EXPECT_EQ(fake::detail_filter_threads(), 0u);
  const auto states = detail_states();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].mode(), wire::DETAIL_OFF);
  EXPECT_EQ(states[0].at_ns(), 123u);
  EXPECT_EQ(states[0].reason(), "recording ended");
  // The filter was the recording's: a limited time of the next does not return to it.
  const DetailChange next = change(kOn, 10, 2);
  detail().end_when_due(next.at_ns + 10, true);
  EXPECT_EQ(detail_mode(), kArmed);
  EXPECT_EQ(fake::detail_filter_threads(), 0u);
}

TEST_F(DetailWindowTest, ChangesDetailSilentlyOutsideARecording) {
  begin_recording();
  const DetailChange changed = change(kOn, 10, 0, 0, false);
  EXPECT_EQ(detail_mode(), kOn);
  detail().end_when_due(changed.at_ns + 10, false);
  EXPECT_EQ(detail_mode(), kOff);
  EXPECT_TRUE(detail_states().empty());
}

TEST_F(DetailWindowTest, WaitingForThreadsIsNotTakenForAStop) {
  begin_recording();
  PauseReadings now{5'000'000'000, 9'000'000'000, 0, 0};
  parts_->pauses.look(now, 0, true);
  for (const size_t stops : {0u, 1u}) {
    if (stops == 0) (void)change(kOn);
    now.monotonic_ns += 2 * kLeastStopNs;
    now.continuous_ns += 2 * kLeastStopNs;
    now.voluntary_switches += 2;
    fake::begin_at(now_ns() - 1'000'000'000);
    parts_->pauses.look(now, 0, true);
    EXPECT_EQ(stalls().size(), stops);
  }
}

}  // namespace
}  // namespace collect::agent
