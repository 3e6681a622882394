// A thread's file while it grows: the blocks that are set aside for it, and that they are given
// back.
#include "storage/thread/lane_file.h"

#include <sys/stat.h>

#include <utility>

#include "formats/atf/writer.h"
#include "tests/storage/limited_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

constexpr uint64_t kHeader = 64;  // of an ATF file, and its footer
constexpr size_t kEvent = 32;

class LaneFileTest : public ::testing::Test {
 protected:
  LaneFile file_at(const std::string& where) {
    ThreadFormat format;
    format.thread_id = 7;
    return {fs, where, Lane::kIndex, format};
  }
  // So many bytes of events behind those that are there.
  void grow(LaneFile& file, uint64_t bytes) {
    FakeStream stream(atf::Version::kV2, 1, 7);
    stream.add_many(static_cast<size_t>((file.summary().bytes + bytes) / kEvent));
    const Bytes fresh = Bytes(stream.index_bytes()).subspan(file.summary().bytes);
    LaneSummary after = file.summary();
    scan_lane(Lane::kIndex, {.version = atf::Version::kV2, .thread_id = 7}, fresh, UINT64_MAX,
              after);
    after.checksum = atf::section_checksum(atf::Version::kV2, fresh, file.summary().checksum);
    ASSERT_EQ(after.bytes, file.summary().bytes + bytes);
    const Bytes parts[] = {fresh};
    ASSERT_OK(file.append(parts, after));
  }
  static struct stat status_of(const std::string& where) {
    struct stat status{};
    EXPECT_EQ(::stat(where.c_str(), &status), 0);
    return status;
  }
  // Nothing behind the end but the rest of its block.
  static void expect_no_more_blocks_than_bytes(const std::string& where) {
    const struct stat status = status_of(where);
    EXPECT_LE(status.st_blocks * 512, status.st_size + status.st_blksize);
  }

  TemporaryDirectory root;
  std::string path = root.path() + "/index.atf";
  LimitedFs fs;
};

using Range = std::pair<uint64_t, uint64_t>;

TEST_F(LaneFileTest, ReservesAQuarterFromOneMebibyteOn) {
  LaneFile file = file_at(path);
  ASSERT_OK(file.create(false));
  grow(file, 1 << 19);
  EXPECT_TRUE(fs.aside().empty());
  grow(file, 1 << 19);
  const uint64_t end = kHeader + (1 << 20);
  const uint64_t aside = end + end / 4;
  const Range first{kHeader + (1 << 19), aside - kHeader - (1 << 19)};
  EXPECT_EQ(fs.aside(), (std::vector<Range>{first}));
  EXPECT_EQ(status_of(path).st_size, static_cast<off_t>(end));
  grow(file, 1 << 18);  // exactly what is there, but for a header's sixteenth
  EXPECT_EQ(fs.aside().size(), 1u);
  grow(file, 1 << 10);
  const uint64_t later = end + (1 << 18) + (1 << 10);
  EXPECT_EQ(fs.aside().back(), Range(aside, later + later / 4 - aside));
}

TEST_F(LaneFileTest, NoMoreThanSixtyFourMebibytesAreSetAside) {
  LaneFile file = file_at(path);
  ASSERT_OK(file.create(false));
  LaneSummary large;
  large.bytes = uint64_t{1} << 30;
  file.set_summary(large);  // a hole, as large as that
  LaneSummary after = large;
  after.bytes += kEvent;
  const std::vector<uint8_t> event(kEvent);
  const Bytes parts[] = {event};
  ASSERT_OK(file.append(parts, after));
  EXPECT_EQ(fs.aside(), (std::vector<Range>{{kHeader + large.bytes, kEvent + (64u << 20)}}));
}

TEST_F(LaneFileTest, SealReleasesReservedSpace) {
  LaneFile file = file_at(path);
  ASSERT_OK(file.create(false));
  grow(file, 3 << 20);
  ASSERT_OK(file.seal(false));
  expect_no_more_blocks_than_bytes(path);
  EXPECT_EQ(status_of(path).st_size, static_cast<off_t>(2 * kHeader + (3 << 20)));
}

TEST_F(LaneFileTest, CutReleasesReservedSpace) {
  LaneFile file = file_at(path);
  ASSERT_OK(file.create(false));
  grow(file, 1 << 20);
  const LaneSummary before = file.summary();
  grow(file, 2 << 20);
  ASSERT_OK(file.cut(before));
  expect_no_more_blocks_than_bytes(path);
  grow(file, 1 << 20);  // and asked for again
  EXPECT_EQ(fs.aside().back().first, kHeader + before.bytes);
}

// As kill -9 leaves it, within a recording and behind the footer.
TEST_F(LaneFileTest, ReopeningReleasesReservedSpace) {
  for (const bool is_sealed : {false, true}) {
    const std::string left = path + (is_sealed ? ".sealed" : ".open");
    {
      LaneFile file = file_at(left);
      ASSERT_OK(file.create(false));
      grow(file, 2 << 20);
      if (is_sealed) ASSERT_OK(file.seal(false));
    }
    const auto size = static_cast<uint64_t>(status_of(left).st_size);
    (*PosixFs().open(left, OpenMode::kReadWrite))->set_aside(size, 8 << 20);
    LaneFile again = file_at(left);
    ASSERT_OK(again.reopen());
    ASSERT_OK(again.end_reopen());
    EXPECT_EQ(again.sealed(), is_sealed);
    EXPECT_EQ(again.summary().records, uint64_t{2 << 20} / kEvent);
    expect_no_more_blocks_than_bytes(left);
    EXPECT_EQ(static_cast<uint64_t>(status_of(left).st_size), size);
  }
}

}  // namespace
}  // namespace collect::storage::test
