// The three cases that every decoder has: every prefix of a valid file, every flipped byte, every
// declared limit plus one.
#include <gtest/gtest.h>

#include "formats/core/encoding/leb128.h"
#include "formats/rtc/check.h"
#include "formats/rtc/marker.h"
#include "tests/formats/rtc/frame_bytes.h"
#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

using testing::FrameBytes;
using testing::Made;
using testing::Plan;

Made small_file(SpecialFrames special) {
  Plan plan;
  plan.seed = 21;
  plan.operations = 60;
  plan.max_object_bytes = 900;
  plan.options.geometry = {4096, 2048};
  plan.options.special = special;
  return testing::make_random(plan);
}

// Everything that takes the bytes, and what must hold of every outcome.
std::optional<Summary> read_everything(Bytes file) {
  ReaderOptions repairing;
  repairing.repair_torn_frames = true;
  (void)check_file(file, repairing);
  auto summary = check_file(file);
  auto reader = Reader::open(file);
  EXPECT_EQ(summary.ok(), reader.ok());
  if (!summary || !reader) return std::nullopt;
  for (Object object; reader->next(object);) {
    EXPECT_LE(object.size, file.size());
    EXPECT_EQ(object.payload().size(), object.size);
    (void)reader->value(object);
    (void)reader->annotation(object);
  }
  EXPECT_LE(summary->head_bytes + summary->tail_bytes + summary->skipped_bytes, file.size());
  if (file.size() % 5 == 0 || file.back() % 5 == 0) {
    (void)reader->seek_unit(1);
    (void)reader->seek_offset(file.size() / 2);
    (void)reader->seek_time(1609772400000100000);
  }
  return std::move(summary).value();
}

TEST(RtcDecoderCases, EveryPrefix) {
  for (const SpecialFrames special : {SpecialFrames::kFixed, SpecialFrames::kPrefixed}) {
    const Made made = small_file(special);
    uint64_t objects = 0;
    for (size_t size = 0; size <= made.file.size(); ++size) {
      const auto summary = read_everything(Bytes(made.file).first(size));
      ASSERT_EQ(summary.has_value(), size >= kMarkerBytes) << size;
      if (!summary) continue;
      ASSERT_EQ(summary->findings.errors(), 0u) << size;
      ASSERT_GE(summary->objects, objects) << size;
      objects = summary->objects;
    }
    EXPECT_GE(objects, made.objects.size());
  }
}

// No flip crashes or hides; the Crc of its Unit, or a finding, tells of it.
TEST(RtcDecoderCases, EveryByteFlipped) {
  const Made made = small_file(SpecialFrames::kFixed);
  for (size_t at = 0; at < made.file.size(); ++at) {
    const bool inside = at > 10 && at < kMarkerBytes - 10;  // of the first Marker, all alike
    for (const uint8_t flip : {uint8_t{0x01}, uint8_t{0x80}, uint8_t{0xFF}}) {
      if (inside && flip != 0x80) continue;
      std::vector<uint8_t> file = made.file;
      file[at] = static_cast<uint8_t>(file[at] ^ flip);
      const auto summary = read_everything(file);
      if (!summary) continue;
      const bool said = summary->findings.errors() + summary->findings.warnings() != 0 ||
                        summary->units_with(CrcState::kIeee) != made.units;
      ASSERT_TRUE(said) << at;
      // What is in other Units is not lost.
      ASSERT_GE(summary->units.size() + 2, made.units) << at;
    }
  }
}

TEST(RtcDecoderCases, EveryLimitPlusOne) {
  const std::string meta = R"([{"id":9,"name":"a"},{"id":10,"name":"b","length":1024},11])";
  const std::vector<uint8_t> full(kMaxPayloadBytes + 1, 1);
  // Ids that are found by their place, and those beyond.
  FrameBytes ids;
  ids.head(0,
           R"([{"id":4095},{"id":4096},{"id":4097},{"id":8192},{"id":1048576},{"id":2147483647},)"
           R"(2147483648])");
  for (const uint64_t id : {4095, 4096, 4097, 8192, 1048576, 2147483647}) ids.text(id, "x");
  EXPECT_EQ(check_file(ids.crc().bytes)->objects, 6u);
  EXPECT_EQ(check_file(ids.bytes)->findings.errors(), 0u);
  // A frame's payload.
  FrameBytes made;
  made.head(0, meta).frame(9, Bytes(full).first(kMaxPayloadBytes)).crc();
  EXPECT_EQ(check_file(made.bytes)->findings.errors(), 0u);
  FrameBytes over;
  over.head(0, meta).frame(9, full).crc();
  EXPECT_EQ(check_file(over.bytes)->findings.errors(), 1u);
  // An id and a length of 64 bits and of more.
  for (const bool in_length : {false, true}) {
    for (const uint8_t last : {uint8_t{0x01}, uint8_t{0x02}}) {
      FrameBytes wide;
      wide.head(0, meta);
      if (in_length) wide.leb(9 << 1);
      std::vector<uint8_t> ten(9, 0xFF);
      ten.push_back(last);
      wide.raw(ten).text(9, "x").crc();
      EXPECT_EQ(check_file(wide.bytes)->findings.errors(), 1u);
    }
  }
  // An Index and a Meta beyond their limits, and those that just fit, which are malformed.
  for (const uint64_t id : {kIndexId, kMinorIndexId, kMetaId, kMetaDeltaId}) {
    for (const size_t more : {size_t{0}, size_t{1}}) {
      FrameBytes large;
      large.geometry = {uint64_t{1} << 30, uint64_t{1} << 30};
      large.head(0, meta);
      const size_t limit = id < kMetaId ? kMaxIndexBytes : kMaxMetaBytes;
      for (size_t i = 0; i < limit / kMaxPayloadBytes; ++i) {
        large.frame(id, Bytes(full).first(kMaxPayloadBytes), true);
      }
      large.frame(id, Bytes(full).first(more)).text(9, "x").crc();
      const auto summary = check_file(large.bytes);
      ASSERT_TRUE(summary.ok());
      ASSERT_EQ(summary->findings.errors(), 1u) << id;
      EXPECT_EQ(summary->findings.list()[0].sentence.find("beyond the limit") != std::string::npos,
                more != 0)
          << summary->findings.list()[0].sentence;
      EXPECT_EQ(summary->objects, 1u);
    }
  }
  // Sizes of a Unit that are none.
  for (const uint64_t unit : {uint64_t{0}, uint64_t{1024}, uint64_t{5000}, kMaxUnitBytes * 2}) {
    FrameBytes odd;
    odd.geometry = {unit, 2048};
    odd.head(0, meta);
    EXPECT_EQ(Reader::open(odd.bytes).code(), Code::kDamaged) << unit;
  }
  for (const uint64_t minor : {uint64_t{0}, uint64_t{1024}, uint64_t{5000}, uint64_t{1} << 50}) {
    FrameBytes odd;
    odd.geometry = {8192, minor};
    odd.head(0, meta);
    EXPECT_EQ(Reader::open(odd.bytes)->geometry().minor_bytes, 8192u) << minor;
  }
}

// An index whose target is before the file, behind itself, or at the end of all numbers.
TEST(RtcDecoderCases, IndexEntriesPointAnywhere) {
  for (const uint64_t distance : {uint64_t{1}, uint64_t{500}, uint64_t{4000}, UINT64_MAX >> 1}) {
    FrameBytes made;
    made.head(0, R"([{"id":9,"name":"a"},10])").text(9, "x").pad_to(kMarkerBytes + 2048);
    std::vector<uint8_t> index;
    append_index_entry(index, {kIndexId, 2048});
    append_index_entry(index, {9, distance});
    made.frame(kMinorIndexId, index).text(9, "y").crc();
    const auto summary = check_file(made.bytes);
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary->objects, 2u);
    EXPECT_EQ(summary->findings.errors(), distance < 4000 ? 1u : 0u) << distance;
  }
  EXPECT_FALSE(parse_index(std::vector<uint8_t>{0x00, 0x06}, true).ok());
  EXPECT_FALSE(parse_index(std::vector<uint8_t>{0x07}, false).ok());
  EXPECT_FALSE(parse_index(std::vector<uint8_t>{0x07, 0x81}, false).ok());
  EXPECT_FALSE(parse_index(std::vector<uint8_t>{0x07, 0x01}, false).ok());
  EXPECT_FALSE(parse_index({}, true).ok());
  EXPECT_TRUE(parse_index({}, false).ok());
}

}  // namespace
}  // namespace collect::rtc
