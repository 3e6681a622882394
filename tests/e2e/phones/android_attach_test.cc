// The agent in an app that runs already, by `am attach-agent`: the real collectctl, a phone whose
// commands are scripts, and an app that is a program for arm64, run by qemu, with what takes the
// place of Android's runtime there. And the library's way in alone, in a process of this machine.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "daemon/patch/plan_maker.h"
#include "formats/core/text/hex.h"
#include "formats/patch/plan_view.h"
#include "tests/e2e/redteam/made_up_server.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSysroot[] = "/usr/aarch64-linux-gnu";

std::string cross(const std::string& path) {
  return std::string(E2E_CROSS) + "/arm64/" + path;
}

class AndroidAttach : public AndroidFixture<MadeUpServer> {
 protected:
  void SetUp() override {
    adb_.start();
    fakes::FakePhone phone;
    phone.folder = phone_.path();
    adb_.plug("R58M", phone);
    phone_.set_property("ro.product.cpu.abi", "arm64-v8a");
    // What is wrong is seen before the program matters.
    phone_.install(kApp, "sleep 600; true");
    phone_.write(phone_.app(kApp, "abi"), "arm64-v8a\n");
  }
  void install(const std::string& name) {
    const std::string missing = install_for_arm64(cross(""), name, go_on_, output_);
    if (!missing.empty()) GTEST_SKIP() << "skipped: there is no " << missing;
  }
  void start_app() {
    const Ending started =
        run(scratch_.path(), {phone_ / "bin/am", "start", "-W", "-n", kApp + kActivity},
            {{"PHONE", phone_.path()}, {"PATH", phone_ / "bin:/usr/bin:/bin"}});
    ASSERT_TRUE(started.exited_with(0)) << started.describe() << started.errors;
    ASSERT_GT(app_pid(), 0);
  }
  Arguments attaching(const Arguments& more = {}) const {
    Arguments all = android("attach", {"--dynamic", "-o", traces(), "--agent", arm64_agent_});
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(kApp);
    return all;
  }
  // The app has worked on, and computed what it should.
  void expect_right_results(const std::string& name) {
    const Ending plain =
        run(scratch_.path(), {"qemu-aarch64-static", "-L", kSysroot, cross("bin/" + name)});
    phone_.write(go_on_, "");
    ASSERT_TRUE(eventually(
        kSoon, [&] { return phone_.read(output_).find("thread") != std::string::npos; }));
    const std::string expected = plain.output.substr(0, plain.output.find("thread"));
    EXPECT_THAT(expected, HasSubstr("wrong 0\n"));
    EXPECT_THAT(phone_.read(output_), testing::StartsWith(expected));
  }

  const std::string kActivity = "/.MainActivity";
  const std::string library_ = phone_.app(kApp, "code/lib/arm64/libunprepared.so");
  const std::string go_on_ = scratch_ / "go-on";
  const std::string output_ = scratch_ / "output";
  const std::string arm64_agent_ = cross("lib/libcollect_agent.so");
};

TEST_F(AndroidAttach, PatchesAnAppWhileItsThreadsRun) {
  install("unprepared");
  if (IsSkipped()) return;
  start_app();
  const int pid = app_pid();
  const Ending ending = ctl(attaching({"--when-full", "wait", "--max-time", "2s"}));
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr(" functions of libunprepared.so\n"),
                                   HasSubstr("collectctl: recording to ")));
  EXPECT_EQ(phone_.read(phone_.app(kApp, "attach_agent.returned")), "0\n");
  EXPECT_EQ(phone_.leftovers(), "");
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].state(), "complete");
  EXPECT_EQ(recorded[0].totals().threads, 4u) << "those that work";
  EXPECT_EQ(recorded[0].totals().lost, 0u);
  for (const CountedThread& thread : recorded[0].count_threads()) EXPECT_GT(thread.calls, 1000u);
  const Ending verified = ctl({program("collectctl"), "verify", recorded[0].directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;

  // The agent is still in it, and its code is not changed twice.
  const auto again = start(
      android("attach", {"--dynamic", "-o", scratch_ / "more", "--agent", arm64_agent_, kApp}));
  ASSERT_TRUE(says(*again, "has the agent in it already")) << again->errors();
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "more").empty(); }));
  again->send_signal(SIGINT);
  EXPECT_TRUE(again->wait(kRunLimit).exited_with(0)) << again->errors();
  EXPECT_EQ(session_directories(scratch_ / "more", pid).size(), 1u);
  expect_right_results("unprepared");
}

TEST_F(AndroidAttach, AnotherBuildOnThePhoneThanInTheProcess) {
  install("unprepared");
  if (IsSkipped()) return;
  start_app();
  fs::copy_file(cross("bin/unprepared_exceptions"), library_ + fakes::FakePhoneFolder::kOnPhone);
  expect_refused(ctl(attaching()),
                 "com.example.app on R58M cannot be recorded so: no module of the "
                 "process has a plan");
  EXPECT_EQ(phone_.read(phone_.app(kApp, "attach_agent.returned")), "-1\n");
  expect_right_results("unprepared");
}

TEST_F(AndroidAttach, WhatIsWrongIsOneSentence) {
  expect_refused(ctl(attaching()), "com.example.app does not run on R58M: start it, or use");
  start_app();
  fs::remove(phone_.app(kApp, "debuggable"));
  expect_refused(ctl(attaching()), "com.example.app on R58M is not debuggable: install its debug");
  phone_.write(phone_.app(kApp, "debuggable"), "");
  phone_.set_property("ro.build.version.sdk", "25");
  expect_refused(ctl(attaching()), "R58M runs Android of API level 25; the agent needs 29");
  phone_.set_property("ro.build.version.sdk", "34");
  phone_.write(phone_.app(kApp, "abi"), "x86_64\n");
  expect_refused(ctl(attaching()),
                 "com.example.app runs as x86_64: only on arm64-v8a can the code");
  const Ending alone = ctl(android("attach", {"--max-time", "2s", kApp}));
  EXPECT_THAT(alone.errors, HasSubstr("--max-time requires --dynamic"));
}

TEST_F(AndroidAttach, WithoutALibraryOfItsOwn) {
  if (!fs::exists(arm64_agent_)) GTEST_SKIP() << "skipped: there is no " << arm64_agent_;
  start_app();
  expect_refused(ctl(attaching()), "com.example.app has loaded no library of its own yet");
}

TEST_F(AndroidAttach, AmRefuses) {
  install("unprepared");
  if (IsSkipped()) return;
  start_app();
  expect_refused(ctl(android("attach", {"--dynamic=libother*", "--agent", arm64_agent_, kApp})),
                 "the pattern matches no library of com.example.app that is loaded");
  phone_.write(phone_ / "refuses_agents", "");
  expect_refused(ctl(attaching()),
                 "com.example.app on R58M: Android refuses to attach an agent: "
                 "java.lang.SecurityException: it is not allowed");
  phone_.write(go_on_, "");
}

// A process of this machine, into which the library is loaded as Android's runtime does.
class AgentOnAttach : public testing::Test {
 protected:
  // What the agent answers to these settings; with what the way in returned before it.
  std::string answer_to(const std::string& settings) {
    const std::string name = scratch_ / ("agent" + std::to_string(++count_));
    job_ = std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program("unprepared"), "2", "2", scratch_ / "never"},
        Environment{{"LD_PRELOAD", ATTACH_RUNTIME}, {"ATTACH_AGENT", name}});
    write_text_file(name + ".new",
                    std::string(agent_library()) + "=" + name + ".answer\n" + settings);
    fs::rename(name + ".new", name);
    EXPECT_TRUE(eventually(seconds(30), [&] {
      returned_ = read_text_file(name + ".returned");
      return returned_.ends_with("\n");
    }));
    return returned_ + read_text_file(name + ".answer");
  }

  Scratch scratch_;
  std::unique_ptr<ChildProcess> job_;
  std::string returned_;
  int count_ = 0;
};

TEST_F(AgentOnAttach, TakesItsSettingsFromTheOptions) {
  CollectorProcess collector(scratch_);
  EXPECT_THAT(answer_to("COLLECT_CONNECT=" + collector.ingest() + "\nCOLLECT_TAG=late\n"),
              testing::StartsWith("0\nattached: "));
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.ctl({"agents", "--json"}).output.find("\"late\"") != std::string::npos;
  }));
}

TEST_F(AgentOnAttach, SaysWhatIsWrongWithThem) {
  EXPECT_EQ(answer_to("COLLECT_LISTEN=abstract:\nCOLLECT_DETAIL=much\n"),
            "-1\nfailed: COLLECT_DETAIL must be off, armed or on\n");
}

// Where a window is several instructions, a thread may stand inside.
TEST_F(AgentOnAttach, PatchesNothingIfThreadsWouldHaveToStop) {
#if defined(__x86_64__)
  const std::string plans = scratch_ / "plans";
  fs::create_directory(plans);
  const auto plan = patch::plan_of_file(traced_program("unprepared"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  patch::PlanView view;
  ASSERT_EQ(view.parse(*plan), nullptr);
  const Bytes id = Bytes(view.header().build_id).first(view.header().build_id_bytes);
  const std::string file = plans + "/" + hex_bytes(id) + ".plan";
  write_text_file(file, std::string(plan->begin(), plan->end()));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(
      answer_to("COLLECT_LISTEN=abstract:\nCOLLECT_PLANS=" + plans + "\n"),
      "-1\nfailed: on this processor code can be changed only while all threads stand still\n");
#else
  GTEST_SKIP() << "skipped: not on x86-64";
#endif
}

}  // namespace
}  // namespace collect::e2e
