// What travels: segments, their names, and the requests for them.
#include "daemon/upload/segment.h"

#include <cstring>

#include <gtest/gtest.h>
#include "daemon/upload/segment_upload.h"
#include "formats/core/crc32.h"

namespace collect::upload::test {
namespace {

std::vector<uint8_t> sample() {
  SegmentBuilder builder;
  const std::string data = "0123456789";
  builder.add({SegmentKind::kName, "session_20260131_235959/pid_7"});
  builder.add({SegmentKind::kCut, "manifest.json", 5});
  builder.add({SegmentKind::kWrite,
               "thread_3/index.atf",
               40,
               {reinterpret_cast<const uint8_t*>(data.data()), data.size()}});
  builder.add({SegmentKind::kRemove, "thread_3/stream.journal"});
  const Bytes bytes = builder.finish();
  return {bytes.begin(), bytes.end()};
}

// The last four bytes made right again.
std::vector<uint8_t> with_checksum(std::vector<uint8_t> bytes) {
  const uint32_t checksum = crc32c(Bytes(bytes).first(bytes.size() - 4));
  std::memcpy(bytes.data() + bytes.size() - 4, &checksum, 4);
  return bytes;
}

// Byte by byte, as segment.h has the layout; the CRC-32C by crc32c() of fake_s3.py.
TEST(Segment, IsWrittenAsItIsSpecified) {
  SegmentBuilder builder;
  builder.add({SegmentKind::kCut, "stream.dial9", 0x0102});
  const Bytes bytes = builder.finish();
  const std::vector<uint8_t> expected = {
      'C', 'S', 'E', 'G', 'M', 'N', 'T', '1', 1,   0,   0,   0,   0,    0,    0,    0,
      2,   0,   12,  0,   0,   0,   0,   0,   2,   1,   0,   0,   0,    0,    0,    0,
      's', 't', 'r', 'e', 'a', 'm', '.', 'd', 'i', 'a', 'l', '9', 0xe7, 0xb5, 0x36, 0x55};
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), expected);
}

TEST(Segment, IsReadAsItWasWritten) {
  const std::vector<uint8_t> bytes = sample();
  const auto actions = parse_segment(bytes);
  ASSERT_TRUE(actions.ok()) << to_string(actions.error());
  ASSERT_EQ(actions->size(), 4u);
  EXPECT_EQ((*actions)[0].path, "session_20260131_235959/pid_7");
  EXPECT_EQ((*actions)[1].kind, SegmentKind::kCut);
  EXPECT_EQ((*actions)[1].offset, 5u);
  EXPECT_EQ((*actions)[2].path, "thread_3/index.atf");
  EXPECT_EQ((*actions)[2].offset, 40u);
  EXPECT_EQ(std::string((*actions)[2].data.begin(), (*actions)[2].data.end()), "0123456789");
  EXPECT_EQ((*actions)[3].kind, SegmentKind::kRemove);
}

TEST(Segment, RefusesEveryPrefix) {
  const std::vector<uint8_t> bytes = sample();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse_segment(Bytes(bytes).first(size)).code(), Code::kDamaged) << size;
  }
}

TEST(Segment, RefusesEveryFlippedByte) {
  const std::vector<uint8_t> bytes = sample();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<uint8_t> flipped = bytes;
    flipped[at] ^= 0x41;
    EXPECT_FALSE(parse_segment(flipped).ok()) << at;
  }
}

TEST(Segment, RefusesWhatNoSessionHas) {
  for (const char* path : {"../x", "/x", "thread_3/../x", "thread_3", "resume.key", "reserve.space",
                           "manifest.json/x", ""}) {
    SegmentBuilder builder;
    builder.add({SegmentKind::kRemove, path});
    EXPECT_EQ(parse_segment(builder.finish()).code(), Code::kDamaged) << path;
  }
  SegmentBuilder builder;
  builder.add({SegmentKind::kName, "../pid_7"});
  EXPECT_EQ(parse_segment(builder.finish()).code(), Code::kDamaged);
}

TEST(Segment, HasLimits) {
  EXPECT_EQ(parse_segment(std::vector<uint8_t>(kMaxSegmentObjectBytes + 1)).code(), Code::kLimit);
  std::vector<uint8_t> many = sample();
  const uint32_t count = kMaxSegmentActions + 1;
  std::memcpy(many.data() + 8, &count, 4);
  EXPECT_EQ(parse_segment(with_checksum(many)).code(), Code::kLimit);
  std::vector<uint8_t> later = sample();
  later[12] = 1;
  EXPECT_EQ(parse_segment(with_checksum(later)).code(), Code::kDamaged);

  SegmentBuilder full;
  for (size_t i = 0; i < kMaxSegmentActions; ++i) {
    ASSERT_NE(full.room(), 0u);
    full.add({SegmentKind::kRemove, "manifest.json"});
  }
  EXPECT_EQ(full.room(), 0u);
  EXPECT_EQ(parse_segment(full.finish())->size(), kMaxSegmentActions);
}

TEST(SegmentName, IsReadAsItWasWritten) {
  const SegmentName name{2, 31, true};
  EXPECT_EQ(name.text(), "000002/00000031.end");
  const auto read = SegmentName::parse(name.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->copy, 2u);
  EXPECT_EQ(read->number, 31u);
  EXPECT_TRUE(read->is_end);
  for (const char* other : {"", "000002", "000002/31", "000002/00000031.en", "0000x2/00000031",
                            "000000/00000031", "000001/00000000"}) {
    EXPECT_FALSE(SegmentName::parse(other)) << other;
  }
}

TEST(SegmentRequest, IsReadAsItWasWritten) {
  SegmentRequest request{7, "session_20260131_235959/pid_7", true, false, {}};
  storage::ChangedFile& index = request.files["thread_0/index.atf"];
  index.cut(100);
  index.write(0, 64);
  index.write(90, 200);
  request.files["manifest.json"].is_whole = true;
  request.files["stream.dial9"].is_removed = true;
  const std::string line = request.to_line();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = SegmentRequest::parse(line);
  ASSERT_TRUE(read.ok()) << to_string(read.error());
  EXPECT_EQ(read->id, 7u);
  EXPECT_TRUE(read->is_first);
  EXPECT_FALSE(read->is_last);
  EXPECT_EQ(read->session, request.session);
  EXPECT_EQ(read->files, request.files);
  for (size_t size = 0; size + 1 < line.size(); ++size) {
    EXPECT_EQ(SegmentRequest::parse(line.substr(0, size)).code(), Code::kDamaged) << size;
  }
  std::string other = line;
  other.replace(other.find("manifest.json"), 13, "../../x.jsonx");
  EXPECT_EQ(SegmentRequest::parse(other).code(), Code::kDamaged);
}

}  // namespace
}  // namespace collect::upload::test
