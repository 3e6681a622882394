#include "proto/wire/frame_decoder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "tests/proto/wire/frame_bytes.h"

namespace collect::wire {
namespace {

const ByteVector kControl = control_frame(FrameType::kAck, "twelve bytes");
const ByteVector kPage = page_frame(index_page(3), ByteVector(96, 0x5A));

FrameError error_of(const ByteVector& bytes) {
  Frame frame;
  const Decoded decoded = decode_frame(bytes, crc, frame);
  return decoded.status == DecodeStatus::kBad ? decoded.error : FrameError::kNone;
}

TEST(FrameDecoder, Case1PartOfAHeader) {
  Frame frame;
  const Decoded decoded = decode_frame(Bytes(kControl).first(23), crc, frame);
  EXPECT_EQ(decoded.status, DecodeStatus::kNeedMore);
  EXPECT_EQ(decoded.need_bytes, sizeof(FrameHeader));
}

TEST(FrameDecoder, Case2HeaderAndPartOfTheBody) {
  Frame frame;
  const Decoded decoded = decode_frame(Bytes(kPage).first(100), crc, frame);
  EXPECT_EQ(decoded.status, DecodeStatus::kNeedMore);
  EXPECT_EQ(decoded.need_bytes, kPage.size());
}

TEST(FrameDecoder, Case3ExactlyOneFrame) {
  Frame frame;
  ASSERT_EQ(decode_frame(kControl, crc, frame).status, DecodeStatus::kFrame);
  EXPECT_EQ(frame.type, FrameType::kAck);
  EXPECT_EQ(frame.frame_bytes, kControl.size());
  EXPECT_EQ(std::string(frame.body.begin(), frame.body.end()), "twelve bytes");

  ASSERT_EQ(decode_frame(kPage, crc, frame).status, DecodeStatus::kFrame);
  EXPECT_EQ(frame.type, FrameType::kPage);
  EXPECT_EQ(frame.page.first_seq, 41u);
  EXPECT_EQ(frame.page.record_count, 3u);
  EXPECT_EQ(frame.page_bytes.size(), 96u);
  EXPECT_EQ(frame.page_bytes.data(), kPage.data() + kPagePrefixBytes);
  EXPECT_TRUE(frame.body.empty());
}

TEST(FrameDecoder, Case4AFrameAndMore) {
  ByteVector both = kPage;
  both.insert(both.end(), kControl.begin(), kControl.end());
  Frame frame;
  ASSERT_EQ(decode_frame(both, crc, frame).status, DecodeStatus::kFrame);
  ASSERT_EQ(frame.frame_bytes, kPage.size());
  ASSERT_EQ(decode_frame(Bytes(both).subspan(frame.frame_bytes), crc, frame).status,
            DecodeStatus::kFrame);
  EXPECT_EQ(frame.type, FrameType::kAck);
}

TEST(FrameDecoder, EveryPrefixAsksForMore) {
  for (const ByteVector& whole : {kControl, kPage}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      Frame frame;
      const Decoded decoded = decode_frame(Bytes(whole).first(length), crc, frame);
      ASSERT_EQ(decoded.status, DecodeStatus::kNeedMore) << length;
      ASSERT_GT(decoded.need_bytes, length);
      ASSERT_LE(decoded.need_bytes, whole.size());
    }
  }
}

TEST(FrameDecoder, EveryBitFlipIsFound) {
  for (const ByteVector& whole : {kControl, kPage}) {
    for (size_t at = 0; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        ByteVector flipped = whole;
        flipped[at] = static_cast<uint8_t>(flipped[at] ^ (1 << bit));
        ASSERT_NE(error_of(flipped), FrameError::kNone) << "byte " << at << " bit " << bit;
      }
    }
  }
}

TEST(FrameDecoder, StrangerIsKnownByFourBytes) {
  const std::string http = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(error_of(ByteVector(http.begin(), http.begin() + 4)), FrameError::kMagic);
}

TEST(FrameDecoder, LengthsStopAtTheirLimit) {
  FrameHeader header{};
  header.magic = kFrameMagic;
  header.type = static_cast<uint16_t>(FrameType::kAck);
  Frame frame;
  header.body_bytes = kMaxControlBody;
  EXPECT_EQ(decode_frame(raw_header(header), crc, frame).need_bytes, 24u + 65536u);
  for (const uint32_t length : {kMaxControlBody + 1, UINT32_MAX - 23, UINT32_MAX}) {
    header.body_bytes = length;
    EXPECT_EQ(error_of(raw_header(header)), FrameError::kTooLong) << length;
  }
  header.type = static_cast<uint16_t>(FrameType::kPage);
  header.body_bytes = kMaxPageBody;
  EXPECT_EQ(decode_frame(raw_header(header), crc, frame).need_bytes, 24u + 72u + 1048576u);
  for (const uint32_t length : {kMaxPageBody + 1, UINT32_MAX - 23, UINT32_MAX}) {
    header.body_bytes = length;
    EXPECT_EQ(error_of(raw_header(header)), FrameError::kTooLong) << length;
  }
  header.body_bytes = sizeof(PageHeader) - 1;
  EXPECT_EQ(error_of(raw_header(header)), FrameError::kTooShort);
}

TEST(FrameDecoder, LargestFramesPass) {
  Frame frame;
  const ByteVector control = control_frame(FrameType::kCommand, std::string(kMaxControlBody, 'c'));
  ASSERT_EQ(decode_frame(control, crc, frame).status, DecodeStatus::kFrame);
  EXPECT_EQ(frame.body.size(), kMaxControlBody);
  const ByteVector page = page_frame(index_page(kMaxPageBytes / 32), ByteVector(kMaxPageBytes, 1));
  ASSERT_EQ(decode_frame(page, crc, frame).status, DecodeStatus::kFrame);
  EXPECT_EQ(page.size(), kMaxFrameBytes);
}

// Rows of WIRE.md "Frame types" begin with the number and the name.
TEST(FrameType, KnowsTheTypesOfTheDocument) {
  std::ifstream document(COLLECT_WIRE_DOCUMENT);
  std::set<uint32_t> documented;
  bool is_in_section = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) is_in_section = line == "## Frame types";
    uint32_t type = 0;
    if (is_in_section && std::sscanf(line.c_str(), "| %u |", &type) == 1) documented.insert(type);
  }
  EXPECT_EQ(documented.size(), 24u);
  for (uint32_t type = 0; type <= 300; ++type) {
    EXPECT_EQ(is_known(static_cast<FrameType>(type)), documented.contains(type)) << type;
  }
}

TEST(FrameDecoder, UnknownTypeIsAFrameLikeAnyOther) {
  const ByteVector unknown = control_frame(static_cast<FrameType>(999), "from the future");
  Frame frame;
  ASSERT_EQ(decode_frame(unknown, crc, frame).status, DecodeStatus::kFrame);
  EXPECT_EQ(static_cast<uint16_t>(frame.type), 999);
  EXPECT_EQ(frame.frame_bytes, unknown.size());
}

TEST(FrameDecoder, PageOfALossAloneHasNoBytes) {
  PageHeader page = index_page(0);
  page.lost_total = 5;
  Frame frame;
  ASSERT_EQ(decode_frame(page_frame(page, {}), crc, frame).status, DecodeStatus::kFrame);
  EXPECT_EQ(frame.page.lost_total, 5u);
  page.lane = Lane::kDetail;
  EXPECT_EQ(decode_frame(page_frame(page, {}), crc, frame).status, DecodeStatus::kFrame);
}

// Every field that can contradict another, with all checksums right.
TEST(FrameDecoder, PageHeaderThatContradictsItselfIsBad) {
  const auto bad = [](auto change, size_t bytes = 96) {
    PageHeader page = index_page(3);
    page.raw_bytes = static_cast<uint32_t>(bytes);
    const ByteVector content(bytes, 0x11);
    page.bytes_crc32c = crc(content, 0);
    change(page);
    return error_of(page_frame(page, content, true)) == FrameError::kPageHeader;
  };
  EXPECT_FALSE(bad([](PageHeader&) {}));
  EXPECT_TRUE(bad([](PageHeader& page) { page.lane = Lane{2}; }));
  // Encoded: shorter than what it decodes to.
  EXPECT_TRUE(bad([](PageHeader& page) { page.codec = Codec{3}; }, 95));
  EXPECT_TRUE(bad([](PageHeader& page) { page.codec = Codec{3}, page.raw_bytes = 96; }, 95));
  EXPECT_TRUE(bad([](PageHeader& page) { page.codec = Codec{2}; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.codec = Codec{1}; }));
  EXPECT_FALSE(bad([](PageHeader& page) { page.codec = Codec{2}, page.raw_bytes = 96; }, 95));
  // Tuples are of index records alone.
  const auto as_detail = [](PageHeader& page) { page.lane = Lane::kDetail, page.raw_bytes = 96; };
  EXPECT_FALSE(bad([&](PageHeader& page) { as_detail(page), page.codec = Codec{1}; }, 95));
  EXPECT_TRUE(bad([&](PageHeader& page) { as_detail(page), page.codec = Codec{2}; }, 95));
  EXPECT_FALSE(bad([](PageHeader& page) { page.codec = Codec{1}, page.raw_bytes = 96; }, 95));
  EXPECT_FALSE(bad(
      [](PageHeader& page) {
        page.codec = Codec{1};
        page.record_count = kMaxPageBytes / 32;
        page.raw_bytes = kMaxPageBytes;
      },
      95));
  EXPECT_TRUE(bad(
      [](PageHeader& page) {
        page.codec = Codec{1};
        page.record_count = kMaxPageBytes / 32 + 1;
        page.raw_bytes = kMaxPageBytes + 32;
      },
      95));
  EXPECT_TRUE(bad([](PageHeader& page) { page.raw_bytes = 95; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.raw_bytes = UINT32_MAX; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.record_count = 2; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.record_count = UINT32_MAX; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.first_seq = UINT64_MAX - 2; }));
  EXPECT_FALSE(bad([](PageHeader& page) { page.first_seq = UINT64_MAX - 3; }));
  // Detail: at least 24 bytes a record, and none without bytes, nor bytes without one.
  EXPECT_FALSE(bad([](PageHeader& page) { page.lane = Lane{1}, page.record_count = 4; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.lane = Lane{1}, page.record_count = 5; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.lane = Lane{1}, page.record_count = 0; }));
  EXPECT_TRUE(bad([](PageHeader& page) { page.lane = Lane{1}, page.record_count = 1; }, 0));
}

TEST(FrameDecoder, SaysWhatIsWrong) {
  ByteVector page = kPage;
  page.back() ^= 1;
  EXPECT_EQ(error_of(page), FrameError::kPageChecksum);
  page = kPage;
  page[sizeof(FrameHeader)] ^= 1;
  EXPECT_EQ(error_of(page), FrameError::kBodyChecksum);
  ByteVector control = kControl;
  control.back() ^= 1;
  EXPECT_EQ(error_of(control), FrameError::kBodyChecksum);
  control = kControl;
  control[4] ^= 1;
  EXPECT_EQ(error_of(control), FrameError::kHeaderChecksum);
}

}  // namespace
}  // namespace collect::wire
