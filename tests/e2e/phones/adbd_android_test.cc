// `collectctl android` with the real adb on both sides: Debian's server, and AOSP's adbd, whose
// shell finds a phone's commands first in its PATH (scripts) and a phone's /data/local/tmp in its
// root.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/e2e/phones/adbd_fixture.h"
#include "tests/e2e/phones/android_fixture.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

using fakes::ChaosProxy;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// A push of this size takes a minute at this rate: what ends it comes in its middle.
constexpr uint64_t kLargeBytes = 64u << 20;
constexpr uint64_t kSlowRate = 1u << 20;
constexpr uint64_t kPushedBytes = 256u << 10;
constexpr uint64_t kEventsBegin = 64;  // of an index file: its header is before

class AdbdAndroid : public AndroidFixture<AdbdFixture> {
 protected:
  void SetUp() override {
    AdbdFixture::SetUp();
    if (IsSkipped()) return;
    install_counted();
  }
  // `limits`: "tmp=65536": so much room has that folder of the phone.
  Arguments on_phone(const Arguments& limits = {}) const {
    Arguments launcher = {E2E_ON_PHONE, phone_.path()};
    launcher.insert(launcher.end(), limits.begin(), limits.end());
    launcher.emplace_back("--");
    return launcher;
  }
  std::string on_device(const std::string& command) {
    return adb({"-s", serial(), "shell", command}).output;
  }
  // As the device sees its files.
  std::string leftovers_on_device() {
    return phone_.leftovers("/proc/" + std::to_string(device_->pid()) + "/root");
  }
  // Milliseconds from `since` until an event is in a file below `root`; -1: none came.
  int64_t first_stored_ms(const std::string& root, Clock::time_point since) {
    std::error_code none;
    const bool stored = eventually(kSoon, [&] {
      for (const std::string& session : session_directories(root)) {
        for (const auto& thread : std::filesystem::directory_iterator(session, none)) {
          const auto bytes = std::filesystem::file_size(thread.path() / "index.atf", none);
          if (!none && bytes > kEventsBegin) return true;
        }
      }
      return false;
    });
    const auto passed = Clock::now() - since;
    return stored ? std::chrono::duration_cast<std::chrono::milliseconds>(passed).count() : -1;
  }
  void report_time(const std::string& what, int64_t milliseconds, const std::string& log = "") {
    EXPECT_GE(milliseconds, 0) << "nothing was stored\n" << log;
    RecordProperty(what, static_cast<int>(milliseconds));
    std::printf("%s: %d ms\n", what.c_str(), static_cast<int>(milliseconds));
  }
  // The agent, and so much behind it.
  std::string large_library() {
    const std::string path = scratch_ / "large.so";
    std::filesystem::copy_file(agent_library(), path);
    std::filesystem::resize_file(path, kLargeBytes);
    return path;
  }
};

TEST_F(AdbdAndroid, RunsAnAppAndRecordsAllOfIt) {
  plug(on_phone());
  const auto began = Clock::now();
  const auto job = start(recording());
  report_time("command_to_first_stored_event_ms", first_stored_ms(traces(), began));
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors,
              AllOf(HasSubstr("com.example.app on " + serial() + ": the app ended"),
                    HasSubstr("lost       nothing"), HasSubstr("phone: collect agent (")));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].state(), "complete");
  const int pid = recorded[0].manifest()["process"]["pid"];
  expect_exactly(recorded[0], read_count(scratch_ / "count", pid));
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AdbdAndroid, AttachesAnAppThatRuns) {
  plug(on_phone());
  install_endless();
  const auto first = start(recording());
  ASSERT_TRUE(says(*first, "the agent is connected")) << first->errors();
  const int pid = app_pid();
  ASSERT_GE(first_stored_ms(traces(), Clock::now()), 0);
  first->send_signal(SIGINT);
  EXPECT_TRUE(first->wait(kRunLimit).exited_with(0)) << first->errors();
  EXPECT_EQ(phone_.leftovers(), "");

  const auto began = Clock::now();
  const auto job = start(android("attach", {"-o", scratch_ / "more", kApp}));
  report_time("attach_to_first_stored_event_ms", first_stored_ms(scratch_ / "more", began));
  kill(pid, SIGTERM);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(125))
      << "its end never came; " << ending.describe() << ending.errors;
  EXPECT_EQ(session_directories(scratch_ / "more", pid).size(), 1u);
}

// The agent's options are lines in one word of a command, through adb's own quoting.
TEST_F(AdbdAndroid, AppThatRunsGetsTheAgent) {
  const std::string cross = std::string(E2E_CROSS) + "/arm64";
  const std::string go_on = scratch_ / "go-on";
  const std::string missing = install_for_arm64(cross, "unprepared", go_on, scratch_ / "output");
  if (!missing.empty()) GTEST_SKIP() << "skipped: there is no " << missing;
  plug(on_phone());
  EXPECT_THAT(on_device("am start -W -n com.example.app/.MainActivity"), HasSubstr("Status: ok"));
  const Ending ending = ctl(
      android("attach", {"--dynamic", "-o", traces(), "--agent", cross + "/lib/libcollect_agent.so",
                         "--when-full", "wait", "--max-time", "2s", kApp}));
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].state(), "complete");
  EXPECT_EQ(recorded[0].totals().threads, 4u);
  EXPECT_EQ(phone_.leftovers(), "");
  write_text_file(go_on, "");
  EXPECT_TRUE(eventually(kSoon, [&] {
    return read_text_file(scratch_ / "output").find("wrong 0\n") != std::string::npos;
  }));
}

// A collector that runs already, and the cable goes in.
TEST_F(AdbdAndroid, PluggedPhoneWithARunningAgentIsRecorded) {
  plug(on_phone());
  install_endless();
  const std::string agent = std::string(fakes::FakePhoneFolder::kPhoneTemporary) + "/agent.so";
  const Ending pushed = adb({"-s", serial(), "push", agent_library(), agent});
  ASSERT_TRUE(pushed.exited_with(0)) << pushed.output << pushed.errors;
  const Ending prepared = adb({"-s", serial(), "shell",
                               "setprop wrap." + std::string(kApp) +
                                   " 'env COLLECT_LISTEN=abstract: LD_PRELOAD=" + agent +
                                   "' && am start -W -n " + kApp + "/.MainActivity"});
  ASSERT_TRUE(prepared.exited_with(0)) << prepared.output << prepared.errors;
  ASSERT_GT(app_pid(), 0);
  unplug();
  CollectorProcess collector(scratch_, {"--adb", "127.0.0.1:" + std::to_string(port_)});
  start_device(on_phone());
  const auto began = Clock::now();
  announce(device_port_);
  const int64_t stored_ms = first_stored_ms(collector.root(), began);
  // Why nothing came, if nothing came.
  const std::string seen =
      stored_ms >= 0 ? ""
                     : "app " + std::to_string(kill(app_pid(), 0)) + "\n" +
                           adb({"devices", "-l"}).output + on_device("cat /proc/net/unix") +
                           collector.ctl({"devices"}).output + collector.process().errors();
  report_time("plug_to_first_stored_event_ms", stored_ms, seen);
}

TEST_F(AdbdAndroid, ExplainsErrorsInOneSentence) {
  plug(on_phone());
  const std::string app = std::string(kApp) + " on " + serial();
  std::filesystem::remove(phone_.app(kApp, "debuggable"));
  expect_refused(ctl(recording()), app + " is not debuggable: install its debug");
  phone_.write(phone_.app(kApp, "debuggable"), "");

  phone_.write(phone_.app(kApp, "abi"), "arm64-v8a\n");
  expect_refused(ctl(recording()), "is for x86_64, and the app runs as arm64-v8a");
  phone_.write(phone_.app(kApp, "abi"), "x86_64\n");

  phone_.write(phone_ / "refuses_properties", "");
  expect_refused(ctl(recording()), serial() + " refuses the property wrap.com.example.app");
  std::filesystem::remove(phone_ / "refuses_properties");

  phone_.install(kApp, "false");
  expect_refused(ctl(recording()), "before its agent reached the collector");
}

// adbd gives its shells an umask of 0: what is in the phone's common folder is ours alone all the
// same.
TEST_F(AdbdAndroid, MakesFilesOnThePhonePrivate) {
  plug(on_phone());
  install_endless();
  const auto job = start(recording());
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  EXPECT_THAT(on_device("sh -c umask"), HasSubstr("0000"));
  size_t looked_at = 0;
  const auto look = [&](const std::filesystem::path& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    EXPECT_EQ(status.st_mode & 077, 0u) << path << " " << std::oct << status.st_mode;
    ++looked_at;
  };
  const std::string data = phone_.app(kApp, "data");
  for (const std::string& folder :
       {phone_ / "tmp/collect", data + "/collect", data + "/cache/collect"}) {
    look(folder);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) look(entry.path());
  }
  EXPECT_GE(looked_at, 8u);
  job->send_signal(SIGINT);
  EXPECT_TRUE(job->wait(kRunLimit).exited_with(0)) << job->errors();
}

TEST_F(AdbdAndroid, NoRoomInThePhonesFolder) {
  plug(on_phone({"tmp=65536"}));
  expect_refused(ctl(recording()), "No space left on device");
  EXPECT_EQ(leftovers_on_device(), "");
}

TEST_F(AdbdAndroid, NoRoomAtAllInThePhonesFolder) {
  plug(on_phone({"tmp=65536"}));
  on_device("cat /dev/zero > /data/local/tmp/large");
  expect_refused(ctl(recording()), "No space left on device");
  on_device("rm /data/local/tmp/large");
  EXPECT_EQ(leftovers_on_device(), "");
}

TEST_F(AdbdAndroid, NoRoomInTheAppsData) {
  plug(on_phone({"apps/" + std::string(kApp) + "/data=65536"}));
  expect_refused(ctl(recording()), "No space left on device");
  EXPECT_EQ(leftovers_on_device(), "");
}

class AdbdPush : public AdbdAndroid {
 protected:
  // Through a slow cable; `break_it` comes in mid-push, `mend` makes all as before.
  void expect_undone(const std::function<void(ChaosProxy&)>& break_it,
                     const std::function<void()>& mend) {
    start_device(on_phone());
    ChaosProxy cable(device_port_);
    announce(cable.port());
    cable.limit_rate(kSlowRate);
    const uint64_t before = cable.carried_bytes();
    Arguments command = recording();
    *std::find(command.begin(), command.end(), agent_library()) = large_library();
    const auto job = start(command);
    ASSERT_TRUE(eventually(kSoon, [&] { return cable.carried_bytes() - before > kPushedBytes; }))
        << job->errors();
    break_it(cable);
    const Ending& ending = job->wait(kRunLimit);
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
    EXPECT_THAT(ending.errors,
                AllOf(HasSubstr("the connection to the device ended after"),
                      HasSubstr("collectctl android undo com.example.app undoes it")));
    EXPECT_NE(phone_.leftovers(), "");
    cable.limit_rate(0);
    mend();
    announce(cable.port());
    const Ending stopped = ctl(android("undo", {kApp}));
    EXPECT_TRUE(stopped.exited_with(0)) << stopped.errors;
    EXPECT_EQ(stopped.output, "undid what was changed for com.example.app on " + serial() + "\n");
    EXPECT_EQ(phone_.leftovers(), "");
  }
};

TEST_F(AdbdPush, CableComesOut) {
  expect_undone([](ChaosProxy& cable) { cable.cut_all(false); }, [] {});
}

TEST_F(AdbdPush, AdbdIsKilled) {
  expect_undone([this](ChaosProxy&) { unplug(); }, [this] { start_device(on_phone()); });
}

TEST_F(AdbdPush, ServerIsKilled) {
  expect_undone([this](ChaosProxy&) { stop_server(); }, [this] { start_server(); });
}

TEST_F(AdbdAndroid, AdbdIsKilledWhileItRecords) {
  plug(on_phone());
  install_endless();
  const auto job = start(recording());
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  unplug();
  ASSERT_TRUE(says(*job, serial() + " is away")) << job->errors();
  plug(on_phone());
  ASSERT_TRUE(says(*job, serial() + " is back")) << job->errors();
  kill(app_pid(), SIGTERM);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(125))
      << "its end never came; " << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("the app ended"));
  EXPECT_EQ(phone_.leftovers(), "");
  EXPECT_EQ(sessions().size(), 1u);
}

TEST_F(AdbdAndroid, TwoAtOnceAndOneThatWasKilled) {
  plug(on_phone());
  install_endless();
  const auto first = start(recording());
  ASSERT_TRUE(says(*first, "the agent is connected")) << first->errors();
  Arguments other = recording();
  *std::find(other.begin(), other.end(), traces()) = scratch_ / "others";
  const Ending second = ctl(other);
  EXPECT_TRUE(second.exited_with(125)) << second.errors;
  EXPECT_THAT(second.errors,
              HasSubstr("another collectctl has com.example.app on " + serial() + " under way"));
  EXPECT_TRUE(first->running());
  EXPECT_NE(phone_.property(std::string("wrap.") + kApp), "");

  first->send_signal(SIGKILL);
  first->wait(kSoon);
  EXPECT_NE(phone_.leftovers(), "") << "someone undid it";
  const Ending third = ctl(recording({"--max-time", "200ms"}));
  EXPECT_TRUE(third.exited_with(0)) << third.describe() << third.errors;
  EXPECT_THAT(third.errors, HasSubstr("undid what an earlier run left on " + serial()));
  EXPECT_EQ(phone_.leftovers(), "");
}

}  // namespace
}  // namespace collect::e2e
