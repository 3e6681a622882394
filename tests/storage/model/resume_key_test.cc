#include "storage/model/resume_key.h"

#include <sys/stat.h>

#include "storage/container/packed_lanes.h"
#include "storage/model/session_files.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage {
namespace {

using namespace test;

class ResumeKeyTest : public testing::Test {
 protected:
  ResumeKeyTest() {
    for (uint8_t at = 0; at < key_.bytes.size(); ++at) {
      key_.bytes[at] = static_cast<uint8_t>(0xA0 + at * 3);
    }
    key_.owner = "uid 1000";
    options_.root = directory_.path();
    options_.symbolize = false;
  }

  std::unique_ptr<Session> create() {
    auto session = Session::create(fs_, options_, test_identity(), key_);
    EXPECT_OK(session);
    return session.ok() ? std::move(*session) : nullptr;
  }
  // Whether any file but the key's has the key, as bytes or as text.
  void expect_nowhere_else(const std::string& directory) {
    const std::vector<uint8_t> text = read_file(directory + "/" + kResumeKeyFile);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file() || entry.path().filename() == kResumeKeyFile) continue;
      const std::vector<uint8_t> bytes = read_file(entry.path());
      EXPECT_EQ(std::search(bytes.begin(), bytes.end(), key_.bytes.begin(), key_.bytes.end()),
                bytes.end())
          << entry.path();
      const std::string words(bytes.begin(), bytes.end());
      EXPECT_EQ(words.find("a0a3a6a9acafb2b5"), std::string::npos) << entry.path();
    }
  }

  TemporaryDirectory directory_;
  PosixFs fs_;
  SessionOptions options_;
  ResumeKey key_;
};

TEST_F(ResumeKeyTest, ComesBackAsItWasWritten) {
  for (const char* owner : {"", "uid 1000", "certificate 00ff"}) {
    key_.owner = owner;
    ASSERT_OK(write_resume_key(fs_, directory_.path(), key_, true));
    EXPECT_EQ(write_resume_key(fs_, directory_.path(), key_, true).code(), Code::kAlreadyExists);
    const auto read = read_resume_key(fs_, directory_.path());
    ASSERT_OK(read);
    EXPECT_EQ(*read, key_);
    ASSERT_OK(remove_resume_key(fs_, directory_.path()));
    ASSERT_OK(remove_resume_key(fs_, directory_.path()));
    EXPECT_EQ(read_resume_key(fs_, directory_.path()).code(), Code::kNotFound);
  }
  key_.owner = "uid 1000\nend";
  EXPECT_EQ(write_resume_key(fs_, directory_.path(), key_, true).code(), Code::kInvalidArgument);
}

TEST_F(ResumeKeyTest, OnlyItsOwnerMayReadIt) {
  const mode_t before = umask(0);
  const auto session = create();
  umask(before);
  ASSERT_NE(session, nullptr);
  struct stat info{};
  ASSERT_EQ(stat((session->directory() + "/" + kResumeKeyFile).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(ResumeKeyTest, PartOfItIsDamaged) {
  ASSERT_OK(write_resume_key(fs_, directory_.path(), key_, false));
  const std::string path = directory_.path() + "/" + kResumeKeyFile;
  const std::vector<uint8_t> whole = read_file(path);
  for (size_t count = 0; count < whole.size(); ++count) {
    write_file(path, {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(count)});
    EXPECT_EQ(read_resume_key(fs_, directory_.path()).code(), Code::kDamaged) << count;
  }
  std::vector<uint8_t> longer = whole;
  longer.push_back('x');
  write_file(path, longer);
  EXPECT_EQ(read_resume_key(fs_, directory_.path()).code(), Code::kDamaged);
  std::vector<uint8_t> other = whole;
  other[22] = 'G';
  write_file(path, other);
  EXPECT_EQ(read_resume_key(fs_, directory_.path()).code(), Code::kDamaged);
}

TEST_F(ResumeKeyTest, IsBesideTheSessionUntilItIsSealed) {
  auto session = create();
  ASSERT_NE(session, nullptr);
  const std::string directory = session->directory();
  const auto session_path = parse_session_path(options_.root, session->name());
  ASSERT_TRUE(session_path.has_value());
  ASSERT_OK(session->commit());
  EXPECT_EQ(*read_resume_key(fs_, directory), key_);
  expect_nowhere_else(directory);
  const auto files = list_session_files(fs_, *session_path);
  ASSERT_OK(files);
  for (const SessionFileInfo& file : *files) EXPECT_NE(file.path, kResumeKeyFile);
  EXPECT_EQ(open_session_file(fs_, *session_path, kResumeKeyFile).code(), Code::kInvalidArgument);
  session.reset();  // the daemon is gone
  auto resumed = Session::resume(fs_, options_, directory);
  ASSERT_OK(resumed);
  EXPECT_EQ(*read_resume_key(fs_, directory), key_) << "for the next time";
  ASSERT_OK((*resumed)->seal(SessionState::kComplete, "test"));
  EXPECT_FALSE(fs_.exists(directory + "/" + kResumeKeyFile));
  expect_nowhere_else(directory);
}

TEST_F(ResumeKeyTest, SessionThatCannotBeginLeavesNothing) {
  int failures = 0;
  for (uint64_t change = 0;; ++change) {
    SCOPED_TRACE(change);
    FaultFs disk({.fail_at = change});
    const std::string root = directory_.path() + "/" + std::to_string(change);
    std::filesystem::create_directory(root);
    options_.root = root;
    const auto session = Session::create(disk, options_, test_identity(), key_);
    if (!disk.failed()) break;
    if (session.ok()) continue;  // a level of the root, which is there
    ++failures;
    EXPECT_TRUE(std::filesystem::is_empty(root));
  }
  EXPECT_GE(failures, 8) << "directories, reserve, key and manifest, and their syncs";
}

TEST_F(ResumeKeyTest, RecoveryAndRemovalTakeItAway) {
  auto session = create();
  ASSERT_NE(session, nullptr);
  const std::string directory = session->directory();
  const auto session_path = parse_session_path(options_.root, session->name());
  session.reset();
  ASSERT_OK(recover_session(fs_, options_, directory));
  EXPECT_FALSE(fs_.exists(directory + "/" + kResumeKeyFile));
  // Left by a daemon that ended between the last manifest and the clean-up.
  ASSERT_OK(write_resume_key(fs_, directory, key_, false));
  ASSERT_OK(recover_session(fs_, options_, directory));
  EXPECT_FALSE(fs_.exists(directory + "/" + kResumeKeyFile));
  ASSERT_OK(write_resume_key(fs_, directory, key_, false));
  ASSERT_OK(remove_session(fs_, *session_path));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace collect::storage
