#include "storage/fs/leftovers.h"
#include "tests/child/forked_child.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <csignal>

#include <filesystem>
#include <fstream>

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

class LeftoversTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::path(::testing::TempDir()) / "leftovers_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string directory(const std::string& name) {
    fs::create_directories(root_ / name / "below");
    std::ofstream(root_ / name / "below/file") << "x";
    return (root_ / name).string();
  }

  fs::path root_;
};

TEST_F(LeftoversTest, GoesAwayWithItsObjectUnlessItIsKept) {
  {
    const storage::Leftover gone(directory("gone"));
    storage::Leftover moved(directory("moved"));
    const storage::Leftover moved_to = std::move(moved);
    storage::Leftover kept(directory("kept"));
    kept.keep();
    storage::Leftover first(directory("first"));
    first = storage::Leftover(directory("second"));
    EXPECT_FALSE(fs::exists(root_ / "first"));
    EXPECT_TRUE(fs::exists(root_ / "second")) << "it has changed hands";
    EXPECT_EQ(first.path(), (root_ / "second").string());
    EXPECT_TRUE(fs::exists(root_ / "moved"));
  }
  EXPECT_FALSE(fs::exists(root_ / "gone"));
  EXPECT_FALSE(fs::exists(root_ / "moved"));
  EXPECT_FALSE(fs::exists(root_ / "second"));
  EXPECT_TRUE(fs::exists(root_ / "kept/below/file"));
}

TEST_F(LeftoversTest, RemovesASharedDirectoryOnlyWhenEmpty) {
  fs::create_directories(root_ / "empty");
  {
    const storage::Leftover empty((root_ / "empty").string(), storage::Leftover::kIfEmpty);
  }
  {
    storage::Leftover used(directory("used"), storage::Leftover::kIfEmpty);
    storage::Leftover moved = std::move(used);
    used = std::move(moved);
  }
  EXPECT_FALSE(fs::exists(root_ / "empty"));
  EXPECT_TRUE(fs::exists(root_ / "used/below/file"));
}

TEST_F(LeftoversTest, SignalRemovesThemAndEndsTheProgram) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string outer = directory("outer");
    const std::string inner = directory("outer/inner");
    const child::Ending ending = child::forked([&]() -> int {
      std::signal(number, SIG_DFL);
      storage::remove_leftovers_on_signals();
      // The outer one goes when it is empty: the inner one has to go first.
      fs::remove_all(fs::path(outer) / "below");
      const storage::Leftover first(outer, storage::Leftover::kIfEmpty), second(inner);
      ::kill(::getpid(), number);
      while (true) ::pause();
    });
    EXPECT_EQ(ending.signal, number);
    EXPECT_FALSE(fs::exists(outer)) << number;
  }
}

// Seen: a directory was made, the signal came before it was registered, and it stayed.
TEST_F(LeftoversTest, SignalWhileOneIsBeingMadeRemovesIt) {
  const std::string path = (root_ / "made").string();
  const child::Ending ending = child::forked([&]() -> int {
    std::signal(SIGINT, SIG_DFL);
    storage::remove_leftovers_on_signals();
    const auto made = storage::Leftover::made_by([&]() -> Result<std::string> {
      fs::create_directories(path);
      ::kill(::getpid(), SIGINT);
      // It is taken by the thread that waits for it.
      sigset_t pending;
      do {
        sigpending(&pending);
      } while (sigismember(&pending, SIGINT) != 0);
      return path;
    });
    while (true) ::pause();
  });
  EXPECT_EQ(ending.signal, SIGINT);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(LeftoversTest, DoesNotRegisterFilesItFailedToMake) {
  const auto made = storage::Leftover::made_by(
      []() -> Result<std::string> { return Error{Code::kNoSpace, "no room"}; });
  EXPECT_EQ(made.code(), Code::kNoSpace);
}

// As under nohup, or in the background of a script.
TEST_F(LeftoversTest, IgnoredSignalStaysIgnored) {
  const std::string path = directory("kept");
  const child::Ending ending = child::forked([&]() -> int {
    std::signal(SIGINT, SIG_IGN);
    storage::remove_leftovers_on_signals();
    storage::Leftover kept(path);
    ::kill(::getpid(), SIGINT);
    kept.keep();
    return 0;
  });
  EXPECT_EQ(ending.describe(), "exit 0");
  EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace collect::ctl
