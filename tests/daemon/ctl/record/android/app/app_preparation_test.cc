// What is changed on a phone for a recording, file by file, and that all of it is undone.
#include "daemon/ctl/record/android/app/app_preparation.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/daemon/ctl/record/android/phone_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class AppPreparationTest : public PhoneTest {
 protected:
  AppPreparationTest() {
    phone_.install(kApp, kProgram);
    app_.package = kApp;
    app_.data_directory = phone_.app(kApp, "data");
    app_.code_directory = phone_.app(kApp, "code");
    app_.abi = "x86_64";
  }
  std::string tmp(const std::string& ending) const {
    return phone_ / "tmp/collect/" + kApp + ending;
  }
  static unsigned mode_of(const std::string& path) {
    struct stat found{};
    return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 0777 : 0;
  }
  static std::string said(const Status& status) {
    return status.ok() ? "" : status.error().message;
  }
  std::unique_ptr<AppLock> lock() {
    auto lock = AppLock::take(*device_, kApp);
    EXPECT_TRUE(lock.ok()) << message_of(lock);
    return lock.ok() ? std::move(*lock) : nullptr;
  }

  AndroidApp app_;
};

TEST_F(AppPreparationTest, OneAtATime) {
  auto first = lock();
  EXPECT_EQ(mode_of(phone_ / "tmp/collect"), 0700u);
  const auto second = AppLock::take(*device_, kApp);
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_EQ(message_of(second),
            "another collectctl has com.example.app on R58M under way: wait until it ends, or end "
            "it");
  EXPECT_TRUE(AppLock::take(*device_, "com.example.other").ok()) << "of each package";
  first.reset();
  Result<std::unique_ptr<AppLock>> third = Error{Code::kCancelled, ""};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!third.ok() && std::chrono::steady_clock::now() < deadline) {
    third = AppLock::take(*device_, kApp);
  }
  EXPECT_TRUE(third.ok()) << message_of(third);
}

TEST_F(AppPreparationTest, LockThatCannotBeMadeIsSaid) {
  phone_.write(phone_ / "tmp/collect", "a file");
  const auto none = AppLock::take(*device_, kApp);
  EXPECT_EQ(none.code(), Code::kIo);
  EXPECT_EQ(message_of(none),
            "R58M: /data/local/tmp/collect/com.example.app.lock can't be locked; is there room on "
            "it?");
  server_.unplug("R58M");
  EXPECT_EQ(AppLock::take(*device_, kApp).code(), Code::kUnavailable);
}

// Its last owner removes the lock's file: a process that opened it before holds no lock.
TEST_F(AppPreparationTest, LockWhoseFileWasRemovedIsTakenAgain) {
  replace("flock",
          "[ -e \"$PHONE/twice\" ] || { : > \"$PHONE/twice\"; rm " + tmp(".lock") + "; }\nexit 0");
  const auto taken = AppLock::take(*device_, kApp);
  EXPECT_TRUE(taken.ok()) << message_of(taken);
  EXPECT_TRUE(std::filesystem::exists(phone_ / "twice"));
  // It does not go on for ever.
  replace("flock", "echo x >> \"$PHONE/tries\"; rm " + tmp(".lock"));
  EXPECT_EQ(AppLock::take(*device_, "com.example.app").code(), Code::kIo);
  EXPECT_EQ(phone_.read(phone_ / "tries").size(), 2u * kLockAttempts);
}

TEST_F(AppPreparationTest, EveryFileIsAsTheAgentNeedsIt) {
  const auto held = lock();
  AppPreparation preparation(*device_, app_);
  const std::string folder = phone_.app(kApp, "data/collect");
  EXPECT_EQ(preparation.agent_folder(), folder);
  EXPECT_EQ(preparation.token_path(), folder + "/token");
  EXPECT_EQ(preparation.spool_folder(), phone_.app(kApp, "data/cache/collect"));

  ASSERT_EQ(said(preparation.begin()), "");
  EXPECT_EQ(phone_.read(tmp(".json")),
            R"({
  "version": 1,
  "package": "com.example.app",
  "undo": [
    "[ \"$(getprop wrap.com.example.app)\" != 'logwrapper sh )" +
                folder + R"(/wrap' ] || setprop wrap.com.example.app ''",
    "run-as com.example.app sh -c 'umask 077; rm -rf collect cache/collect' || ! pm path com.example.app > /dev/null",
    "rm -f /data/local/tmp/collect/com.example.app.so"
  ]
}
)");
  EXPECT_EQ(mode_of(tmp(".json")), 0600u);
  EXPECT_FALSE(std::filesystem::exists(tmp(".json.new")));
  EXPECT_FALSE(std::filesystem::exists(folder)) << "nothing is changed before";
  EXPECT_EQ(phone_.property("wrap.com.example.app"), "");

  const std::string library = phone_ / "agent.so";
  phone_.write(library, std::string(100'000, 'l'));
  uint64_t sent = 0;
  ASSERT_EQ(said(preparation.copy_agent(library, [&](uint64_t now, uint64_t) { sent = now; })), "");
  EXPECT_EQ(sent, 100'000u);
  EXPECT_EQ(phone_.read(folder + "/libcollect_agent.so"), std::string(100'000, 'l'));
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(mode_of(folder + "/libcollect_agent.so"), 0600u);
  EXPECT_EQ(mode_of(preparation.spool_folder()), 0700u);
  EXPECT_FALSE(std::filesystem::exists(tmp(".so"))) << "it was on its way";

  ASSERT_EQ(said(preparation.write_token("secret")), "");
  EXPECT_EQ(phone_.read(folder + "/token"), "secret\n");
  EXPECT_EQ(mode_of(folder + "/token"), 0600u);
  ASSERT_EQ(said(preparation.write_variables({"A=b", "C=it's =", "D="})), "");
  EXPECT_EQ(phone_.read(folder + "/variables"), "export A=b\nexport C='it'\\''s ='\nexport D=''\n");

  ASSERT_EQ(said(preparation.set_wrap()), "");
  EXPECT_EQ(phone_.read(folder + "/wrap"), "#!/system/bin/sh\n. " + folder +
                                               "/variables\nexport LD_PRELOAD=\"" + folder +
                                               "/libcollect_agent.so${LD_PRELOAD:+:$LD_PRELOAD}\"\n"
                                               "exec \"$@\"\n");
  EXPECT_EQ(phone_.property("wrap.com.example.app"), "logwrapper sh " + folder + "/wrap");
  EXPECT_NE(phone_.leftovers(), "");

  ASSERT_EQ(said(preparation.undo()), "");
  EXPECT_EQ(phone_.leftovers(), "");
  EXPECT_FALSE(std::filesystem::exists(phone_ / "tmp/collect")) << "the lock's file and our folder";
  ASSERT_EQ(said(preparation.undo()), "") << "there is nothing to undo any more";
}

TEST_F(AppPreparationTest, AppWithItsOwnScriptKeepsItsProperty) {
  const auto held = lock();
  app_.has_wrap = true;
  phone_.set_property("wrap.com.example.app", "mine");
  AppPreparation preparation(*device_, app_);
  ASSERT_EQ(said(preparation.begin()), "");
  EXPECT_THAT(phone_.read(tmp(".json")), ::testing::Not(HasSubstr("setprop")));
  ASSERT_EQ(said(preparation.write_variables({"A=b"})), "");
  ASSERT_EQ(said(preparation.undo()), "");
  EXPECT_EQ(phone_.property("wrap.com.example.app"), "mine");
  EXPECT_FALSE(std::filesystem::exists(phone_.app(kApp, "data/collect")));
}

TEST_F(AppPreparationTest, PropertyThatIsNotOursStays) {
  const auto held = lock();
  phone_.set_property("wrap.com.example.app", "theirs");
  AppPreparation preparation(*device_, app_);
  const Status begun = preparation.begin();
  EXPECT_EQ(begun.code(), Code::kAlreadyExists);
  EXPECT_EQ(said(begun),
            "R58M: wrap.com.example.app is theirs already, which is not ours: adb shell setprop "
            "wrap.com.example.app ''");
  // Someone changed it after we did: it is not ours to take away.
  phone_.set_property("wrap.com.example.app", "");
  ASSERT_EQ(said(preparation.begin()), "");
  ASSERT_EQ(said(preparation.set_wrap()), "");
  phone_.set_property("wrap.com.example.app", "theirs");
  ASSERT_EQ(said(preparation.undo()), "");
  EXPECT_EQ(phone_.property("wrap.com.example.app"), "theirs");
}

TEST_F(AppPreparationTest, PropertyThatThePhoneRefusesIsSaid) {
  const auto held = lock();
  AppPreparation preparation(*device_, app_);
  ASSERT_EQ(said(preparation.begin()), "");
  phone_.write(phone_ / "refuses_properties", "");
  const Status refused = preparation.set_wrap();
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_THAT(said(refused),
              ::testing::StartsWith("R58M refuses the property wrap.com.example.app (Failed to set "
                                    "property 'wrap.com.example.app' to 'logwrapper sh "));
  EXPECT_THAT(said(refused), ::testing::EndsWith(": put wrap.sh into the APK "
                                                 "(deploy/android/README.md)"));
  replace("setprop", "exit 0");  // some say nothing
  EXPECT_EQ(said(preparation.set_wrap()),
            "R58M refuses the property wrap.com.example.app: put wrap.sh into the APK "
            "(deploy/android/README.md)");
}

// A property holds 91 bytes: without room for the word, the agent is not heard in logcat; without
// room for the path, there is nothing to be done.
TEST_F(AppPreparationTest, PathHasToFitIntoTheProperty) {
  const auto held = lock();
  const auto begin_with = [this](size_t value_bytes) {
    app_.data_directory = "/" + std::string(value_bytes - 4 - 13, 'd');  // "sh " "/collect/wrap"
    app_.data_directory.pop_back();
    AppPreparation preparation(*device_, app_);
    return preparation.begin();
  };
  // "sh PATH/collect/wrap" of so many bytes; with "logwrapper " it is 11 longer.
  const auto value = [this] { return "sh " + app_.data_directory + "/collect/wrap"; };
  ASSERT_EQ(said(begin_with(81)), "");
  ASSERT_EQ(value().size(), 80u);
  EXPECT_THAT(phone_.read(tmp(".json")), HasSubstr("logwrapper " + value()));
  ASSERT_EQ(said(begin_with(82)), "");
  ASSERT_EQ(value().size(), 81u);
  EXPECT_THAT(phone_.read(tmp(".json")), ::testing::Not(HasSubstr("logwrapper")));
  ASSERT_EQ(said(begin_with(92)), "");
  ASSERT_EQ(value().size(), 91u);
  const Status too_long = begin_with(93);
  ASSERT_EQ(value().size(), 92u);
  EXPECT_EQ(too_long.code(), Code::kLimit);
  EXPECT_EQ(said(too_long),
            "the name com.example.app is too long for wrap.com.example.app, which holds 91 bytes: "
            "put wrap.sh into the APK (deploy/android/README.md)");
  app_.has_wrap = true;
  EXPECT_EQ(said(begin_with(93)), "") << "it needs no property";
}

TEST_F(AppPreparationTest, UndoesLeftoversOfThePreviousRun) {
  const auto held = lock();
  EXPECT_FALSE(*undo_by_record(*device_, kApp)) << "there is no record";
  AppPreparation preparation(*device_, app_);
  ASSERT_EQ(said(preparation.begin()), "");
  ASSERT_EQ(said(preparation.set_wrap()), "");
  EXPECT_TRUE(*undo_by_record(*device_, kApp));
  EXPECT_EQ(phone_.property("wrap.com.example.app"), "");
  EXPECT_FALSE(std::filesystem::exists(tmp(".json")));
  EXPECT_TRUE(std::filesystem::exists(tmp(".lock"))) << "which stays";
  EXPECT_FALSE(*undo_by_record(*device_, kApp));
}

TEST_F(AppPreparationTest, RecordThatIsNoneIsLeftAlone) {
  const auto held = lock();
  for (const char* text : {"", "{", "[]", "{}", R"({"undo": 1})", R"({"undo": ["true", 1]})",
                           R"({"undo": "touch /data/local/tmp/done"})",
                           R"({"undo": {"1": "touch /data/local/tmp/done"}})"}) {
    phone_.write(tmp(".json"), text);
    const auto undone = undo_by_record(*device_, kApp);
    EXPECT_EQ(undone.code(), Code::kDamaged) << text;
    EXPECT_EQ(message_of(undone),
              "R58M: /data/local/tmp/collect/com.example.app.json is no record of changes; look at "
              "it, and remove it");
    EXPECT_EQ(phone_.read(tmp(".json")), text);
  }
  EXPECT_FALSE(std::filesystem::exists(phone_ / "tmp/done")) << "nothing of it was done";
}

// All of it is tried; what could not be undone stays in the record.
TEST_F(AppPreparationTest, FirstFaultIsSaidAndTheRecordStays) {
  const auto held = lock();
  phone_.write(tmp(".json"), R"({"undo": ["echo one >&2; false", "touch /data/local/tmp/second",
                                          "echo three >&2; false"]})");
  const auto undone = undo_by_record(*device_, kApp);
  EXPECT_EQ(undone.code(), Code::kIo);
  EXPECT_EQ(message_of(undone), "R58M: one");
  EXPECT_TRUE(std::filesystem::exists(phone_ / "tmp/second"));
  EXPECT_TRUE(std::filesystem::exists(tmp(".json")));
  AppPreparation preparation(*device_, app_);
  EXPECT_EQ(said(preparation.undo()), "R58M: one");
  EXPECT_TRUE(std::filesystem::exists(tmp(".lock")));
}

// An app that was uninstalled meanwhile has taken its data along.
TEST_F(AppPreparationTest, UninstalledAppIsUndoneToo) {
  const auto held = lock();
  AppPreparation preparation(*device_, app_);
  ASSERT_EQ(said(preparation.begin()), "");
  ASSERT_EQ(said(preparation.write_token("secret")), "");
  std::filesystem::remove_all(phone_ / "apps/com.example.app");
  EXPECT_EQ(said(preparation.undo()), "");
  EXPECT_FALSE(std::filesystem::exists(tmp(".json")));
}

TEST_F(AppPreparationTest, ReportsFailuresOnThePhone) {
  const auto held = lock();
  AppPreparation preparation(*device_, app_);
  ASSERT_EQ(said(preparation.begin()), "");
  replace("run-as", "echo 'run-as: full' >&2; exit 1");
  phone_.write(phone_ / "agent.so", "x");
  for (const Status& status :
       {preparation.copy_agent(phone_ / "agent.so", nullptr), preparation.write_token("t"),
        preparation.write_variables({}), preparation.set_wrap()}) {
    EXPECT_EQ(said(status), "R58M: run-as: full");
  }
  EXPECT_EQ(said(preparation.copy_agent(phone_ / "none.so", nullptr)),
            phone_ / "none.so" + ": can't be read");
  EXPECT_EQ(phone_.property("wrap.com.example.app"), "");
}

}  // namespace
}  // namespace collect::ctl
