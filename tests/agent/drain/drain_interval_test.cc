// How long the drain thread lets things be, and for how long they are.
#include <chrono>

#include "agent/drain/drain_thread.h"
#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

using std::chrono::steady_clock;

// A collector that says nothing is taken for dead after three times as long; the agent says
// something in half of it.
constexpr uint32_t kBeatMs = 600;

class DrainIntervalTest : public DrainTest {
 protected:
  // The second of these was made in a round that began after this was called.
  void wait_for_a_round() {
    for (int i = 0; i < 2; ++i) {
      (void)collector.control.expect<wire::Heartbeat>(FrameType::kHeartbeat);
      collector.control.send(FrameType::kHeartbeat, wire::Heartbeat());
    }
  }
};

// Each look at the program's threads costs system calls.
TEST_F(DrainIntervalTest, ThreadsAndClockAreLookedAtNowAndThen) {
  const auto begin = steady_clock::now();
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  // With data on its way the thread is awake every millisecond.
  uint64_t written = 0;
  while (fake::thread_looks() < 6 || fake::clock_fits() < 4) {
    fake::write_index(stream, kPageBytes / 32);
    written += kPageBytes / 32;
    collector.take_records(stream, 0, written);
    collector.send_ack();
    ASSERT_LT(steady_clock::now() - begin, std::chrono::minutes(1));
  }
  // The counts first: the time may only grow behind them.
  const uint32_t looks = fake::thread_looks();
  const uint32_t fits = fake::clock_fits();
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
  EXPECT_LE(looks, static_cast<uint64_t>(passed.count()) / kPollThreadsMs + 2);
  EXPECT_LE(fits, static_cast<uint64_t>(passed.count()) / kCalibrateMs + 2);
}

TEST_F(DrainIntervalTest, ThreadsAreLookedAtWhileARecordingRunsAlone) {
  Settings settings = connecting();
  settings.start_recording = false;
  ASSERT_TRUE(drain_start(settings));
  collector.welcome_pair(false, kBeatMs);
  wait_for_a_round();
  EXPECT_EQ(fake::thread_looks(), 0u);
  wire::Command start;
  start.mutable_start_recording();
  ASSERT_TRUE(collector.command(start).ok());
  EXPECT_TRUE(eventually([] { return fake::thread_looks() > 0; }));
}

TEST_F(DrainIntervalTest, DetailMayGoOnForEver) {
  for (const uint64_t duration_ns : {uint64_t{0}, UINT64_MAX, UINT64_MAX / 2}) {
    ASSERT_TRUE(drain_start(connecting()));
    collector.welcome_pair(false, kBeatMs);
    wire::Command on;
    on.mutable_set_detail()->set_mode(wire::DETAIL_ON);
    on.mutable_set_detail()->set_duration_ns(duration_ns);
    ASSERT_TRUE(collector.command(on).ok());
    wait_for_a_round();
    EXPECT_EQ(detail_mode(), 2u);
    wire::Command off;
    off.mutable_set_detail()->set_mode(wire::DETAIL_OFF);
    ASSERT_TRUE(collector.command(off).ok());
    while (collector.detail_states.size() < 2) collector.take_until(FrameType::kDetailState);
    EXPECT_EQ(collector.detail_states[0].reason(), "command");
    EXPECT_EQ(collector.detail_states[1].reason(), "command");
    EXPECT_EQ(collector.detail_states[1].mode(), wire::DETAIL_OFF);
    collector.detail_states.clear();
    collector.control.close();
    collector.data.close();
    drain_stop(0);
  }
}

}  // namespace
}  // namespace collect::agent
