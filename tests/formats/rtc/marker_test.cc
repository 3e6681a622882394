// Where a Marker is, and what may stand behind it: against a search that looks at every place.
#include "formats/rtc/marker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/formats/rtc/frame_bytes.h"

namespace collect::rtc {
namespace {

using testing::FrameBytes;

// FORMAT.md "Marker": 04, then B9 1024 times and no more often, then 06 or 07 or nothing.
bool stands_at(Bytes file, uint64_t at) {
  if (file.size() < at + 1025 || file[at] != 0x04) return false;
  for (uint64_t i = at + 1; i <= at + 1024; ++i) {
    if (file[i] != 0xB9) return false;
  }
  return file.size() == at + 1025 || file[at + 1025] == 0x06 || file[at + 1025] == 0x07;
}

TEST(RtcMarker, IsFoundAtAnyPositionAndNowhereElse) {
  std::mt19937 random(7);
  const size_t lengths[] = {1, 2, 1022, 1023, 1024, 1024, 1024, 1025, 1026, 2048};
  const uint8_t others[] = {0x04, 0x04, 0x06, 0x07, 0x08, 0x05, 0x00, 0xB8};
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    std::vector<uint8_t> bytes;
    while (bytes.size() < 9000) {
      bytes.insert(bytes.end(), lengths[random() % std::size(lengths)], uint8_t{0xB9});
      for (size_t i = 1 + random() % 3; i > 0; --i) {
        bytes.push_back(others[random() % std::size(others)]);
      }
      if (random() % 4 == 0) bytes.insert(bytes.end(), random() % 900, uint8_t{0});
      if (random() % 2 == 0) bytes.push_back(0x04);
    }
    // Only a part is looked at: what is before and behind it says nothing.
    const size_t from = random() % 3000;
    const Bytes file = Bytes(bytes).subspan(from, bytes.size() - from - random() % 3000);
    std::vector<uint64_t> places;
    for (uint64_t at = 0; at < file.size(); ++at) {
      ASSERT_EQ(is_marker(file, at), stands_at(file, at)) << at;
      if (stands_at(file, at)) places.push_back(at);
    }
    EXPECT_FALSE(is_marker(file, file.size()));
    for (uint64_t at = 0; at <= file.size(); at += 1 + random() % 7) {
      const auto next = std::lower_bound(places.begin(), places.end(), at);
      ASSERT_EQ(find_marker(file, at), next == places.end() ? std::nullopt : std::optional(*next))
          << at;
      const uint64_t lowest = at - std::min<uint64_t>(at, random() % 4000);
      const auto after = std::upper_bound(places.begin(), places.end(), at);
      const bool is_there = after != places.begin() && *std::prev(after) >= lowest;
      ASSERT_EQ(find_marker_backwards(file, at, lowest),
                is_there ? std::optional(*std::prev(after)) : std::nullopt)
          << at << " down to " << lowest;
    }
  }
}

// A file of nothing but B9 is looked at once, and not once for each place of it.
TEST(RtcMarker, LongRunIsPassedAtOnce) {
  const std::vector<uint8_t> run(size_t{32} << 20, kMarkerFill);
  EXPECT_EQ(find_marker(run, 0), std::nullopt);
  EXPECT_EQ(find_marker_backwards(run, run.size() - 1, 0), std::nullopt);
}

TEST(RtcMarker, BytesBeforeTheFirstAreNotLookedAt) {
  std::vector<uint8_t> bytes(kMarkerBytes, kMarkerFill);
  bytes[0] = kMarkerFirstByte;
  bytes.push_back(kIndexFirstByte);
  bytes.resize(4000);
  for (size_t cut = 1; cut < 5; ++cut) {
    const Bytes file = Bytes(bytes).subspan(cut);
    EXPECT_EQ(find_marker(file, 0), std::nullopt) << cut;
    for (uint64_t at = 0; at < 1024; at += 31) {
      EXPECT_EQ(find_marker_backwards(file, at, 0), std::nullopt) << cut << ", " << at;
    }
  }
}

TEST(RtcGatherFrames, PutsTheFramesOfOneTogether) {
  FrameBytes made;
  made.text(kMetaId, "one ", true).text(kMetaId, "", true);
  made.text(kMinorIndexId, "i", true).text(kMinorIndexId, "j");
  made.text(kMetaId, "two");
  const uint64_t end = made.at();
  made.text(kMetaId, "next");
  const auto whole = gather_frames(made.bytes, 0, kMetaId, 7);
  ASSERT_TRUE(whole);
  EXPECT_EQ(std::string(whole->payload.begin(), whole->payload.end()), "one two");
  EXPECT_EQ(whole->end, end);
  EXPECT_FALSE(whole->truncated);
  EXPECT_FALSE(gather_frames(made.bytes, 0, kMetaId, 6)) << "beyond the limit";
  EXPECT_FALSE(gather_frames(made.bytes, 0, kMetaDeltaId, 100));
  // Cut anywhere before its end: what is there, and that it is not all.
  for (uint64_t size = 0; size < end; ++size) {
    const auto part = gather_frames(Bytes(made.bytes).first(size), 0, kMetaId, 7);
    ASSERT_TRUE(part) << size;
    EXPECT_TRUE(part->truncated) << size;
    EXPECT_LE(part->end, size);
    EXPECT_TRUE(std::equal(part->payload.begin(), part->payload.end(), whole->payload.begin()));
  }
  // Another frame between, an index in front, and one of an index that never ends.
  EXPECT_FALSE(
      gather_frames(FrameBytes().text(kMetaId, "a", true).text(9, "b").bytes, 0, kMetaId, 100));
  EXPECT_FALSE(gather_frames(FrameBytes().text(kMinorIndexId, "i").text(kMetaId, "a").bytes, 0,
                             kMetaId, 100));
  const auto index =
      gather_frames(FrameBytes().text(kMinorIndexId, "i").bytes, 0, kMinorIndexId, 1);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->payload.size(), 1u);
}

TEST(RtcGatherFrames, NoFrameIsLongerThanAPayload) {
  const std::vector<uint8_t> bytes(kMaxPayloadBytes + 1, 'x');
  FrameBytes longest, longer, bad_id, bad_length;
  longest.frame(kMetaId, Bytes(bytes).first(kMaxPayloadBytes));
  longer.frame(kMetaId, bytes);
  bad_id.raw(std::vector<uint8_t>(11, 0xFF));
  bad_length.leb(kMetaId << 1).raw(std::vector<uint8_t>(11, 0xFF));
  EXPECT_TRUE(gather_frames(longest.bytes, 0, kMetaId, kMaxMetaBytes));
  EXPECT_FALSE(gather_frames(longer.bytes, 0, kMetaId, kMaxMetaBytes));
  EXPECT_FALSE(gather_frames(bad_id.bytes, 0, kMetaId, kMaxMetaBytes));
  EXPECT_FALSE(gather_frames(bad_length.bytes, 0, kMetaId, kMaxMetaBytes));
}

TEST(RtcUnitHead, StatesPossibleSizesOnly) {
  const auto geometry = [](uint64_t unit, uint64_t minor) {
    IndexEntries index;
    index.entries = {{kIndexId, unit}, {kMinorIndexId, minor}};
    const auto stated = stated_geometry(index);
    return stated ? std::pair(stated->unit_bytes, stated->minor_bytes)
                  : std::pair<uint64_t, uint64_t>();
  };
  using Sizes = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(geometry(8192, 2048), Sizes(8192, 2048));
  EXPECT_EQ(geometry(8192, 8192), Sizes(8192, 8192));
  EXPECT_EQ(geometry(8192, 16384), Sizes(8192, 8192));
  EXPECT_EQ(geometry(8192, 1024), Sizes(8192, 8192));
  EXPECT_EQ(geometry(8192, 3000), Sizes(8192, 8192));
  EXPECT_EQ(geometry(2048, 2048), Sizes(2048, 2048));
  EXPECT_EQ(geometry(1024, 1024), Sizes());
  EXPECT_EQ(geometry(8191, 2048), Sizes());
  EXPECT_EQ(geometry(uint64_t{1} << 40, 2048), Sizes(uint64_t{1} << 40, 2048));
  EXPECT_EQ(geometry(uint64_t{1} << 41, 2048), Sizes());
  EXPECT_FALSE(stated_geometry({}));
}

TEST(RtcUnitHead, IsReadFromTheIndex) {
  FrameBytes made;
  made.head(5, "[9]").text(9, "x");
  const auto head = read_unit_head(made.bytes, 0);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->offset, 0u);
  EXPECT_EQ(head->count, 5u);
  EXPECT_EQ(head->geometry.unit_bytes, made.geometry.unit_bytes);
  EXPECT_EQ(head->geometry.minor_bytes, made.geometry.minor_bytes);
  EXPECT_FALSE(head->truncated);
  // What follows the Index is Meta.
  EXPECT_EQ(made.bytes[head->index_end], kMetaId << 1);
  for (uint64_t size = kMarkerBytes; size < head->index_end; ++size) {
    const auto cut = read_unit_head(Bytes(made.bytes).first(size), 0);
    ASSERT_TRUE(cut) << size;
    EXPECT_TRUE(cut->truncated) << size;
  }
  EXPECT_FALSE(read_unit_head(Bytes(made.bytes).first(kMarkerBytes - 1), 0));
  EXPECT_FALSE(read_unit_head(made.bytes, 1));
  FrameBytes no_size;
  no_size.geometry = {8191, 2048};
  EXPECT_FALSE(read_unit_head(no_size.head(0, "[9]").bytes, 0));
}

}  // namespace
}  // namespace collect::rtc
