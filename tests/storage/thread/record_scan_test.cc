// The scan against a plain reading of the specification, over every prefix and every damage.
#include "storage/thread/record_scan.h"

#include <algorithm>
#include <initializer_list>

#include "formats/atf/headers.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;

class RecordScanTest : public ::testing::TestWithParam<atf::Version> {
 protected:
  RecordFormat format() const { return {GetParam(), 100}; }

  // How many events hold, said one by one through the format's decoder.
  uint64_t plain_index(Bytes bytes) const {
    uint64_t good = 0;
    uint64_t last_ns = 0;
    uint64_t next_link = 0;
    for (; (good + 1) * 32 <= bytes.size(); ++good) {
      const uint8_t* at = bytes.data() + good * 32;
      const atf::IndexEvent event = atf::decode_index_event(GetParam(), at);
      if (event.kind_raw < 1 || event.kind_raw > 3) break;
      if (event.timestamp_ns < last_ns || event.timestamp_ns >> 63 != 0) break;
      if (GetParam() == atf::Version::kV1 && event.thread_id != 100) break;
      if (GetParam() == atf::Version::kV2 &&
          std::any_of(at + 25, at + 32, [](uint8_t byte) { return byte != 0; })) {
        break;
      }
      if (event.detail_seq != atf::kNoDetail) {
        if (event.detail_seq < next_link || event.detail_seq >= kMaxRecordNumber) break;
        next_link = event.detail_seq + 1;
      }
      last_ns = event.timestamp_ns;
    }
    return good;
  }

  // How many detail records hold, the same way.
  uint64_t plain_detail(Bytes bytes) const {
    uint64_t good = 0;
    uint64_t last_ns = 0;
    uint64_t next_event = 0;
    for (;; ++good) {
      const auto record = atf::decode_detail_record(GetParam(), bytes);
      if (!record) break;
      const auto type = static_cast<uint16_t>(record->type);
      if (type != 3 && type != 4) break;
      if (GetParam() == atf::Version::kV1 && record->thread_id != 100) break;
      if (record->index_seq < next_event || record->index_seq >= kMaxRecordNumber) break;
      if (record->timestamp_ns < last_ns) break;
      next_event = record->index_seq + 1;
      last_ns = record->timestamp_ns;
      bytes = bytes.subspan(atf::kDetailHeaderBytes + record->payload.size());
    }
    return good;
  }
};

INSTANTIATE_TEST_SUITE_P(Versions, RecordScanTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2));

TEST_P(RecordScanTest, IndexPrefixesAndFlips) {
  FakeStream stream(GetParam(), 1, 100);
  for (int i = 0; i < 130; ++i) stream.add(i % 3 == 0 ? Detail::kLinked : Detail::kNone);
  const std::vector<uint8_t> bytes = stream.index_bytes();
  for (size_t length = 0; length <= bytes.size(); length += length < 200 ? 1 : 31) {
    LaneSummary summary;
    scan_index(format(), Bytes(bytes).first(length), UINT64_MAX, summary);
    EXPECT_EQ(summary.records, length / 32);
    EXPECT_EQ(summary.bytes, length / 32 * 32);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const uint8_t flip : std::initializer_list<uint8_t>{0x01, 0x02, 0x80, 0xff}) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] ^= flip;
      LaneSummary summary;
      scan_index(format(), damaged, UINT64_MAX, summary);
      ASSERT_EQ(summary.records, plain_index(damaged)) << at << " ^ " << int(flip);
    }
  }
}

TEST_P(RecordScanTest, DetailPrefixesAndFlips) {
  FakeStream stream(GetParam(), 1, 100);
  stream.add_many(20, Detail::kLinked);
  const Page page = stream.detail_page(0, 20);
  const std::vector<uint8_t> bytes(page.bytes.begin(), page.bytes.end());
  LaneSummary whole;
  scan_detail(format(), bytes, UINT64_MAX, whole);
  EXPECT_EQ(whole.records, 20u);
  EXPECT_EQ(whole.bytes, bytes.size());
  EXPECT_EQ(detail_bytes(bytes, 20), bytes.size());
  for (size_t length = 0; length < bytes.size(); ++length) {
    LaneSummary summary;
    scan_detail(format(), Bytes(bytes).first(length), UINT64_MAX, summary);
    EXPECT_LE(summary.bytes, length);
    EXPECT_EQ(detail_bytes(Bytes(bytes).first(length), UINT64_MAX), summary.bytes);
    EXPECT_LT(summary.records, 20u);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const uint8_t flip : std::initializer_list<uint8_t>{0x01, 0x02, 0x10, 0x80, 0xff}) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] ^= flip;
      LaneSummary summary;
      scan_detail(format(), damaged, UINT64_MAX, summary);
      ASSERT_EQ(summary.records, plain_detail(damaged)) << at << " ^ " << int(flip);
      EXPECT_EQ(summary.bytes, detail_bytes(damaged, summary.records));
    }
  }
}

// A time may repeat, and may not go back; nor may the event that a record belongs to.
TEST_P(RecordScanTest, DetailRecordsThatGoBackAreRefused) {
  FakeStream stream(GetParam(), 1, 100);
  stream.add_many(3, Detail::kLinked);
  const Page page = stream.detail_page(0, 3);
  const size_t second = stream.detail(0).size();
  const uint64_t first_ns = load_le<uint64_t>(page.bytes.data() + 16);
  for (const auto& [time_ns, holds] :
       {std::pair<uint64_t, uint64_t>{first_ns - 1, 1}, {first_ns, 3}}) {
    std::vector<uint8_t> bytes(page.bytes.begin(), page.bytes.end());
    store_le(bytes.data() + second + 16, time_ns);
    LaneSummary summary;
    scan_detail(format(), bytes, UINT64_MAX, summary);
    EXPECT_EQ(summary.records, holds);
    EXPECT_EQ(plain_detail(bytes), holds);
  }
  for (const auto& [event, holds] : {std::pair<uint32_t, uint64_t>{0, 1}, {1, 3}, {2, 2}}) {
    std::vector<uint8_t> bytes(page.bytes.begin(), page.bytes.end());
    store_le(bytes.data() + second + 8, event);
    LaneSummary summary;
    scan_detail(format(), bytes, UINT64_MAX, summary);
    EXPECT_EQ(summary.records, holds) << event;
    EXPECT_EQ(plain_detail(bytes), holds) << event;
  }
}

TEST_P(RecordScanTest, InPiecesAsInOne) {
  FakeStream stream(GetParam(), 1, 100);
  for (int i = 0; i < 500; ++i) stream.add(i % 7 == 0 ? Detail::kLinked : Detail::kNone);
  const std::vector<uint8_t>& bytes = stream.index_bytes();
  LaneSummary whole;
  scan_index(format(), bytes, UINT64_MAX, whole);
  for (const size_t piece : {1u, 63u, 64u, 65u, 200u}) {
    LaneSummary summary;
    for (size_t at = 0; at < 500; at += piece) {
      scan_index(format(), Bytes(bytes).subspan(at * 32), piece, summary);
    }
    EXPECT_EQ(summary.records, 500u);
    EXPECT_EQ(summary.link_hash, whole.link_hash);
    EXPECT_EQ(summary.first_ns, whole.first_ns);
    EXPECT_EQ(summary.last_ns, whole.last_ns);
  }
  // The two lanes' hashes agree for a stream that came whole.
  LaneSummary details;
  scan_detail(format(), stream.detail_page(0, stream.details()).bytes, UINT64_MAX, details);
  EXPECT_EQ(details.link_hash, whole.link_hash);
  EXPECT_EQ(details.links, whole.links);
  EXPECT_EQ(whole.next_link, stream.details());
}

// Whole records, however short: one may be nothing but its header.
TEST(DetailBytes, AreThoseOfWholeRecords) {
  std::vector<uint8_t> bytes(2 * atf::kDetailHeaderBytes + 5);
  store_le(bytes.data(), uint32_t(atf::kDetailHeaderBytes));
  store_le(bytes.data() + atf::kDetailHeaderBytes, uint32_t(atf::kDetailHeaderBytes + 5));
  EXPECT_EQ(detail_bytes(bytes, 0), 0u);
  EXPECT_EQ(detail_bytes(bytes, 1), atf::kDetailHeaderBytes);
  EXPECT_EQ(detail_bytes(bytes, 2), bytes.size());
  EXPECT_EQ(detail_bytes(bytes, 3), bytes.size());
  EXPECT_EQ(detail_bytes(Bytes(bytes).first(atf::kDetailHeaderBytes), 2), atf::kDetailHeaderBytes);
  EXPECT_EQ(detail_bytes(Bytes(bytes).first(bytes.size() - 1), 2), atf::kDetailHeaderBytes);
  EXPECT_EQ(detail_bytes(Bytes(bytes).first(atf::kDetailHeaderBytes - 1), 1), 0u);
  store_le(bytes.data(), uint32_t(atf::kDetailHeaderBytes - 1));
  EXPECT_EQ(detail_bytes(bytes, 2), 0u);
}

}  // namespace
}  // namespace collect::storage::test
