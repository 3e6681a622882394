// Which bytes began a frame, against a set of them.
#include "formats/rtc/read/frame_starts.h"

#include <gtest/gtest.h>

#include <set>

namespace collect::rtc {
namespace {

TEST(FrameStarts, HoldsTheUnitAndTheOneBefore) {
  FrameStarts starts;
  EXPECT_EQ(starts.contains(0), false);
  std::set<uint64_t> added;
  const auto add = [&](uint64_t at) {
    starts.add(at);
    added.insert(at);
  };
  starts.begin_unit(1000);
  for (const uint64_t at : {1000, 1000 + 1023, 1000 + 1024, 1000 + 1025}) add(at);
  for (uint64_t at = 1000; at < 9000; at += at % 61 + 1) add(at);
  for (uint64_t at = 1000; at < 10000; ++at) ASSERT_EQ(starts.contains(at), added.contains(at));
  EXPECT_EQ(starts.contains(999), std::nullopt);

  starts.begin_unit(9000);
  for (uint64_t at = 9000; at < 12000; at += 64) add(at);
  starts.add(8999);  // before this Unit: what it holds is what was read
  for (uint64_t at = 1000; at < 13000; ++at) ASSERT_EQ(starts.contains(at), added.contains(at));
  EXPECT_EQ(starts.contains(999), std::nullopt);

  starts.begin_unit(13000);
  EXPECT_EQ(starts.contains(13000), false);
  EXPECT_EQ(starts.contains(9000), true);
  EXPECT_EQ(starts.contains(8999), std::nullopt);
}

TEST(FrameStarts, TracksSixtyFourMebibytesOfAUnit) {
  FrameStarts starts;
  starts.begin_unit(500);
  for (const uint64_t bit : {kMaxTrackedUnitBytes - 1, kMaxTrackedUnitBytes}) starts.add(500 + bit);
  EXPECT_EQ(starts.contains(500 + kMaxTrackedUnitBytes - 2), false);
  EXPECT_EQ(starts.contains(500 + kMaxTrackedUnitBytes - 1), true);
  EXPECT_EQ(starts.contains(500 + kMaxTrackedUnitBytes), std::nullopt);
  starts.begin_unit(500 + 2 * kMaxTrackedUnitBytes);
  EXPECT_EQ(starts.contains(500 + kMaxTrackedUnitBytes - 1), true);
  EXPECT_EQ(starts.contains(500 + kMaxTrackedUnitBytes), std::nullopt);
}

}  // namespace
}  // namespace collect::rtc
