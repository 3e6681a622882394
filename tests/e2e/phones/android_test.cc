// An app on a phone, recorded by one command: the real collectctl and collectord, an adb server of
// the tests with a phone whose commands are scripts, and an app that is a real traced program.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/redteam/made_up_server.h"

namespace collect::e2e {
namespace {

using fakes::FakePhone;
using fakes::FakePhoneFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AndroidTest : public AndroidFixture<MadeUpServer> {
 protected:
  // The first lines of a recording into a directory.
  static constexpr char kHead[] =
      "collectctl: com.example.app on R58M (Sim_Phone)\ncollectctl: recording to ";

  void SetUp() override {
    adb_.start();
    FakePhone phone;
    phone.folder = phone_.path();
    adb_.plug("R58M", phone);
    install_counted();
  }
  // A command of the phone that does something else.
  void replace(const std::string& command, const std::string& script) {
    phone_.write(phone_ / "bin/" + command, "#!/bin/sh\n" + script + "\n");
  }
  // An app that continues without an agent.
  void install_untraced() {
    install_endless();
    replace("logwrapper", "shift 2; exec \"$@\"");
  }
  // A command that follows the app has asked for its process.
  bool follows() {
    return eventually(kSoon, [&] { return adb_.requests("shell,v2,raw:n=0; until p=") != 0; });
  }
  // In one JSON object, which is all that was said.
  static size_t sessions_in(const Ending& ending) {
    const auto summary = nlohmann::json::parse(ending.errors, nullptr, false);
    EXPECT_TRUE(summary.is_object()) << ending.errors;
    return summary.is_object() ? summary["sessions"].size() : 0;
  }
};

TEST_F(AndroidTest, RunsAnAppAndRecordsAllOfIt) {
  const Ending ending = ctl(recording());
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr("com.example.app on R58M (Sim_Phone): the app ended"),
                                   HasSubstr("lost       nothing"), HasSubstr("self CPU"),
                                   HasSubstr("phone: collect agent ("), HasSubstr(kHead),
                                   Not(HasSubstr("undid what an earlier run left"))));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].state(), "complete");
  const int pid = recorded[0].manifest()["process"]["pid"];
  expect_exactly(recorded[0], read_count(scratch_ / "count", pid));
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AndroidTest, CtrlCEndsTheRecordingAndTheAppContinues) {
  install_endless();
  const auto job = start(recording());
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  const int pid = app_pid();
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "traces").empty(); }));
  job->send_signal(SIGINT);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("the app continues untraced"));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].state(), "complete");
  EXPECT_GT(recorded[0].totals().events, 0u);
  EXPECT_EQ(kill(pid, 0), 0) << "the app was ended";
  EXPECT_EQ(phone_.leftovers(), "");

  // The agent is still in it.
  const auto silent = start(android("attach", {"-o", scratch_ / "json", "--json", kApp}));
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "json").empty(); }));
  silent->send_signal(SIGINT);
  const Ending& summary = silent->wait(kRunLimit);
  EXPECT_TRUE(summary.exited_with(0)) << summary.describe() << summary.errors;
  EXPECT_EQ(sessions_in(summary), 1u);
  const auto again = start(android("attach", {"-o", scratch_ / "more", "-s", "R58M", kApp}));
  ASSERT_TRUE(says(*again, "the agent is connected")) << again->errors();
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "more").empty(); }));
  kill(pid, SIGTERM);
  const Ending& end = again->wait(kRunLimit);
  EXPECT_TRUE(end.exited_with(125)) << "its end never came; " << end.describe() << end.errors;
  EXPECT_THAT(end.errors, AllOf(HasSubstr("the app ended"), HasSubstr(kHead)));
  EXPECT_EQ(session_directories(scratch_ / "more", pid).size(), 1u);
}

// What is in the collector of an earlier recording is none of this one's.
TEST_F(AndroidTest, CollectorThatStaysHasEarlierSessionsToo) {
  install_endless();
  CollectorProcess collector(scratch_, {"--adb", adb_.address()});
  const auto to_it = [&](const std::string& command, const Arguments& more) {
    Arguments words = {"--control", collector.control(), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(kApp);
    return android(command, words);
  };
  const Ending first = ctl(to_it("run", {"--agent", agent_library(), "--max-time", "200ms"}));
  EXPECT_TRUE(first.exited_with(0)) << first.describe() << first.errors;
  EXPECT_EQ(sessions_in(first), 1u);
  const auto second = start(to_it("attach", {}));
  EXPECT_TRUE(eventually(kSoon, [&] { return session_directories(collector.root()).size() == 2; }));
  second->send_signal(SIGINT);
  const Ending& ending = second->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_EQ(sessions_in(ending), 1u);
  EXPECT_EQ(phone_.leftovers(), "");
}

// Of an app of several processes the phone may name one that has no agent.
TEST_F(AndroidTest, AgentIsTheOneOfThisRun) {
  replace("pidof", "[ -s \"$PHONE/apps/$1/pid\" ] && echo 1");
  const Ending ending = ctl(recording());
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("lost       nothing"));
  EXPECT_EQ(sessions().size(), 1u);
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AndroidTest, CollectorThatGoesIsSaid) {
  install_untraced();
  CollectorProcess collector(scratch_, {"--adb", adb_.address()});
  const auto job =
      start(android("run", {"--control", collector.control(), "--agent", agent_library(), kApp}));
  ASSERT_TRUE(follows()) << job->errors();
  EXPECT_THAT(job->errors(), HasSubstr("collectctl: recording to the collector in "));
  collector.process().send_signal(SIGKILL);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr("the recording failed; the app continues"),
                                   HasSubstr("lost the connection to the collector")));
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AndroidTest, WithoutAnAgentNothingWasRecorded) {
  install_untraced();
  const auto job = start(recording());
  ASSERT_TRUE(follows()) << job->errors();
  job->send_signal(SIGINT);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors,
              HasSubstr("it was ended before the app's agent reached the collector"));
  EXPECT_EQ(phone_.leftovers(), "");

  // One that is seen, and ends.
  replace("pidof", "cat \"$PHONE/apps/$1/pid\" && touch \"$PHONE/named\"");
  const auto other = start(recording());
  ASSERT_TRUE(eventually(kSoon, [&] { return std::filesystem::exists(phone_ / "named"); }));
  phone_.end_apps();
  expect_refused(other->wait(kRunLimit),
                 "the app ended before its agent reached the collector: `adb logcat` says why");

  // And one that is not.
  replace("pidof", "exit 1");
  expect_refused(ctl(recording()),
                 "the app did not start before its agent reached the collector: `adb "
                 "logcat` says why");
}

TEST_F(AndroidTest, CtrlCEndsWhatThePhoneDoesNotEnd) {
  replace("am", "[ \"$1\" = force-stop ] && exit 0\ntouch \"$PHONE/begun\"; exec sleep 600");
  const auto job = start(recording());
  ASSERT_TRUE(eventually(kSoon, [&] { return std::filesystem::exists(phone_ / "begun"); }));
  job->send_signal(SIGINT);
  expect_refused(job->wait(kRunLimit), "collectctl: R58M: interrupted\n");
}

// The collector of the run asks agents for the token, so that the app has to have it.
TEST_F(AndroidTest, AppGetsTheTokenThatTheCollectorAsksFor) {
  install_endless();
  const std::string token = scratch_ / "token";
  std::ofstream(token) << "a secret of the test\n";
  const Ending ending = ctl(recording({"--max-time", "300ms", "--agent-token-file", token}));
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  ASSERT_EQ(sessions().size(), 1u);
  EXPECT_GT(sessions()[0].totals().events, 0u);
  EXPECT_THAT(ending.errors, Not(HasSubstr("a secret of the test")));
  EXPECT_EQ(phone_.leftovers(), "");

  std::ofstream(token, std::ios::trunc) << "\n";
  expect_refused(ctl(recording({"--agent-token-file", token})), token + ": a token has 1 to 256");
}

TEST_F(AndroidTest, LimitEndsIt) {
  install_endless();
  const Ending ending = ctl(recording({"--max-time", "300ms", "--json", "--serial", "R58M"}));
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  const auto summary = nlohmann::json::parse(ending.errors);
  ASSERT_EQ(summary["sessions"].size(), 1u) << ending.errors;
  EXPECT_EQ(summary["sessions"][0]["status"], "time limit");
  EXPECT_GT(app_pid(), 0);
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AndroidTest, AppWithTheScriptInItsApk) {
  const std::string folder = phone_.app(kApp, "code/lib/x86_64");
  std::filesystem::create_directories(folder);
  std::string script = phone_.read(deploy_script("android/wrap.sh"));
  const std::string data = "/data/data/${word#--nice-name=}";
  ASSERT_NE(script.find(data), std::string::npos);
  script.replace(script.find(data), data.size(), phone_.app(kApp, "data"));
  phone_.write(folder + "/wrap.sh", script);
  std::filesystem::copy_file(agent_library(), folder + "/libcollect_agent.so");
  install_endless();
  const Ending ending = ctl(
      android("run", {"-o", scratch_ / "traces", "--max-time", "200ms", kApp, ".MainActivity"}));
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("after the time that --max-time allows"));
  EXPECT_EQ(sessions().size(), 1u);
  EXPECT_EQ(phone_.leftovers(), "");

  phone_.write(folder + "/wrap.sh", "#!/system/bin/sh\nexec \"$@\"\n");
  expect_refused(ctl(recording()), "has a wrap.sh of its own, which goes before ours");
}

TEST_F(AndroidTest, ExplainsErrorsInOneSentence) {
  std::filesystem::remove(phone_.app(kApp, "debuggable"));
  expect_refused(ctl(recording()), "com.example.app on R58M is not debuggable: install its debug");
  phone_.write(phone_.app(kApp, "debuggable"), "");

  phone_.write(phone_.app(kApp, "abi"), "arm64-v8a\n");
  expect_refused(ctl(recording()), "is for x86_64, and the app runs as arm64-v8a");
  phone_.write(phone_.app(kApp, "abi"), "x86_64\n");

  phone_.set_property("ro.build.version.sdk", "28");
  expect_refused(ctl(recording()), "R58M runs Android of API level 28; the agent needs 29");
  phone_.set_property("ro.build.version.sdk", "34");

  phone_.write(phone_ / "refuses_properties", "");
  expect_refused(ctl(recording()), "R58M refuses the property wrap.com.example.app");
  std::filesystem::remove(phone_ / "refuses_properties");

  expect_refused(ctl(android("run", {"-o", scratch_ / "traces", "--agent", agent_library(),
                                     "com.example.app", ".Other"})),
                 "com.example.app/.Other did not start: Error: Activity class");
  expect_refused(ctl(android("run", {"com.example.other"})), "is not installed");
  expect_refused(ctl(android("attach", {kApp})),
                 "com.example.app does not run on R58M: start it, or use collectctl android run");
  expect_refused(ctl(android("attach", {"x; rm -rf /"})), "is no package of Android");
  const Ending stop = ctl(android("undo", {"x; rm -rf /"}));
  EXPECT_TRUE(stop.exited_with(1)) << stop.describe();
  EXPECT_THAT(stop.errors, HasSubstr("is no package of Android"));
  expect_refused(ctl(android("run", {"x; rm -rf /"})), "is no package of Android");
  expect_refused(ctl(android("run", {"--serial", "HT12", kApp})),
                 "there is no device HT12; there is R58M (Sim_Phone)");
  expect_refused(ctl(android("run", {kApp})), "there is no agent for x86_64");
  adb_.set_state("R58M", "unauthorized");
  expect_refused(ctl(recording()), "confirm the prompt");
}

// Its library is no file of this machine when the collector looks for names.
class NamesTest : public AndroidTest {
 protected:
  void SetUp() override {
    AndroidTest::SetUp();
    std::filesystem::create_directories(phone_.app(kApp, "code/lib/x86_64"));
    std::filesystem::copy_file(traced_program("steady"), library_);
    phone_.install(kApp, library_ + " pace 600000");
  }
  // What the summary says of a recording whose library has gone to `there` meanwhile.
  std::string summary(const std::string& there, const Arguments& more = {}) {
    const auto job = start(recording(more));
    EXPECT_TRUE(says(*job, "the agent is connected")) << job->errors();
    EXPECT_TRUE(
        eventually(kSoon, [&] { return !session_directories(scratch_ / "traces").empty(); }));
    std::filesystem::rename(library_, there);
    job->send_signal(SIGINT);
    const Ending& ending = job->wait(kRunLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    return ending.errors;
  }
  static bool has_name(const std::string& text) {
    return text.find("  step  ") != std::string::npos;
  }

  const std::string library_ = phone_.app(kApp, "code/lib/x86_64/libsteady.so");
};

TEST_F(NamesTest, AreTakenFromTheAppsLibraryOnThePhone) {
  const std::string text = summary(library_ + FakePhoneFolder::kOnPhone);
  EXPECT_TRUE(has_name(text)) << text;
}

TEST_F(NamesTest, AreThoseOfUnstrippedFilesHere) {
  std::filesystem::create_directories(scratch_ / "symbols");
  const std::string text =
      summary(scratch_ / "symbols/libsteady.so", {"--symbols", scratch_ / "symbols"});
  EXPECT_TRUE(has_name(text)) << text;
  EXPECT_THAT(text, Not(HasSubstr("no names")));
}

TEST_F(NamesTest, AreMissingWithoutTheFile) {
  const std::string text = summary(scratch_ / "elsewhere");
  EXPECT_FALSE(has_name(text)) << text;
  EXPECT_THAT(text, HasSubstr("no names from " + library_ + ": R58M: " + library_ +
                              ": open failed: No such file or directory"));
}

TEST_F(NamesTest, AreNoTextWhereJsonIsAskedFor) {
  const auto job = start(recording({"--json"}));
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "traces").empty(); }));
  std::filesystem::rename(library_, scratch_ / "elsewhere");
  job->send_signal(SIGINT);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_EQ(sessions_in(ending), 1u);
}

TEST_F(AndroidTest, WhichOfSeveralDevices) {
  FakePhoneFolder other;
  FakePhone second;
  second.folder = other.path();
  adb_.plug("HT12", second);
  expect_refused(ctl(recording()),
                 "several devices can be used: HT12 (Sim_Phone), R58M "
                 "(Sim_Phone); say which one with --serial or ANDROID_SERIAL");
  const auto with = [&](const std::string& serial, const Arguments& more) {
    Environment chosen = environment();
    chosen["ANDROID_SERIAL"] = serial;
    return run(scratch_.path(), recording(more), chosen, kRunLimit);
  };
  expect_refused(with("HT12", {}), "com.example.app on HT12 is not installed");
  expect_refused(with("HT13", {}), "there is no device HT13 (from ANDROID_SERIAL); there is");
  // The option goes before the variable.
  expect_refused(with("R58M", {"--serial", "HT12"}), "com.example.app on HT12 is not installed");
  install_endless();
  const Ending ending = with("R58M", {"--max-time", "200ms"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("com.example.app on R58M"));
  EXPECT_EQ(phone_.leftovers() + other.leftovers(), "");
}

// Where it takes a while, a line for each quarter.
TEST_F(AndroidTest, WayOfALargeAgentIsShown) {
  install_endless();
  const std::string large = scratch_ / "libcollect_agent.so";
  std::filesystem::copy_file(agent_library(), large);
  const auto pushed = [&](uint64_t bytes, const Arguments& more) {
    std::filesystem::resize_file(large, bytes);
    Arguments words = {"-o", scratch_ / "traces", "--agent", large, "--max-time", "100ms"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(kApp);
    const Ending ending = ctl(android("run", words));
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    std::vector<std::string> lines;
    std::istringstream text(ending.errors);
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("collectctl: pushed ")) lines.push_back(line);
    }
    return lines;
  };
  const uint64_t least = 4u << 20;
  ASSERT_LT(std::filesystem::file_size(large), least);
  EXPECT_THAT(pushed(least - 1, {}), ::testing::IsEmpty());
  EXPECT_THAT(pushed(least, {}), ::testing::ElementsAre("collectctl: pushed 1.0 MB of 4.2 MB",
                                                        "collectctl: pushed 2.1 MB of 4.2 MB",
                                                        "collectctl: pushed 3.1 MB of 4.2 MB",
                                                        "collectctl: pushed 4.2 MB of 4.2 MB"));
  EXPECT_THAT(pushed(least, {"-q"}), ::testing::IsEmpty());
  EXPECT_THAT(pushed(least, {"--json"}), ::testing::IsEmpty());
}

TEST_F(AndroidTest, AppThatEndsAtOnce) {
  phone_.install(kApp, "false");
  expect_refused(ctl(recording()), "before its agent reached the collector");
}

TEST_F(AndroidTest, NoRoomOnThePhone) {
  adb_.limit_pushes("R58M", {.space = 100'000});
  expect_refused(ctl(recording()), "No space left on device");
}

TEST_F(AndroidTest, CableComesOutWhileItPushes) {
  adb_.limit_pushes("R58M", {.cable = 100'000});
  const Ending ending = ctl(recording());
  EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr("the connection to the device ended after"),
                                   HasSubstr("collectctl android undo com.example.app undoes it")));
  EXPECT_NE(phone_.leftovers(), "");
  FakePhone again;
  again.folder = phone_.path();
  adb_.plug("R58M", again);
  const Ending stopped = ctl(android("undo", {kApp}));
  EXPECT_TRUE(stopped.exited_with(0)) << stopped.errors;
  EXPECT_EQ(stopped.output, "undid what was changed for com.example.app on R58M (Sim_Phone)\n");
  EXPECT_EQ(phone_.leftovers(), "");
  const Ending nothing = ctl(android("undo", {kApp}));
  EXPECT_TRUE(nothing.exited_with(0)) << nothing.errors;
  EXPECT_THAT(nothing.output, HasSubstr("there is nothing to undo"));
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AndroidTest, TwoAtOnceAndOneThatWasKilled) {
  install_endless();
  const auto first = start(recording());
  ASSERT_TRUE(says(*first, "the agent is connected")) << first->errors();
  Arguments other = recording();
  other[4] = scratch_ / "others";
  const Ending second = ctl(other);
  EXPECT_TRUE(second.exited_with(125)) << second.errors;
  EXPECT_THAT(second.errors, HasSubstr("another collectctl has com.example.app on R58M under way"));
  EXPECT_TRUE(first->running());
  EXPECT_NE(phone_.property(std::string("wrap.") + kApp), "");

  first->send_signal(SIGKILL);
  first->wait(kSoon);
  EXPECT_NE(phone_.leftovers(), "") << "someone undid it";
  const Ending third = ctl(recording({"--max-time", "200ms"}));
  // Its collector may still be sealing: the directory is waited for.
  EXPECT_TRUE(third.exited_with(0)) << third.describe() << third.errors;
  EXPECT_THAT(third.errors,
              HasSubstr("collectctl: undid what an earlier run left on R58M (Sim_Phone)\n"));
  EXPECT_EQ(phone_.leftovers(), "");
}

TEST_F(AndroidTest, CableComesOutWhileItRecords) {
  install_endless();
  const auto job = start(recording());
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  adb_.unplug("R58M");
  ASSERT_TRUE(says(*job, "R58M is away")) << job->errors();
  FakePhone again;
  again.folder = phone_.path();
  adb_.plug("R58M", again);
  ASSERT_TRUE(says(*job, "R58M is back")) << job->errors();
  kill(app_pid(), SIGTERM);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(125))
      << "its end never came; " << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("the app ended"));
  EXPECT_EQ(phone_.leftovers(), "");
  EXPECT_EQ(sessions().size(), 1u);
}

TEST_F(AndroidTest, DoctorSaysWhatThereIs) {
  const auto doctor = [this](const Arguments& more) {
    Arguments all = {program("collectctl"), "doctor"};
    all.insert(all.end(), more.begin(), more.end());
    return ctl(all);
  };
  const Ending without = doctor({"--serial", "R58M"});
  EXPECT_TRUE(without.exited_with(1)) << without.errors;
  EXPECT_THAT(without.output,
              AllOf(HasSubstr("version 1.0.41"), HasSubstr("there is no agent for x86_64")));
  const Ending with = doctor({"--agent", agent_library(), "--json"});
  const auto json = nlohmann::json::parse(with.output).at("android");
  ASSERT_EQ(json["devices"].size(), 1u);
  EXPECT_EQ(json["devices"][0]["sdk"], 34);
  EXPECT_EQ(json["devices"][0]["abi"], "x86_64");
  EXPECT_EQ(json["devices"][0]["agent"], agent_library());
  adb_.stop();
  EXPECT_THAT(doctor({}).output, HasSubstr("start it with `adb start-server`"));
}

}  // namespace
}  // namespace collect::e2e
