// Stalls on their way: before what comes behind them, again after a cut, until they are stored.
#include <vector>

#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

class DrainStallTest : public DrainTest {
 protected:
  // The next Stalls frame; what comes before it is taken too.
  wire::Stalls take_stalls() {
    wire::Stalls stalls;
    EXPECT_TRUE(stalls.ParseFromString(collector.take_until(FrameType::kStalls).body));
    return stalls;
  }
  void ack_stalls(uint64_t next) {
    wire::Ack ack;
    ack.set_stalls_next(next);
    collector.control.send(FrameType::kAck, ack);
  }
  void cut_and_return(bool resumed) {
    collector.data.close();
    collector.control.close();
    collector.welcome_pair(resumed);
  }
};

TEST_F(DrainStallTest, StallGoesBeforeTheRecordsBehindIt) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  collector.take_until(FrameType::kStreamOpen);
  // In the moment after the drain took the records: they may be the ones behind the stall.
  fake::after_next_span([&] { fake::stall(stream, {900, 950, 50, 1}); });
  fake::write_index(stream, 10);
  std::vector<FrameType> order;
  while (order.empty() || order.back() != FrameType::kPage) {
    const auto frame = collector.take();
    ASSERT_TRUE(frame);
    order.push_back(frame->type);
    if (frame->type != FrameType::kStalls) continue;
    wire::Stalls stalls;
    ASSERT_TRUE(stalls.ParseFromString(frame->body));
    EXPECT_EQ(stalls.first_number(), 0u);
    ASSERT_EQ(stalls.stalls_size(), 1);
    EXPECT_EQ(stalls.stalls(0).stream_id(), stream);
    EXPECT_EQ(stalls.stalls(0).kind(), wire::Stall::PAGE_WAIT);
    EXPECT_EQ(stalls.stalls(0).first_ns(), 900u);
    EXPECT_EQ(stalls.stalls(0).last_ns(), 950u);
    EXPECT_EQ(stalls.stalls(0).count(), 0u);  // it was not joined
  }
  EXPECT_EQ(order, (std::vector<FrameType>{FrameType::kStalls, FrameType::kPage}));
}

TEST_F(DrainStallTest, OnesThatWereJoinedSayHowMuchTheyAre) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::stall(stream, {900, 1900, 300, 7});
  collector.welcome_pair();
  const wire::Stalls stalls = take_stalls();
  ASSERT_EQ(stalls.stalls_size(), 1);
  EXPECT_EQ(stalls.stalls(0).count(), 7u);
  EXPECT_EQ(stalls.stalls(0).stalled_ns(), 300u);
}

TEST_F(DrainStallTest, ResendsUnstoredStalls) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  for (uint64_t i = 0; i < 100; ++i) fake::stall(stream, {1000 * i, 1000 * i + 10, 10, 1});
  collector.welcome_pair();
  EXPECT_EQ(take_stalls().stalls_size(), 64);  // a frame has no more
  const wire::Stalls rest = take_stalls();
  EXPECT_EQ(rest.first_number(), 64u);
  EXPECT_EQ(rest.stalls_size(), 36);
  ack_stalls(90);
  // The ack is read before anything that comes after it, such as this command.
  wire::Command flush;
  flush.set_command_id(5);
  flush.mutable_flush();
  collector.control.send(FrameType::kCommand, flush);
  EXPECT_EQ(collector.control.expect<wire::CommandResult>(FrameType::kCommandResult).command_id(),
            5u);
  cut_and_return(true);
  const wire::Stalls again = take_stalls();
  EXPECT_EQ(again.first_number(), 90u);
  ASSERT_EQ(again.stalls_size(), 10);
  EXPECT_EQ(again.stalls(0).first_ns(), 90'000u);
}

TEST_F(DrainStallTest, LastStallGoesBeforeTheEndOfItsStream) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  fake::stall(stream, {5000, 6000, 1000, 1});
  fake::end_stream(stream);
  collector.welcome_pair();
  bool stalled = false;
  for (auto frame = collector.take(); frame; frame = collector.take()) {
    stalled |= frame->type == FrameType::kStalls;
    if (frame->type == FrameType::kStreamClose) break;
  }
  EXPECT_TRUE(stalled);
}

// More than the log holds stays with the stream, and comes when there is room.
TEST_F(DrainStallTest, KeepsAllStallsUntilTheyAreStored) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  constexpr uint64_t kStalls = 10'000;
  for (uint64_t i = 0; i < kStalls; ++i) fake::stall(stream, {1000 * i, 1000 * i + 10, 10, 1});
  collector.welcome_pair();
  uint64_t next = 0;
  while (next < kStalls) {
    const wire::Stalls stalls = take_stalls();
    ASSERT_EQ(stalls.first_number(), next);
    for (const wire::Stall& stall : stalls.stalls()) ASSERT_EQ(stall.first_ns(), 1000 * next++);
    ack_stalls(next);
  }
}

}  // namespace
}  // namespace collect::agent
