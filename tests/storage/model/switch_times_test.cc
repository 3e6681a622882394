#include "storage/model/switch_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/core/crc32.h"

namespace collect::storage {
namespace {

using ::testing::HasSubstr;

Stall off(uint32_t thread, StallKind kind, uint64_t first_ns, uint64_t last_ns) {
  Stall stall = make_stall(kind, first_ns, last_ns);
  stall.thread = thread;
  return stall;
}

void expect_same(const std::vector<Stall>& found, const std::vector<Stall>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].thread, wanted[i].thread) << i;
    EXPECT_EQ(found[i].kind, wanted[i].kind) << i;
    EXPECT_EQ(found[i].first_ns, wanted[i].first_ns) << i;
    EXPECT_EQ(found[i].last_ns, wanted[i].last_ns) << i;
    EXPECT_EQ(found[i].stalled_ns, wanted[i].stalled_ns) << i;
    EXPECT_EQ(found[i].count, wanted[i].count) << i;
    EXPECT_EQ(found[i].place, wanted[i].place) << i;
    EXPECT_EQ(found[i].owner, wanted[i].owner) << i;
  }
}

std::vector<Stall> some_times(size_t count) {
  std::mt19937_64 random(count);
  std::vector<Stall> times;
  for (size_t i = 0; i < count; ++i) {
    constexpr StallKind kKinds[] = {StallKind::kBlocked, StallKind::kPreempted, StallKind::kLock,
                                    StallKind::kSample};
    const StallKind kind = kKinds[random() % std::size(kKinds)];
    const uint64_t first_ns = random() >> (random() % 64) / 2 * 2;
    const uint64_t length_ns = std::min(random() >> random() % 64, UINT64_MAX - first_ns);
    times.push_back(off(static_cast<uint32_t>(random()), kind, first_ns, first_ns + length_ns));
    if (kind == StallKind::kLock || kind == StallKind::kSample) times.back().place = random();
    if (kind == StallKind::kLock) times.back().owner = static_cast<uint32_t>(random());
    if (random() % 4 != 0) continue;
    times.back().count = 1 + random() % 1000;
    times.back().stalled_ns /= 2;
  }
  return times;
}

// By hand, from the layout in the header.
TEST(SwitchTimes, FrameHasTheDocumentedBytes) {
  const std::vector<uint8_t> frame = encode_switches(std::vector{
      off(3, StallKind::kBlocked, 200, 210), off(300, StallKind::kPreempted, 195, 196)});
  const std::vector<uint8_t> times = {3, 0, 0xc8, 0x01, 10, 0xac, 0x02, 1, 0x7b, 1};
  ASSERT_EQ(frame.size(), 8 + times.size());
  EXPECT_EQ(load_le<uint32_t>(frame.data() + 4), times.size());
  EXPECT_TRUE(std::equal(times.begin(), times.end(), frame.begin() + 8));
  EXPECT_EQ(load_le<uint32_t>(frame.data()), crc32c(Bytes(frame).subspan(4)));
}

TEST(SwitchTimes, WaitForALockHasItsLockAndOwner) {
  Stall wait = off(3, StallKind::kLock, 200, 210);
  wait.place = 0x1234;
  wait.owner = 130;
  const std::vector<uint8_t> frame = encode_switches(std::vector{wait});
  const std::vector<uint8_t> times = {3, 4, 0xc8, 0x01, 10, 0xb4, 0x24, 0x82, 0x01};
  ASSERT_EQ(frame.size(), 8 + times.size());
  EXPECT_TRUE(std::equal(times.begin(), times.end(), frame.begin() + 8));
}

TEST(SwitchTimes, SampleHasItsPlace) {
  Stall sample = off(3, StallKind::kSample, 200, 200);
  sample.place = 0x1234;
  const std::vector<uint8_t> frame = encode_switches(std::vector{sample});
  const std::vector<uint8_t> times = {3, 8, 0xc8, 0x01, 0, 0xb4, 0x24};
  ASSERT_EQ(frame.size(), 8 + times.size());
  EXPECT_TRUE(std::equal(times.begin(), times.end(), frame.begin() + 8));
}

TEST(SwitchTimes, RandomTimesComeBack) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{100}, size_t{10'000}}) {
    const std::vector<Stall> times = some_times(count);
    const std::vector<uint8_t> frames = encode_switches(times);
    EXPECT_EQ(whole_switch_frames(frames), frames.size());
    std::vector<Stall> found;
    const Status decoded = decode_switches(frames, found);
    ASSERT_TRUE(decoded.ok());
    expect_same(found, times);
  }
}

TEST(SwitchTimes, CutFrameIsNone) {
  const std::vector<uint8_t> first = encode_switches(some_times(5));
  std::vector<uint8_t> frames = first;
  const std::vector<uint8_t> second = encode_switches(some_times(9));
  frames.insert(frames.end(), second.begin(), second.end());
  for (size_t size = first.size(); size < frames.size(); ++size) {
    const Bytes cut = Bytes(frames).first(size);
    EXPECT_EQ(whole_switch_frames(cut), first.size());
    std::vector<Stall> found;
    EXPECT_EQ(decode_switches(cut, found).ok(), size == first.size());
    expect_same(found, some_times(5));
  }
}

TEST(SwitchTimes, ChangedBitIsFound) {
  std::vector<uint8_t> frames = encode_switches(some_times(20));
  for (size_t bit = 0; bit < 8 * frames.size(); ++bit) {
    frames[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    std::vector<Stall> found;
    const Status decoded = decode_switches(frames, found);
    ASSERT_EQ(decoded.code(), Code::kDamaged) << bit;
    EXPECT_THAT(decoded.error().message, HasSubstr("offset 0"));
    EXPECT_TRUE(found.empty());
    frames[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

// With a checksum that holds, of a writer that is not ours.
TEST(SwitchTimes, ImpossibleTimesAreRefused) {
  const std::vector<std::vector<uint8_t>> impossible = {
      {3},                                        // cut
      {3, 4, 10, 10},                             // what no one knows
      {3, 2, 10, 10, 0, 5},                       // none joined
      {3, 2, 10, 10, 2, 11},                      // longer than its time
      {0xff, 0xff, 0xff, 0xff, 0x1f, 0, 10, 10},  // thread of 33 bits
      {3, 0, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
       0x01},  // ends before it begins
  };
  for (const std::vector<uint8_t>& times : impossible) {
    std::vector<uint8_t> frame(8);
    frame.insert(frame.end(), times.begin(), times.end());
    store_le(frame.data() + 4, static_cast<uint32_t>(times.size()));
    store_le(frame.data(), crc32c(Bytes(frame).subspan(4)));
    std::vector<Stall> found;
    EXPECT_EQ(decode_switches(frame, found).code(), Code::kDamaged);
    EXPECT_TRUE(found.empty());
  }
}

}  // namespace
}  // namespace collect::storage
