// What a session may take of its disk: max_session_bytes, keep_free_bytes
// and keep_free_files.
#include "storage/session/space_guard.h"

#include "storage/model/seal_reason.h"
#include "tests/storage/kept_records.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

class DiskLimitsTest : public ScenarioTest {
 protected:
  static uint64_t bytes_of_files(const std::string& directory) {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".atf") || name.ends_with(".rtc")) bytes += entry.file_size();
    }
    return bytes;
  }
  // Stores pages of one event each until storing stops; the error that stopped it.
  Status record_until_stopped(Session& session, FakeStream& stream, uint64_t& stored) {
    COLLECT_TRY(session.open_stream(stream.info()));
    for (stored = 0; stored + 8 <= stream.events(); stored += 8) {
      const Page page = stream.index_page(stored, 8);
      COLLECT_TRY(session.append_pages({&page, 1}));
      COLLECT_TRY(session.commit());
    }
    return {};
  }
};

TEST_F(DiskLimitsTest, SessionEndsAtItsOwnLimit) {
  for (const bool containers : {false, true}) {
    SessionOptions with = options();
    with.max_session_bytes = 64 * 1024;
    with.capture.enabled = containers;
    FakeStream stream(atf::Version::kV2, 1, 100);
    stream.add_many(8000);
    auto session = Session::create(fs, with, test_identity());
    auto other = Session::create(fs, with, test_identity());
    ASSERT_OK(session);
    ASSERT_OK(other);
    uint64_t stored = 0;
    const Status status = record_until_stopped(**session, stream, stored);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::kLimit);
    EXPECT_NE(status.error().message.find("max_session_bytes reached"), std::string::npos);
    EXPECT_TRUE((*session)->failed());
    const Page page = stream.index_page(stored, 8);
    EXPECT_FALSE((*session)->append_pages({&page, 1}).ok()) << "stored after it";
    ASSERT_OK((*session)->seal(SessionState::kRecovered, "refused"));
    const std::string directory = (*session)->directory();
    const Manifest manifest = manifest_of(directory);
    EXPECT_EQ(manifest.state, SessionState::kFailed);
    EXPECT_NE(manifest.reason.find("max_session_bytes reached"), std::string::npos);
    EXPECT_EQ(manifest.totals.events, stored);
    expect_kept(directory, manifest, stream, {1, stored, 0});
    expect_reference_ok(directory);
    // Footers and the last manifest of a container come on top, and no more than that.
    EXPECT_LE(bytes_of_files(directory), with.max_session_bytes + 16 * 1024);
    EXPECT_GE(bytes_of_files(directory), with.max_session_bytes / 2);
    if (!containers) {
      EXPECT_EQ(stored * 32, with.max_session_bytes);
    }
    // The others go on.
    ASSERT_OK((*other)->open_stream(stream.info()));
    ASSERT_OK(append(**other, stream.index_page(0, 8)));
    ASSERT_OK((*other)->seal(SessionState::kComplete, ""));
  }
}

// A writer that fell behind stores many pages in one call: those that fit are stored.
TEST_F(DiskLimitsTest, StoresThePagesThatFit) {
  SessionOptions with = options();
  with.max_session_bytes = 32 * 95;
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(200);
  auto session = Session::create(fs, with, test_identity());
  ASSERT_OK(session);
  ASSERT_OK((*session)->open_stream(stream.info()));
  std::vector<Page> pages;
  for (uint64_t at = 0; at < 200; at += 10) pages.push_back(stream.index_page(at, 10));
  EXPECT_FALSE((*session)->append_pages(pages).ok());
  EXPECT_EQ((*session)->totals().events, 90u);
}

TEST_F(DiskLimitsTest, ResumedSessionHasTheSameLimit) {
  SessionOptions with = options();
  with.max_session_bytes = 32 * 100;
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(200);
  auto session = Session::create(fs, with, test_identity());
  ASSERT_OK(session);
  ASSERT_OK((*session)->open_stream(stream.info()));
  ASSERT_OK(append(**session, stream.index_page(0, 90)));
  ASSERT_OK((*session)->commit());
  const std::string directory = (*session)->directory();
  session->reset();
  auto resumed = Session::resume(fs, with, directory);
  ASSERT_OK(resumed);
  ASSERT_OK(append(**resumed, stream.index_page(90, 10)));
  EXPECT_FALSE(append(**resumed, stream.index_page(100, 1)).ok());
}

TEST_F(DiskLimitsTest, SessionsEndBeforeTheDiskIsFull) {
  FaultFs disk;
  SessionOptions with = options();
  with.keep_free_bytes = 1u << 20;
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(2000);
  auto session = Session::create(disk, with, test_identity());
  ASSERT_OK(session);
  disk.free_bytes = with.keep_free_bytes + 4096;
  ASSERT_OK((*session)->open_stream(stream.info()));
  const uint64_t stored = 80;
  for (uint64_t at = 0; at < stored; at += 8)
    ASSERT_OK(append(**session, stream.index_page(at, 8)));
  disk.free_bytes = with.keep_free_bytes + 8 * 32 - 1;  // others took the rest
  const Status status = append(**session, stream.index_page(stored, 8));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_NE(status.error().message.find("keep_free_bytes reached"), std::string::npos);
  ASSERT_OK((*session)->seal(SessionState::kFailed, seal_reason(status.error())));
  const Manifest manifest = manifest_of((*session)->directory());
  EXPECT_EQ(manifest.state, SessionState::kFailed);
  EXPECT_EQ(manifest.reason, seal_reason(status.error()));
  EXPECT_EQ(manifest.totals.events, stored);
  expect_reference_ok((*session)->directory());
  // Space returns.
  disk.free_bytes = UINT64_MAX;
  Scenario next;
  ASSERT_OK(next.run(disk, with));
}

TEST_F(DiskLimitsTest, FilesStayFree) {
  SessionOptions with = options();
  with.keep_free_files = 100;
  FaultFs disk;
  disk.free_files = with.keep_free_files + kFilesPerThread;
  auto session = Session::create(disk, with, test_identity());
  ASSERT_OK(session);
  FakeStream first(atf::Version::kV2, 1, 100);
  FakeStream second(atf::Version::kV2, 2, 101);
  first.add_many(80);
  ASSERT_OK((*session)->open_stream(first.info()));
  const Page page = first.index_page(0, 80);
  ASSERT_OK((*session)->append_pages({&page, 1}));
  disk.free_files = with.keep_free_files + kFilesPerThread - 1;
  const Status refused = (*session)->open_stream(second.info());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kNoSpace);
  EXPECT_NE(refused.error().message.find("keep_free_files reached"), std::string::npos);
  ASSERT_OK((*session)->seal(SessionState::kFailed, to_string(refused.error())));
  const Manifest manifest = manifest_of((*session)->directory());
  EXPECT_EQ(manifest.state, SessionState::kFailed);
  EXPECT_EQ(manifest.totals.events, 80u);
  EXPECT_EQ(manifest.threads.size(), 1u);
  expect_reference_ok((*session)->directory());
}

TEST_F(DiskLimitsTest, DisksThatDoNotCountFilesHaveRoom) {
  FaultFs disk;
  SpaceGuard guard(disk, root.path(), {0, 0, 100});
  disk.free_files = 100;
  EXPECT_FALSE(guard.admit_files(1).ok());
  disk.free_files = kUncountedFiles;
  EXPECT_OK(guard.admit_files(1));
  disk.free_files = 0;
  SpaceGuard unlimited(disk, root.path(), {});
  EXPECT_OK(unlimited.admit_files(1));
}

// A disk that this session alone fills is never asked below the mark, and asked seldom above it.
TEST_F(DiskLimitsTest, DiskIsAskedMoreOftenTheFullerItGets) {
  class CountingFs final : public Fs {
   public:
    Result<std::unique_ptr<File>> open(const std::string& path, OpenMode) override {
      return Error{Code::kNotFound, path};
    }
    Status make_directory(const std::string&) override { return {}; }
    Status rename(const std::string&, const std::string&) override { return {}; }
    Status remove_file(const std::string&) override { return {}; }
    Status remove_directory(const std::string&) override { return {}; }
    Status sync_directory(const std::string&) override { return {}; }
    Result<std::vector<std::string>> list_directory(const std::string&) override {
      return std::vector<std::string>{};
    }
    bool exists(const std::string&) override { return true; }
    Result<SpaceInfo> space(const std::string&) override {
      ++asked;
      return SpaceInfo{free, 0};
    }
    Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
      return Error{Code::kNotFound, path};
    }
    uint64_t free = 10ull << 30;
    uint64_t asked = 0;
  };
  CountingFs disk;
  const uint64_t keep = 100u << 20;
  const uint64_t page = 64u << 10;
  SpaceGuard guard(disk, "anywhere", {0, keep, 0});
  uint64_t pages = 0;
  while (guard.admit(0, page).ok()) {
    disk.free -= page;
    ++pages;
    ASSERT_GE(disk.free, keep);
  }
  EXPECT_LT(disk.free - keep, page);
  EXPECT_LT(disk.asked, pages / 100);
  // Others take what is left: it is seen at once when the session looks again.
  disk.free = 10ull << 30;
  ASSERT_OK(guard.admit(0, page));
  disk.free = keep;
  ASSERT_OK(guard.admit(0, page));
  guard.look_again();
  // A single byte is asked about too; and again, once there was no room.
  EXPECT_FALSE(guard.admit(0, 1).ok());
  EXPECT_FALSE(guard.admit(0, 1).ok());
  EXPECT_FALSE(guard.admit(0, page).ok());
}

// ---- the guard alone, to the byte

class SpaceGuardTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kKept = 1u << 20;
  SpaceGuard guard(uint64_t session, uint64_t free_bytes, uint64_t free_files = 0) {
    return {disk_, root_.path(), {session, free_bytes, free_files}};
  }

  TemporaryDirectory root_;
  FaultFs disk_;
};

TEST_F(SpaceGuardTest, SessionTakesWhatItMayAndNoMore) {
  SpaceGuard limited = guard(1000, 0);
  EXPECT_OK(limited.admit(600, 400, 0));
  EXPECT_OK(limited.admit(600, 300, 100));
  const Status refused = limited.admit(600, 301, 100);
  EXPECT_EQ(refused.code(), Code::kLimit);
  EXPECT_NE(refused.error().message.find("has 700 bytes of at most 1000"), std::string::npos);
  disk_.free_bytes = 0;
  SpaceGuard unlimited = guard(0, 0);
  EXPECT_OK(unlimited.admit(uint64_t{1} << 60, 1000, 0));
}

TEST_F(SpaceGuardTest, RestOfTheDiskStaysFree) {
  disk_.free_bytes = kKept + 100;
  EXPECT_OK(guard(0, kKept).admit(0, 100, 0));
  EXPECT_OK(guard(0, kKept).admit(0, 60, 40));
  EXPECT_EQ(guard(0, kKept).admit(0, 101, 0).code(), Code::kNoSpace);
  EXPECT_EQ(guard(0, kKept).admit(0, 60, 41).code(), Code::kNoSpace);
  disk_.free_bytes = kKept - 1;
  EXPECT_EQ(guard(0, kKept).admit(0, 1, 0).code(), Code::kNoSpace);
  SpaceGuard nowhere{disk_, root_.path() + "/none", {0, kKept, 10}};
  EXPECT_OK(nowhere.admit(0, 1, 0));
  EXPECT_OK(nowhere.admit_files(1));
}

// A sixteenth of what is left is given out without another look.
TEST_F(SpaceGuardTest, ItLooksAgainWhenASixteenthIsUsed) {
  SpaceGuard looking = guard(0, kKept);
  disk_.free_bytes = kKept + 16 * 100 + 30;
  EXPECT_OK(looking.admit(0, 20, 10));
  disk_.free_bytes = 0;
  EXPECT_OK(looking.admit(0, 40, 0));
  EXPECT_OK(looking.admit(0, 60, 0));
  EXPECT_EQ(looking.admit(0, 1, 0).code(), Code::kNoSpace);
}

TEST_F(SpaceGuardTest, SomeFilesCanAlwaysBeMade) {
  disk_.free_files = 14;
  EXPECT_OK(guard(0, 0, 10).admit_files(4));
  EXPECT_EQ(guard(0, 0, 10).admit_files(5).code(), Code::kNoSpace);
  EXPECT_EQ(guard(0, 0, 15).admit_files(1).code(), Code::kNoSpace);
  EXPECT_EQ(guard(0, 0, 15).admit_files(0).code(), Code::kNoSpace);
  disk_.free_files = 0;
  EXPECT_OK(guard(0, 0, 0).admit_files(1000));
}

}  // namespace
}  // namespace collect::storage::test
