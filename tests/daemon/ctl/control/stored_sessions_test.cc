// `sessions DIR`: what is below a directory, by its manifests alone.
#include "daemon/ctl/control/stored_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "storage/manifest/manifest.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::fs::path;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBegin = 1'795'615'380 * kSecond + kSecond / 4;  // 2026-11-25 14:03:00.25 UTC

class StoredSessions : public testing::OfflineTest {
 protected:
  static storage::Manifest recorded(uint32_t pid) {
    storage::Manifest manifest;
    manifest.state = storage::SessionState::kComplete;
    manifest.identity.pid = pid;
    manifest.identity.process_name = "app";
    manifest.identity.tag = "night";
    manifest.created_unix_ns = kBegin;
    manifest.finished_unix_ns = kBegin + 2 * kSecond + kSecond / 2;
    storage::ManifestThread thread;
    thread.ended = true;
    thread.events = 1234;
    manifest.threads = {thread};
    manifest.totals.threads = 1;
    manifest.totals.events = 1234;
    manifest.totals.stored_bytes = 39'488;
    manifest.process_end.how = storage::ProcessEnd::How::kExited;
    manifest.process_end.exit_code = 3;
    return manifest;
  }
  void put(const std::string& name, const storage::Manifest& manifest) {
    testing::fs::create_directories(root_ / name);
    write_text(root_ / name / "manifest.json", storage::manifest_to_json(manifest));
  }
  int list(bool as_json = false) {
    out_.str("");
    err_.str("");
    return list_stored_sessions({root_.string(), as_json}, out_, err_);
  }
  json listed(int code = 0) {
    EXPECT_EQ(list(true), code) << err_.str();
    return json::parse(out_.str())["sessions"];
  }
  void SetUp() override {
    OfflineTest::SetUp();
    testing::fs::remove_all(session_);
  }
};

TEST_F(StoredSessions, AreListedAsACollectorListsThem) {
  put("session_20261125_140300/pid_7", recorded(7));
  EXPECT_EQ(list(), 0);
  EXPECT_EQ(out_.str(),
            "SESSION                        STATE     PROCESS  THREADS  EVENTS  LOST  DETAIL   TIME"
            "   STORED  STATUS\n"
            "session_20261125_140300/pid_7  complete  app            1   1,234     0       0  2.5 s"
            "  39.5 kB\n");
  EXPECT_EQ(err_.str(), "");
  const json all = listed();
  ASSERT_EQ(all.size(), 1u);
  const json& one = all[0];
  EXPECT_EQ(one["name"], "sessions/session_20261125_140300/pid_7");
  EXPECT_EQ(one["state"], "complete");
  EXPECT_EQ(one["path"], (root_ / "session_20261125_140300/pid_7").string());
  EXPECT_EQ(one["process_name"], "app");
  EXPECT_EQ(one["pid"], 7);
  EXPECT_EQ(one["tag"], "night");
  EXPECT_EQ(one["start_time"], "2026-11-25T14:03:00.250Z");
  EXPECT_EQ(one["end_time"], "2026-11-25T14:03:02.750Z");
  EXPECT_EQ(one["losses_known"], true);
  EXPECT_EQ(one["stored_bytes"], 39'488);
  EXPECT_EQ(one["process_end"],
            (json{{"how", "exited"}, {"exit_code", 3}, {"signal", 0}, {"core_dumped", false}}));
  EXPECT_FALSE(one.contains("agent")) << "a collector's word";
}

TEST_F(StoredSessions, NewestComesFirstInAnyDirectory) {
  put("a/session_20261125_140300/pid_7", recorded(7));
  put("session_20261125_140300_2/pid_8", recorded(8));
  put("z/session_20261125_140259/pid_9", recorded(9));
  put("b/session_20261125_140301/pid_6", recorded(6));
  put("b/session_20261125_140301_atf1/pid_6", recorded(6));
  std::vector<std::string> names;
  for (const json& one : listed()) names.push_back(one["name"]);
  EXPECT_THAT(names, ElementsAre("sessions/b/session_20261125_140301/pid_6",
                                 "sessions/b/session_20261125_140301_atf1/pid_6",
                                 "sessions/session_20261125_140300_2/pid_8",
                                 "sessions/a/session_20261125_140300/pid_7",
                                 "sessions/z/session_20261125_140259/pid_9"));
}

TEST_F(StoredSessions, HealthIsThatOfTheManifest) {
  storage::Manifest manifest = recorded(1);
  manifest.state = storage::SessionState::kRecording;
  manifest.finished_unix_ns = 0;
  put("session_20261125_140304/pid_1", manifest);
  manifest = recorded(2);
  manifest.state = storage::SessionState::kFailed;
  manifest.reason = "no space";
  put("session_20261125_140303/pid_2", manifest);
  manifest = recorded(3);
  manifest.threads[0].ended = false;  // its last counts never came
  put("session_20261125_140302/pid_3", manifest);
  manifest = recorded(4);
  manifest.totals.lost_events = manifest.threads[0].lost_events = 12;
  put("session_20261125_140301/pid_4", manifest);
  const json all = listed();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["state"], "recording");
  EXPECT_FALSE(all[0].contains("end_time"));
  EXPECT_EQ(all[1]["state"], "failed");
  EXPECT_EQ(all[1]["status"], "no space");
  EXPECT_EQ(all[1]["losses_known"], false);
  EXPECT_EQ(all[2]["state"], "recovered");
  EXPECT_TRUE(all[2].contains("missing"));
  EXPECT_EQ(all[3]["state"], "complete");
  EXPECT_EQ(all[3]["lost_events"], 12);
}

TEST_F(StoredSessions, ListsUnreadableSessions) {
  put("session_20261125_140301/pid_1", recorded(1));
  put("session_20261125_140302/pid_2", recorded(2));
  write_text(root_ / "session_20261125_140302/pid_2/manifest.json", "{");
  // Another program's says nothing of its state.
  testing::fs::create_directories(root_ / "session_20261125_140303/other/thread_0");
  write_text(root_ / "session_20261125_140303/other/manifest.json",
             R"({"threads":[{"id":0,"events":5}]})");
  const json all = listed(1);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_FALSE(all[0].contains("state"));
  EXPECT_EQ(all[0]["threads"], 1);
  EXPECT_EQ(all[1]["state"], "failed");
  EXPECT_THAT(all[1]["status"].get<std::string>(), StartsWith("no manifest: "));
  EXPECT_EQ(all[2]["state"], "complete");
  EXPECT_EQ(list(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("other  unknown"));
}

TEST_F(StoredSessions, SessionItselfIsOne) {
  put("session_20261125_140301/pid_1", recorded(1));
  const path session = root_ / "session_20261125_140301/pid_1";
  EXPECT_EQ(list_stored_sessions({session.string() + "/", true}, out_, err_), 0) << err_.str();
  const json one = json::parse(out_.str())["sessions"][0];
  EXPECT_EQ(one["name"], "sessions/pid_1");
  EXPECT_EQ(one["path"], session.string());
}

TEST_F(StoredSessions, ReportsAnErrorWithoutSessions) {
  EXPECT_EQ(list(), 2);
  EXPECT_EQ(err_.str(), "collectctl: " + root_.string() + ": no session in it\n");
  EXPECT_EQ(list(true), 2);
  EXPECT_EQ(json::parse(out_.str())["error"]["code"], "not_found");
  EXPECT_EQ(list_stored_sessions({(root_ / "none").string()}, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("none: open directory: No such file or directory"));
}

}  // namespace
}  // namespace collect::ctl
