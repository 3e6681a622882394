#include "agent/drain/link/codec_choice.h"

#include <gtest/gtest.h>

namespace collect::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;

// A program that always has something to send, over a link of `rate` bytes a second, for `ns`.
void send_on_full_link(CodecChoice& choice, uint64_t& now, uint64_t rate, uint64_t ns) {
  for (const uint64_t end = now + ns; now < end;) {
    choice.blocked(now);
    now += 5 * kMs;
    const uint64_t bytes = rate / 200;
    choice.sent(bytes / 2);
    choice.sent(bytes - bytes / 2);
  }
  choice.blocked(now);
}

TEST(CodecChoice, PagesAreEncodedFromTheFirstOn) {
  CodecChoice choice;
  uint64_t now = 1;
  EXPECT_FALSE(choice.encodes()) << "no link yet";
  choice.begin_link(true);
  EXPECT_TRUE(choice.encodes());
  send_on_full_link(choice, now, 35'000'000, kMeasureNs - 10 * kMs);
  EXPECT_EQ(choice.link_rate(), 0u) << "too early to say";
  send_on_full_link(choice, now, 35'000'000, 20 * kMs);
  EXPECT_EQ(choice.link_rate(), 35'000'000u);
  send_on_full_link(choice, now, 2'000'000'000, 1'000 * kMs);
  EXPECT_TRUE(choice.encodes()) << "the encoder is taken for fast enough until it was timed";
}

TEST(CodecChoice, NotWithoutTheCollectorsWord) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(false);
  send_on_full_link(choice, now, 1'000'000, 10'000 * kMs);
  EXPECT_FALSE(choice.encodes());
}

// A socket that is full now and then, and empty in between, says nothing about the link.
TEST(CodecChoice, PausesOfTheProgramAreNoSlowLink) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  for (int i = 0; i < 1000; ++i) {
    choice.blocked(now);
    now += 10 * kMs;
    choice.sent(1000);
    choice.idle();
    now += 100 * kMs;
  }
  EXPECT_EQ(choice.link_rate(), 0u);
}

TEST(CodecChoice, EncoderSlowerThanTheLinkIsOfNoUse) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  EXPECT_EQ(choice.encoder_rate(), UINT64_MAX) << "not known yet";
  choice.encoded(kMeasureEncodedBytes - 1, 1'000'000'000);
  EXPECT_EQ(choice.encoder_rate(), UINT64_MAX) << "too few bytes to say";
  choice.begin_link(true);
  choice.encoded(2 * kMeasureEncodedBytes, 2 * kMeasureEncodedBytes * 1000 / 30);  // 30 MB/s
  EXPECT_NEAR(static_cast<double>(choice.encoder_rate()), 30e6, 1e5);
  send_on_full_link(choice, now, 29'000'000, 100 * kMs);
  EXPECT_TRUE(choice.encodes());
  send_on_full_link(choice, now, 35'000'000, 100 * kMs);
  EXPECT_FALSE(choice.encodes());
  // It must be more than twice as fast as the link.
  send_on_full_link(choice, now, 16'000'000, 100 * kMs);
  EXPECT_FALSE(choice.encodes());
  send_on_full_link(choice, now, 14'000'000, 100 * kMs);
  EXPECT_TRUE(choice.encodes());
  send_on_full_link(choice, now, 35'000'000, 100 * kMs);
  EXPECT_FALSE(choice.encodes());
  choice.begin_link(true);
  EXPECT_TRUE(choice.encodes()) << "of a new link nothing is known";
}

}  // namespace
}  // namespace collect::agent
