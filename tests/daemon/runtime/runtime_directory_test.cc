#include "daemon/runtime/runtime_directory.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/runtime/runtime_fixture.h"

namespace collect::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RuntimeDirectoryTest : public RuntimeTest {};

TEST_F(RuntimeDirectoryTest, IsMadeForItsUserAlone) {
  EXPECT_EQ(RuntimeDirectory::open().code(), Code::kNotFound);
  const auto made = RuntimeDirectory::make();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->path(), own());
  struct stat status{};
  ASSERT_EQ(::stat(own().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_TRUE(RuntimeDirectory::open().ok());
}

TEST_F(RuntimeDirectoryTest, RefusesOneThatOthersMayRead) {
  fs::create_directory(own());
  fs::permissions(own(), static_cast<fs::perms>(0750));
  const auto opened = RuntimeDirectory::make();
  EXPECT_EQ(opened.code(), Code::kPermission);
  EXPECT_THAT(opened.error().message, HasSubstr("mode 0700"));
}

TEST_F(RuntimeDirectoryTest, RefusesALink) {
  fs::create_directory(above_ / "elsewhere");
  fs::permissions(above_ / "elsewhere", fs::perms::owner_all);
  fs::create_directory_symlink("elsewhere", own());
  EXPECT_EQ(RuntimeDirectory::make().code(), Code::kPermission);
}

TEST_F(RuntimeDirectoryTest, IgnoresAVariableNamingASharedDirectory) {
  fs::permissions(above_, static_cast<fs::perms>(0777));
  const auto opened = RuntimeDirectory::open();
  if (opened.ok()) {
    EXPECT_NE(opened->path(), own());
  }
  fs::permissions(above_, fs::perms::owner_all);
}

TEST_F(RuntimeDirectoryTest, PassesByAVariableThatNamesAnotherUsersDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving a directory away needs root";
  ASSERT_EQ(::chown(above_.c_str(), 65534, 65534), 0);
  const auto opened = RuntimeDirectory::open();
  if (opened.ok()) {
    EXPECT_NE(opened->path(), own());
  }
}

TEST_F(RuntimeDirectoryTest, FileIsLockedAsLongAsItsDescriptor) {
  const auto directory = RuntimeDirectory::make();
  ASSERT_TRUE(directory.ok());
  {
    const auto published = directory->publish("a", "text");
    ASSERT_TRUE(published.ok()) << published.error().message;
    EXPECT_TRUE(directory->is_locked("a"));
  }
  EXPECT_FALSE(directory->is_locked("a"));
  EXPECT_EQ(directory->read("a").value(), "text");
  EXPECT_THAT(directory->names(""), ElementsAre("a"));  // and nothing half made
}

TEST_F(RuntimeDirectoryTest, ReadsNoFileBeyondItsLimitAndNoLink) {
  const std::string largest(kMaxEntryBytes, 'x');
  put("largest", largest);
  put("larger", largest + "x");
  fs::create_symlink("largest", own() / "link");
  const auto directory = RuntimeDirectory::open();
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  EXPECT_EQ(directory->read("largest").value(), largest);
  EXPECT_EQ(directory->read("larger").code(), Code::kLimit);
  EXPECT_EQ(directory->read("link").code(), Code::kPermission);
}

TEST_F(RuntimeDirectoryTest, ListsAtMostItsLimit) {
  for (size_t i = 0; i <= kMaxEntries; ++i) put("n" + std::to_string(i), "");
  EXPECT_EQ(RuntimeDirectory::open()->names("n").size(), kMaxEntries);
}

}  // namespace
}  // namespace collect::runtime
