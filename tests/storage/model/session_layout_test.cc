#include "storage/model/session_layout.h"

#include <cstdlib>
#include <ctime>

#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

TEST(SessionLayout, NamesAreLocalTime) {
  const char* before = std::getenv("TZ");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TZ", "EAST-2", 1);  // two hours east of Greenwich
  ::tzset();
  EXPECT_EQ(session_name(1'000'000'000ull * 1'000'000'000, 1), "session_20010909_034640");
  EXPECT_EQ(session_name(1'000'000'000ull * 1'000'000'000, 3), "session_20010909_034640_3");
  before != nullptr ? ::setenv("TZ", kept.c_str(), 1) : ::unsetenv("TZ");
  ::tzset();
}

TEST(SessionLayout, RecognisesItsOwnNamesOnly) {
  for (const char* good :
       {"session_20260131_235959", "session_20260131_235959_2", "session_20260131_235959_9999",
        "session_20260131_235959_atf1", "session_20260131_235959_2_atf2"}) {
    EXPECT_TRUE(is_session_name(good)) << good;
  }
  for (const char* bad : {"",
                          "session_",
                          "session_20260131",
                          "session_20260131-235959",
                          "session_2026013a_235959",
                          "session_20260131_235959_",
                          "session_20260131_235959_1",
                          "session_20260131_235959_02",
                          "session_20260131_235959_2x",
                          "session_20260131_235959x2",
                          "session_20260131_235959/..",
                          "session_20260131_235959_atf",
                          "session_20260131_235959_atf0",
                          "session_20260131_235959_atf3",
                          "session_20260131_235959_atf01",
                          "session_20260131_235959_atf1_2",
                          "session_20260131_235959_atf1_atf2",
                          "session_20260131_235959atf1",
                          "session_20260131_235959__atf1",
                          "Session_20260131_235959",
                          "session_20260131_235959_99999999999"}) {
    EXPECT_FALSE(is_session_name(bad)) << bad;
  }
  EXPECT_EQ(parse_pid_directory("pid_4711"), 4711u);
  EXPECT_EQ(parse_thread_directory("thread_0"), 0u);
  for (const char* bad : {"pid_", "pid_-1", "pid_01", "pid_4294967296", "pid_1 ", "thread_1"}) {
    EXPECT_FALSE(parse_pid_directory(bad)) << bad;
  }
}

TEST(SessionLayout, ConvertedSessionIsNamedAfterTheFirst) {
  EXPECT_EQ(converted_session_name("session_20260131_235959", 1), "session_20260131_235959_atf1");
  EXPECT_EQ(converted_session_name("session_20260131_235959_2", 2),
            "session_20260131_235959_2_atf2");
  EXPECT_EQ(converted_session_name("session_20260131_235959_2_atf1", 2),
            "session_20260131_235959_2_atf2");
  const auto parts = parse_session_name("session_20260131_235959_2_atf1");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->stamp, "20260131_235959");
  EXPECT_EQ(parts->attempt, 2u);
  EXPECT_EQ(parts->converted_to, 1u);
  EXPECT_FALSE(parse_session_name("session_20260131_235959_2")->converted_to);
}

TEST(SessionLayout, PlaceNeverLeavesTheRoot) {
  const auto session_path = parse_session_path("/traces", "session_20260131_235959/pid_7");
  ASSERT_TRUE(session_path);
  EXPECT_EQ(session_path->directory, "/traces/session_20260131_235959/pid_7");
  EXPECT_EQ(session_path->pid, 7u);
  for (const char* hostile :
       {"", "/", "..", "../..", "session_20260131_235959", "session_20260131_235959/",
        "session_20260131_235959/..", "session_20260131_235959/pid_7/..",
        "/session_20260131_235959/pid_7", "session_20260131_235959//pid_7",
        "../session_20260131_235959/pid_7", "session_20260131_235959/pid_7\n"}) {
    EXPECT_FALSE(parse_session_path("/traces", hostile)) << hostile;
  }
}

TEST(SessionLayout, ReadsASessionsDirectory) {
  const auto session_path = parse_session_directory("/a/traces/session_20260131_235959/pid_7");
  ASSERT_TRUE(session_path);
  EXPECT_EQ(session_path->root(), "/a/traces");
  EXPECT_EQ(session_path->name, "session_20260131_235959/pid_7");
  for (const char* other : {"", "/", "pid_7", "/pid_7", "/a/b/pid_7",
                            "/a/session_20260131_235959/pid_7/", "/a/session_20260131_235959"}) {
    EXPECT_FALSE(parse_session_directory(other)) << other;
  }
}

TEST(SessionLayout, ListsTheOldestFirst) {
  TemporaryDirectory root;
  PosixFs fs;
  for (const char* name :
       {"session_20260131_235959_10/pid_3", "session_20260131_235959_2/pid_5",
        "session_20260131_235959/pid_20", "session_20260131_235959/pid_3",
        "session_20260131_235959_atf1/pid_3", ".converting/session_20260131_235959/pid_3",
        "session_20250101_000000/pid_1", "session_20250101_000000/other", "elsewhere/pid_1"}) {
    std::filesystem::create_directories(root.path() + "/" + name);
  }
  write_file(root.path() + "/session_20250101_000001", {1});
  auto session_paths = list_sessions(fs, root.path());
  ASSERT_OK(session_paths);
  std::vector<std::string> names;
  for (const SessionPath& session_path : *session_paths) names.push_back(session_path.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "session_20250101_000000/pid_1", "session_20260131_235959/pid_3",
                       "session_20260131_235959/pid_20", "session_20260131_235959_atf1/pid_3",
                       "session_20260131_235959_2/pid_5", "session_20260131_235959_10/pid_3"}));
  EXPECT_FALSE(list_sessions(fs, root.path() + "/missing").ok());
}

TEST(SessionLayout, SessionsOfOneSecondAreLimited) {
  TemporaryDirectory root;
  PosixFs fs;
  for (uint32_t attempt = 1; attempt <= kMaxSessionsPerSecond; ++attempt) {
    ASSERT_OK(fs.make_directory(root.path() + "/" + session_name(0, attempt)));
  }
  const auto one_more = make_session_directory(fs, root.path(), 0, 1, true);
  ASSERT_FALSE(one_more.ok());
  EXPECT_EQ(one_more.code(), Code::kLimit);
}

TEST(SessionLayout, FailureLeavesNoEmptySession) {
  for (uint64_t k = 0;; ++k) {
    TemporaryDirectory root;
    FaultFs fs({k, Code::kIo, false, false});
    const auto session_path = make_session_directory(fs, root.path(), 0, 1, true);
    if (session_path.ok()) break;
    ASSERT_LT(k, 20u);
    PosixFs real;
    auto session_paths = list_sessions(real, root.path());
    ASSERT_OK(session_paths);
    EXPECT_TRUE(session_paths->empty());
    EXPECT_TRUE(real.list_directory(root.path())->empty());
  }
}

TEST(SessionLayout, OneDaemonHoldsARoot) {
  TemporaryDirectory root;
  PosixFs fs;
  {
    auto first = RootLock::take(fs, root.path() + "/traces");
    ASSERT_OK(first);
    auto second = RootLock::take(fs, root.path() + "/traces");
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.code(), Code::kUnavailable);
    EXPECT_OK(RootLock::take(fs, root.path() + "/others"));
  }
  EXPECT_OK(RootLock::take(fs, root.path() + "/traces"));
}

}  // namespace
}  // namespace collect::storage::test
