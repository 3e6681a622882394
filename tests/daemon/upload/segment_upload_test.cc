// Files that come back from segments as they were, whatever breaks on the way.
#include "daemon/upload/segment_upload.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "daemon/upload/download.h"
#include "daemon/upload/segment_rebuild.h"
#include "formats/core/crc32.h"
#include "tests/daemon/upload/upload_fixture.h"

namespace collect::upload::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SegmentUploadTest : public UploadTest {
 protected:
  void SetUp() override {
    UploadTest::SetUp();
    auto made = S3Client::create(server().settings(), source_, storage::system_clock());
    EXPECT_OK(made);
    client_ = std::move(*made);
    place_ = make_session();
    prefix_ = *part_prefix(
        storage::read_manifest(fs_, place_.directory)->identity,
        part_name_of(storage::read_manifest(fs_, place_.directory)->identity.collector));
  }
  Status send(const storage::ChangedFiles& files, bool is_first = false, bool is_last = false) {
    return SegmentUpload(*client_, retries_, fs_, root_.path(), positions_)
        .send({1, place_.name, is_first, is_last, files});
  }
  Result<RebuiltSession> rebuild() {
    std::filesystem::remove_all(back_.path() + "/" + place_.session);
    return rebuild_session(*client_, retries_, prefix_, fs_, back_.path());
  }
  static std::map<std::string, std::vector<uint8_t>> files_of(const std::string& directory) {
    std::map<std::string, std::vector<uint8_t>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      files[path.substr(directory.size())] = storage::test::read_file(path);
    }
    return files;
  }
  void expect_same() {
    const auto rebuilt = rebuild();
    ASSERT_OK(rebuilt);
    EXPECT_EQ(rebuilt->directory, back_.path() + "/" + place_.name);
    EXPECT_EQ(files_of(rebuilt->directory), files_of(place_.directory));
  }
  // Into the session's file, and what a request then says.
  storage::ChangedFiles write(const std::string& path, uint64_t offset, const std::string& text) {
    storage::ChangeTrackingFs tracked(fs_);
    const std::string whole = place_.directory + "/" + path;
    auto file = tracked.open(
        whole, fs_.exists(whole) ? storage::OpenMode::kReadWrite : storage::OpenMode::kCreate);
    EXPECT_OK(file);
    const Bytes bytes{reinterpret_cast<const uint8_t*>(text.data()), text.size()};
    EXPECT_OK((*file)->write_at(offset, std::span<const Bytes>(&bytes, 1)));
    return tracked.take(place_.directory);
  }
  std::vector<SegmentName> names() { return *list_segments(*client_, retries_, prefix_); }

  storage::test::TemporaryDirectory back_;
  std::unique_ptr<S3Client> client_;
  Retries retries_{{.attempts = 1}, time_, 1, [](const Error&) {}};
  SegmentPositions positions_;
  storage::SessionPath place_;
  std::string prefix_;
};

TEST_F(SegmentUploadTest, TheFirstRequestBringsAllAndOthersWhatChanged) {
  ASSERT_OK(send({}, true));
  expect_same();
  const size_t puts = count("PUT");
  ASSERT_OK(send(write("thread_0/index.atf", 100, "changed")));
  EXPECT_EQ(count("PUT"), puts + 1);
  ASSERT_OK(send(write("stream.dial9", 0, "a new file")));
  expect_same();
}

TEST_F(SegmentUploadTest, ALargeFileTakesSeveralSegments) {
  ASSERT_OK(send({}, true));
  ASSERT_OK(send(write("stream.dial9", 0, std::string(2 * kMaxSegmentBytes + 5, 'x'))));
  EXPECT_THAT(names(), SizeIs(4));
  expect_same();
}

TEST_F(SegmentUploadTest, AnotherRunOfTheProgramGoesOn) {
  ASSERT_OK(send({}, true));
  SegmentPositions others;
  const auto changed = write("thread_1/index.atf", 70, "changed");
  ASSERT_OK(SegmentUpload(*client_, retries_, fs_, root_.path(), others)
                .send({2, place_.name, false, false, changed}));
  ASSERT_THAT(names(), SizeIs(2));
  EXPECT_EQ(names()[1].text(), "000001/00000002.end");
  expect_same();
}

TEST_F(SegmentUploadTest, ACopyThatIsOnlyBegunIsNotTaken) {
  ASSERT_OK(send({}, true));
  const auto before = files_of(place_.directory);
  (void)write("stream.dial9", 0, std::string(kMaxSegmentBytes + 5, 'x'));
  // The second segment of the new copy is refused.
  server().set({{"min_part", 1},
                {"faults",
                 {{{"at", 0},
                   {"to", 1000},
                   {"key", "000002/00000002"},
                   {"kind", "status"},
                   {"status", 503},
                   {"code", "SlowDown"}}}}});
  EXPECT_EQ(send({}, true).code(), Code::kUnavailable);
  const auto rebuilt = rebuild();
  ASSERT_OK(rebuilt);
  EXPECT_EQ(files_of(rebuilt->directory), before);
  server().set({{"min_part", 1}, {"faults", nlohmann::json::array()}});
  ASSERT_OK(send({}, true));
  EXPECT_EQ(names().back().copy, 3u);
  expect_same();
}

TEST_F(SegmentUploadTest, ResendsFailedSegments) {
  ASSERT_OK(send({}, true));
  const auto changed = write("stream.dial9", 0, std::string(kMaxSegmentBytes + 5, 'x'));
  for (const char* kind : {"lost_answer", "reset"}) {
    server().set({{"min_part", 1},
                  {"faults", {{{"at", 0}, {"to", 1000}, {"key", ".end"}, {"kind", kind}}}}});
    EXPECT_FALSE(send(changed).ok());
  }
  server().set({{"min_part", 1}, {"faults", nlohmann::json::array()}});
  ASSERT_OK(send(changed));
  expect_same();
}

TEST_F(SegmentUploadTest, NamesWhatIsMissingOrDamaged) {
  EXPECT_EQ(rebuild().code(), Code::kNotFound);
  ASSERT_OK(send({}, true));
  ASSERT_OK(send(write("thread_0/index.atf", 100, "once")));
  ASSERT_OK(send(write("thread_0/index.atf", 100, "more")));
  const auto all = names();
  ASSERT_THAT(all, SizeIs(3));
  server().damage(prefix_ + kSegmentsName + all[2].text(), 30);
  const auto damaged = rebuild();
  EXPECT_EQ(damaged.code(), Code::kDamaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("000001/00000003.end"));
  ASSERT_OK(client_->remove(prefix_ + kSegmentsName + all[1].text()));
  const auto missing = rebuild();
  EXPECT_EQ(missing.code(), Code::kDamaged);
  EXPECT_THAT(missing.error().message, HasSubstr("segment 2 of 3 is missing"));
  std::filesystem::create_directories(back_.path() + "/" + place_.name);
  EXPECT_EQ(rebuild_session(*client_, retries_, prefix_, fs_, back_.path()).code(), Code::kDamaged);
}

// One byte at 2^61: a file that holds nothing, and that nobody comes to the end of.
TEST_F(SegmentUploadTest, FilesOfHolesAreRefused) {
  const std::string data = "x";
  for (const SegmentKind kind : {SegmentKind::kWrite, SegmentKind::kCut}) {
    for (const uint64_t offset : {uint64_t{1} << 50, uint64_t{1} << 62}) {
      SegmentBuilder builder;
      builder.add({SegmentKind::kName, place_.name});
      const bool writes = kind == SegmentKind::kWrite;
      builder.add({kind, "thread_0/index.atf", offset, writes ? bytes_of(data) : Bytes()});
      const Bytes body = builder.finish();
      PutOptions options;
      options.crc32c = crc32c(body);
      ASSERT_OK(
          client_->put(prefix_ + kSegmentsName + SegmentName{1, 1, true}.text(), body, options));
      EXPECT_EQ(rebuild().code(), Code::kNoSpace) << offset;
      for (const auto& [path, bytes] : files_of(back_.path())) EXPECT_THAT(bytes, IsEmpty());
    }
  }
}

TEST_F(SegmentUploadTest, AreListedAsRecordedUntilCommitAndGoThen) {
  ASSERT_OK(send({}, true));
  auto listed = list_committed_parts(*client_, retries_);
  ASSERT_OK(listed);
  EXPECT_THAT(listed->prefixes, IsEmpty());
  EXPECT_EQ(listed->recorded, std::vector<std::string>{prefix_});
  EXPECT_EQ(listed->unfinished, 0u);

  const PartName part =
      part_name_of(storage::read_manifest(fs_, place_.directory)->identity.collector);
  const auto uploader = start(settings());
  EXPECT_OK(uploader->add(place_, part));
  EXPECT_TRUE(uploader->wait_idle(60'000)) << uploader->status().problem;
  listed = list_committed_parts(*client_, retries_);
  ASSERT_OK(listed);
  EXPECT_EQ(listed->prefixes, std::vector<std::string>{prefix_});
  EXPECT_THAT(listed->recorded, IsEmpty());
  EXPECT_THAT(names(), IsEmpty());
  // The last request came late: COMMIT has all of it.
  ASSERT_OK(send({}, false, true));
  EXPECT_THAT(names(), IsEmpty());
}

}  // namespace
}  // namespace collect::upload::test
