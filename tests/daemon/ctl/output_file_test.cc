// Outputs and temporary files: whole or not at all, nothing left on the way, nothing followed.
#include "daemon/ctl/convert/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ctl/gzip_file.h"
#include "daemon/ctl/unnamed_file.h"
#include "tests/daemon/ctl/offline_session.h"

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
    auto file = OutputFile::create(out(), false);
    ASSERT_TRUE(file.ok()) << to_string(file.error());
    ASSERT_TRUE(write(*file, "half").ok());
    EXPECT_EQ(entries(), 0u);
  }
  EXPECT_EQ(entries(), 0u);
  auto file = OutputFile::create(out(), false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(write(*file, "whole").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(content(out()), "whole");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, AFileThatAppearsMeanwhileStays) {
  auto file = OutputFile::create(out(), false);
  ASSERT_TRUE(file.ok());
  write_text(out(), "of somebody");
  EXPECT_EQ(file->commit().code(), Code::kAlreadyExists);
  EXPECT_EQ(content(out()), "of somebody");
}

TEST_F(OutputFileTest, ReplacesFilesAndLinksAndNothingElse) {
  write_text(root_ / "target", "of somebody");
  fs::create_symlink("target", out());
  EXPECT_EQ(OutputFile::create(out(), false).code(), Code::kAlreadyExists);
  for (const char* text : {"one", "two"}) {
    auto file = OutputFile::create(out(), true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(write(*file, text).ok());
    ASSERT_TRUE(file->commit().ok());
    EXPECT_EQ(content(out()), text);
    EXPECT_FALSE(fs::is_symlink(out()));
  }
  EXPECT_EQ(content(root_ / "target"), "of somebody");
  EXPECT_EQ(entries(), 2u);
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(OutputFile::create((root_ / "pipe").string(), true).code(), Code::kAlreadyExists);
  EXPECT_EQ(OutputFile::create("/dev/null", true).code(), Code::kAlreadyExists);
  EXPECT_EQ(OutputFile::create(root_.string(), true).code(), Code::kAlreadyExists);
  EXPECT_EQ(OutputFile::create(root_.string() + "/", true).code(), Code::kInvalidArgument);
}

TEST_F(OutputFileTest, TheDirectoryMayBeALink) {
  fs::create_directory(root_ / "real");
  fs::create_directory_symlink("real", root_ / "link");
  auto file = OutputFile::create((root_ / "link/out").string(), false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::exists(root_ / "real/out"));
}

TEST_F(OutputFileTest, AnUnnamedFileIsReadBack) {
  auto file = UnnamedFile::create(root_.string());
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
  EXPECT_EQ(inflate_limit(0, kPlenty, "/tmp").bytes, 256 * kMiB);
  EXPECT_EQ(inflate_limit(kMiB, kPlenty, "/tmp").bytes, 256 * kMiB);
  EXPECT_EQ(inflate_limit(2 * kMiB, kPlenty, "/tmp").bytes, 400 * kMiB);
  EXPECT_EQ(inflate_limit(kPlenty, kPlenty, "/tmp").bytes, kMaxInflatedBytes);
  EXPECT_EQ(inflate_limit(UINT64_MAX, kPlenty, "/tmp").bytes, kMaxInflatedBytes);
  const InflateLimit full = inflate_limit(2 * kMiB, 10 * kMiB, "/small");
  EXPECT_EQ(full.bytes, 5 * kMiB);
  EXPECT_NE(full.why.find("/small"), std::string::npos);
  EXPECT_EQ(inflate_limit(kMiB, 0, "/tmp").bytes, 0u);
}

}  // namespace
}  // namespace collect::ctl
