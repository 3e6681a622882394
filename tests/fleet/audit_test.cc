// The audit finds what is not as it was promised.
#include "tests/fleet/audit.h"

#include <gmock/gmock.h>

#include "formats/core/crc32.h"
#include "tests/fleet/collector.h"
#include "tests/fleet/simulated_time.h"
#include "tests/storage/session_fixture.h"

namespace collect::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AuditTest : public ::testing::Test {
 protected:
  AuditTest() : disk_(uint64_t{1} << 40), fs_(disk_) {
    run_.process.fill(7);
    run_.start_ns = kNsPerS;
    run_.events_per_s = 1'000;
    run_.end = RunEnd::kAcknowledged;
    run_.streams = {{100, 0, 100}};
  }
  // What a collector stored of it: the records up to `end` without the first ones.
  void store(uint64_t first, uint64_t end, uint64_t damaged = UINT64_MAX) {
    storage::SessionOptions options;
    options.root = Collector::kRoot;
    options.symbolize = false;
    options.collector.id.fill(++collector_);
    options.collector.epoch = 1;
    storage::SessionIdentity identity = storage::test::test_identity();
    identity.process_id = run_.process;
    ASSERT_OK(fs_.make_directories(Collector::kRoot));
    auto session = storage::Session::create(fs_, options, identity);
    ASSERT_OK(session);
    ASSERT_OK((*session)->open_stream({1, 100, "thread", 0}));
    std::vector<uint8_t> records((end - first) * 32);
    for (uint64_t number = first; number < end; ++number) {
      write_record(run_, number, records.data() + (number - first) * 32);
    }
    if (damaged != UINT64_MAX) records[(damaged - first) * 32 + 8] ^= 1;  // another function
    Page page;
    page.stream_id = 1;
    page.first_seq = first;
    page.record_count = static_cast<uint32_t>(end - first);
    page.raw_bytes = static_cast<uint32_t>(records.size());
    page.bytes = records;
    page.bytes_crc32c = crc32c(page.bytes);
    storage::StreamEnd stream_end;
    stream_end.stream_id = 1;
    stream_end.index_count = end;
    ASSERT_OK((*session)->append_pages(std::span<const Page>(&page, 1)));
    ASSERT_OK((*session)->close_stream(stream_end));
    ASSERT_OK((*session)->seal(storage::SessionState::kComplete, ""));
  }
  AuditResult judge(bool is_dead = false) {
    Audit audit(store_);
    audit.add_disk(disk_, is_dead);
    return audit.judge({run_}, 1);
  }

  StoreServer store_;
  MemoryDisk disk_;
  MemoryFs fs_;
  fleet::Run run_;
  uint8_t collector_ = 0;
};

TEST_F(AuditTest, WholeRecordingsInPartsThatOverlapAreKept) {
  store(0, 60);
  store(50, 100);
  const AuditResult result = judge();
  EXPECT_EQ(result.violation_count, 0u) << result.violations.front();
  EXPECT_EQ(result.on_disks, 100u);
  EXPECT_EQ(result.repeated, 10u);
  EXPECT_EQ(result.merged_records, 100u);
  EXPECT_EQ(result.moved_runs, 1u);
}

TEST_F(AuditTest, FindsAcknowledgedRecordsThatAreNowhere) {
  store(0, 40);
  store(60, 100);
  const AuditResult result = judge();
  ASSERT_GE(result.violation_count, 1u);
  EXPECT_THAT(result.violations.front(), HasSubstr("20 acknowledged records are nowhere"));
}

TEST_F(AuditTest, FindsAChangedRecord) {
  store(0, 100, 33);
  const AuditResult result = judge();
  EXPECT_THAT(result.violations, ElementsAre(HasSubstr("recorded as number 33")));
}

TEST_F(AuditTest, FindsPartsThatDisagree) {
  store(0, 60);
  store(50, 100, 55);
  EXPECT_THAT(judge().violations, ElementsAre(HasSubstr("can't be merged")));
}

TEST_F(AuditTest, FindsRecordsThatWereNeverMade) {
  run_.streams[0] = {90, 0, 90};
  store(0, 100);
  EXPECT_THAT(judge().violations, testing::Contains(HasSubstr("record 99 was never made")));
}

TEST_F(AuditTest, CountsWhatADeadDiskHasByCollector) {
  store(0, 100);
  disk_.die();
  const AuditResult result = judge(true);
  EXPECT_EQ(result.violation_count, 0u);
  EXPECT_EQ(result.on_dead_disks, 100u);
  EXPECT_THAT(result.lost_ranges, ElementsAre(HasSubstr("-1: 100 records in 1 threads")));
}

TEST_F(AuditTest, CountsUnacknowledgedEventsAsGivenUp) {
  run_.streams[0] = {120, 5, 100};
  run_.end = RunEnd::kGaveUp;
  store(0, 110);
  const AuditResult result = judge();
  EXPECT_EQ(result.violation_count, 0u);
  EXPECT_EQ(result.given_up, 10u);
  EXPECT_EQ(result.dropped, 5u);
}

}  // namespace
}  // namespace collect::fleet
