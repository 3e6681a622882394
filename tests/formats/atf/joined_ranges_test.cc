#include "formats/atf/joined_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "formats/atf/detail_check.h"
#include "formats/atf/event_check.h"
#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/version_name.h"

namespace collect::atf {
namespace {

using testing::build_thread;
using testing::ThreadBytes;
using testing::ThreadPlan;

// Checksums of blocks of 32 zero bytes (z) and of 32 bytes 0xFF (f). The first two of version 2 are
// in RFC 3720, appendix B.4; those of version 1 are from zlib, the rest from the definition.
struct BlockChecksums {
  uint32_t z, f, zf, zfzzf;
};

BlockChecksums block_checksums(Version version) {
  if (version == Version::kV1) return {0x190A55AD, 0xFF6CAB0B, 0x93EB9D90, 0x17C97A6A};
  return {0x8A9136AA, 0x62A8AB43, 0xEBF1768E, 0x6F694130};
}

class JoinedRanges : public ::testing::TestWithParam<Version> {
 protected:
  ThreadBytes build(size_t events, size_t detail_every = 0) const {
    ThreadPlan plan;
    plan.version = GetParam();
    plan.events = events;
    plan.detail_every = detail_every;
    return build_thread(plan);
  }
  // Five events, which are the blocks z, f, z, z, f.
  std::vector<uint8_t> index_of_blocks() const {
    std::vector<uint8_t> file = build(5).index;
    std::fill_n(file.begin() + 64, 5 * 32, uint8_t{0});
    std::fill_n(file.begin() + 64 + 32, 32, uint8_t{0xFF});
    std::fill_n(file.begin() + 64 + 4 * 32, 32, uint8_t{0xFF});
    return file;
  }
  const BlockChecksums sums_ = block_checksums(GetParam());
  Findings findings_;
};

INSTANTIATE_TEST_SUITE_P(Atf, JoinedRanges, ::testing::Values(Version::kV1, Version::kV2),
                         testing::version_name);

TEST_P(JoinedRanges, ChecksumIsThatOfOnePass) {
  EXPECT_EQ(joined_checksum(GetParam(), sums_.z, sums_.f, 32), sums_.zf);
}

TEST_P(JoinedRanges, EmptyRangeChangesNoChecksum) {
  EXPECT_EQ(joined_checksum(GetParam(), sums_.f, 0, 0), sums_.f);
  EXPECT_EQ(joined_checksum(GetParam(), 0, sums_.f, 32), sums_.f);
  EXPECT_EQ(joined_checksum(GetParam(), 0, 0, 0), 0u);
}

// Three ranges, each of them also empty.
TEST_P(JoinedRanges, EventsAddUpToOnePass) {
  const std::vector<uint8_t> file = index_of_blocks();
  const auto index = IndexReader::open(file, findings_);
  ASSERT_TRUE(index);
  ASSERT_EQ(index->size(), 5u);
  for (uint64_t a = 0; a <= 5; ++a) {
    for (uint64_t b = a; b <= 5; ++b) {
      EventTally sum;
      sum.add(tally_events(*index, 0, a, true), GetParam());
      EXPECT_EQ(sum.events, a);
      sum.add(tally_events(*index, a, b, true), GetParam());
      EXPECT_EQ(sum.events, b);
      sum.add(tally_events(*index, b, 5, true), GetParam());
      EXPECT_EQ(sum.events, 5u) << a << " " << b;
      EXPECT_EQ(sum.checksum, sums_.zfzzf) << a << " " << b;
      EXPECT_EQ(sum.kinds[0], 5u) << a << " " << b;
      EXPECT_EQ(sum.links, 3u) << a << " " << b;
      EXPECT_EQ(sum.backward_steps, 1u) << a << " " << b;
      EXPECT_EQ(sum.first_step_back, 2u) << a << " " << b;
      EXPECT_EQ(sum.min_ns, 0u) << a << " " << b;
      EXPECT_EQ(sum.max_ns, 0xFFFFFFFFFFFFFFFFu) << a << " " << b;
      EXPECT_EQ(sum.functions.size(), 2u) << a << " " << b;
    }
  }
}

// A range is looked at in blocks of 4,096 events.
TEST_P(JoinedRanges, EveryEventOfARangeCountsOnce) {
  for (const size_t events : {4095, 4096, 4097, 3 * 4096 + 7}) {
    const ThreadBytes made = build(events, 2);
    const auto index = IndexReader::open(made.index, findings_);
    ASSERT_TRUE(index);
    const EventTally whole = tally_events(*index, 0, events, true);
    EXPECT_EQ(whole.events, events);
    EXPECT_EQ(whole.kinds[1], (events + 1) / 2);
    EXPECT_EQ(whole.kinds[2], events / 2);
    EXPECT_EQ(whole.links, (events + 1) / 2);
    EXPECT_EQ(whole.checksum, index->footer()->checksum);
    EventTally sum = tally_events(*index, 0, 1, true);
    sum.add(tally_events(*index, 1, events - 1, true), GetParam());
    EXPECT_EQ(sum.events, events - 1);
    sum.add(tally_events(*index, events - 1, events, true), GetParam());
    EXPECT_EQ(sum.events, events);
    EXPECT_EQ(sum.kinds[1] + sum.kinds[2], events);
    EXPECT_EQ(sum.checksum, whole.checksum);
  }
}

TEST_P(JoinedRanges, RecordsAddUpToOnePass) {
  const ThreadBytes made = build(9, 2);
  const auto detail = DetailReader::open(made.detail, findings_);
  ASSERT_TRUE(detail && detail->footer());
  for (const uint64_t range_bytes : {uint64_t{1}, uint64_t{200}, UINT64_MAX}) {
    DetailTally sum;
    RecordRanges ranges(*detail, range_bytes);
    while (const auto range = ranges.next()) {
      sum.add(tally_records(nullptr, *detail, *range), GetParam());
      sum.add(DetailTally(), GetParam());  // of no records
    }
    EXPECT_EQ(sum.records, 5u);
    EXPECT_EQ(sum.bytes, made.detail.size() - 128);
    EXPECT_EQ(sum.checksum, detail->footer()->checksum);
    EXPECT_EQ(sum.first_ns, 1000u);
    EXPECT_EQ(sum.last_ns, 1080u);
    EXPECT_EQ(sum.min_index_seq, 0u);
    EXPECT_EQ(sum.max_index_seq, 8u);
    EXPECT_EQ(sum.documented_payloads, 5u);
  }
}

}  // namespace
}  // namespace collect::atf
