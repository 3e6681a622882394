// Small parts of the commands that talk to a collector: tokens, tables, programs by name, breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/ctl/control/connection/credential_files.h"
#include "daemon/ctl/control/output.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "storage/read/session_manifest.h"
#include "storage/read/thread_breaks.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
namespace api = control::v1;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class OnlineParts : public ::testing::Test {
 protected:
  OnlineParts() {
    std::string pattern = fs::temp_directory_path() / "online_parts_test_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~OnlineParts() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(directory_);
  }

  std::string put(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::string token_in(const std::string& text) {
    const auto token = read_token("--token-file", put("token", text));
    return token.ok() ? *token : std::string(code_name(token.code()));
  }

  const std::string path_ = std::getenv("PATH");
  fs::path directory_;
};

TEST_F(OnlineParts, TokenIsOneLineOfPrintableCharacters) {
  EXPECT_EQ(token_in("a"), "a");
  EXPECT_EQ(token_in("secret ~\r\n\n"), "secret ~");
  EXPECT_EQ(token_in(std::string(256, 'x')), std::string(256, 'x'));
  for (const std::string& none :
       {std::string("\n"), std::string(257, 'x'), std::string("two\nlines"), std::string("tab\t"),
        std::string("del\x7f"), std::string("\x1f"), std::string("\xc3\xbc"),
        std::string(1, '\0')}) {
    EXPECT_EQ(token_in(none), "invalid argument") << none;
  }
  const auto nothing = read_token("--token-file", directory_ / "none");
  EXPECT_EQ(nothing.code(), Code::kNotFound);
  EXPECT_THAT(nothing.error().message,
              HasSubstr("--token-file: " + (directory_ / "none").string()));
  const auto secret = read_token("--token-file", put("token", "pass\tword"));
  EXPECT_THAT(secret.error().message, Not(HasSubstr("word")));
  EXPECT_FALSE(read_token("--token-file", put("empty", "")).ok());
}

TEST_F(OnlineParts, StoredIsRecordsAndContainersTogether) {
  api::Session session;
  session.set_name("sessions/session_20260131_235959/pid_7");
  session.set_stored_bytes(1'500'000);
  session.set_container_bytes(500'000);
  session.set_state(api::SESSION_STATE_COMPLETE);
  session.set_losses_known(true);
  session.set_status("exit");
  const std::string table = session_table({session});
  EXPECT_THAT(table, HasSubstr("2.0 MB"));
  EXPECT_THAT(table, HasSubstr("session_20260131_235959/pid_7"));
}

TEST_F(OnlineParts, ProgramIsFoundAsAShellFindsIt) {
  fs::create_directories(directory_ / "first");
  fs::create_directories(directory_ / "second");
  const std::string denied = put("first/tool", "", 0600);
  const std::string there = put("second/tool", "", 0700);
  put("first/plain", "", 0600);
  ::setenv("PATH",
           ((directory_ / "first").string() + ":" + (directory_ / "second").string()).c_str(), 1);
  if (::access(denied.c_str(), X_OK) == 0) GTEST_SKIP() << "everything can be executed here";
  EXPECT_EQ(*find_program("tool"), there) << "what cannot be executed is passed over";
  EXPECT_EQ(find_program("plain").code(), Code::kPermission);
  EXPECT_EQ(find_program("plain").error().message, "plain: cannot be executed");
  EXPECT_EQ(find_program("none").code(), Code::kNotFound);
  EXPECT_EQ(find_program("none").error().message, "none: no such program in PATH");
  EXPECT_EQ(find_program("").code(), Code::kNotFound);
  EXPECT_EQ(*find_program(there), there);
  EXPECT_THAT(find_program(denied).error().message, EndsWith("tool: cannot be executed"));
  EXPECT_THAT(find_program(directory_ / "none").error().message, EndsWith(": no such program"));
}

TEST_F(OnlineParts, PathOfAShellWithoutPathIsUsed) {
  ::unsetenv("PATH");
  EXPECT_THAT(*find_program("sh"), EndsWith("bin/sh"));
}

TEST_F(OnlineParts, OnlyLossesAtAKnownPositionBreakCalls) {
  const auto manifest = read::SessionManifest::parse(R"({"threads":[{"id":1}],"gaps":[
      {"thread":1,"lane":"index","lost":3,"before_seq":9,"first_ns":5,"last_ns":7},
      {"thread":1,"lane":"detail","lost":4,"before_seq":2},
      {"thread":1,"lane":"index","lost":0,"before_seq":4},
      {"thread":1,"lane":"index","lost":5},
      {"thread":1,"lane":"index","lost":1,"before_seq":2,"first_ns":1,"last_ns":1},
      {"thread":2,"lane":"index","lost":8,"before_seq":1}],
      "totals":{"lost_events":17,"lost_without_stream":6}})");
  ASSERT_TRUE(manifest.ok());
  const auto gaps = read::call_gaps_of(*manifest, 1);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].before_seq, 2u);
  EXPECT_EQ(gaps[0].lost, 1u);
  EXPECT_EQ(gaps[1].before_seq, 9u);
  EXPECT_EQ(gaps[1].lost, 3u);
  EXPECT_EQ(gaps[1].first_ns, 5u);
  EXPECT_EQ(gaps[1].last_ns, 7u);
  EXPECT_EQ(read::call_gaps_of(*manifest, 2).size(), 1u);
  EXPECT_TRUE(read::call_gaps_of(*manifest, 3).empty());
  EXPECT_EQ(manifest->lost_without_stream, 6u);
}

}  // namespace
}  // namespace collect::ctl
