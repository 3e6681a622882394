// Outputs and temporary files: whole or not at all, nothing left on the way, nothing followed.
#include "storage/fs/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <functional>
#include <set>

#include "storage/read/gzip_file.h"
#include "storage/read/unnamed_file.h"
#include "tests/child/forked_child.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::OfflineTest {
 protected:
  std::string out() const { return (root_ / "out").string(); }
  // Besides the session that the fixture makes.
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), {})) - 1;
  }
  bool has_unnamed_files() const {
#ifdef O_TMPFILE
    const int fd = ::open(root_.c_str(), O_TMPFILE | O_RDWR, 0600);
    if (fd >= 0) ::close(fd);
    return fd >= 0;
#else
    return false;
#endif
  }
  std::string content(const fs::path& path) const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static Status write(ByteSink& sink, std::string_view text) {
    return sink.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
};

TEST_F(OutputFileTest, HasNoNameUntilItIsWhole) {
  if (!has_unnamed_files()) GTEST_SKIP() << "no unnamed files in " << root_;
  {
    auto file = storage::OutputFile::create(out(), false);
    ASSERT_TRUE(file.ok()) << to_string(file.error());
    ASSERT_TRUE(write(*file, "half").ok());
    EXPECT_EQ(entries(), 0u);
  }
  EXPECT_EQ(entries(), 0u);
  auto file = storage::OutputFile::create(out(), false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(write(*file, "whole").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(content(out()), "whole");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, FileThatAppearsMeanwhileStays) {
  auto file = storage::OutputFile::create(out(), false);
  ASSERT_TRUE(file.ok());
  write_text(out(), "of a user");
  EXPECT_EQ(file->commit().code(), Code::kAlreadyExists);
  EXPECT_EQ(content(out()), "of a user");
}

TEST_F(OutputFileTest, ReplacesFilesAndLinksAndNothingElse) {
  write_text(root_ / "target", "of a user");
  fs::create_symlink("target", out());
  EXPECT_EQ(storage::OutputFile::create(out(), false).code(), Code::kAlreadyExists);
  for (const char* text : {"one", "two"}) {
    auto file = storage::OutputFile::create(out(), true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(write(*file, text).ok());
    ASSERT_TRUE(file->commit().ok());
    EXPECT_EQ(content(out()), text);
    EXPECT_FALSE(fs::is_symlink(out()));
  }
  EXPECT_EQ(content(root_ / "target"), "of a user");
  EXPECT_EQ(entries(), 2u);
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(storage::OutputFile::create((root_ / "pipe").string(), true).code(),
            Code::kAlreadyExists);
  EXPECT_EQ(storage::OutputFile::create("/dev/null", true).code(), Code::kAlreadyExists);
  EXPECT_EQ(storage::OutputFile::create(root_.string(), true).code(), Code::kAlreadyExists);
  EXPECT_EQ(storage::OutputFile::create(root_.string() + "/", true).code(), Code::kInvalidArgument);
}

TEST_F(OutputFileTest, DirectoryMayBeALink) {
  fs::create_directory(root_ / "real");
  fs::create_directory_symlink("real", root_ / "link");
  auto file = storage::OutputFile::create((root_ / "link/out").string(), false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::exists(root_ / "real/out"));
}

TEST_F(OutputFileTest, SaysWhyThereIsNone) {
  write_text(out(), "of a user");
  const auto why = [](const std::string& path, bool replace) {
    const auto file = storage::OutputFile::create(path, replace);
    return file.ok() ? "" : to_string(file.error());
  };
  EXPECT_EQ(why(out(), false), out() + ": is there already; --force replaces it");
  EXPECT_EQ(why(root_.string(), true),
            root_.string() + ": is there already, and is no file to replace");
  for (const std::string name : {"/", "/.", "/.."}) {
    EXPECT_EQ(why(root_.string() + name, true), root_.string() + name + ": is no name for a file");
  }
  EXPECT_EQ(storage::OutputFile::create("", false).code(), Code::kInvalidArgument);
  EXPECT_EQ(storage::OutputFile::create((root_ / "none/out").string(), false).code(),
            Code::kNotFound);
  EXPECT_EQ(why((root_ / "none/out").string(), false),
            (root_ / "none/out").string() + ": No such file or directory");
  EXPECT_EQ(content(out()), "of a user");
}

TEST_F(OutputFileTest, ItsModeIsThatOfEveryNewFile) {
  const mode_t before = ::umask(026);
  auto file = storage::OutputFile::create(out(), false);
  const bool made = file.ok() && file->commit().ok();
  ::umask(before);
  ASSERT_TRUE(made);
  struct stat there{};
  ASSERT_EQ(::stat(out().c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 07777, mode_t{0640});
}

TEST_F(OutputFileTest, FailedCommitLeavesNoFile) {
  {
    auto file = storage::OutputFile::create(out(), true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(write(*file, "text").ok());
    fs::create_directory(out());
    EXPECT_FALSE(file->commit().ok());
  }
  EXPECT_TRUE(fs::is_directory(out()));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, LargeFileIsWrittenInParts) {
  constexpr size_t kPart = size_t{1} << 20;
  std::string whole;
  auto file = storage::OutputFile::create(out(), false);
  ASSERT_TRUE(file.ok());
  for (const size_t size :
       {kPart - 1, size_t{1}, size_t{1}, kPart, kPart + 1, size_t{0}, size_t{7}}) {
    const std::string part(size, static_cast<char>('a' + whole.size() % 26));
    ASSERT_TRUE(write(*file, part).ok());
    whole += part;
    EXPECT_EQ(file->size(), whole.size());
  }
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file->size(), whole.size());
  EXPECT_EQ(file->path(), out());
  EXPECT_TRUE(content(out()) == whole);
}

TEST_F(OutputFileTest, OneThatIsMovedIsTheSameFile) {
  auto first = storage::OutputFile::create(out(), true);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(write(*first, "one ").ok());
  storage::OutputFile second(std::move(*first));
  ASSERT_TRUE(write(second, "file").ok());
  EXPECT_EQ(second.size(), 8u);
  write_text(out(), "older");
  ASSERT_TRUE(second.commit().ok());
  EXPECT_EQ(content(out()), "one file");
}

#ifdef __linux__
// `check` in a process of its own to which the folder is all that there is: without /proc a file
// cannot be named later, so it has a temporary name from the start. 0: as it should be; 77: this
// process may not do so.
int in_a_root_of_its_own(const fs::path& root, const std::function<bool()>& check) {
  return child::forked([&] {
           const bool may = ::chroot(root.c_str()) == 0 ||
                            (::unshare(CLONE_NEWUSER) == 0 && ::chroot(root.c_str()) == 0);
           if (!may || ::chdir("/") != 0) return 77;
           return check() ? 0 : 1;
         })
      .exit_code;
}

std::set<std::string> names_in(const char* directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST_F(OutputFileTest, UsesATemporaryNameWithoutProc) {
  fs::create_directory(root_ / "place");
  using Names = std::set<std::string>;
  const int code = in_a_root_of_its_own(root_, [&] {
    bool good = true;
    const auto expect = [&good](bool holds) { good = good && holds; };
    {
      auto dropped = storage::OutputFile::create("/place/out", false);
      expect(dropped.ok() && write(*dropped, "half").ok());
      const Names names = names_in("/place");
      expect(names.size() == 1 && names.begin()->starts_with("out."));
      storage::OutputFile moved(std::move(*dropped));
      expect(names_in("/place") == names);
    }
    expect(names_in("/place").empty());
    for (const bool replace : {false, true}) {
      auto file = storage::OutputFile::create("/place/out", replace);
      expect(file.ok() && write(*file, replace ? "second" : "first").ok());
      expect(names_in("/place").size() == (replace ? 2u : 1u));
      expect(file.ok() && file->commit().ok());
      expect(names_in("/place") == Names{"out"});
    }
    expect(content("/place/out") == "second");
    // One that appears meanwhile stays, and the temporary name goes with the object.
    {
      auto late = storage::OutputFile::create("/place/other", false);
      expect(late.ok() && write(*late, "mine").ok());
      write_text("/place/other", "of a user");
      expect(late->commit().code() == Code::kAlreadyExists);
    }
    expect(content("/place/other") == "of a user");
    expect(names_in("/place") == (Names{"other", "out"}));
    return good;
  });
  if (code == 77) GTEST_SKIP() << "no right to a root of its own";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(content(root_ / "place/out"), "second");
}
#endif

TEST_F(OutputFileTest, UnnamedFileIsReadBack) {
  auto file = read::UnnamedFile::create(root_.string());
  ASSERT_TRUE(file.ok());
  const std::string large(3'000'001, 'x');
  ASSERT_TRUE(write(*file, large).ok());
  ASSERT_TRUE(write(*file, "end").ok());
  EXPECT_EQ(entries(), 0u);
  const auto bytes = file->bytes();
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->bytes().size(), large.size() + 3);
  EXPECT_EQ(bytes->bytes().back(), 'd');
}

TEST(InflateLimit, IsTheLeastOfThree) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  constexpr uint64_t kPlenty = uint64_t{1} << 50;
  // A small file may be a recording that packs well.
  EXPECT_EQ(read::inflate_limit(0, kPlenty, "/tmp").bytes, 256 * kMiB);
  EXPECT_EQ(read::inflate_limit(kMiB, kPlenty, "/tmp").bytes, 256 * kMiB);
  EXPECT_EQ(read::inflate_limit(2 * kMiB, kPlenty, "/tmp").bytes, 400 * kMiB);
  EXPECT_EQ(read::inflate_limit(2 * kMiB, kPlenty, "/tmp").why, "200 times its size");
  EXPECT_EQ(read::inflate_limit(kMiB, kPlenty, "/tmp").why, "much for so small a file");
  // A 200th of 16 GiB, rounded down, and a byte more.
  EXPECT_EQ(read::inflate_limit(85'899'345, kPlenty, "/tmp").bytes, 17'179'869'000u);
  EXPECT_EQ(read::inflate_limit(85'899'346, kPlenty, "/tmp").bytes, read::kMaxInflatedBytes);
  EXPECT_EQ(read::inflate_limit(85'899'346, kPlenty, "/tmp").why,
            "the most that is unpacked on the way");
  EXPECT_EQ(read::inflate_limit(kPlenty, kPlenty, "/tmp").bytes, read::kMaxInflatedBytes);
  EXPECT_EQ(read::inflate_limit(UINT64_MAX, kPlenty, "/tmp").bytes, read::kMaxInflatedBytes);
  const read::InflateLimit full = read::inflate_limit(2 * kMiB, 10 * kMiB, "/small");
  EXPECT_EQ(full.bytes, 5 * kMiB);
  EXPECT_NE(full.why.find("/small"), std::string::npos);
  EXPECT_EQ(read::inflate_limit(kMiB, 0, "/tmp").bytes, 0u);
}

}  // namespace
}  // namespace collect::ctl
