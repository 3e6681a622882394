#include "storage/model/session_files.h"

#include <gmock/gmock.h>

#include "storage/container/packed_lanes.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SessionFilesTest : public testing::Test {
 protected:
  SessionFilesTest() : session_path_(*parse_session_path(root(), "session_20260131_235959/pid_7")) {
    put("manifest.json", "{}");
    put("capture-000001.rtc", "container");
    put("reserve.space", "0000");
    put("thread_2/index.atf", "two");
    put("thread_10/index.atf", "ten");
    put("thread_10/detail.atf", "detail");
    put("thread_10/index.lod", "levels");
    put("thread_10/index.lod.new", "of who was interrupted");
    put("thread_10/stream.journal", "journal");
  }

  std::string root() const { return directory_.path() + "/root"; }
  std::string path(const std::string& name) const { return session_path_.directory + "/" + name; }
  void put(const std::string& name, const std::string& content) {
    const std::filesystem::path file = path(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  std::vector<std::string> listed() {
    std::vector<std::string> names;
    const auto files = list_session_files(fs_, session_path_);
    EXPECT_OK(files);
    if (!files.ok()) return names;
    for (const SessionFileInfo& file : *files) {
      names.push_back(file.path + " " + std::to_string(file.bytes));
    }
    return names;
  }
  Status open(const std::string& name) {
    auto file = open_session_file(fs_, session_path_, name);
    return file.ok() ? Status() : Status(file.error());
  }

  test::TemporaryDirectory directory_;
  PosixFs fs_;
  const SessionPath session_path_;
};

TEST_F(SessionFilesTest, ListsWhatIsOursInOrder) {
  put("notes.txt", "of a user");
  put("thread_2/core", "of a user");
  put("thread_02/index.atf", "no name of ours");
  EXPECT_THAT(listed(),
              ElementsAre("capture-000001.rtc 9", "manifest.json 2", "thread_2/index.atf 3",
                          "thread_10/detail.atf 6", "thread_10/index.atf 3",
                          "thread_10/index.lod 6", "thread_10/stream.journal 7"));
}

TEST_F(SessionFilesTest, OpensOnlyWhatASessionHas) {
  EXPECT_OK(open("thread_2/index.atf"));
  EXPECT_OK(open("manifest.json"));
  EXPECT_EQ(open("thread_3/index.atf").code(), Code::kNotFound);
  put("notes.txt", "of a user");
  std::ofstream(directory_.path() + "/secret") << "not yours";
  for (const char* name :
       {"", "/", "..", "../../../secret", "thread_2/../../../../secret", "/etc/passwd", "notes.txt",
        "thread_2", "thread_2/", "thread_2//index.atf", "./manifest.json", "thread_02/index.atf",
        "thread_2/index.atf/x", "reserve.space", "resume.key", "manifest.json.new",
        "capture-1.rtc"}) {
    EXPECT_EQ(open(name).code(), Code::kInvalidArgument) << name;
  }
}

TEST_F(SessionFilesTest, LinkThatLeadsOutIsNotFollowed) {
  std::filesystem::create_directory(directory_.path() + "/elsewhere");
  std::ofstream(directory_.path() + "/elsewhere/index.atf") << "not yours";
  std::filesystem::create_directory_symlink(directory_.path() + "/elsewhere", path("thread_3"));
  std::filesystem::create_symlink(directory_.path() + "/elsewhere/index.atf",
                                  path("thread_2/detail.atf"));
  EXPECT_EQ(open("thread_3/index.atf").code(), Code::kPermission);
  EXPECT_EQ(open("thread_2/detail.atf").code(), Code::kPermission);
  // What would be refused is not offered.
  EXPECT_THAT(listed(), Not(Contains(HasSubstr("thread_3"))));
  EXPECT_THAT(listed(), Not(Contains(HasSubstr("thread_2/detail"))));
}

TEST_F(SessionFilesTest, RootThatIsALinkItselfIsFine) {
  std::filesystem::create_directory_symlink(root(), directory_.path() + "/link");
  const std::string linked = directory_.path() + "/link";
  const auto session_path = parse_session_path(linked, session_path_.name);
  PosixFs linked_fs(linked);
  EXPECT_OK(open_session_file(linked_fs, *session_path, "thread_2/index.atf"));
}

TEST_F(SessionFilesTest, RemovesEverythingAndCounts) {
  const auto removed = remove_session(fs_, session_path_);
  ASSERT_OK(removed);
  EXPECT_EQ(removed->files, 9u);
  EXPECT_EQ(removed->bytes, 2u + 9 + 4 + 3 + 3 + 6 + 7 + 6 + 22);
  EXPECT_FALSE(std::filesystem::exists(root() + "/" + session_path_.session));
  EXPECT_EQ(remove_session(fs_, session_path_).code(), Code::kNotFound);
}

TEST_F(SessionFilesTest, StrangeFilesStayAndTheManifestWithThem) {
  put("thread_2/core", "of a user");
  const auto removed = remove_session(fs_, session_path_);
  ASSERT_EQ(removed.code(), Code::kAlreadyExists);
  EXPECT_THAT(removed.error().message, HasSubstr("thread_2/core"));
  EXPECT_TRUE(std::filesystem::exists(path("thread_2/core")));
  EXPECT_TRUE(std::filesystem::exists(path("manifest.json")));
  EXPECT_FALSE(std::filesystem::exists(path("thread_10")));
  std::filesystem::remove(path("thread_2/core"));
  EXPECT_OK(remove_session(fs_, session_path_));  // finishes it
  EXPECT_FALSE(std::filesystem::exists(session_path_.directory));
}

TEST_F(SessionFilesTest, AnotherProcessOfTheSameSecondStays) {
  std::filesystem::create_directories(root() + "/" + session_path_.session + "/pid_8");
  EXPECT_OK(remove_session(fs_, session_path_));
  EXPECT_TRUE(std::filesystem::exists(root() + "/" + session_path_.session + "/pid_8"));
}

TEST_F(SessionFilesTest, LinkedThreadIsRemovedAsALinkOnly) {
  std::filesystem::create_directory(directory_.path() + "/elsewhere");
  std::ofstream(directory_.path() + "/elsewhere/index.atf") << "not yours";
  std::filesystem::create_directory_symlink(directory_.path() + "/elsewhere", path("thread_3"));
  EXPECT_FALSE(remove_session(fs_, session_path_).ok());
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/elsewhere/index.atf"));
}

// A session is gone as a whole, or its manifest stays and it can be removed again.
TEST_F(SessionFilesTest, FailedRemovalIsReportedAndCanBeRetried) {
  test::FaultFs counting;
  std::filesystem::copy(root(), root() + "_before", std::filesystem::copy_options::recursive);
  ASSERT_OK(remove_session(counting, session_path_));
  for (uint64_t k = 0; k + 1 < counting.changes(); ++k) {  // the last one is the second's directory
    SCOPED_TRACE(k);
    std::filesystem::remove_all(root());
    std::filesystem::copy(root() + "_before", root(), std::filesystem::copy_options::recursive);
    test::FaultFs broken({.fail_at = k});
    EXPECT_EQ(remove_session(broken, session_path_).code(), Code::kIo);
    const bool all_but_directory = k + 2 == counting.changes();
    EXPECT_EQ(std::filesystem::exists(path("manifest.json")), !all_but_directory);
    EXPECT_OK(remove_session(fs_, session_path_));
    EXPECT_FALSE(std::filesystem::exists(session_path_.directory));
  }
}

}  // namespace
}  // namespace collect::storage
