// What ChangeTrackingFs says is enough to make a copy equal.
#include "storage/changed_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>

#include "storage/posix_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage {
namespace {

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(ChangedFile, MergesRanges) {
  ChangedFile file;
  file.write(10, 20);
  file.write(30, 40);
  file.write(20, 30);
  EXPECT_EQ(file.ranges, (std::map<uint64_t, uint64_t>{{10, 40}}));
  file.write(5, 12);
  file.write(50, 50);
  EXPECT_EQ(file.ranges, (std::map<uint64_t, uint64_t>{{5, 40}}));
  file.cut(20);
  EXPECT_EQ(file.ranges, (std::map<uint64_t, uint64_t>{{5, 20}}));
  file.cut(3);
  file.cut(7);
  EXPECT_EQ(file.cut_to, 3u);
  EXPECT_TRUE(file.ranges.empty());
}

TEST(ChangedFile, FillsTheSmallestHoleBeyondTheLimit) {
  ChangedFile file;
  for (uint64_t i = 0; i < kMaxChangedRanges; ++i) file.write(i * 100, i * 100 + 10);
  EXPECT_EQ(file.ranges.size(), kMaxChangedRanges);
  file.write(kMaxChangedRanges * 100 - 89, kMaxChangedRanges * 100 - 80);
  EXPECT_EQ(file.ranges.size(), kMaxChangedRanges);
  EXPECT_EQ(file.ranges.rbegin()->first, kMaxChangedRanges * 100 - 100);
  EXPECT_EQ(file.ranges.rbegin()->second, kMaxChangedRanges * 100 - 80);
}

class ChangeTrackingFsTest : public testing::Test {
 protected:
  // Does to the copy what the changes say, from the files as they are.
  void bring(const ChangedFiles& changes) {
    for (const auto& [path, file] : changes) {
      if (file.is_removed) {
        copy_.erase(path);
        continue;
      }
      const std::string whole = text_of(path);
      std::string& there = copy_[path];
      if (file.is_whole) there = whole;
      if (file.cut_to) there.resize(*file.cut_to);
      for (const auto& [from, to] : file.ranges) {
        ASSERT_LE(to, whole.size()) << path;
        if (there.size() < to) there.resize(to);
        there.replace(from, to - from, whole, from, to - from);
      }
    }
  }
  std::string text_of(const std::string& path) {
    const auto bytes = test::read_file(directory_ + "/" + path);
    return {bytes.begin(), bytes.end()};
  }
  std::map<std::string, std::string> files() {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string().substr(directory_.size() + 1);
      all[path] = text_of(path);
    }
    return all;
  }
  std::unique_ptr<File> open(const std::string& path) {
    const std::string whole = directory_ + "/" + path;
    auto file =
        tracked_.open(whole, posix_.exists(whole) ? OpenMode::kReadWrite : OpenMode::kCreate);
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }
  void write(File& file, uint64_t offset, const std::string& text) {
    const Bytes bytes = bytes_of(text);
    EXPECT_TRUE(file.write_at(offset, std::span<const Bytes>(&bytes, 1)).ok());
  }

  test::TemporaryDirectory root_;
  const std::string directory_ = root_.path() + "/session_20260131_235959/pid_7";
  PosixFs posix_;
  ChangeTrackingFs tracked_{posix_};
  std::map<std::string, std::string> copy_;
};

TEST_F(ChangeTrackingFsTest, ACopyFollowsWhateverIsDone) {
  std::mt19937_64 random(4711);
  const std::string names[] = {"manifest.json", "stream.dial9", "thread_0/index.atf",
                               "thread_0/stream.journal"};
  ASSERT_TRUE(posix_.make_directories(directory_ + "/thread_0").ok());
  for (int i = 0; i < 3000; ++i) {
    const std::string& name = names[random() % std::size(names)];
    const std::string path = directory_ + "/" + name;
    switch (random() % 8) {
      case 0:
        if (posix_.exists(path)) {
          EXPECT_TRUE(tracked_.remove_file(path).ok());
        }
        break;
      case 1: {
        const auto file = open(name);
        const uint64_t size = *file->size();
        EXPECT_TRUE(file->truncate(random() % (size + 1)).ok());
        break;
      }
      case 2: {  // as a manifest is written
        auto made = tracked_.open(path + ".new", OpenMode::kCreate);
        ASSERT_TRUE(made.ok());
        write(**made, 0, std::string(random() % 50, 'r'));
        EXPECT_TRUE(tracked_.rename(path + ".new", path).ok());
        break;
      }
      default: {
        const auto file = open(name);
        const uint64_t size = *file->size();
        write(*file, random() % (size + 1),
              std::string(1 + random() % 30, static_cast<char>('a' + random() % 26)));
      }
    }
    if (random() % 4 != 0) continue;
    bring(tracked_.take(directory_));
    ASSERT_EQ(copy_, files()) << i;
  }
}

TEST_F(ChangeTrackingFsTest, LeavesOutSecretsAndWhatIsElsewhere) {
  ASSERT_TRUE(posix_.make_directories(directory_).ok());
  auto key = tracked_.open(directory_ + "/" + kResumeKeyFile, OpenMode::kCreatePrivate);
  ASSERT_TRUE(key.ok());
  write(**key, 0, "secret");
  auto other = tracked_.open(root_.path() + "/other", OpenMode::kCreate);
  ASSERT_TRUE(other.ok());
  write(**other, 0, "other");
  EXPECT_TRUE(tracked_.has_changes());
  EXPECT_TRUE(tracked_.take(directory_).empty());
  EXPECT_FALSE(tracked_.has_changes());
}

}  // namespace
}  // namespace collect::storage
