#include "daemon/collector/sessions/lod_queue.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "storage/fs/posix_fs.h"

namespace collect::daemon {
namespace {

class LodQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::path(::testing::TempDir()) / "lods_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // A program that is asked as collect-page is.
  std::string program(const std::string& script) {
    const std::string path = (directory_ / "maker").string();
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ::chmod(path.c_str(), 0700);
    return path;
  }

  std::filesystem::path directory_;
  storage::PosixFs fs_;
};

TEST_F(LodQueueTest, ProgramIsAskedForTheSession) {
  const std::string asked = (directory_ / "asked").string();
  std::promise<std::string> failed;
  LodQueue queue(program("/bin/cat > " + asked + "; echo '{\"error\":\"no space\"}'"), fs_, {},
                 [&](const std::string& name, const std::string& said) {
                   failed.set_value(name + ": " + said);
                 });
  queue.add("session_a/pid_1", "/x");
  EXPECT_EQ(failed.get_future().get(), "session_a/pid_1: no space");
  std::ifstream in(asked);
  const std::string request((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(request.find("\"directory\":[47,120]"), std::string::npos) << request;
  EXPECT_NE(request.find("\"want\":5"), std::string::npos) << request;
}

// Before its files are removed nothing may be made beside them any more.
TEST_F(LodQueueTest, WhereTheDiskIsFullNothingIsMade) {
  std::promise<std::string> failed;
  LodQueue queue(program("echo > " + (directory_ / "begun").string()), fs_, {0, 1ull << 62, 0},
                 [&](const std::string&, const std::string& said) { failed.set_value(said); });
  queue.add("session_a/pid_1", directory_.string());
  EXPECT_NE(failed.get_future().get().find("keep_free_bytes reached"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "begun"));
}

TEST_F(LodQueueTest, EndsForgottenJobs) {
  const std::string begun = (directory_ / "begun").string();
  LodQueue queue(program("echo > " + begun + "; exec /bin/sleep 600"), fs_, {},
                 [](const std::string&, const std::string& said) { ADD_FAILURE() << said; });
  queue.add("session_a/pid_1", "/x");
  queue.add("session_b/pid_1", "/x");
  while (!std::filesystem::exists(begun)) std::this_thread::yield();
  queue.forget("session_b/pid_1");  // which only waits
  queue.forget("session_a/pid_1");
  queue.forget("session_c/pid_1");  // no one knows it
  std::filesystem::remove(begun);
  queue.add("session_a/pid_1", "/x");
  while (!std::filesystem::exists(begun)) std::this_thread::yield();
  queue.stop();
}

// Seen: a run that ended while a file was made left it, half.
TEST_F(LodQueueTest, WhatIsHalfMadeIsRemoved) {
  const std::filesystem::path half = directory_ / "thread_0" / "index.lod.new";
  std::filesystem::create_directories(half.parent_path());
  LodQueue queue(program("echo > " + half.string() + "; exec /bin/sleep 600"), fs_, {},
                 [](const std::string&, const std::string& said) { ADD_FAILURE() << said; });
  queue.add("session_a/pid_1", directory_.string());
  while (!std::filesystem::exists(half)) std::this_thread::yield();
  queue.stop();
  EXPECT_FALSE(std::filesystem::exists(half));
}

TEST_F(LodQueueTest, WithoutTheProgramTheLogSaysSo) {
  std::promise<std::string> failed;
  LodQueue queue((directory_ / "nothing").string(), fs_, {},
                 [&](const std::string&, const std::string& said) { failed.set_value(said); });
  queue.add("session_a/pid_1", "/x");
  EXPECT_NE(failed.get_future().get().find("nothing"), std::string::npos);
}

}  // namespace
}  // namespace collect::daemon
