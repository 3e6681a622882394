#include "daemon/collector/sessions/sealed_work.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "daemon/web/page_request.h"
#include "storage/fs/posix_fs.h"

namespace collect::daemon {
namespace {

class SealedWorkTest : public ::testing::Test {
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

  static storage::SessionPath session(const std::string& name, const std::string& directory) {
    return {name, 1, name + "/pid_1", directory};
  }

  std::filesystem::path directory_;
  storage::PosixFs fs_;
  SessionUse in_use_;
};

TEST_F(SealedWorkTest, ProgramIsAskedForTheSession) {
  const std::string asked = (directory_ / "asked").string();
  std::promise<std::string> failed;
  SealedWork work(program("/bin/cat > " + asked + "; echo '{\"error\":\"no space\"}'"), fs_, {},
                  in_use_, [&](const std::string& name, const std::string& said) {
                    failed.set_value(name + ": " + said);
                  });
  work.add_lods(session("session_a", "/x"));
  EXPECT_EQ(failed.get_future().get(), "session_a/pid_1: no space");
  std::ifstream in(asked);
  const std::string request((std::istreambuf_iterator<char>(in)), {});
  const auto asked_for = web::PageRequest::parse(request);
  ASSERT_TRUE(asked_for.ok()) << request;
  EXPECT_EQ(asked_for->directory, "/x");
  EXPECT_EQ(asked_for->want, web::PageWant::kLods);
}

// Before its files are removed nothing may be made beside them any more.
TEST_F(SealedWorkTest, WhereTheDiskIsFullNothingIsMade) {
  std::promise<std::string> failed;
  SealedWork work(program("echo > " + (directory_ / "begun").string()), fs_, {0, 1ull << 62, 0},
                  in_use_,
                  [&](const std::string&, const std::string& said) { failed.set_value(said); });
  work.add_lods(session("session_a", directory_.string()));
  EXPECT_NE(failed.get_future().get().find("keep_free_bytes reached"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "begun"));
}

TEST_F(SealedWorkTest, EndsForgottenJobs) {
  const std::string begun = (directory_ / "begun").string();
  SealedWork work(program("echo > " + begun + "; exec /bin/sleep 600"), fs_, {}, in_use_,
                  [](const std::string&, const std::string& said) { ADD_FAILURE() << said; });
  work.add_lods(session("session_a", "/x"));
  work.add_lods(session("session_b", "/x"));
  while (!std::filesystem::exists(begun)) std::this_thread::yield();
  work.forget("session_b/pid_1");  // which only waits
  work.forget("session_a/pid_1");
  work.forget("session_c/pid_1");  // no one knows it
  std::filesystem::remove(begun);
  work.add_lods(session("session_a", "/x"));
  while (!std::filesystem::exists(begun)) std::this_thread::yield();
  work.stop();
}

// Seen: a run that ended while a file was made left it, half.
TEST_F(SealedWorkTest, WhatIsHalfMadeIsRemoved) {
  const std::filesystem::path half = directory_ / "thread_0" / "index.lod.new";
  std::filesystem::create_directories(half.parent_path());
  SealedWork work(program("echo > " + half.string() + "; exec /bin/sleep 600"), fs_, {}, in_use_,
                  [](const std::string&, const std::string& said) { ADD_FAILURE() << said; });
  work.add_lods(session("session_a", directory_.string()));
  while (!std::filesystem::exists(half)) std::this_thread::yield();
  work.stop();
  EXPECT_FALSE(std::filesystem::exists(half));
}

TEST_F(SealedWorkTest, WithoutTheProgramTheLogSaysSo) {
  std::promise<std::string> failed;
  SealedWork work((directory_ / "nothing").string(), fs_, {}, in_use_,
                  [&](const std::string&, const std::string& said) { failed.set_value(said); });
  work.add_lods(session("session_a", "/x"));
  EXPECT_NE(failed.get_future().get().find("nothing"), std::string::npos);
}

// ---- packing

TEST_F(SealedWorkTest, PackingWaitsForWhoUsesTheSession) {
  std::promise<Code> packed;
  SealedWork work("/nothing", fs_, {}, in_use_, [](const std::string&, const std::string&) {});
  auto use = in_use_.take("session_a/pid_1", "is being converted");
  ASSERT_TRUE(use.ok());
  work.add_packing(session("session_a", "/x"), storage::PackWay::kPack,
                   [&](const auto& report) { packed.set_value(report.code()); });
  // Another one is not kept waiting.
  std::promise<Code> other;
  work.add_packing(session("session_b", "/x"), storage::PackWay::kPack,
                   [&](const auto& report) { other.set_value(report.code()); });
  EXPECT_EQ(other.get_future().get(), Code::kNotFound);
  auto answer = packed.get_future();
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  use->reset();
  EXPECT_EQ(answer.get(), Code::kNotFound);
}

TEST_F(SealedWorkTest, WhatIsForgottenOrLeftIsAnswered) {
  std::vector<Code> codes;
  const auto keep = [&codes](const auto& report) { codes.push_back(report.code()); };
  {
    SealedWork work("/nothing", fs_, {}, in_use_, [](const std::string&, const std::string&) {});
    const auto first = in_use_.take("session_a/pid_1", "is being converted");
    const auto second = in_use_.take("session_b/pid_1", "is being converted");
    work.add_packing(session("session_a", "/x"), storage::PackWay::kPack, keep);
    work.add_packing(session("session_b", "/x"), storage::PackWay::kUnpack, keep);
    work.forget("session_a/pid_1");
    EXPECT_EQ(codes, std::vector<Code>{Code::kCancelled});
    work.stop();
    work.add_packing(session("session_c", "/x"), storage::PackWay::kPack, keep);
  }
  EXPECT_EQ(codes, (std::vector<Code>{Code::kCancelled, Code::kUnavailable, Code::kUnavailable}));
}

}  // namespace
}  // namespace collect::daemon
