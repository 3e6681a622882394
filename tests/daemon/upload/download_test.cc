#include "daemon/upload/download.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "daemon/upload/commit_object.h"
#include "daemon/upload/object_lists.h"
#include "tests/daemon/upload/upload_fixture.h"

namespace collect::upload::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DownloadTest : public UploadTest {
 protected:
  void SetUp() override {
    UploadTest::SetUp();
    auto made = S3Client::create(server().settings(), source_, storage::system_clock());
    EXPECT_OK(made);
    client_ = std::move(*made);
  }
  std::vector<std::string> parts() {
    const auto listed = list_committed_parts(*client_, retries_);
    EXPECT_OK(listed);
    return listed.ok() ? listed->prefixes : std::vector<std::string>();
  }
  Result<std::string> download(const std::string& prefix) {
    return download_part(*client_, retries_, prefix, fs_, back_.path());
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

  storage::test::TemporaryDirectory back_;
  std::unique_ptr<S3Client> client_;
  Retries retries_{{}, time_, 1, [](const Error&) {}};
};

TEST_F(DownloadTest, ByteForByteAndTheCheckersAreContent) {
  const auto session_path = make_session();
  upload(small_parts(), {session_path});
  const auto listed = parts();
  ASSERT_THAT(listed, SizeIs(1));
  const auto directory = download(listed[0]);
  ASSERT_OK(directory);
  EXPECT_EQ(*directory, back_.path() + "/" + session_path.name);
  EXPECT_EQ(files_of(*directory), files_of(session_path.directory));
  storage::test::expect_reference_ok(*directory);
}

TEST_F(DownloadTest, OnlyCommittedPartsAreListed) {
  const auto first = make_session(1);
  const auto second = make_session(2);
  upload(settings(), {first, second});
  auto listed = parts();
  ASSERT_THAT(listed, SizeIs(2));
  EXPECT_OK(client_->remove(listed[0] + kCommitName));
  const auto all = list_committed_parts(*client_, retries_);
  ASSERT_OK(all);
  EXPECT_THAT(all->prefixes, ElementsAre(listed[1]));
  EXPECT_EQ(all->unfinished, 1u);
  EXPECT_EQ(download(listed[0]).code(), Code::kNotFound);
}

TEST_F(DownloadTest, BrokenDownloadContinuesUntilItIsWhole) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const auto listed = parts();
  const auto whole = files_of(session_path.directory);
  for (const char* kind : {"cut", "reset", "lost_answer"}) {
    for (size_t at = 0; at <= whole.size(); ++at) {
      std::filesystem::remove_all(back_.path() + "/" + session_path.session);
      server().set({{"faults", {{{"at", at}, {"kind", kind}}}}});
      const auto directory = download(listed[0]);
      ASSERT_OK(directory);
      EXPECT_EQ(files_of(*directory), whole) << kind << at;
    }
  }
}

TEST_F(DownloadTest, NamesDamageInTheBucketAndLeavesNoManifest) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const auto listed = parts();
  server().damage(listed[0] + "thread=1/index.atf.zst", 40);
  const auto damaged = download(listed[0]);
  EXPECT_EQ(damaged.code(), Code::kDamaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("thread=1/index.atf.zst"));
  const auto files = files_of(back_.path() + "/" + session_path.name);
  EXPECT_FALSE(files.contains("/manifest.json"));
  for (const auto& [path, bytes] : files) EXPECT_THAT(path, Not(HasSubstr(".part")));
  // Mended, it continues with what is missing.
  server().damage(listed[0] + "thread=1/index.atf.zst", 40);
  server().set({{"faults", ::nlohmann::json::array()}});
  ASSERT_OK(download(listed[0]));
  EXPECT_EQ(files_of(back_.path() + "/" + session_path.name), files_of(session_path.directory));
  EXPECT_LT(server().log().size(), 1 + files_of(session_path.directory).size());
}

TEST_F(DownloadTest, FilesThatDifferStay) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const std::string there = back_.path() + "/" + session_path.name;
  std::filesystem::create_directories(there + "/thread_0");
  storage::test::write_file(there + "/thread_0/index.atf", {1, 2, 3});
  EXPECT_EQ(download(parts()[0]).code(), Code::kAlreadyExists);
  EXPECT_THAT(storage::test::read_file(there + "/thread_0/index.atf"), ElementsAre(1, 2, 3));
}

// A store that hands out pages for ever, in each way that one can.
TEST_F(DownloadTest, ListThatNeverEndsIsAnError) {
  const std::pair<const char*, const char*> kLies[] = {{"again", "is out of order"},
                                                       {"circle", "comes back to an earlier page"},
                                                       {"empty", "empty pages"},
                                                       {"long_token", "names its next page with"},
                                                       {"long_key", "a key of 1025 bytes"}};
  for (const auto& [how, said] : kLies) {
    server().set({{"list", how}});
    const auto listed = list_committed_parts(*client_, retries_);
    EXPECT_EQ(listed.code(), Code::kDamaged) << how;
    EXPECT_THAT(listed.error().message, HasSubstr(said)) << how;
    EXPECT_LE(server().log().size(), kMaxEmptyPages + 1) << how;
  }
  server().set({{"list", "endless"}});
  uint64_t count = 0;
  const Status endless = read_objects(*client_, retries_, kKeyRoot, 50, [&](const ObjectInfo&) {
    ++count;
    return Status();
  });
  EXPECT_EQ(endless.code(), Code::kLimit);
  EXPECT_EQ(count, 51u);
}

// Seen: a COMMIT that said "collector": "../../x" had its files written outside of the directory.
TEST_F(DownloadTest, CommitSpeaksForItsOwnPartAlone) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const std::string prefix = parts()[0];
  Commit commit = *read_commit(*client_, retries_, prefix);
  const auto refused = [&](const Commit& changed) {
    server().put(prefix + kCommitName, commit_to_json(changed));
    const auto directory = download(prefix);
    EXPECT_THAT(files_of(back_.path()), SizeIs(0));
    EXPECT_THAT(directory.ok() ? "" : directory.error().message, HasSubstr("COMMIT"));
    return directory.code();
  };
  Commit other = commit;
  other.part.collector = "../../x";
  EXPECT_EQ(refused(other), Code::kDamaged);
  other = commit;
  other.part.collector = "lab-2";
  EXPECT_EQ(refused(other), Code::kDamaged);
  other = commit;
  ++other.recording;
  EXPECT_EQ(refused(other), Code::kDamaged);
  other = commit;
  other.process_id.back() = other.process_id.back() == '0' ? '1' : '0';
  EXPECT_EQ(refused(other), Code::kDamaged);
  server().put(prefix + kCommitName, commit_to_json(commit));
  EXPECT_OK(download(prefix));
}

// What COMMIT announces has to find room before a byte is asked for.
TEST_F(DownloadTest, SizesThatNoDiskHasAreRefused) {
  const auto session_path = make_session();
  upload(settings(), {session_path});
  const std::string prefix = parts()[0];
  const Commit commit = *read_commit(*client_, retries_, prefix);
  for (const uint64_t bytes : {uint64_t{1} << 60, uint64_t{1} << 63, UINT64_MAX}) {
    Commit large = commit;
    for (CommittedFile& file : large.files) file.bytes = bytes;
    server().put(prefix + kCommitName, commit_to_json(large));
    server().set({{"faults", ::nlohmann::json::array()}});
    EXPECT_EQ(download(prefix).code(), Code::kNoSpace) << bytes;
    EXPECT_THAT(files_of(back_.path()), SizeIs(0));
    EXPECT_THAT(server().log(), SizeIs(1)) << "COMMIT alone";
  }
}

}  // namespace
}  // namespace collect::upload::test
