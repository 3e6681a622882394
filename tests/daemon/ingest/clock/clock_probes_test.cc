// Probes on a link whose other end the test has.
#include "daemon/ingest/clock/clock_probes.h"

#include <gtest/gtest.h>

#include "daemon/ingest/link/limits.h"
#include "tests/daemon/ingest/io_loop.h"

namespace collect::ingest {
namespace {

class ClockProbesTest : public testing::Test {
 protected:
  ClockProbesTest() { std::tie(link_, other_) = loop_.link(); }
  ~ClockProbesTest() override { link_->close(); }
  std::optional<wire::ClockProbe> sent() {
    loop_.run();
    const auto frame = other_.receive_type(wire::FrameType::kClockProbe, milliseconds{0});
    if (!frame) return std::nullopt;
    return frame->parsed<wire::ClockProbe>();
  }
  // As a device whose clock is ahead.
  std::optional<storage::ClockSync> reply(const wire::ClockProbe& probe, uint64_t ahead_ns) {
    wire::ClockReply reply;
    reply.set_burst(probe.burst());
    reply.set_number(probe.number());
    reply.set_t2_ns(probe.t1_ns() + 10 + ahead_ns);
    reply.set_t3_ns(probe.t1_ns() + 20 + ahead_ns);
    return probes_.take(reply, probe.t1_ns() + 30, *link_);
  }

  IoLoop loop_;
  std::shared_ptr<Link> link_;
  fakes::FrameSocket other_;
  ClockProbes probes_;
  const ClockProbes::Time now_ = std::chrono::steady_clock::now();
};

TEST_F(ClockProbesTest, BurstFindsTheOffset) {
  probes_.restart(now_);
  EXPECT_TRUE(probes_.is_due(now_));
  probes_.begin_burst(*link_);
  EXPECT_FALSE(probes_.is_due(now_)) << "it is under way";
  std::optional<storage::ClockSync> found;
  for (uint32_t number = 0; number < kProbesPerBurst; ++number) {
    EXPECT_FALSE(found.has_value()) << number;
    const auto probe = sent();
    ASSERT_TRUE(probe.has_value()) << number;
    EXPECT_EQ(probe->number(), number);
    found = reply(*probe, 5'000);
  }
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->offset_ns, 5'000);
  EXPECT_EQ(found->boot_id, boot_id());
  EXPECT_NE(found->at_unix_ns, 0u);
  EXPECT_FALSE(sent().has_value());
  EXPECT_FALSE(probes_.is_due(now_));
  EXPECT_TRUE(probes_.is_due(std::chrono::steady_clock::now() + kBurstInterval));
}

TEST_F(ClockProbesTest, OnlyTheProbeThatWasSentLastIsAnswered) {
  probes_.begin_burst(*link_);
  const auto first = sent();
  ASSERT_TRUE(first.has_value());
  wire::ClockProbe other = *first;
  other.set_number(7);
  EXPECT_FALSE(reply(other, 0).has_value());
  other = *first;
  other.set_burst(first->burst() + 1);
  EXPECT_FALSE(reply(other, 0).has_value());
  EXPECT_FALSE(sent().has_value()) << "none of them was answered";
  EXPECT_FALSE(reply(*first, 0).has_value());
  EXPECT_TRUE(sent().has_value());
  EXPECT_FALSE(reply(*first, 0).has_value()) << "again";
  EXPECT_FALSE(sent().has_value());
}

TEST_F(ClockProbesTest, UnansweredBurstEndsWithItsFindings) {
  probes_.begin_burst(*link_);
  const auto first = sent();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(reply(*first, 3'000).has_value());
  EXPECT_FALSE(probes_.sweep(now_).has_value());
  const auto late = std::chrono::steady_clock::now() + kProbeDeadline + milliseconds{1};
  const auto found = probes_.sweep(late);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->offset_ns, 3'000);
  EXPECT_FALSE(probes_.sweep(late).has_value()) << "it is over";
  probes_.begin_burst(*link_);
  EXPECT_FALSE(probes_.sweep(late + kProbeDeadline).has_value()) << "it found nothing";
}

TEST_F(ClockProbesTest, WithoutALinkNothingIsWaitedFor) {
  probes_.begin_burst(*link_);
  const auto first = sent();
  ASSERT_TRUE(first.has_value());
  probes_.stop();
  EXPECT_FALSE(reply(*first, 0).has_value());
  EXPECT_FALSE(probes_.sweep(now_ + 2 * kProbeDeadline).has_value());
}

}  // namespace
}  // namespace collect::ingest
