// Encoded pages become records.
#include "daemon/ingest/session/lane_buffers.h"

#include <gmock/gmock.h>

#include "daemon/ingest/link/limits.h"
#include "formats/core/crc32.h"
#include "proto/wire/layout.h"
#include "tests/fakes/fake_agent.h"

namespace collect::ingest {
namespace {

using fakes::index_events;
using fakes::index_page_header;
using testing::IsEmpty;

Page sent_page(const std::vector<uint8_t>& frame, uint64_t first, uint32_t count) {
  Page page{index_page_header(1, first, count), Bytes(frame).subspan(wire::kPagePrefixBytes), {}};
  page.codec = Codec::kColumns;
  page.raw_bytes = count * 32;
  return page;
}

TEST(PageUnpackerTest, PagesLieSideBySideAsTheyAreStored) {
  PageUnpacker unpacker;
  std::vector<std::vector<uint8_t>> frames;
  std::vector<Page> unpacked;
  for (uint64_t first : {0, 100, 200}) {
    frames.push_back(fakes::encoded_page_frame_bytes(index_page_header(1, first, 100),
                                                     index_events(first, 100)));
    const Page sent = sent_page(frames.back(), first, 100);
    const auto page = unpacker.unpack(sent);
    ASSERT_TRUE(page.ok()) << to_string(page.error());
    EXPECT_EQ(page->codec, Codec::kRaw);
    EXPECT_EQ(page->first_seq, first);
    EXPECT_EQ(page->encoded.data(), sent.bytes.data()) << "containers keep it as it came";
    EXPECT_EQ(page->encoded.size(), sent.bytes.size());
    EXPECT_EQ(page->bytes_crc32c, crc32c(index_events(first, 100)));
    unpacked.push_back(*page);
  }
  for (const Page& page : unpacked) {
    EXPECT_EQ(std::vector<uint8_t>(page.bytes.begin(), page.bytes.end()),
              index_events(page.first_seq, 100));
  }
  EXPECT_EQ(unpacked[1].bytes.data(), unpacked[0].bytes.data() + 3200);
  unpacker.clear();
  EXPECT_EQ(unpacker.unpack(sent_page(frames[0], 0, 100))->bytes.data(), unpacked[0].bytes.data());
}

TEST(PageUnpackerTest, HasRoomForSoMuch) {
  PageUnpacker unpacker;
  Page large;
  large.codec = Codec::kColumns;
  large.raw_bytes = static_cast<uint32_t>(kUnpackBytes);
  EXPECT_TRUE(unpacker.has_room(large));
  large.raw_bytes += 1;
  EXPECT_FALSE(unpacker.has_room(large));
  large.codec = Codec::kRaw;
  EXPECT_TRUE(unpacker.has_room(large)) << "what came raw stays where it is";
  const auto frame =
      fakes::encoded_page_frame_bytes(index_page_header(1, 0, 100), index_events(0, 100));
  ASSERT_TRUE(unpacker.unpack(sent_page(frame, 0, 100)).ok());
  large.codec = Codec::kColumns;
  large.raw_bytes = static_cast<uint32_t>(kDecodedRunBytes - 3200);
  EXPECT_TRUE(unpacker.has_room(large));
  large.raw_bytes += 1;
  EXPECT_FALSE(unpacker.has_room(large));
  unpacker.clear();
  EXPECT_TRUE(unpacker.has_room(large));
}

TEST(PageUnpackerTest, RawPagesAreLeftAndDamagedOnesNamed) {
  PageUnpacker unpacker;
  const auto events = index_events(0, 3);
  const Page raw{index_page_header(1, 0, 3), events, {}};
  const auto same = unpacker.unpack(raw);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->bytes.data(), events.data());
  EXPECT_THAT(same->encoded, IsEmpty());
  Page damaged{index_page_header(7, 40, 100), events, {}};
  damaged.codec = Codec::kColumns;
  damaged.raw_bytes = 3200;
  const auto refused = unpacker.unpack(damaged);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kDamaged);
  EXPECT_THAT(refused.error().message, testing::StartsWith("page of stream 7 from record 40: "));
}

}  // namespace
}  // namespace collect::ingest
