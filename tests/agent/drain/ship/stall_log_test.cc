// Stalls in the drain's log: which are joined when it is full, what a new link gets, and what fits
// into a frame.
#include "agent/drain/ship/stall_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proto/wire/wire.pb.h"
#include "tests/agent/drain/sent_frames.h"
#include "tests/agent/fake_recorder.h"

namespace collect::agent {
namespace {

constexpr auto kStopped = collect_wire_Stall_Kind_STOPPED;

class StallLogTest : public testing::Test {
 protected:
  StallLogTest() {
    fake::reset();
    log_->begin_recording();
  }
  uint32_t add_stream() {
    const uint32_t stream = fake::add_stream(1, "thread");
    streams_->refresh();
    return stream;
  }
  void add(uint64_t first_ns, uint64_t last_ns) { log_->add(kStopped, first_ns, last_ns); }
  // What the log has to say now, in frames.
  std::vector<wire::Stalls> send() {
    std::vector<wire::Stalls> frames;
    bool is_all = false;
    while (!is_all) {
      is_all = log_->send(*out_);
      const std::vector<SentFrame> sent = take_frames(*out_);
      EXPECT_TRUE(is_all || !sent.empty());
      for (const SentFrame& frame : sent) {
        EXPECT_EQ(frame.type, wire::FrameType::kStalls);
        EXPECT_TRUE(frames.emplace_back().ParseFromString(frame.body));
      }
    }
    return frames;
  }
  // Of all that are sent now, in their order.
  std::vector<wire::Stall> stalls(uint64_t first_number) {
    std::vector<wire::Stall> all;
    for (const wire::Stalls& frame : send()) {
      EXPECT_EQ(frame.first_number(), first_number + all.size());
      all.insert(all.end(), frame.stalls().begin(), frame.stalls().end());
    }
    return all;
  }

  std::unique_ptr<StallLog> log_ = std::make_unique<StallLog>();
  std::unique_ptr<StreamTable> streams_ = std::make_unique<StreamTable>();
  std::unique_ptr<SendBuffer> out_ = std::make_unique<SendBuffer>();
};

TEST_F(StallLogTest, NumbersBeginAgainWithARecording) {
  add(100, 200);
  add(300, 400);
  ASSERT_EQ(stalls(0).size(), 2u);
  log_->begin_recording();
  EXPECT_FALSE(log_->has_unsent());
  EXPECT_TRUE(send().empty());
  add(500, 600);
  EXPECT_TRUE(log_->has_unsent());
  const std::vector<wire::Stall> all = stalls(0);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].first_ns(), 500u);
  EXPECT_EQ(all[0].last_ns(), 600u);
  EXPECT_EQ(all[0].kind(), wire::Stall::STOPPED);
  EXPECT_EQ(all[0].stream_id(), 0u);
  EXPECT_EQ(all[0].count(), 0u);
  EXPECT_EQ(all[0].stalled_ns(), 0u);
  EXPECT_FALSE(log_->has_unsent());
}

TEST_F(StallLogTest, FrameHasItsMost) {
  for (uint64_t n = 0; n < 2 * wire::kMaxStallsPerFrame + 1; ++n) add(10 * n + 1, 10 * n + 5);
  const std::vector<wire::Stalls> frames = send();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].stalls_size(), static_cast<int>(wire::kMaxStallsPerFrame));
  EXPECT_EQ(frames[1].stalls_size(), static_cast<int>(wire::kMaxStallsPerFrame));
  EXPECT_EQ(frames[2].stalls_size(), 1);
  EXPECT_EQ(frames[2].first_number(), 2 * wire::kMaxStallsPerFrame);
}

TEST_F(StallLogTest, BufferWithoutRoomForAFrameGetsNone) {
  add(100, 200);
  constexpr size_t kFrameBytes = collect_wire_Stalls_size + sizeof(wire::FrameHeader);
  collect_wire_Bye bye = collect_wire_Bye_init_zero;
  while (out_->room() >= kFrameBytes) {
    ASSERT_TRUE(out_->push(wire::FrameType::kBye, collect_wire_Bye_fields, &bye));
  }
  EXPECT_FALSE(log_->send(*out_));
  EXPECT_TRUE(log_->has_unsent());
  out_->clear();
  EXPECT_EQ(stalls(0).size(), 1u);
}

TEST_F(StallLogTest, FullLogJoinsStallsOfTheProcess) {
  const uint32_t stream = add_stream();
  for (uint64_t n = 0; n < kMaxUnackedStalls; ++n) {
    fake::stall(stream, {10 * n + 1, 10 * n + 5, 4, 1});
  }
  log_->gather(*streams_);
  for (uint64_t n = 0; n < kKeptForProcess; ++n) add(100'000 + 100 * n, 100'010 + 100 * n);
  // Two more than there is room for: both become part of the newest of the process.
  add(200'000, 200'100);
  add(300'000, 300'007);
  const std::vector<wire::Stall> all = stalls(0);
  ASSERT_EQ(all.size(), kMaxUnackedStalls);
  constexpr size_t kOfThreads = kMaxUnackedStalls - kKeptForProcess;
  for (size_t i = 0; i < kOfThreads; ++i) {
    ASSERT_EQ(all[i].stream_id(), stream);
    ASSERT_EQ(all[i].kind(), wire::Stall::PAGE_WAIT);
    ASSERT_EQ(all[i].first_ns(), 10 * i + 1);
  }
  for (size_t i = kOfThreads; i + 1 < all.size(); ++i) {
    ASSERT_EQ(all[i].stream_id(), 0u);
    ASSERT_EQ(all[i].last_ns(), all[i].first_ns() + 10);
    ASSERT_EQ(all[i].count(), 0u);
  }
  EXPECT_EQ(all.back().first_ns(), 100'000 + 100 * (kKeptForProcess - 1));
  EXPECT_EQ(all.back().last_ns(), 300'007u);
  EXPECT_EQ(all.back().count(), 3u);
  EXPECT_EQ(all.back().stalled_ns(), 10u + 100 + 7);
  // What is stored makes room for the thread's that were left with it.
  log_->acknowledge(10);
  log_->gather(*streams_);
  EXPECT_FALSE(log_->has_unsent()) << "room for the process alone";
  log_->acknowledge(kKeptForProcess + 1);
  log_->gather(*streams_);
  const std::vector<wire::Stall> later = stalls(kMaxUnackedStalls);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].first_ns(), 10 * kOfThreads + 1);
}

TEST_F(StallLogTest, FullLogForgetsStallsOfThreads) {
  const uint32_t stream = add_stream();
  for (uint64_t n = 0; n < kMaxUnackedStalls; ++n)
    fake::stall(stream, {10 * n + 1, 10 * n + 5, 4, 1});
  for (uint32_t room = 0; room < 2; ++room) log_->gather(*streams_);
  EXPECT_EQ(stalls(0).size(), size_t{kMaxUnackedStalls - kKeptForProcess});
}

TEST_F(StallLogTest, JoinedOnesOfAThreadKeepTheirCount) {
  const uint32_t stream = add_stream();
  fake::stall(stream, {100, 900, 300, 7});
  fake::stall(stream, {1000, 1100, 100, 1});
  log_->gather(*streams_);
  const std::vector<wire::Stall> all = stalls(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first_ns(), 100u);
  EXPECT_EQ(all[0].last_ns(), 900u);
  EXPECT_EQ(all[0].count(), 7u);
  EXPECT_EQ(all[0].stalled_ns(), 300u);
  EXPECT_EQ(all[1].count(), 0u);
  EXPECT_EQ(all[1].stalled_ns(), 0u);
}

// A collector may have stored what it did not acknowledge, and nothing that was not sent to it.
TEST_F(StallLogTest, NewLinkGetsWhatIsNotAcknowledged) {
  const uint32_t gone = add_stream();
  const uint32_t stays = add_stream();
  for (uint64_t n = 0; n < 3; ++n) {
    fake::stall(gone, {100 + n, 200, 10, 1});
    log_->gather(*streams_);
    fake::stall(stays, {300 + n, 400, 10, 1});
    log_->gather(*streams_);
    add(500 + n, 600);
  }
  ASSERT_EQ(stalls(0).size(), 9u);
  log_->acknowledge(1);
  log_->acknowledge(0);  // an earlier word that comes late
  streams_->release(*streams_->find(gone));
  log_->begin_link(*streams_);
  const std::vector<wire::Stalls> frames = send();
  ASSERT_EQ(frames.size(), 1u);
  ASSERT_EQ(frames[0].stalls_size(), 6);
  EXPECT_EQ(frames[0].first_number(), 3u) << "the last of the six keeps its number";
  for (int i = 0; i < 6; ++i) {
    const uint64_t first_ns = (i % 2 == 0 ? 300u : 500u) + static_cast<uint64_t>(i / 2);
    EXPECT_EQ(frames[0].stalls(i).first_ns(), first_ns) << i;
  }
  log_->acknowledge(100);  // beyond what was sent: all of it
  log_->begin_link(*streams_);
  EXPECT_TRUE(send().empty());
  add(700, 800);
  EXPECT_EQ(stalls(9).size(), 1u);
}

}  // namespace
}  // namespace collect::agent
