#include "storage/posix_fs.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class PosixFsTest : public ::testing::Test {
 protected:
  std::string path(const char* name) { return root.path() + "/" + name; }
  TemporaryDirectory root;
  PosixFs fs;
};

TEST_F(PosixFsTest, WritesMorePartsThanOneCallTakes) {
  auto file = fs.open(path("parts"), OpenMode::kCreate);
  ASSERT_OK(file);
  std::vector<uint8_t> expected(5000);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = uint8_t(i * 7);
  std::vector<Bytes> parts;
  for (size_t i = 0; i < expected.size(); ++i) {
    parts.push_back(Bytes(expected).subspan(i, 1));
    if (i % 3 == 0) parts.push_back({});
  }
  ASSERT_OK((*file)->write_at(10, parts));
  EXPECT_EQ(*(*file)->size(), 5010u);
  std::vector<uint8_t> got(6000);
  auto count = (*file)->read_at(10, got);
  ASSERT_OK(count);
  EXPECT_EQ(*count, 5000u);  // fewer than asked only at the end
  got.resize(*count);
  EXPECT_EQ(got, expected);
  ASSERT_OK((*file)->write_at(0, {}));
  ASSERT_OK((*file)->sync());
  ASSERT_OK((*file)->truncate(3));
  EXPECT_EQ(*(*file)->size(), 3u);
}

TEST_F(PosixFsTest, ErrorsSayWhatWhereAndWhy) {
  auto missing = fs.open(path("missing"), OpenMode::kReadWrite);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.error().message.find(path("missing")), std::string::npos);

  ASSERT_OK(fs.open(path("file"), OpenMode::kCreate));
  auto twice = fs.open(path("file"), OpenMode::kCreate);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.code(), Code::kAlreadyExists);

  auto full = fs.open("/dev/full", OpenMode::kReadWrite);
  if (!full.ok()) GTEST_SKIP() << "no /dev/full here";
  const uint8_t byte[] = {1};
  const Bytes parts[] = {byte};
  const Status status = (*full)->write_at(4096, parts);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_NE(status.error().message.find("/dev/full: write at 4096"), std::string::npos);
}

TEST_F(PosixFsTest, DirectoriesAndNames) {
  ASSERT_OK(fs.make_directories(path("a/b/c")));
  ASSERT_OK(fs.make_directories(path("a/b/c")));
  const Status again = fs.make_directory(path("a/b"));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.code(), Code::kAlreadyExists);
  ASSERT_OK(fs.open(path("a/z"), OpenMode::kCreate));
  EXPECT_EQ(*fs.list_directory(path("a")), (std::vector<std::string>{"b", "z"}));
  ASSERT_OK(fs.rename(path("a/z"), path("a/y")));
  EXPECT_FALSE(fs.exists(path("a/z")));
  EXPECT_TRUE(fs.exists(path("a/y")));
  ASSERT_OK(fs.sync_directory(path("a")));
  EXPECT_FALSE(fs.remove_directory(path("a")).ok());  // not empty
  ASSERT_OK(fs.remove_file(path("a/y")));
  ASSERT_OK(fs.remove_directory(path("a/b/c")));
  // A file in the way is named.
  ASSERT_OK(fs.open(path("file"), OpenMode::kCreate));
  const Status blocked = fs.make_directories(path("file/below"));
  ASSERT_FALSE(blocked.ok());
  EXPECT_NE(blocked.error().message.find(path("file")), std::string::npos);
  ASSERT_EQ(::symlink("nowhere", path("dangling").c_str()), 0);
  EXPECT_TRUE(fs.exists(path("dangling")));
  auto space = fs.space(root.path());
  ASSERT_OK(space);
  EXPECT_GT(space->total_bytes, 0u);
  EXPECT_LE(space->free_bytes, space->total_bytes);
}

// A file that may not grow beyond 5000 bytes: the system writes a part of what it is given, and
// nothing of the rest.
TEST_F(PosixFsTest, AShortWriteIsGoneOnWithUntilTheErrorItself) {
  struct Limit {
    Limit() {
      ::getrlimit(RLIMIT_FSIZE, &before);
      handler = ::signal(SIGXFSZ, SIG_IGN);
      rlimit small = before;
      small.rlim_cur = 5000;
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~Limit() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      ::signal(SIGXFSZ, handler);
    }
    rlimit before{};
    void (*handler)(int) = nullptr;
  };
  auto file = fs.open(path("limited"), OpenMode::kCreate);
  ASSERT_OK(file);
  std::vector<uint8_t> expected(8000);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = uint8_t(i * 7);
  const Bytes all(expected);
  const Bytes parts[] = {all.first(1000), all.subspan(1000, 3000), all.subspan(4000)};
  Status status;
  {
    Limit limit;
    status = (*file)->write_at(0, parts);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_NE(status.error().message.find("write at 5000"), std::string::npos)
      << status.error().message;
  EXPECT_EQ(read_file(path("limited")),
            std::vector<uint8_t>(expected.begin(), expected.begin() + 5000));
}

TEST_F(PosixFsTest, AQuotaIsNoSpace) {
  EXPECT_EQ(errno_error(EDQUOT, "file").code, Code::kNoSpace);
  EXPECT_EQ(errno_error(ENOSPC, "file").code, Code::kNoSpace);
  EXPECT_EQ(errno_error(EROFS, "file").code, Code::kPermission);
  EXPECT_EQ(errno_error(EIO, "file").code, Code::kIo);
}

TEST_F(PosixFsTest, ALockIsHeldOnce) {
  auto held = fs.lock(path("lock"));
  ASSERT_OK(held);
  auto second = fs.lock(path("lock"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kUnavailable);
  held->reset();
  auto mine = fs.lock(path("lock"));
  ASSERT_OK(mine);
  EXPECT_TRUE((*mine)->holds(path("lock")));
  ASSERT_OK(fs.rename(path("lock"), path("moved")));
  EXPECT_FALSE((*mine)->holds(path("lock")));
  ASSERT_OK(fs.open(path("lock"), OpenMode::kCreate));
  EXPECT_FALSE((*mine)->holds(path("lock")));
}

}  // namespace
}  // namespace collect::storage::test
