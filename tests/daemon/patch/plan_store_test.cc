#include "daemon/patch/plan_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/patch/plan_maker.h"
#include "daemon/patch/planner_answer.h"
#include "tests/child/forked_child.h"

namespace collect::patch {
namespace {

namespace fs = std::filesystem;

class PlanStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "plans-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    fs::copy_file("/usr/bin/sqlite3", program());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string program() const { return folder_ + "/program"; }
  std::string cache() const { return folder_ + "/cache"; }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache())) found.push_back(entry.path());
    return found;
  }

  std::string folder_;
};

TEST_F(PlanStoreTest, KeepsAPlanForTheNextTime) {
  const auto first = plan_for(program(), cache());
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_EQ(kept().size(), 1u);
  const auto written = fs::last_write_time(kept()[0]);
  const auto second = plan_for(program(), cache());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(fs::last_write_time(kept()[0]), written);
}

TEST_F(PlanStoreTest, ChangedFileGetsANewPlan) {
  ASSERT_TRUE(plan_for(program(), cache()).ok());
  fs::remove(program());
  fs::copy_file("/usr/bin/lua5.4", program());
  const auto plan = plan_for(program(), cache());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(*plan, *plan_of_file("/usr/bin/lua5.4"));
  EXPECT_EQ(kept().size(), 2u);
}

TEST_F(PlanStoreTest, DamagedOneIsMadeAgain) {
  const auto plan = plan_for(program(), cache());
  ASSERT_TRUE(plan.ok());
  fs::resize_file(kept()[0], plan->size() - 1);
  EXPECT_EQ(*plan_for(program(), cache()), *plan);
  EXPECT_EQ(fs::file_size(kept()[0]), plan->size());
  std::fstream file(kept()[0], std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put(static_cast<char>(~(*plan)[1000]));
  file.close();
  EXPECT_EQ(*plan_for(program(), cache()), *plan);
}

TEST_F(PlanStoreTest, OneThatOthersMayWriteIsNotUsed) {
  const auto plan = plan_for(program(), cache());
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(::chmod(kept()[0].c_str(), 0666), 0);
  EXPECT_EQ(*plan_for(program(), cache()), *plan);
  struct stat status{};
  ASSERT_EQ(::stat(kept()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);  // it was made again
}

// In the place of a kept plan: a link to a good one, a pipe that no one writes to, another user's.
TEST_F(PlanStoreTest, OnlyAFileOfItsOwnUserIsUsed) {
  const auto plan = plan_for(program(), cache());
  ASSERT_TRUE(plan.ok());
  const std::string path = kept()[0];
  const auto expect_made_again = [&] {
    EXPECT_EQ(*plan_for(program(), cache()), *plan);
    struct stat status{};
    ASSERT_EQ(::lstat(path.c_str(), &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode));
    EXPECT_EQ(status.st_uid, ::geteuid());
  };
  const std::string elsewhere = folder_ + "/elsewhere";
  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  expect_made_again();
  EXPECT_EQ(fs::file_size(elsewhere), plan->size()) << "what the link names stays";
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_made_again();
  if (::geteuid() != 0) GTEST_SKIP() << "it takes root to have another user's file";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  expect_made_again();
}

TEST_F(PlanStoreTest, NoMoreAreKeptThanSaid) {
  fs::create_directories(cache());
  for (size_t i = 0; i < kKeptPlans + 5; ++i) {
    std::ofstream(cache() + "/old" + std::to_string(i) + ".plan") << "x";
  }
  ASSERT_TRUE(plan_for(program(), cache()).ok());
  EXPECT_EQ(kept().size(), kKeptPlans);
}

TEST_F(PlanStoreTest, AgentsFolderIsItsUsersAlone) {
  std::string path;
  {
    const auto folder = PlanFolder::create();
    ASSERT_TRUE(folder.ok());
    path = folder->path();
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    ASSERT_TRUE(folder->add(*plan_of_file(program()), program()).ok());
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(path)) {
      ++count;
      EXPECT_EQ(entry.path().extension(), ".plan");
      EXPECT_EQ(entry.path().stem().string().size(), 40u);  // a build id of 20 bytes
    }
    EXPECT_EQ(count, 1u);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PlanStoreTest, SharedFolderCanBeReadAndNotWritten) {
  const auto folder = PlanFolder::create();
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->add(*plan_of_file(program()), program()).ok());
  ASSERT_TRUE(folder->share().ok());
  struct stat status{};
  ASSERT_EQ(::stat(folder->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0711u) << "who knows a plan's name finds it";
  for (const auto& entry : fs::directory_iterator(folder->path())) {
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0444u);
  }
}

TEST_F(PlanStoreTest, RemovesFoldersOfKilledProcesses) {
  ::setenv("TMPDIR", folder_.c_str(), 1);
  child::ForkedChild ended([] { return 0; });
  ended.wait();
  const auto lay_down = [&](const std::string& name, bool is_old) {
    fs::create_directory(folder_ + "/" + name);
    std::ofstream(folder_ + "/" + name + "/a.plan") << "x";
    if (is_old) {
      fs::last_write_time(folder_ + "/" + name,
                          fs::file_time_type::clock::now() - 2 * kKeepLostFolders);
    }
  };
  const std::string dead = "collect-plans-" + std::to_string(ended.pid()) + "-";
  const std::string alive = "collect-plans-" + std::to_string(::getppid()) + "-";
  lay_down(dead + "oldone", true);
  lay_down(dead + "newone", false);
  lay_down(alive + "oldone", true);
  lay_down("collect-plans-unnumbered", true);
  lay_down("others", true);
  {
    const auto folder = PlanFolder::create();
  }
  ::unsetenv("TMPDIR");
  EXPECT_FALSE(fs::exists(folder_ + "/" + dead + "oldone"));
  for (const std::string& kept : {dead + "newone", alive + "oldone",
                                  std::string("collect-plans-unnumbered"), std::string("others")}) {
    EXPECT_TRUE(fs::exists(folder_ + "/" + kept + "/a.plan")) << kept;
  }
}

TEST_F(PlanStoreTest, SaysWhyThereIsNoPlan) {
  std::ofstream(folder_ + "/text") << "no program";
  EXPECT_EQ(plan_of_file(folder_ + "/text").code(), Code::kUnsupported);
  EXPECT_EQ(plan_of_file(folder_ + "/none").code(), Code::kNotFound);
  EXPECT_EQ(plan_of_file(folder_).code(), Code::kUnsupported);
  EXPECT_EQ(plan_of_file("/dev/zero").code(), Code::kUnsupported);
}

TEST(PlannerAnswerTest, IsAPlanOrARefusal) {
  const auto bytes = refusal_bytes({Code::kUnsupported, "it is no ELF file"});
  EXPECT_FALSE(is_plan(bytes));
  EXPECT_EQ(refusal_of(bytes).code, Code::kUnsupported);
  EXPECT_EQ(refusal_of(bytes).message, "it is no ELF file");
  for (size_t size = 0; size < sizeof kRefusalMagic + 1; ++size) {
    EXPECT_EQ(refusal_of(Bytes(bytes).first(size)).code, Code::kDamaged) << size;
  }
  auto other = bytes;
  other[sizeof kRefusalMagic] = 0xFF;
  EXPECT_EQ(refusal_of(other).code, Code::kDamaged);
  other = bytes;
  other.resize(sizeof kRefusalMagic + 1 + kMaxRefusalText + 1, 'x');
  EXPECT_EQ(refusal_of(other).code, Code::kDamaged);
}

}  // namespace
}  // namespace collect::patch
