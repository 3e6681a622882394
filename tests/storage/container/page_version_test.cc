// Pages of one ATF version as pages of the other, against bytes that a fake agent writes in both.
#include "storage/container/page_version.h"

#include <gtest/gtest.h>

#include "formats/atf/layout.h"
#include "tests/storage/fake_stream.h"

namespace collect::storage::test {
namespace {

constexpr uint32_t kThread = 4711;

FakeStream stream_of(atf::Version version) {
  FakeStream stream(version, 1, kThread);
  for (int i = 0; i < 50; ++i) {
    stream.add(i % 3 == 0 ? FakeStream::Detail::kLinked : FakeStream::Detail::kNone);
  }
  return stream;
}

std::vector<uint8_t> copied(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(PageVersionTest, ConvertsVersion1ToAnAgentsVersion2) {
  FakeStream one = stream_of(atf::Version::kV1), two = stream_of(atf::Version::kV2);
  PageVersion pages(atf::Version::kV1, atf::Version::kV2);
  const auto index = pages.convert(one.index_page(10, 30), kThread);
  ASSERT_TRUE(index.ok());
  const Page want = two.index_page(10, 30);
  EXPECT_EQ(copied(index->bytes), copied(want.bytes));
  EXPECT_EQ(index->bytes_crc32c, want.bytes_crc32c);
  EXPECT_EQ(index->record_count, 30u);
  const auto detail = pages.convert(one.detail_page(2, 9), kThread);
  ASSERT_TRUE(detail.ok());
  EXPECT_EQ(copied(detail->bytes), copied(two.detail_page(2, 9).bytes));
  // These have depth 0 in each call, and counting gives 1; their returns have 1.
  ASSERT_EQ(pages.left_out().size(), 1u);
  EXPECT_EQ(pages.left_out()[0].second, 15u);
  EXPECT_EQ(pages.left_out(Lane::kIndex) + pages.left_out(Lane::kDetail), 0u);
}

TEST(PageVersionTest, Version2BecomesVersion1WithThreadAndDepth) {
  FakeStream one = stream_of(atf::Version::kV1), two = stream_of(atf::Version::kV2);
  PageVersion pages(atf::Version::kV2, atf::Version::kV1);
  const auto index = pages.convert(two.index_page(0, 50), kThread);
  ASSERT_TRUE(index.ok());
  uint32_t depth = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const uint8_t* at = index->bytes.data() + i * atf::kEventBytes;
    const uint8_t* want = one.index_bytes().data() + i * atf::kEventBytes;
    const auto got_event = load_le<atf::IndexEventV1>(at);
    const auto want_event = load_le<atf::IndexEventV1>(want);
    EXPECT_EQ(got_event.timestamp_ns, want_event.timestamp_ns);
    EXPECT_EQ(got_event.function_id, want_event.function_id);
    EXPECT_EQ(got_event.thread_id, kThread);
    EXPECT_EQ(got_event.event_kind, want_event.event_kind);
    EXPECT_EQ(got_event.detail_seq, want_event.detail_seq);
    if (got_event.event_kind == 1) {
      EXPECT_EQ(got_event.call_depth, ++depth);  // a call and its return carry the same
    } else {
      EXPECT_EQ(got_event.call_depth, depth);
      depth -= depth == 0 ? 0 : 1;
    }
  }
  const auto detail = pages.convert(two.detail_page(0, 17), kThread);
  ASSERT_TRUE(detail.ok());
  EXPECT_EQ(copied(detail->bytes), copied(one.detail_page(0, 17).bytes));
}

TEST(PageVersionTest, DepthThatCountingGivesAgainIsNotLeftOut) {
  FakeStream two = stream_of(atf::Version::kV2);
  PageVersion down(atf::Version::kV2, atf::Version::kV1);
  const auto one = down.convert(two.index_page(0, 50), kThread);
  ASSERT_TRUE(one.ok());
  std::vector<uint8_t> bytes = copied(one->bytes);
  Page page = *one;
  page.bytes = bytes;
  PageVersion up(atf::Version::kV1, atf::Version::kV2);
  const auto back = up.convert(page, kThread);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(copied(back->bytes), copied(two.index_page(0, 50).bytes));
  EXPECT_TRUE(up.left_out().empty());
  // One call deeper than what is there to be counted: behind a gap, for example.
  store_le(&bytes[24], uint32_t{2});
  PageVersion again(atf::Version::kV1, atf::Version::kV2);
  ASSERT_TRUE(again.convert(page, kThread).ok());
  ASSERT_EQ(again.left_out().size(), 1u);
  EXPECT_EQ(again.left_out()[0].second, 1u);
}

TEST(PageVersionTest, CountsEventsVersion1CannotNumber) {
  FakeStream two = stream_of(atf::Version::kV2);
  PageVersion pages(atf::Version::kV2, atf::Version::kV1, 20);
  const auto index = pages.convert(two.index_page(10, 30), kThread);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->record_count, 10u);
  EXPECT_EQ(index->bytes.size(), 10 * atf::kEventBytes);
  EXPECT_EQ(pages.left_out(Lane::kIndex), 20u);
  // Records 0 to 6 are of the events 0, 3, … 18; the eighth is of event 21, which is left out.
  const auto detail = pages.convert(two.detail_page(0, 17), kThread);
  ASSERT_TRUE(detail.ok());
  EXPECT_EQ(detail->record_count, 7u);
  EXPECT_EQ(pages.left_out(Lane::kDetail), 10u);
  // And where there is nothing left of a page.
  const auto none = pages.convert(two.index_page(40, 10), kThread);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->record_count, 0u);
  EXPECT_TRUE(none->bytes.empty());
}

TEST(PageVersionTest, BytesThatAreNoRecordsAreRefused) {
  FakeStream two = stream_of(atf::Version::kV2);
  PageVersion pages(atf::Version::kV2, atf::Version::kV1);
  Page page = two.index_page(0, 10);
  page.bytes = page.bytes.first(page.bytes.size() - 1);
  EXPECT_EQ(pages.convert(page, kThread).code(), Code::kDamaged);
  page = two.detail_page(0, 5);
  page.record_count = 6;
  EXPECT_EQ(pages.convert(page, kThread).code(), Code::kDamaged);
  page.record_count = 4;
  EXPECT_EQ(pages.convert(page, kThread).code(), Code::kDamaged);
}

}  // namespace
}  // namespace collect::storage::test
