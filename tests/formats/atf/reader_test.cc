#include "formats/atf/reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/atf/time_order.h"
#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/version_name.h"

namespace collect::atf {
namespace {

using testing::build_thread;
using testing::ThreadBytes;
using testing::ThreadPlan;

class BothVersions : public ::testing::TestWithParam<Version> {
 protected:
  ThreadPlan plan(size_t events, size_t detail_every = 0) const {
    ThreadPlan plan;
    plan.version = GetParam();
    plan.events = events;
    plan.detail_every = detail_every;
    return plan;
  }
  Findings findings_;
};

INSTANTIATE_TEST_SUITE_P(Atf, BothVersions, ::testing::Values(Version::kV1, Version::kV2),
                         testing::version_name);

TEST_P(BothVersions, FinalizedIndexGivesEveryEventInBothWays) {
  const ThreadPlan p = plan(20, 3);
  const ThreadBytes made = build_thread(p);
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->state(), FileState::kFinalized);
  EXPECT_EQ(reader->size(), 20u);
  EXPECT_EQ(reader->checksum(), ChecksumState::kGood);
  EXPECT_TRUE(reader->has_detail_flag());
  EXPECT_EQ(findings_.errors() + findings_.warnings(), 0u);
  uint64_t visited = 0;
  reader->events().for_each([&](uint64_t seq, const IndexEvent& event) {
    EXPECT_EQ(seq, visited++);
    EXPECT_EQ(event.timestamp_ns, 1000 + seq * 10);
    EXPECT_EQ(event.function_id, testing::planned_event(p, seq).function_id);
    EXPECT_EQ(event.detail_seq, seq % 3 == 0 ? seq / 3 : kNoDetail);
    EXPECT_EQ(reader->get(seq)->timestamp_ns, event.timestamp_ns);
  });
  EXPECT_EQ(visited, 20u);
  EXPECT_FALSE(reader->get(20));
  EXPECT_FALSE(reader->get(UINT64_MAX));
}

// The events of the file that the reader has are zeros: those that are brought are seen.
TEST_P(BothVersions, PassBringsEachBlockOnce) {
  const size_t events = 3 * kBroughtBytes / kEventBytes - 5;
  const ThreadBytes made = build_thread(plan(events));
  std::vector<uint8_t> file = made.index;
  std::fill_n(file.begin() + 64, events * kEventBytes, uint8_t{0});
  std::vector<uint64_t> brought;
  const BringBytes bring = [&](uint64_t offset, MutableBytes out) {
    brought.push_back(offset);
    ASSERT_LE(offset + out.size(), 64 + events * kEventBytes) << "no more than events";
    std::copy_n(made.index.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
  };
  const auto reader = IndexReader::open(file, findings_, &bring);
  ASSERT_TRUE(reader);
  EventBlocks blocks = reader->blocks();
  uint64_t seen = 0;
  const auto look = [&](uint64_t seq, const IndexEvent& event) {
    EXPECT_EQ(seq, seen++);
    ASSERT_EQ(event.timestamp_ns, 1000 + seq * 10);
  };
  for (uint64_t first = 0; first < events; first += 1000) {
    blocks.events(first, std::min<uint64_t>(1000, events - first)).for_each(look);
  }
  EXPECT_EQ(seen, events);
  EXPECT_EQ(brought, (std::vector<uint64_t>{0, kBroughtBytes, 2 * kBroughtBytes}));
  brought.clear();
  seen = events - 1;
  reader->blocks().events(events - 1, 1).for_each(look);
  EXPECT_EQ(brought, (std::vector<uint64_t>{2 * kBroughtBytes}));
  brought.clear();
  reader->blocks().events(7, 0).for_each(look);
  EXPECT_TRUE(brought.empty());
}

TEST_P(BothVersions, SpansClampToWhatIsThere) {
  const ThreadBytes made = build_thread(plan(10));
  const auto reader = IndexReader::open(made.index, findings_);
  EXPECT_EQ(reader->events(8, 100).size(), 2u);
  EXPECT_EQ(reader->events(10, 1).size(), 0u);
  EXPECT_EQ(reader->events(UINT64_MAX, UINT64_MAX).size(), 0u);
  const ThreadBytes many = build_thread(plan(100));
  const auto longer = IndexReader::open(many.index, findings_);
  EXPECT_EQ(longer->events(10, 40).size(), 40u);
  EXPECT_EQ(longer->events(10, 40).bytes().size(), 40u * 32);
}

TEST_P(BothVersions, UnfinalizedIndexIsReadToItsLastWholeEvent) {
  ThreadPlan p = plan(10);
  p.finalize = false;
  ThreadBytes made = build_thread(p);
  made.index.resize(made.index.size() - 5);
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->state(), FileState::kUnfinalized);
  EXPECT_EQ(reader->size(), 9u);
  EXPECT_EQ(reader->trailing_bytes(), 27u);
  EXPECT_EQ(reader->checksum(), ChecksumState::kNone);
}

// The crash between writing the footer and rewriting the header.
TEST_P(BothVersions, StaleHeaderLeavesTheFooterAtTheEnd) {
  ThreadBytes made = build_thread(plan(10));
  ThreadPlan unfinished = plan(10);
  unfinished.finalize = false;
  const ThreadBytes created = build_thread(unfinished);
  std::copy_n(created.index.begin(), 64, made.index.begin());
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->state(), FileState::kStaleHeader);
  EXPECT_EQ(reader->size(), 10u);
  EXPECT_EQ(reader->checksum(), ChecksumState::kGood);
}

// An event whose time spells the magic, where the header of an unfinished file points.
TEST_P(BothVersions, FirstEventThatLooksLikeAFooterHidesNothing) {
  ThreadPlan p = plan(10);
  p.finalize = false;
  ThreadBytes made = build_thread(p);
  std::copy_n(kIndexFooterMagic, 4, made.index.begin() + 64);
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->state(), FileState::kUnfinalized);
  EXPECT_EQ(reader->size(), 10u);
  // One byte behind it is enough to say that events follow; with none it is the footer.
  made.index.resize(64 + 65);
  EXPECT_EQ(IndexReader::open(made.index, findings_)->state(), FileState::kUnfinalized);
  made.index.resize(64 + 64);
  EXPECT_EQ(IndexReader::open(made.index, findings_)->state(), FileState::kFinalized);
}

TEST_P(BothVersions, PreferTheConsistentFooter) {
  ThreadBytes made = build_thread(plan(10));
  // The header points at event 3, whose time spells the magic; the true footer is at the end.
  std::copy_n(kIndexFooterMagic, 4, made.index.begin() + 64 + 3 * 32);
  store_le<uint64_t>(made.index.data() + 40, 64 + 3 * 32);
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->state(), FileState::kStaleHeader);
  EXPECT_EQ(reader->size(), 10u);
}

TEST_P(BothVersions, FootersCountNeverReachesBeyondTheBytes) {
  for (const uint64_t claim : {uint64_t{11}, uint64_t{1000000}, uint64_t{1} << 59, UINT64_MAX}) {
    ThreadBytes made = build_thread(plan(10));
    store_le<uint64_t>(made.index.data() + made.index.size() - 64 + 8, claim);
    Findings findings;
    const auto reader = IndexReader::open(made.index, findings);
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->size(), 10u) << claim;
    EXPECT_GE(findings.errors(), 1u) << claim;
  }
}

// 2^59 events times 32 bytes wrap around to 0: a section of 0 bytes must not agree with them.
TEST_P(BothVersions, CountThatWrapsAroundIsReported) {
  ThreadBytes made = build_thread(plan(0));
  store_le<uint64_t>(made.index.data() + made.index.size() - 64 + 8, uint64_t{1} << 59);
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->size(), 0u);
  EXPECT_EQ(findings_.list().front().check, Check::kFooterCount);
}

TEST_P(BothVersions, EventsOffsetMustLieInTheFile) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{63}, uint64_t{100000}, UINT64_MAX}) {
    ThreadBytes made = build_thread(plan(10, 2));
    store_le<uint64_t>(made.index.data() + 32, offset);
    store_le<uint64_t>(made.detail.data() + 20, offset);
    Findings findings;
    EXPECT_FALSE(IndexReader::open(made.index, findings)) << offset;
    EXPECT_FALSE(DetailReader::open(made.detail, findings)) << offset;
    ASSERT_EQ(findings.errors(), 2u);
    EXPECT_EQ(findings.list()[0].offset, 32u);
    EXPECT_EQ(findings.list()[1].offset, 20u);
  }
}

TEST_P(BothVersions, BytesAfterTheFooterAreReported) {
  ThreadBytes made = build_thread(plan(10));
  made.index.resize(made.index.size() + 7);
  const auto reader = IndexReader::open(made.index, findings_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->size(), 10u);
  EXPECT_EQ(findings_.warnings(), 1u);
  EXPECT_EQ(findings_.list().front().check, Check::kAfterFooter);
}

TEST_P(BothVersions, ChecksumStates) {
  ThreadBytes made = build_thread(plan(10));
  uint8_t* const stored = made.index.data() + made.index.size() - 60;
  const auto state = [&] {
    Findings findings;
    return IndexReader::open(made.index, findings)->checksum();
  };
  EXPECT_EQ(state(), ChecksumState::kGood);
  store_le<uint32_t>(stored, 0);
  EXPECT_EQ(state(), ChecksumState::kUnchecked);
  EXPECT_EQ(IndexReader::open(made.index, findings_)->checksum(0), ChecksumState::kUnchecked);
  const Version other = GetParam() == Version::kV1 ? Version::kV2 : Version::kV1;
  store_le<uint32_t>(stored, section_checksum(other, Bytes(made.index).subspan(64, 320)));
  EXPECT_EQ(state(), ChecksumState::kOtherAlgorithm);
  store_le<uint32_t>(stored, 0xDEADBEEF);
  EXPECT_EQ(state(), ChecksumState::kBad);
}

TEST_P(BothVersions, DetailRecordsByNumberAndByWalking) {
  const ThreadPlan p = plan(20, 3);
  const ThreadBytes made = build_thread(p);
  const auto index = IndexReader::open(made.index, findings_);
  const auto detail = DetailReader::open(made.detail, findings_);
  ASSERT_TRUE(detail);
  EXPECT_EQ(detail->state(), FileState::kFinalized);
  EXPECT_EQ(detail->checksum(), ChecksumState::kGood);
  EXPECT_EQ(detail->size(), 7u);
  DetailCursor cursor = detail->records();
  for (uint64_t seq = 0; seq < 7; ++seq) {
    EXPECT_EQ(cursor.seq(), seq);
    EXPECT_EQ(detail->offset_of(seq), cursor.offset());
    const auto walked = cursor.next();
    const auto found = detail->get(seq);
    ASSERT_TRUE(walked && found);
    EXPECT_EQ(walked->payload.data(), found->payload.data());
    EXPECT_EQ(found->index_seq, seq * 3);
    // Both directions of the link.
    EXPECT_EQ(index->get(found->index_seq)->detail_seq, seq);
  }
  EXPECT_FALSE(cursor.next());
  EXPECT_FALSE(detail->get(7));
  EXPECT_FALSE(detail->get(kNoDetail));
}

// Published readers keep the last 64 bytes for a footer and lose records of unfinalized files.
TEST_P(BothVersions, UnfinalizedDetailIsWalkedToItsEnd) {
  ThreadPlan p = plan(5, 1);
  p.finalize = false;
  ThreadBytes made = build_thread(p);
  EXPECT_EQ(DetailReader::open(made.detail, findings_)->size(), 5u);
  made.detail.pop_back();
  const auto cut = DetailReader::open(made.detail, findings_);
  EXPECT_EQ(cut->size(), 4u);
  EXPECT_EQ(cut->state(), FileState::kUnfinalized);
}

TEST_P(BothVersions, StackBytesThatSpellTheFooterMagicHideNothing) {
  ThreadPlan p = plan(5, 1);
  p.finalize = false;
  ThreadBytes made = build_thread(p);
  std::copy_n(kDetailFooterMagic, 4, made.detail.end() - 64);
  const auto detail = DetailReader::open(made.detail, findings_);
  EXPECT_EQ(detail->state(), FileState::kUnfinalized);
  EXPECT_EQ(detail->size(), 5u);
}

TEST_P(BothVersions, DetailFooterBehindAStaleHeaderIsFound) {
  ThreadBytes made = build_thread(plan(5, 1));
  ThreadPlan p = plan(5, 1);
  p.finalize = false;
  const ThreadBytes created = build_thread(p);
  std::copy_n(created.detail.begin(), 64, made.detail.begin());
  const auto detail = DetailReader::open(made.detail, findings_);
  EXPECT_EQ(detail->state(), FileState::kStaleHeader);
  EXPECT_EQ(detail->size(), 5u);
  EXPECT_EQ(detail->checksum(), ChecksumState::kGood);
}

TEST_P(BothVersions, TimeOrderOfASortedFileIsOneRun) {
  const ThreadBytes made = build_thread(plan(10));
  const auto reader = IndexReader::open(made.index, findings_);
  const TimeOrder order = TimeOrder::of(*reader);
  EXPECT_TRUE(order.sorted());
  EXPECT_EQ(order.backward_steps(), 0u);
  EXPECT_EQ(order.range()->first_ns, 1000u);
  EXPECT_EQ(order.range()->last_ns, 1090u);
  EXPECT_EQ(order.seek(*reader, 0, 0), 0u);
  EXPECT_EQ(order.seek(*reader, 0, 1000), 0u);
  EXPECT_EQ(order.seek(*reader, 0, 1001), 1u);
  EXPECT_EQ(order.seek(*reader, 0, 1090), 9u);
  EXPECT_EQ(order.seek(*reader, 0, 1091), 10u);
}

TEST_P(BothVersions, TimeOrderSplitsWhereTimeStepsBack) {
  ThreadBytes made = build_thread(plan(6));
  const uint64_t times[] = {50, 60, 10, 20, 20, 5};
  for (size_t i = 0; i < 6; ++i) store_le<uint64_t>(made.index.data() + 64 + 32 * i, times[i]);
  const auto reader = IndexReader::open(made.index, findings_);
  const TimeOrder order = TimeOrder::of(*reader);
  ASSERT_EQ(order.runs(), 3u);
  EXPECT_EQ(order.backward_steps(), 2u);
  EXPECT_EQ(order.run_begin(1), 2u);
  EXPECT_EQ(order.run_end(1), 5u);
  EXPECT_EQ(order.run_end(2), 6u);
  EXPECT_EQ(order.range()->first_ns, 5u);
  EXPECT_EQ(order.range()->last_ns, 60u);
}

TEST_P(BothVersions, OneStepBackIsNotSorted) {
  ThreadBytes made = build_thread(plan(3));
  store_le<uint64_t>(made.index.data() + 64 + 32 * 2, 1009);
  const auto reader = IndexReader::open(made.index, findings_);
  const TimeOrder order = TimeOrder::of(*reader);
  EXPECT_FALSE(order.sorted());
  EXPECT_EQ(order.backward_steps(), 1u);
  EXPECT_EQ(order.runs(), 2u);
}

TEST_P(BothVersions, EmptyFileHasNoTimes) {
  const ThreadBytes made = build_thread(plan(0));
  const auto reader = IndexReader::open(made.index, findings_);
  const TimeOrder order = TimeOrder::of(*reader);
  EXPECT_FALSE(order.range());
  EXPECT_EQ(order.runs(), 0u);
  EXPECT_EQ(reader->events().size(), 0u);
}

}  // namespace
}  // namespace collect::atf
