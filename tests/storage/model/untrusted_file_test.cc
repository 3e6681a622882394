#include "storage/model/untrusted_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class UntrustedFileTest : public ::testing::Test {
 protected:
  Result<UntrustedFile> open(std::optional<uint64_t> announced, bool resume = false) {
    return UntrustedFile::open(fs_, path_, announced, space_, resume);
  }
  static Status append(UntrustedFile& file, const std::string& text) {
    return file.append({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  void disk_has(uint64_t bytes) { fs_.free_bytes = kDefaultKeepFreeBytes + bytes; }
  bool is_there(const std::string& name) const { return std::filesystem::exists(name); }
  std::string content(const std::string& name) const {
    const auto bytes = read_file(name);
    return {bytes.begin(), bytes.end()};
  }

  TemporaryDirectory folder_;
  FaultFs fs_;
  UntrustedSpace space_{fs_, folder_.path()};
  const std::string path_ = folder_.path() + "/file";
  const std::string part_ = path_ + kPartSuffix;
};

TEST_F(UntrustedFileTest, TakesItsNameWhenItIsWhole) {
  auto file = open(10);
  ASSERT_OK(file);
  ASSERT_OK(append(*file, "01234"));
  EXPECT_EQ(file->finish(true).code(), Code::kDamaged);
  EXPECT_FALSE(is_there(path_));
  EXPECT_EQ(content(part_), "01234");
  ASSERT_OK(append(*file, "56789"));
  ASSERT_OK(file->finish(true));
  EXPECT_EQ(content(path_), "0123456789");
  EXPECT_FALSE(is_there(part_));
}

TEST_F(UntrustedFileTest, NeverBecomesLargerThanAnnounced) {
  auto file = open(10);
  ASSERT_OK(file);
  ASSERT_OK(append(*file, "01234567"));
  EXPECT_EQ(append(*file, "xyz").code(), Code::kDamaged);
  EXPECT_EQ(content(part_), "01234567");
  ASSERT_OK(append(*file, "89"));
  EXPECT_EQ(append(*file, "x").code(), Code::kDamaged);
  ASSERT_OK(file->finish(false));
  EXPECT_EQ(content(path_), "0123456789");
}

TEST_F(UntrustedFileTest, ResumesWhatIsABeginning) {
  write_file(part_, {'a', 'b', 'c'});
  EXPECT_EQ(open(3, true)->size(), 3u);
  EXPECT_EQ(open(2, true)->size(), 0u);  // of another version of the file
  write_file(part_, {'a', 'b', 'c'});
  EXPECT_EQ(open(3, false)->size(), 0u);
  auto file = open(1, true);
  ASSERT_OK(file);
  file->discard();
  EXPECT_FALSE(is_there(part_));
}

TEST_F(UntrustedFileTest, NothingIsBegunForWhichThereIsNoRoom) {
  disk_has(1000);
  for (const uint64_t announced : {uint64_t{1001}, uint64_t{1} << 63, UINT64_MAX}) {
    const auto file = open(announced);
    EXPECT_EQ(file.code(), Code::kNoSpace) << announced;
    EXPECT_FALSE(is_there(part_));
  }
  ASSERT_OK(open(1000));
  // What is there already need not come again.
  write_file(part_, std::vector<uint8_t>(500, 'x'));
  fs_.free_bytes = kDefaultKeepFreeBytes + 500;
  UntrustedSpace less(fs_, folder_.path());
  EXPECT_OK(UntrustedFile::open(fs_, path_, 1000, less, true));
  EXPECT_EQ(UntrustedFile::open(fs_, path_, 1001, less, true).code(), Code::kNoSpace);
}

TEST_F(UntrustedFileTest, WhatIsNotAnnouncedEndsWithTheRoom) {
  disk_has(10);
  auto file = open(std::nullopt);
  ASSERT_OK(file);
  ASSERT_OK(append(*file, "0123456789"));
  const Status full = append(*file, "x");
  EXPECT_EQ(full.code(), Code::kNoSpace);
  EXPECT_NE(full.error().message.find(folder_.path()), std::string::npos);
  EXPECT_EQ(content(part_), "0123456789");
}

// All of a command's files share what was free when it began, also where they take no blocks; and
// what others have filled meanwhile is gone.
TEST_F(UntrustedFileTest, FilesShareTheRoom) {
  disk_has(200u << 20);
  EXPECT_OK(space_.take(50u << 20));
  EXPECT_OK(space_.expect(150u << 20));
  EXPECT_EQ(space_.expect((150u << 20) + 1).code(), Code::kNoSpace);
  EXPECT_OK(space_.take(50u << 20));
  disk_has(20u << 20);
  EXPECT_EQ(space_.take(21u << 20).code(), Code::kNoSpace);
  EXPECT_OK(space_.take(20u << 20));
  EXPECT_EQ(space_.take(1).code(), Code::kNoSpace);
  fs_.free_bytes = 5;  // less than is to stay free
  EXPECT_EQ(UntrustedSpace(fs_, folder_.path()).take(1).code(), Code::kNoSpace);
}

}  // namespace
}  // namespace collect::storage::test
