// The disk of simulated collectors: full, dead, and after its process was killed.
#include "tests/fleet/memory_disk.h"

#include <gtest/gtest.h>

#include "tests/storage/session_fixture.h"

namespace collect::fleet {
namespace {

using storage::OpenMode;

std::vector<uint8_t> content(MemoryFs& fs, const std::string& path) {
  auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return {};
  std::vector<uint8_t> bytes(*(*file)->size());
  EXPECT_EQ(*(*file)->read_at(0, bytes), bytes.size());
  return bytes;
}

Status write(storage::File& file, uint64_t offset, const std::vector<uint8_t>& bytes) {
  const Bytes part = bytes;
  return file.write_at(offset, std::span<const Bytes>(&part, 1));
}

TEST(MemoryDiskTest, NamesAndBytesAreThoseOfAFileSystem) {
  MemoryDisk disk(1'000);
  MemoryFs fs(disk);
  EXPECT_OK(fs.make_directories("/a/b"));
  EXPECT_EQ(fs.make_directory("/a").code(), Code::kAlreadyExists);
  EXPECT_EQ(fs.open("/a/b/file", OpenMode::kRead).code(), Code::kNotFound);
  auto file = fs.open("/a/b/file", OpenMode::kCreate);
  ASSERT_OK(file);
  EXPECT_EQ(fs.open("/a/b/file", OpenMode::kCreate).code(), Code::kAlreadyExists);
  EXPECT_OK(write(**file, 2, {1, 2, 3}));
  EXPECT_EQ(content(fs, "/a/b/file"), (std::vector<uint8_t>{0, 0, 1, 2, 3}));
  EXPECT_OK((*file)->truncate(3));
  EXPECT_EQ(disk.used_bytes(), 3u);
  EXPECT_OK(fs.rename("/a/b/file", "/a/other"));
  EXPECT_FALSE(fs.exists("/a/b/file"));
  EXPECT_EQ(content(fs, "/a/other"), (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(*fs.list_directory("/a"), (std::vector<std::string>{"b", "other"}));
  EXPECT_FALSE(fs.remove_directory("/a").ok());
  EXPECT_OK(fs.remove_file("/a/other"));
  EXPECT_EQ(disk.used_bytes(), 0u);
  EXPECT_EQ(disk.open_files(), 1u) << "an open file stays";
}

TEST(MemoryDiskTest, FullDiskSaysSo) {
  MemoryDisk disk(4);
  MemoryFs fs(disk);
  auto file = fs.open("/file", OpenMode::kCreate);
  ASSERT_OK(file);
  EXPECT_OK(write(**file, 0, {1, 2, 3, 4}));
  EXPECT_EQ(write(**file, 4, {5}).code(), Code::kNoSpace);
  EXPECT_EQ(fs.space("/")->free_bytes, 0u);
}

TEST(MemoryDiskTest, AfterUnmountNothingOfThatProcessReachesTheDisk) {
  MemoryDisk disk(100);
  MemoryFs killed(disk);
  auto file = killed.open("/file", OpenMode::kCreate);
  ASSERT_OK(file);
  EXPECT_OK(write(**file, 0, {1}));
  killed.unmount();
  EXPECT_EQ(write(**file, 1, {2}).code(), Code::kIo);
  EXPECT_EQ(killed.remove_file("/file").code(), Code::kIo);
  MemoryFs next(disk);
  EXPECT_EQ(content(next, "/file"), std::vector<uint8_t>{1});
}

TEST(MemoryDiskTest, DeadDiskFailsForEverybody) {
  MemoryDisk disk(100);
  MemoryFs fs(disk);
  ASSERT_OK(fs.open("/file", OpenMode::kCreate));
  disk.die();
  EXPECT_EQ(fs.open("/file", OpenMode::kRead).code(), Code::kIo);
  EXPECT_FALSE(fs.exists("/file"));
  disk.revive();
  EXPECT_TRUE(fs.exists("/file"));
}

TEST(MemoryDiskTest, LockHasOneHolder) {
  MemoryDisk disk(100);
  MemoryFs fs(disk);
  auto lock = fs.lock("/lock");
  ASSERT_OK(lock);
  EXPECT_EQ(fs.lock("/lock").code(), Code::kUnavailable);
  lock->reset();
  EXPECT_OK(fs.lock("/lock"));
}

}  // namespace
}  // namespace collect::fleet
