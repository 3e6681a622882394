#include "formats/atf/check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/version_name.h"

namespace collect::atf {
namespace {

using testing::build_thread;
using testing::ThreadBytes;
using testing::ThreadPlan;

class CheckThread : public ::testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    plan_.version = GetParam();
    plan_.detail_every = 3;
    made_ = build_thread(plan_);
  }
  bool v1() const { return GetParam() == Version::kV1; }
  uint8_t* event(size_t seq) { return made_.index.data() + 64 + 32 * seq; }
  uint8_t* record(size_t seq) {
    Findings findings;
    return made_.detail.data() + *DetailReader::open(made_.detail, findings)->offset_of(seq);
  }
  void repair_checksums() {
    store_le<uint32_t>(made_.index.data() + made_.index.size() - 60, 0);
    store_le<uint32_t>(made_.detail.data() + made_.detail.size() - 60, 0);
  }
  // The one finding that this damage causes, or what was there instead.
  void expect_only(Check check, Severity severity, uint64_t offset) {
    repair_checksums();
    const ThreadReport report = check_thread(0, made_.index, made_.detail);
    ASSERT_EQ(report.findings.list().size(), 1u)
        << (report.findings.list().size() > 1 ? report.findings.list()[1].sentence : "nothing");
    const Finding& finding = report.findings.list().front();
    EXPECT_EQ(check_name(finding.check), check_name(check)) << finding.sentence;
    EXPECT_EQ(finding.severity, severity);
    EXPECT_EQ(finding.offset, offset);
    const Grade grade = grade_of(std::span(&report, 1));
    EXPECT_EQ(grade, severity == Severity::kError ? Grade::kDamaged : Grade::kOk);
  }

  ThreadPlan plan_;
  ThreadBytes made_;
};

INSTANTIATE_TEST_SUITE_P(Atf, CheckThread, ::testing::Values(Version::kV1, Version::kV2),
                         testing::version_name);

TEST_P(CheckThread, GoodThreadHasNoFindings) {
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_TRUE(report.findings.list().empty()) << report.findings.list().front().sentence;
  EXPECT_EQ(report.events, 20u);
  EXPECT_EQ(report.calls, 10u);
  EXPECT_EQ(report.returns, 10u);
  EXPECT_EQ(report.functions, 15u);  // 5 modules x 3 symbols, all met within 15 events
  EXPECT_EQ(report.links, 7u);
  EXPECT_EQ(report.detail.records, 7u);
  EXPECT_EQ(report.detail.documented_payloads, 7u);
  EXPECT_EQ(report.min_ns, 1000u);
  EXPECT_EQ(report.max_ns, 1190u);
  EXPECT_EQ(grade_of(std::span(&report, 1)), Grade::kOk);
}

TEST_P(CheckThread, WrongChecksum) {
  store_le<uint32_t>(made_.index.data() + made_.index.size() - 60, 1);
  store_le<uint32_t>(made_.detail.data() + made_.detail.size() - 60, 1);
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_EQ(report.findings.errors(), 2u);
  EXPECT_EQ(report.checksum, ChecksumState::kBad);
  EXPECT_EQ(report.detail.checksum, ChecksumState::kBad);
}

// FORMAT.md has the checksum at byte 4 of both footers.
TEST_P(CheckThread, WrongChecksumIsReportedAtItsField) {
  store_le<uint32_t>(made_.index.data() + made_.index.size() - 60, 1);
  store_le<uint32_t>(made_.detail.data() + made_.detail.size() - 60, 1);
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  ASSERT_EQ(report.findings.list().size(), 2u);
  const Finding& of_index = report.findings.list()[0];
  EXPECT_EQ(of_index.check, Check::kChecksum);
  EXPECT_EQ(of_index.lane, Lane::kIndex);
  EXPECT_EQ(of_index.severity, Severity::kError);
  EXPECT_EQ(of_index.offset, made_.index.size() - 60);
  const Finding& of_detail = report.findings.list()[1];
  EXPECT_EQ(of_detail.check, Check::kChecksum);
  EXPECT_EQ(of_detail.lane, Lane::kDetail);
  EXPECT_EQ(of_detail.severity, Severity::kError);
  EXPECT_EQ(of_detail.offset, made_.detail.size() - 60);
}

TEST_P(CheckThread, TimeStepsBack) {
  store_le<uint64_t>(event(5), 1);
  expect_only(Check::kTimeOrder, Severity::kError, 64 + 32 * 5);
}

TEST_P(CheckThread, UnknownKind) {
  if (v1()) {
    store_le<uint32_t>(event(5) + 20, 9);
  } else {
    event(5)[24] = 9;
  }
  expect_only(Check::kKind, Severity::kError, 64 + 32 * 5 + (v1() ? 20 : 24));
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_EQ(report.unknown_kinds, 1u);
  EXPECT_EQ(report.calls + report.returns, 19u);
}

TEST_P(CheckThread, LinksOutOfOrder) {
  if (v1()) {
    store_le<uint32_t>(event(3) + 28, 5);
  } else {
    store_le<uint64_t>(event(3) + 16, 5);
  }
  repair_checksums();
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  ASSERT_EQ(report.findings.list().size(), 2u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kLinkOrder);
  EXPECT_EQ(report.findings.list()[0].offset, 64u + 32 * 3);
  EXPECT_EQ(report.findings.list()[1].check, Check::kLinkBack);
}

TEST_P(CheckThread, DetailThatPointsPastTheIndex) {
  store_le<uint32_t>(record(6) + 8, 1000);
  store_le<uint64_t>(made_.detail.data() + 52, 1000);  // index_seq_end agrees
  expect_only(Check::kLinkPast, Severity::kWarning,
              static_cast<uint64_t>(record(6) + 8 - made_.detail.data()));
}

TEST_P(CheckThread, LinkedRecordsWithDifferentTimes) {
  store_le<uint64_t>(record(2) + 16, 1061);
  expect_only(Check::kLinkTime, Severity::kWarning,
              static_cast<uint64_t>(record(2) + 16 - made_.detail.data()));
}

TEST_P(CheckThread, IndexSeqRangeOfTheHeader) {
  store_le<uint64_t>(made_.detail.data() + 44, 1);
  expect_only(Check::kDetailSeqRange, Severity::kError, 44);
}

TEST_P(CheckThread, DetailThreadId) {
  store_le<uint32_t>(made_.detail.data() + 12, 1);
  expect_only(Check::kDetailThreadId, Severity::kError, 12);
}

TEST_P(CheckThread, DetailCounts) {
  store_le<uint64_t>(made_.detail.data() + made_.detail.size() - 56, 8);
  expect_only(Check::kDetailCounts, Severity::kError, made_.detail.size() - 64);
}

TEST_P(CheckThread, BrokenRecordChain) {
  const auto offset = static_cast<uint64_t>(record(4) - made_.detail.data());
  store_le<uint32_t>(record(4), 23);
  repair_checksums();
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_EQ(report.detail.records, 4u);
  const auto& list = report.findings.list();
  const auto walk = std::find_if(list.begin(), list.end(), [](const Finding& finding) {
    return finding.check == Check::kDetailWalk;
  });
  ASSERT_NE(walk, list.end());
  EXPECT_EQ(walk->offset, offset);
  EXPECT_GE(report.findings.errors(), 3u);  // with the links and the counts
}

TEST_P(CheckThread, DetailFlagAgainstPresence) {
  store_le<uint32_t>(made_.index.data() + 8, 0);
  expect_only(Check::kDetailFlag, Severity::kWarning, 8);
}

TEST_P(CheckThread, PayloadOfAnotherFunction) {
  store_le<uint64_t>(record(1) + 24, 0xBAD);
  expect_only(Check::kPayloadFunction, Severity::kWarning,
              static_cast<uint64_t>(record(1) + 24 - made_.detail.data()));
}

TEST_P(CheckThread, RecordTypeAgainstEventKind) {
  store_le<uint16_t>(record(0) + 4, 4);
  expect_only(Check::kRecordType, Severity::kWarning, 64 + 4);
}

TEST_P(CheckThread, StackSizeThatDoesNotFillThePayload) {
  store_le<uint16_t>(record(1) + 24 + 96, 7);
  expect_only(Check::kPayload, Severity::kNote,
              static_cast<uint64_t>(record(1) + 24 - made_.detail.data()));
}

TEST_P(CheckThread, FooterTimesAgainstTheEvents) {
  store_le<uint64_t>(made_.index.data() + 48, 999);
  store_le<uint64_t>(made_.index.data() + made_.index.size() - 64 + 16, 999);
  expect_only(Check::kTimeRange, Severity::kWarning, made_.index.size() - 64 + 16);
}

TEST_P(CheckThread, DetailFooterTimesAgainstTheRecords) {
  store_le<uint64_t>(made_.detail.data() + made_.detail.size() - 64 + 24, 999);
  expect_only(Check::kTimeRange, Severity::kWarning, made_.detail.size() - 64 + 24);
}

TEST_P(CheckThread, BytesBehindTheDetailFooter) {
  repair_checksums();
  made_.detail.resize(made_.detail.size() + 3);
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  ASSERT_EQ(report.findings.list().size(), 1u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kAfterFooter);
  EXPECT_EQ(report.findings.list()[0].offset, made_.detail.size() - 3);
}

// Records of a version that the index does not have cannot be distinguished from others.
TEST_P(CheckThread, DetailFileOfTheOtherVersionIsNotRead) {
  made_.detail[5] = v1() ? 2 : 1;
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_TRUE(report.detail.rejected);
  EXPECT_FALSE(report.rejected);
  EXPECT_EQ(report.detail.records, 0u);
  ASSERT_EQ(report.findings.list().size(), 1u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kDetailHeader);
  EXPECT_EQ(report.findings.list()[0].offset, 5u);
}

TEST_P(CheckThread, DetailFileAlone) {
  const ThreadReport whole = check_detail_alone(7, made_.detail);
  EXPECT_EQ(whole.n, 7u);
  EXPECT_FALSE(whole.rejected);
  EXPECT_EQ(whole.state, FileState::kFinalized);
  EXPECT_EQ(whole.detail.records, 7u);
  EXPECT_EQ(whole.detail.documented_payloads, 7u);
  EXPECT_TRUE(whole.findings.list().empty());
  const ThreadReport cut = check_detail_alone(7, Bytes(made_.detail).first(63));
  EXPECT_TRUE(cut.rejected);
  EXPECT_EQ(grade_of(std::span(&cut, 1)), Grade::kRejected);
}

TEST_P(CheckThread, RecordTypesAreCountedUpToALimit) {
  plan_.events = kMaxCountedTypes + 2;
  plan_.detail_every = 1;
  made_ = build_thread(plan_);
  for (size_t seq = 0; seq < plan_.events; ++seq) {
    store_le<uint16_t>(record(seq) + 4, static_cast<uint16_t>(100 + seq));
  }
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_EQ(report.detail.records, kMaxCountedTypes + 2);
  EXPECT_EQ(report.detail.types.size(), kMaxCountedTypes);
}

TEST_P(CheckThread, PlatformOutsideTheEnumerations) {
  made_.index[6] = 77;
  expect_only(Check::kPlatform, Severity::kNote, 6);
}

TEST_P(CheckThread, LinksWithoutADetailFile) {
  const ThreadReport report = check_thread(0, made_.index, {});
  EXPECT_EQ(report.findings.errors(), 1u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kLinkNoFile);
}

TEST_P(CheckThread, UnreadableDetailFileLeavesTheIndexReadable) {
  const ThreadReport report = check_thread(0, made_.index, Bytes(made_.detail).first(10));
  EXPECT_FALSE(report.rejected);
  EXPECT_TRUE(report.detail.rejected);
  EXPECT_EQ(report.events, 20u);
  EXPECT_EQ(report.findings.errors(), 1u);
}

TEST_P(CheckThread, UnfinalizedThreadIsRecovered) {
  plan_.finalize = false;
  made_ = build_thread(plan_);
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_EQ(report.findings.errors() + report.findings.warnings(), 0u);
  EXPECT_EQ(grade_of(std::span(&report, 1)), Grade::kRecovered);
}

// The crash between the detail footer and the detail header.
TEST_P(CheckThread, StaleDetailHeaderIsRecoveredAndNotDamage) {
  plan_.finalize = false;
  const ThreadBytes created = build_thread(plan_);
  std::copy_n(created.detail.begin(), 64, made_.detail.begin());
  const ThreadReport report = check_thread(0, made_.index, made_.detail);
  EXPECT_EQ(report.findings.errors(), 0u);
  EXPECT_EQ(grade_of(std::span(&report, 1)), Grade::kRecovered);
}

TEST(CheckVersion1, EventsOfAnotherThread) {
  ThreadPlan plan;
  plan.version = Version::kV1;
  ThreadBytes made = build_thread(plan);
  store_le<uint32_t>(made.index.data() + 64 + 32 * 2 + 16, 5);
  store_le<uint32_t>(made.index.data() + made.index.size() - 60, 0);
  const ThreadReport report = check_thread(0, made.index, {});
  ASSERT_EQ(report.findings.list().size(), 1u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kThreadId);
  EXPECT_EQ(report.findings.list()[0].offset, 64u + 32 * 2 + 16);
}

TEST(CheckVersion1, DetailsOfAnotherThread) {
  ThreadPlan plan;
  plan.version = Version::kV1;
  plan.detail_every = 4;
  ThreadBytes made = build_thread(plan);
  store_le<uint32_t>(made.detail.data() + 64 + 12, 5);
  store_le<uint32_t>(made.detail.data() + made.detail.size() - 60, 0);
  const ThreadReport report = check_thread(0, made.index, made.detail);
  ASSERT_EQ(report.findings.list().size(), 1u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kThreadId);
  EXPECT_EQ(report.findings.list()[0].lane, Lane::kDetail);
  EXPECT_EQ(report.findings.list()[0].offset, 64u + 12);
}

TEST(CheckVersion2, ReservedBytes) {
  ThreadBytes made = build_thread({});
  made.index[64 + 32 * 2 + 31] = 1;
  store_le<uint32_t>(made.index.data() + made.index.size() - 60, 0);
  const ThreadReport report = check_thread(0, made.index, {});
  ASSERT_EQ(report.findings.list().size(), 1u);
  EXPECT_EQ(report.findings.list()[0].check, Check::kReserved);
  EXPECT_EQ(report.findings.list()[0].severity, Severity::kNote);
  EXPECT_EQ(report.findings.list()[0].offset, 64u + 32 * 2 + 25);
}

// Every event gives a finding; the list stays bounded and the count exact.
TEST(Findings, ListIsBoundedAndTheCountIsNot) {
  ThreadPlan plan;
  plan.version = Version::kV1;
  plan.events = Findings::kMaxListed + 1;
  ThreadBytes made = build_thread(plan);
  store_le<uint32_t>(made.index.data() + 12, plan.thread_id + 1);
  const ThreadReport report = check_thread(0, made.index, {});
  EXPECT_EQ(report.findings.list().size(), Findings::kMaxListed);
  EXPECT_EQ(report.findings.warnings(), plan.events);
  EXPECT_EQ(report.findings.unlisted(), 1u);
}

TEST(Findings, EveryCheckHasItsOwnName) {
  for (int check = 0; check <= static_cast<int>(Check::kPlatform); ++check) {
    for (int other = 0; other < check; ++other) {
      EXPECT_NE(check_name(static_cast<Check>(check)), check_name(static_cast<Check>(other)));
    }
  }
}

TEST(GradeOf, PartialOutranksDamaged) {
  ThreadReport good, damaged, rejected;
  good.state = damaged.state = FileState::kFinalized;
  damaged.findings.add(Severity::kError, Lane::kIndex, Check::kKind, 0, "x");
  rejected.rejected = true;
  const auto grade = [](std::vector<ThreadReport> threads) { return grade_of(threads); };
  EXPECT_EQ(grade({good, good}), Grade::kOk);
  EXPECT_EQ(grade({good, damaged}), Grade::kDamaged);
  EXPECT_EQ(grade({damaged, rejected}), Grade::kPartial);
  EXPECT_EQ(grade({rejected, rejected}), Grade::kRejected);
  EXPECT_EQ(grade({}), Grade::kRejected);
}

}  // namespace
}  // namespace collect::atf
