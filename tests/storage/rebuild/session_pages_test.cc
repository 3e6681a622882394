// The records of a sealed file as pages again: every record once, in order, each loss in front of
// the record that it is before, and nothing of what is no whole record.
#include "storage/rebuild/session_pages.h"

#include <algorithm>

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;
using Times = std::vector<uint64_t>;

// What LanePages returned of a lane, put together again.
struct Joined {
  std::vector<uint8_t> bytes;
  std::vector<Page> pages;  // without their bytes
  Times next;               // next_ns() before each page
  std::optional<uint64_t> next_at_end;
};

class LanePagesTest : public ::testing::Test {
 protected:
  LanePagesTest() : stream(atf::Version::kV2, 7, 100) {}

  Joined join(Lane lane, Bytes records, const Manifest& manifest = {}) {
    LaneSource source;
    source.thread = 3;
    source.stream_id = 7;
    source.lane = lane;
    source.bytes = records.size();
    source.records = std::make_unique<MappedRecords>(records);
    LanePages pages(std::move(source), manifest);
    Joined joined;
    std::vector<uint8_t> buffer;
    while (true) {
      const auto next = pages.next_ns();
      EXPECT_OK(next);
      auto page = pages.next(buffer);
      EXPECT_OK(page);
      if (!*page) {
        joined.next_at_end = *next;
        break;
      }
      EXPECT_TRUE(*next);
      joined.next.push_back(next->value_or(0));
      EXPECT_EQ((*page)->stream_id, 7u);
      EXPECT_EQ((*page)->lane, lane);
      joined.bytes.insert(joined.bytes.end(), (*page)->bytes.begin(), (*page)->bytes.end());
      joined.pages.push_back(**page);
      EXPECT_EQ(pages.done_bytes(), joined.bytes.size());
    }
    return joined;
  }
  std::vector<uint8_t> detail_bytes() {
    const Page page = stream.detail_page(0, stream.details());
    return {page.bytes.begin(), page.bytes.end()};
  }
  uint64_t event_ns(uint64_t seq) const {
    return load_le<uint64_t>(stream.index_bytes().data() + seq * atf::kEventBytes);
  }
  static Manifest with_gaps(std::vector<Gap> gaps) {
    Manifest manifest;
    manifest.gaps = std::move(gaps);
    return manifest;
  }
  static Gap gap(Lane lane, uint64_t before, uint64_t lost, uint64_t first_ns, uint64_t last_ns) {
    Gap gap;
    gap.thread = 3;
    gap.lane = lane;
    gap.before_seq = before;
    gap.lost = lost;
    gap.reasons = kLostRingFull;
    gap.first_ns = first_ns;
    gap.last_ns = last_ns;
    return gap;
  }

  FakeStream stream;
};

// 2048 events in a page; the last one may stand alone.
TEST_F(LanePagesTest, EventsInWholePages) {
  stream.add_many(2 * 2048 + 1);
  for (const uint64_t events : {0, 1, 2047, 2048, 2049, 4096, 4097}) {
    SCOPED_TRACE(events);
    const Bytes records = Bytes(stream.index_bytes()).first(events * atf::kEventBytes);
    const Joined joined = join(Lane::kIndex, records);
    EXPECT_TRUE(std::ranges::equal(joined.bytes, records));
    ASSERT_EQ(joined.pages.size(), (events + 2047) / 2048);
    EXPECT_EQ(joined.next_at_end, std::nullopt);
    for (size_t i = 0; i < joined.pages.size(); ++i) {
      const Page& page = joined.pages[i];
      const uint64_t first = i * 2048, last = std::min<uint64_t>(first + 2048, events) - 1;
      EXPECT_EQ(page.first_seq, first);
      EXPECT_EQ(page.record_count, last - first + 1);
      EXPECT_EQ(page.first_ns, event_ns(first));
      EXPECT_EQ(page.last_ns, event_ns(last));
      EXPECT_EQ(joined.next[i], event_ns(first));
      EXPECT_EQ(page.lost_reasons, 0u);
      EXPECT_EQ(page.lost_total, 0u);
    }
  }
}

TEST_F(LanePagesTest, PartOfARecordAtTheEndIsNone) {
  stream.add_many(3, Detail::kLinked);
  const Bytes events = stream.index_bytes();
  for (uint64_t more = 0; more < atf::kEventBytes; ++more) {
    const Joined joined = join(Lane::kIndex, events.first(2 * atf::kEventBytes + more));
    ASSERT_EQ(joined.pages.size(), 1u) << more;
    EXPECT_EQ(joined.pages[0].record_count, 2u) << more;
    EXPECT_EQ(joined.bytes.size(), 2 * atf::kEventBytes) << more;
  }
  const std::vector<uint8_t> all = detail_bytes();
  const uint64_t two = stream.detail_page(0, 2).bytes.size();
  for (uint64_t bytes = two; bytes < all.size(); ++bytes) {
    const Joined joined = join(Lane::kDetail, Bytes(all).first(bytes));
    ASSERT_EQ(joined.pages.size(), 1u) << bytes;
    EXPECT_EQ(joined.pages[0].record_count, 2u) << bytes;
    EXPECT_EQ(joined.bytes.size(), two) << bytes;
  }
}

// A record of 24 bytes is the shortest there is, also as the last one of all.
TEST_F(LanePagesTest, ShortestDetailRecords) {
  std::vector<uint8_t> records;
  for (uint64_t i = 0; i < 3; ++i) {
    std::vector<uint8_t> record(atf::kDetailHeaderBytes);
    store_le(record.data(), uint32_t(record.size()));
    store_le(record.data() + 8, i);
    store_le(record.data() + 16, 500 + i);
    records.insert(records.end(), record.begin(), record.end());
  }
  // Each alone in a page, so that each time is asked for.
  const Joined joined =
      join(Lane::kDetail, records,
           with_gaps({gap(Lane::kDetail, 1, 1, 500, 501), gap(Lane::kDetail, 2, 1, 501, 502)}));
  EXPECT_EQ(joined.bytes, records);
  EXPECT_EQ(joined.next, (Times{500, 501, 502}));
  // A length that no record has ends the lane.
  store_le(records.data() + 24, uint32_t(23));
  EXPECT_EQ(join(Lane::kDetail, records).bytes.size(), 24u);
}

// A page of detail records ends behind 64 KiB, and a long record is read whole.
TEST_F(LanePagesTest, LongDetailRecordsAreWhole) {
  std::vector<uint8_t> records;
  uint64_t count = 0;
  for (const uint32_t bytes : {100u, 70'000u, uint32_t{atf::kMaxDetailBytes}, 24u, 200'000u}) {
    std::vector<uint8_t> record(bytes, uint8_t(count));
    store_le(record.data(), bytes);
    store_le(record.data() + 16, 1000 + count++);
    records.insert(records.end(), record.begin(), record.end());
  }
  const Joined joined = join(Lane::kDetail, records);
  EXPECT_EQ(joined.bytes, records);
  uint64_t next = 0;
  for (const Page& page : joined.pages) {
    EXPECT_EQ(page.first_seq, next);
    EXPECT_EQ(page.first_ns, 1000 + next);
    next += page.record_count;
    EXPECT_EQ(page.last_ns, 1000 + next - 1);
  }
  EXPECT_EQ(next, count);
}

TEST_F(LanePagesTest, LossesStandBeforeTheirRecord) {
  stream.add_many(6);
  Gap other_thread = gap(Lane::kIndex, 1, 50, 1, 2);
  other_thread.thread = 2;
  Gap again = gap(Lane::kIndex, 4, 2, 30, 40);  // a second one before the same record
  again.reasons = kLostOverwritten;
  const Joined joined = join(
      Lane::kIndex, stream.index_bytes(),
      with_gaps({gap(Lane::kIndex, 0, 5, 7, 8), gap(Lane::kIndex, 4, 3, 10, 20), again,
                 gap(Lane::kIndex, 6, 4, 90, 95), gap(Lane::kDetail, 2, 9, 1, 2), other_thread}));
  EXPECT_EQ(joined.bytes, stream.index_bytes());
  ASSERT_EQ(joined.pages.size(), 3u);
  EXPECT_EQ(joined.pages[0].first_seq, 0u);
  EXPECT_EQ(joined.pages[0].record_count, 4u);
  EXPECT_EQ(joined.pages[0].lost_total, 5u);
  EXPECT_EQ(joined.pages[0].lost_first_ns, 7u);
  EXPECT_EQ(joined.pages[0].lost_last_ns, 8u);
  EXPECT_EQ(joined.pages[0].lost_reasons, uint32_t(kLostRingFull));
  EXPECT_EQ(joined.pages[1].first_seq, 4u);
  EXPECT_EQ(joined.pages[1].record_count, 2u);
  EXPECT_EQ(joined.pages[1].lost_total, 10u);  // so far, as an agent counts
  EXPECT_EQ(joined.pages[1].lost_first_ns, 10u);
  EXPECT_EQ(joined.pages[1].lost_last_ns, 40u);
  EXPECT_EQ(joined.pages[1].lost_reasons, uint32_t(kLostRingFull | kLostOverwritten));
  // Behind the last record: a page without any, at the time of the last one.
  EXPECT_EQ(joined.pages[2].first_seq, 6u);
  EXPECT_EQ(joined.pages[2].record_count, 0u);
  EXPECT_EQ(joined.pages[2].lost_total, 14u);
  EXPECT_EQ(joined.next, (Times{event_ns(0), event_ns(4), event_ns(5)}));
  EXPECT_EQ(joined.next_at_end, std::nullopt);
}

}  // namespace
}  // namespace collect::storage::test
