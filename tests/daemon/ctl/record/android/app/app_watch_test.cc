// An app that is followed: its process and what its agent says, while the cable comes and goes.
#include "daemon/ctl/record/android/app/app_watch.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>

#include "daemon/ctl/record/android/app/android_app.h"
#include "tests/daemon/ctl/record/android/phone_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::ElementsAre;

class AppWatchTest : public PhoneTest {
 protected:
  AppWatchTest() { phone_.install(kApp, kProgram); }
  ~AppWatchTest() override { watch_.reset(); }

  void start_app() {
    ASSERT_TRUE(restart_app(*device_, kApp, std::string(kApp) + "/.MainActivity").ok());
  }
  int pid() const { return std::atoi(phone_.read(phone_.app(kApp, "pid")).c_str()); }
  void follow() {
    watch_.emplace(*device_, kApp, [this](const std::string& line) { lines_.push_back(line); });
  }
  template <class Condition>
  bool becomes(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      watch_->work_for(std::chrono::milliseconds(20));
    }
    return condition();
  }
  void log(const std::string& text) {
    std::ofstream(phone_ / "log", std::ios::app) << text << std::flush;
  }

  std::vector<std::string> lines_;
  std::optional<AppWatch> watch_;
};

TEST_F(AppWatchTest, AppIsSeenUntilItEnds) {
  start_app();
  follow();
  EXPECT_EQ(watch_->serial(), "R58M");
  EXPECT_EQ(watch_->agent_address(), "");
  EXPECT_FALSE(watch_->was_seen());
  ASSERT_TRUE(becomes([&] { return watch_->was_seen(); }));
  EXPECT_EQ(watch_->agent_address(), "adb:R58M:collect_agent_" + std::to_string(pid()));
  EXPECT_FALSE(watch_->has_ended());
  EXPECT_FALSE(watch_->is_away());
  ::kill(pid(), SIGKILL);
  ASSERT_TRUE(becomes([&] { return watch_->has_ended(); }));
  EXPECT_FALSE(watch_->is_away());
  EXPECT_TRUE(watch_->was_seen());
  // Nothing is left to be asked.
  const uint64_t asked = server_.requests("shell,v2,raw:");
  watch_->work_for(kWatchRetry);
  watch_->work_for(std::chrono::milliseconds(1));
  EXPECT_EQ(server_.requests("shell,v2,raw:"), asked);
}

TEST_F(AppWatchTest, LogThatEndsIsFollowedAgain) {
  start_app();
  replace("logcat", "echo 'collect agent (1): hello'");
  follow();
  EXPECT_TRUE(becomes([&] { return lines_.size() >= 2; }));
  EXPECT_FALSE(watch_->is_away());
  EXPECT_FALSE(watch_->has_ended());
}

TEST_F(AppWatchTest, FollowsTheAppWithoutALogListener) {
  start_app();
  replace("logcat", "echo 'collect agent (1): hello'; echo x >> \"$PHONE/logs\"");
  watch_.emplace(*device_, kApp, nullptr);
  ASSERT_TRUE(becomes([&] { return phone_.read(phone_ / "logs").size() >= 4; }));
  EXPECT_TRUE(watch_->was_seen());
}

TEST_F(AppWatchTest, AppThatNeverRunsHasEnded) {
  replace("sleep", "exit 0");  // a tenth of a second, fifty times
  replace("pidof", "echo x >> \"$PHONE/looks\"; exit 1");
  follow();
  ASSERT_TRUE(becomes([&] { return watch_->has_ended(); }));
  EXPECT_FALSE(watch_->was_seen());
  EXPECT_EQ(watch_->agent_address(), "");
  EXPECT_EQ(phone_.read(phone_ / "looks").size(), 2u * kLooksForProcess);
}

TEST_F(AppWatchTest, HearsOnlyTheAgentsLogLines) {
  start_app();
  log("collect agent (1): said before\n");
  follow();
  ASSERT_TRUE(becomes([&] { return watch_->was_seen(); }));
  // logcat is there when it has said something.
  int number = 0;
  ASSERT_TRUE(becomes([&] {
    if (lines_.empty()) log("collect agent (" + std::to_string(++number) + "): hello\n");
    return !lines_.empty();
  }));
  const std::string last = "collect agent (" + std::to_string(number) + "): hello";
  ASSERT_TRUE(becomes([&] { return lines_.back() == last; }));
  lines_.clear();
  const std::string longest = "collect agent (" + std::string(4096 - 15, 'x');
  log("something else\ncollect agents\ncollect agent (7): in two ");
  log("pieces\n\n" + longest + "yyy\ncollect agent (8): end\n");
  ASSERT_TRUE(becomes([&] { return !lines_.empty() && lines_.back().ends_with("end"); }));
  EXPECT_THAT(lines_,
              ElementsAre("collect agent (7): in two pieces", longest, "collect agent (8): end"));
}

TEST_F(AppWatchTest, CableComesOutAndGoesInAgain) {
  start_app();
  follow();
  ASSERT_TRUE(becomes([&] { return watch_->was_seen(); }));
  const std::string address = watch_->agent_address();
  server_.unplug("R58M");
  ASSERT_TRUE(becomes([&] { return watch_->is_away(); }));
  EXPECT_FALSE(watch_->has_ended());
  EXPECT_EQ(watch_->agent_address(), address);
  // It is looked for once in a while, and by one command.
  const auto begun = std::chrono::steady_clock::now();
  const uint64_t asked = server_.requests("host:transport:");
  for (int at = 0; at < 20; ++at) watch_->work_for(std::chrono::milliseconds(1));
  const auto lasted = std::chrono::steady_clock::now() - begun;
  EXPECT_LE(server_.requests("host:transport:") - asked,
            1u + static_cast<uint64_t>(lasted / kWatchRetry));
  EXPECT_TRUE(watch_->is_away());
  plug();
  ASSERT_TRUE(becomes([&] { return !watch_->is_away(); }));
  EXPECT_EQ(watch_->agent_address(), address) << "the same process";
  lines_.clear();
  ASSERT_TRUE(becomes([&] {
    if (lines_.empty()) log("collect agent (1): back\n");
    return !lines_.empty();
  })) << "the log is followed again";
  ::kill(pid(), SIGKILL);
  EXPECT_TRUE(becomes([&] { return watch_->has_ended(); }));
}

}  // namespace
}  // namespace collect::ctl
