#include "agent/drain/codec_choice.h"

#include <gtest/gtest.h>

namespace collect::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;

// A program that always has something to send, over a link of `rate` bytes a second, for `ns`.
void send_on_full_link(CodecChoice& choice, uint64_t& now, uint64_t rate, uint64_t ns,
                       uint64_t ratio = 1) {
  for (const uint64_t end = now + ns; now < end;) {
    choice.blocked(now);
    now += 5 * kMs;
    const uint64_t bytes = rate / 200;
    choice.sent(now, bytes / 2, bytes / 2 * ratio);
    choice.sent(now, bytes - bytes / 2, (bytes - bytes / 2) * ratio);
  }
  choice.blocked(now);
}

TEST(CodecChoice, ASlowLinkIsMeasuredAndPagesAreEncoded) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  send_on_full_link(choice, now, 35'000'000, kMeasureNs - 10 * kMs);
  EXPECT_FALSE(choice.encodes()) << "too early to say";
  send_on_full_link(choice, now, 35'000'000, 20 * kMs);
  EXPECT_TRUE(choice.encodes());
  EXPECT_EQ(choice.link_rate(), 35'000'000u);
  // The link is full all the same: it goes on, for as long as it takes.
  send_on_full_link(choice, now, 35'000'000, 60'000 * kMs, 16);
  EXPECT_TRUE(choice.encodes());
  choice.begin_link(true);
  EXPECT_FALSE(choice.encodes()) << "of a new link nothing is known";
}

TEST(CodecChoice, NotWithoutTheCollectorsWord) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(false);
  send_on_full_link(choice, now, 1'000'000, 10'000 * kMs);
  EXPECT_FALSE(choice.encodes());
}

TEST(CodecChoice, AFastLinkIsLeftAloneAlthoughItIsFull) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  send_on_full_link(choice, now, kSlowLink, 1'000 * kMs);
  EXPECT_FALSE(choice.encodes());
  send_on_full_link(choice, now, kSlowLink - 1'000'000, 1'000 * kMs);
  EXPECT_TRUE(choice.encodes());
  // It gets faster: within the hysteresis nothing changes.
  send_on_full_link(choice, now, kFastLink - 1'000'000, 1'000 * kMs);
  EXPECT_TRUE(choice.encodes());
  send_on_full_link(choice, now, kFastLink + 1'000'000, 1'000 * kMs);
  EXPECT_FALSE(choice.encodes());
}

// A socket that is full now and then, and empty in between, says nothing about the link.
TEST(CodecChoice, PausesOfTheProgramAreNotTakenForASlowLink) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  for (int i = 0; i < 1000; ++i) {
    choice.blocked(now);
    now += 10 * kMs;
    choice.sent(now, 1000, 1000);
    choice.idle(now);
    now += 100 * kMs;
  }
  EXPECT_FALSE(choice.encodes());
  EXPECT_EQ(choice.link_rate(), 0u);
}

TEST(CodecChoice, AnEncoderSlowerThanTheLinkIsOfNoUse) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  EXPECT_EQ(choice.encoder_rate(), UINT64_MAX) << "not known yet";
  send_on_full_link(choice, now, 35'000'000, 100 * kMs);
  ASSERT_TRUE(choice.encodes());
  choice.encoded(2 * kMeasureEncodedBytes, 2 * kMeasureEncodedBytes * 1000 / 30);  // 30 MB/s
  send_on_full_link(choice, now, 35'000'000, 100 * kMs);
  EXPECT_FALSE(choice.encodes());
  EXPECT_NEAR(static_cast<double>(choice.encoder_rate()), 30e6, 1e5);
  // It must be more than twice as fast as the link.
  send_on_full_link(choice, now, 16'000'000, 100 * kMs);
  EXPECT_FALSE(choice.encodes());
  send_on_full_link(choice, now, 14'000'000, 100 * kMs);
  EXPECT_TRUE(choice.encodes());
}

TEST(CodecChoice, WhatWouldFitRawIsSentRawAgainAfterAWhile) {
  CodecChoice choice;
  uint64_t now = 1;
  choice.begin_link(true);
  send_on_full_link(choice, now, 40'000'000, 100 * kMs);
  ASSERT_TRUE(choice.encodes());
  const auto seconds_of = [&](uint64_t raw_rate, uint64_t count) {
    for (uint64_t i = 0; i < count * 100; ++i) {
      now += 10 * kMs;
      choice.sent(now, raw_rate / 1600, raw_rate / 100);
      choice.idle(now);
    }
  };
  seconds_of(30'000'000, 60);
  EXPECT_TRUE(choice.encodes()) << "more than half of the link";
  seconds_of(10'000'000, kEasySpans - 2);
  EXPECT_TRUE(choice.encodes());
  seconds_of(30'000'000, 3);
  seconds_of(10'000'000, kEasySpans - 2);
  EXPECT_TRUE(choice.encodes()) << "the seconds must be in a row";
  seconds_of(10'000'000, 4);
  EXPECT_FALSE(choice.encodes());
}

}  // namespace
}  // namespace collect::agent
