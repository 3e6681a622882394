// While no collector is there, pages go to the spool; when one is, they come first.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "tests/agent/drain/drain_fixture.h"
#include "tests/agent/temp_folder.h"

namespace collect::agent {
namespace {

// Five pages of index records, the last of which is less than half full.
constexpr uint32_t kIndexPages = 4;
constexpr uint32_t kPageRecords = kPageBytes / 32;
constexpr uint32_t kIndexRecords = kIndexPages * kPageRecords + 100;
constexpr uint32_t kDetailRecords = 5000;
// The collector may say nothing for three times as long.
constexpr uint32_t kCalmHeartbeatMs = 60'000;

class DrainSpoolTest : public DrainTest {
 protected:
  Settings spooling(const std::string& below = "") {
    Settings settings = connecting();
    const std::string folder = folder_.path().native() + below;
    std::memcpy(settings.spool, folder.c_str(), folder.size() + 1);
    settings.spool_mb = 1;
    return settings;
  }
  void cut() {
    collector.data.close();
    collector.control.close();
  }
  // Of what the recorder holds, whole pages are in the spool.
  bool is_spooled(uint32_t stream) {
    return eventually([stream] {
      return fake::acknowledged(stream, Lane::kIndex) >= kIndexPages * kPageRecords;
    });
  }
  // The file has no name; the process's own table of descriptors leads to it.
  int open_spool() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto target = std::filesystem::read_symlink(entry, gone);
      if (!gone && target.native().starts_with(folder_.path().native())) {
        return open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
      }
    }
    return -1;
  }
  void expect_detail(uint32_t stream, uint64_t count) {
    const StoredLane& stored = collector.lane(stream, 1);
    EXPECT_EQ(stored.repeats, 0u);
    EXPECT_EQ(stored.jumps, 0u);
    std::vector<uint8_t> details;
    for (uint64_t n = 0; n < count; ++n) {
      const auto record = fake::detail_record(n);
      details.insert(details.end(), record.begin(), record.end());
    }
    EXPECT_EQ(stored.bytes, details);
  }

  TempFolder folder_;
};

TEST_F(DrainSpoolTest, SizeIsChangedByCommand) {
  ASSERT_TRUE(drain_start(spooling()));
  collector.welcome_pair();
  wire::Command command;
  command.mutable_set_buffering()->set_sets_spool(true);
  EXPECT_TRUE(collector.command(command).ok());  // nothing is spooled
  const uint32_t stream = fake::add_stream(1, "main");
  cut();
  collector.welcome_pair(true);
  command.mutable_set_buffering()->set_spool_mb(2);  // it grows while it is empty
  EXPECT_TRUE(collector.command(command).ok());
  command.mutable_set_buffering()->set_spool_mb(kMaxSpoolMb + 1);
  EXPECT_FALSE(collector.command(command).ok());
  cut();
  fake::write_index(stream, kIndexRecords);
  fake::fill_buffer(true);
  ASSERT_TRUE(is_spooled(stream));
  fake::fill_buffer(false);
  collector.welcome_pair(true);
  command.mutable_set_buffering()->set_spool_mb(3);
  EXPECT_EQ(collector.command(command).error(), "the spool can't grow while it holds pages");
  collector.take_records(stream, 0, kIndexRecords);
  expect_index(stream, kIndexRecords);
}

TEST_F(DrainSpoolTest, StaysAsItIsWhereItCannotGrow) {
  Settings settings = spooling("/spool");
  std::filesystem::create_directory(settings.spool);
  ASSERT_TRUE(drain_start(settings));
  collector.welcome_pair();
  std::filesystem::remove(settings.spool);
  wire::Command command;
  command.mutable_set_buffering()->set_sets_spool(true);
  command.mutable_set_buffering()->set_spool_mb(2);
  EXPECT_EQ(collector.command(command).error(), "its file can't be made");
  const uint32_t stream = fake::add_stream(1, "main");
  cut();
  fake::write_index(stream, kIndexRecords);
  fake::fill_buffer(true);
  EXPECT_TRUE(is_spooled(stream));
  fake::fill_buffer(false);
}

TEST_F(DrainSpoolTest, ThereIsNoneWithoutAFolder) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  wire::Command command;
  command.mutable_set_buffering()->set_sets_spool(true);
  EXPECT_TRUE(collector.command(command).ok());
  command.mutable_set_buffering()->set_spool_mb(1);
  EXPECT_EQ(collector.command(command).error(),
            "the program was started without a folder for a spool: set COLLECT_SPOOL there");
}

TEST_F(DrainSpoolTest, DeliversEventsSpooledBeforeTheFirstCollector) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, kIndexRecords);
  fake::write_detail(stream, kDetailRecords);
  fake::fill_buffer(true);
  ASSERT_TRUE(is_spooled(stream));
  ASSERT_TRUE(eventually([stream] { return fake::acknowledged(stream, Lane::kDetail) > 0; }));
  fake::fill_buffer(false);
  collector.welcome_pair();
  collector.take_records(stream, 0, kIndexRecords);
  collector.take_records(stream, 1, kDetailRecords);
  expect_index(stream, kIndexRecords);
  expect_detail(stream, kDetailRecords);
  EXPECT_EQ(collector.encoded_pages, 0u) << "this collector takes raw pages alone";
}

TEST_F(DrainSpoolTest, StaysUnusedWhileTheRingsHaveRoom) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, kIndexRecords);
  collector.welcome_pair();
  collector.take_records(stream, 0, kIndexRecords);
  EXPECT_EQ(fake::acknowledged(stream, Lane::kIndex), 0u);
}

// Sent and not acknowledged: that goes to the spool too, and a collector that has some of it gets
// the rest, which begins in the middle of a page.
TEST_F(DrainSpoolTest, CollectorThatHasHalfAPage) {
  for (const uint64_t features : {uint64_t{0}, uint64_t{wire::kFeatureColumns}}) {
    fake::reset();
    fake::add_module("/usr/bin/program");
    ASSERT_TRUE(drain_start(spooling()));
    const uint32_t stream = fake::add_stream(1, "main");
    collector.features = features;
    collector.welcome_pair();
    fake::write_index(stream, 700);
    fake::write_detail(stream, 30);
    collector.take_records(stream, 0, 700);
    collector.take_records(stream, 1, 30);
    cut();
    fake::write_index(stream, kIndexRecords - 700);
    fake::write_detail(stream, kDetailRecords - 30);
    fake::lose_index(stream, 5, 1);
    fake::fill_buffer(true);
    ASSERT_TRUE(is_spooled(stream));
    collector.welcome_pair(true);
    collector.take_records(stream, 0, kIndexRecords);
    collector.take_records(stream, 1, kDetailRecords);
    expect_index(stream, kIndexRecords);
    expect_detail(stream, kDetailRecords);
    EXPECT_EQ(collector.encoded_pages > 0, features != 0);
    collector.send_ack();
    cut();
    drain_stop(0);
    collector.forget();
  }
}

// The collector was started again: it gets everything that it did not acknowledge.
TEST_F(DrainSpoolTest, CollectorThatRemembersNothing) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  fake::write_index(stream, 700);
  collector.take_records(stream, 0, 700);
  cut();
  collector.forget();
  fake::write_index(stream, kIndexRecords - 700);
  fake::fill_buffer(true);
  ASSERT_TRUE(is_spooled(stream));
  collector.welcome_pair();
  collector.take_records(stream, 0, kIndexRecords);
  expect_index(stream, kIndexRecords);
}

// Cut off again before the spool was handed over, and again: nothing comes twice.
TEST_F(DrainSpoolTest, LinksThatBreakWhileItIsHandedOver) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::fill_buffer(true);
  uint32_t written = 0;
  for (int link = 0; link < 6; ++link) {
    fake::write_index(stream, kIndexRecords);
    written += kIndexRecords;
    const uint64_t whole = written / kPageRecords * kPageRecords;
    ASSERT_TRUE(eventually(
        [=] { return fake::acknowledged(stream, Lane::kIndex) + 2 * kPageRecords >= whole; }));
    collector.welcome_pair(link > 0);
    collector.take_records(stream, 0, collector.lane(stream, 0).next + kPageRecords * 3 / 2);
    if (link % 2 == 0) collector.send_ack();
    cut();
  }
  collector.welcome_pair(true);
  collector.take_records(stream, 0, written);
  expect_index(stream, written);
}

// Rings that fill up while the spool is handed over go to its end, not to waste.
TEST_F(DrainSpoolTest, RecordingContinuesWhileTheSpoolIsSent) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::fill_buffer(true);
  // More than the sockets hold between them.
  fake::write_index(stream, 400'000);
  ASSERT_TRUE(eventually(
      [stream] { return fake::acknowledged(stream, Lane::kIndex) >= 400'000 - kPageRecords; }));
  collector.welcome_pair();
  collector.take_records(stream, 0, 1000);
  const uint64_t spooled_before = fake::acknowledged(stream, Lane::kIndex);
  fake::write_index(stream, 4 * kPageRecords);
  // No one acknowledged anything: the spool took it.
  ASSERT_TRUE(eventually(
      [=] { return fake::acknowledged(stream, Lane::kIndex) > spooled_before + kPageRecords; }));
  collector.take_records(stream, 0, 400'000 + 4 * kPageRecords);
  expect_index(stream, 400'000 + 4 * kPageRecords);
}

// The link is up, and no one reads it: a program that is faster than its link.
TEST_F(DrainSpoolTest, RingsThatFillWhileTheLinkIsUp) {
  for (const uint64_t features : {uint64_t{0}, uint64_t{wire::kFeatureColumns}}) {
    fake::reset();
    fake::add_module("/usr/bin/program");
    ASSERT_TRUE(drain_start(spooling()));
    const uint32_t stream = fake::add_stream(1, "main");
    collector.features = features;
    collector.welcome_pair(false, kCalmHeartbeatMs);
    fake::write_index(stream, 400'000);
    fake::fill_buffer(true);
    ASSERT_TRUE(eventually(
        [stream] { return fake::acknowledged(stream, Lane::kIndex) >= 400'000 - kPageRecords; }));
    EXPECT_TRUE(drain_connected());
    collector.take_records(stream, 0, 400'000);
    expect_index(stream, 400'000);
    cut();
    drain_stop(0);
    collector.forget();
  }
}

// What was sent remains in the spool alone, for the collector that asks for it.
TEST_F(DrainSpoolTest, MovesSentUnacknowledgedRecordsOutOfTheRings) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair(false, kCalmHeartbeatMs);
  fake::write_index(stream, 700);
  fake::write_detail(stream, 30);
  collector.take_records(stream, 0, 700);
  collector.take_records(stream, 1, 30);
  fake::fill_buffer(true);
  fake::write_index(stream, kIndexRecords - 700);
  fake::write_detail(stream, kDetailRecords - 30);
  ASSERT_TRUE(is_spooled(stream));
  ASSERT_TRUE(eventually([stream] { return fake::acknowledged(stream, Lane::kDetail) > 30; }));
  EXPECT_TRUE(drain_connected());
  collector.take_records(stream, 0, kIndexRecords);
  collector.take_records(stream, 1, kDetailRecords);
  expect_index(stream, kIndexRecords);
  expect_detail(stream, kDetailRecords);
  cut();
  collector.forget();
  collector.welcome_pair(false, kCalmHeartbeatMs);
  collector.take_records(stream, 0, kIndexRecords);
  collector.take_records(stream, 1, kDetailRecords);
  expect_index(stream, kIndexRecords);
  expect_detail(stream, kDetailRecords);
}

TEST_F(DrainSpoolTest, HeartbeatsTellHowMuchItHolds) {
  ASSERT_TRUE(drain_start(spooling()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, kIndexRecords);
  fake::fill_buffer(true);
  ASSERT_TRUE(is_spooled(stream));
  fake::fill_buffer(false);
  collector.welcome_pair(false, 3000);
  auto heartbeat = collector.control.expect<wire::Heartbeat>(FrameType::kHeartbeat);
  EXPECT_GT(heartbeat.spooled_bytes(), 0u);
  EXPECT_LT(heartbeat.spooled_bytes(), kIndexRecords * 32 / 4) << "it holds encoded pages";
  collector.take_records(stream, 0, kIndexRecords);
  collector.send_ack();
  for (int i = 0; i < 600 && heartbeat.spooled_bytes() != 0; ++i) {
    heartbeat = collector.control.expect<wire::Heartbeat>(FrameType::kHeartbeat);
  }
  EXPECT_EQ(heartbeat.spooled_bytes(), 0u);
}

// Storage gives back other bytes than were written: that page is lost, and the others come, to a
// collector that takes them as they are in the spool and to one that takes raw pages.
TEST_F(DrainSpoolTest, PageThatChangedInTheSpoolIsNotSent) {
  for (const uint64_t features : {uint64_t{0}, uint64_t{wire::kFeatureColumns}}) {
    fake::reset();
    fake::add_module("/usr/bin/program");
    ASSERT_TRUE(drain_start(spooling()));
    const uint32_t stream = fake::add_stream(1, "main");
    fake::write_index(stream, kIndexRecords);
    fake::fill_buffer(true);
    ASSERT_TRUE(is_spooled(stream));
    const int file = open_spool();
    ASSERT_GE(file, 0);
    uint8_t byte = 0;
    ASSERT_EQ(pread(file, &byte, 1, 40), 1);
    byte ^= 1;
    ASSERT_EQ(pwrite(file, &byte, 1, 40), 1);
    close(file);
    fake::fill_buffer(false);
    collector.features = features;
    collector.welcome_pair();
    collector.take_records(stream, 0, kIndexRecords);
    const StoredLane& stored = collector.lane(stream, 0);
    EXPECT_EQ(stored.jumps, kPageRecords) << "the first page";
    ASSERT_EQ(stored.bytes.size(), (kIndexRecords - kPageRecords) * size_t{32});
    const auto second_page = fake::index_record(stream, kPageRecords);
    EXPECT_EQ(std::memcmp(stored.bytes.data(), second_page.bytes, 32), 0);
    cut();
    drain_stop(0);
    collector.forget();
  }
}

TEST_F(DrainSpoolTest, StreamsThatEndedAreHandedOverAndClosed) {
  ASSERT_TRUE(drain_start(spooling()));
  std::vector<uint32_t> streams;
  for (uint32_t i = 0; i < 50; ++i) {
    streams.push_back(fake::add_stream(i, "thread"));
    fake::write_index(streams.back(), 100 + i);
    fake::lose_index(streams.back(), i, 1);
    fake::end_stream(streams.back());
  }
  fake::fill_buffer(true);
  for (uint32_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        eventually([&] { return fake::acknowledged(streams[i], Lane::kIndex) == 100 + i; }));
  }
  collector.welcome_pair();
  while (collector.closed.size() < streams.size()) ASSERT_TRUE(collector.take());
  for (uint32_t i = 0; i < 50; ++i) {
    expect_index(streams[i], 100 + i);
    EXPECT_EQ(collector.lane(streams[i], 0).lost_total, i);
    EXPECT_EQ(collector.closed[streams[i]].index_lost(), i);
  }
  collector.send_ack();
  EXPECT_TRUE(eventually([&] { return fake::was_released(streams[49]); }));
}

TEST_F(DrainSpoolTest, WithoutAFolderTheRingsAreAllThereIs) {
  ASSERT_TRUE(drain_start(spooling("/missing")));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, kIndexRecords);
  fake::fill_buffer(true);
  collector.welcome_pair();
  collector.take_records(stream, 0, kIndexRecords);
  expect_index(stream, kIndexRecords);
  EXPECT_EQ(fake::acknowledged(stream, Lane::kIndex), 0u);
}

}  // namespace
}  // namespace collect::agent
