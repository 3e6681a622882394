// How many streams a Unit of a given size has room for.
#include "formats/rtc/read/unit_room.h"

#include <gtest/gtest.h>

namespace collect::rtc {
namespace {

StreamInfo stream_of(uint64_t id, const std::string& name) {
  StreamInfo info;
  info.id = id;
  info.name = name;
  return info;
}

TEST(UnitRoomTest, StreamsAreRefusedBeforeDataHasNoRoom) {
  const Geometry geometry{.unit_bytes = 8192, .minor_bytes = 2048};
  UnitRoom room(geometry);
  uint64_t id = kFirstStreamId;
  uint64_t last_head = room.head_bytes();
  Status added;
  for (; added.ok(); ++id) {
    ASSERT_LT(id, 1000u) << "a Unit of 8 KiB has no room for all of these";
    added = room.add(stream_of(id, "s"), 40);
    if (!added.ok()) break;
    EXPECT_GE(room.head_bytes(), last_head + 40) << "its description is in every Meta";
    EXPECT_LT(room.head_bytes(), geometry.unit_bytes);
    EXPECT_LT(room.section_head_bytes(), geometry.minor_bytes);
    last_head = room.head_bytes();
  }
  EXPECT_EQ(added.code(), Code::kLimit);
  EXPECT_EQ(added.error().message,
            "Index, Meta and clocks with \"s\" leave no room for data in a Unit of 8192 bytes with "
            "units of 2048");
  EXPECT_EQ(room.head_bytes(), last_head) << "a refused stream takes nothing";
  room.remove(stream_of(id - 1, "s"), 40);
  EXPECT_TRUE(room.add(stream_of(id, "s"), 40).ok()) << "in the place of the one that left";
}

// A frame that is never split has to fit into one unit whole.
TEST(UnitRoomTest, FixedLengthNeedsAUnitOfItsSize) {
  UnitRoom room({.unit_bytes = 2048, .minor_bytes = 2048});
  StreamInfo info = stream_of(kFirstStreamId, "samples");
  info.length = 1000;
  EXPECT_EQ(room.add(info, 30).code(), Code::kLimit);
  info.length = 100;
  EXPECT_TRUE(room.add(info, 30).ok());
}

TEST(UnitRoomTest, MetaFitsIntoWhatIsAhead) {
  const Geometry geometry{.unit_bytes = 16384, .minor_bytes = 2048};
  const UnitRoom room(geometry);
  EXPECT_TRUE(room.fits(100, 110, {8000, 8000}));
  EXPECT_FALSE(room.fits(100, 105, {8000, 8000})) << "its frames have heads";
  EXPECT_TRUE(room.fits(100, 0, {8192, 16000}));
  EXPECT_FALSE(room.fits(12000, 0, {8192, 16000})) << "and so do the units ahead";
}

}  // namespace
}  // namespace collect::rtc
