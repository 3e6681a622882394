// An app on an iPhone, recorded by one command: the real collectctl and collectord, a usbmuxd and a
// lockdownd of the tests, and an app that is a real traced program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/phones/fake_lockdownd.h"
#include "tests/fakes/phones/fake_usbmuxd.h"
#include "tests/fakes/phones/plain_socket.h"

namespace collect::e2e {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr seconds kSoon{60};
constexpr seconds kRunLimit{120};
constexpr uint16_t kLockdownPort = 62078;
constexpr uint16_t kAgentPort = 7721;
const std::string kPhone = "00008110-001A2B3C4D5E801E";
const char* const kBundle = "com.example.app";

class IosTest : public testing::Test {
 protected:
  IosTest() : usbmuxd_(scratch_ / "usbmuxd") {
    lockdownd_.set_value("DeviceName", "Anna\xE2\x80\x99s iPhone");
    lockdownd_.set_value("ProductType", "iPhone15,2");
    lockdownd_.set_value("ProductVersion", "17.5.1");
    usbmuxd_.map_port(kPhone, kLockdownPort, lockdownd_.port());
    usbmuxd_.map_port(kPhone, kAgentPort, agent_port_);
    phone_id_ = usbmuxd_.attach(kPhone);
  }

  Environment environment() const {
    return {{"USBMUXD_SOCKET_ADDRESS", usbmuxd_.address()}, {"COLLECT_CONTROL", ""}};
  }
  Arguments ios(const std::string& command, const Arguments& more = {}) const {
    Arguments all = {program("collectctl"), "ios", command};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Arguments recording() const { return ios("run", {"-o", scratch_ / "traces", kPhone, kBundle}); }
  Ending ctl(const Arguments& command) {
    return run(scratch_.path(), command, environment(), kRunLimit);
  }
  std::unique_ptr<ChildProcess> start(const Arguments& command) {
    return std::make_unique<ChildProcess>(scratch_.path(), command, environment());
  }
  // What Xcode would start.
  std::unique_ptr<ChildProcess> start_app(const std::string& tag, const Arguments& app,
                                          const Environment& more = {}) {
    Environment all = {{"LD_PRELOAD", agent_library()},
                       {"COLLECT_LISTEN", "tcp:" + std::to_string(agent_port_)},
                       {"COLLECT_TAG", tag},
                       {"COLLECT_FULL", "wait"},
                       {"COUNT_FILE", scratch_ / "count"},
                       {"COLLECT_EXIT_FLUSH_MS", "60000"}};
    for (const auto& [name, value] : more) all[name] = value;
    return std::make_unique<ChildProcess>(scratch_.path(), app, all);
  }
  // One that continues until SIGTERM, and ends in order.
  std::unique_ptr<ChildProcess> start_endless(const std::string& tag) {
    return start_app(tag, {traced_program("chaos"), scratch_ / "progress", "1"});
  }
  // One that continues until SIGUSR2, and ends in order.
  std::unique_ptr<ChildProcess> start_steady(const std::string& tag, const Environment& more) {
    return start_app(tag, {traced_program("steady"), "pace", "600000"}, more);
  }
  // Where another app of the phone listens.
  Environment at_port(uint16_t port) {
    const uint16_t here = free_port();
    usbmuxd_.map_port(kPhone, port, here);
    return {{"COLLECT_LISTEN", "tcp:" + std::to_string(here)}};
  }
  Arguments to(const CollectorProcess& collector, const std::string& command,
               const Arguments& more) const {
    Arguments words = {"--control", collector.control()};
    words.insert(words.end(), more.begin(), more.end());
    return ios(command, words);
  }
  // In one JSON object, which is all that was said.
  static size_t sessions_in(const Ending& ending) {
    const auto summary = nlohmann::json::parse(ending.errors, nullptr, false);
    EXPECT_TRUE(summary.is_object()) << ending.errors;
    return summary.is_object() ? summary["sessions"].size() : 0;
  }
  Ending run_doctor(const Arguments& more = {}) {
    Arguments all = {program("collectctl"), "doctor"};
    all.insert(all.end(), more.begin(), more.end());
    return ctl(all);
  }
  nlohmann::json doctor() { return nlohmann::json::parse(run_doctor({"--json"}).output)["ios"]; }
  bool listens() {
    return eventually(kSoon, [&] {
      const int connected = fakes::connect_to_loopback(agent_port_);
      if (connected >= 0) ::close(connected);
      return connected >= 0;
    });
  }
  bool says(const ChildProcess& process, const std::string& words) {
    return eventually(kSoon, [&] { return process.errors().find(words) != std::string::npos; });
  }
  void expect_refused(const Ending& ending, const std::string& words) {
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
    EXPECT_THAT(ending.errors, HasSubstr(words));
  }
  std::vector<RecordedSession> sessions(const std::string& folder = "traces") {
    std::vector<RecordedSession> all;
    for (const std::string& path : session_directories(scratch_ / folder)) all.emplace_back(path);
    return all;
  }

  Scratch scratch_;
  uint16_t agent_port_ = free_port();
  fakes::FakeLockdownd lockdownd_;
  fakes::FakeUsbmuxd usbmuxd_;
  uint32_t phone_id_ = 0;
};

TEST_F(IosTest, WaitsForTheAppAndRecordsAllOfIt) {
  const auto job = start(recording());
  ASSERT_TRUE(says(*job, "COLLECT_TAG=com.example.app")) << job->errors();
  EXPECT_THAT(
      job->errors(),
      AllOf(
          HasSubstr("collectctl: com.example.app on " + kPhone + " (Anna"),
          HasSubstr("iPhone15,2, iOS 17.5.1)\ncollectctl: recording to "),
          HasSubstr(R"(collectctl: start com.example.app now from Xcode, with these )"
                    R"(variables in its scheme (Run, Arguments):
    COLLECT_LISTEN=tcp:7720-7729
    COLLECT_TAG=com.example.app
    COLLECT_SWITCHES=on
  or on a Mac that is paired with the phone:
    xcrun devicectl device process launch --terminate-existing --device )" +
                    kPhone +
                    R"( --environment-variables '{"COLLECT_LISTEN": "tcp:7720-7729", )"
                    R"("COLLECT_TAG": "com.example.app", "COLLECT_SWITCHES": "on"}' com.example.app
  The agent has to be linked into it: deploy/ios/README.md. Ctrl-C ends the wait.
)")));
  const auto app =
      start_app(kBundle, {traced_program("steady"), "pace", "3000"}, {{"COLLECT_SWITCHES", "on"}});
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr(": the app ended"), HasSubstr("lost       nothing"),
                                   HasSubstr("self CPU")));
  const auto recorded = sessions();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].state(), "complete");
  expect_exactly(recorded[0], read_count(scratch_ / "count", app->pid()));
  // Nothing that would change the phone, or need a pairing.
  EXPECT_THAT(lockdownd_.asked(), ElementsAre("QueryType", "GetValue DeviceName",
                                              "GetValue ProductType", "GetValue ProductVersion"));
}

TEST_F(IosTest, AppWithAnotherTagIsNotTheOne) {
  const auto app = start_endless("");
  const auto job = start(recording());
  ASSERT_TRUE(says(*job,
                   "chaos runs there with no COLLECT_TAG: if it is the app, start it with "
                   "COLLECT_TAG=com.example.app, or use collectctl ios attach"))
      << job->errors();
  EXPECT_THAT(job->errors(), Not(HasSubstr("the agent is connected")));
  job->send_signal(SIGINT);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_THAT(
      ending.errors,
      HasSubstr("nothing was recorded: the app was not started with COLLECT_TAG=com.example.app"));
  const size_t said = ending.errors.find(" runs there with ");
  EXPECT_EQ(ending.errors.find(" runs there with ", said + 1), std::string::npos) << "once";
  app->send_signal(SIGKILL);  // it handles SIGTERM
  app->wait(kSoon);
}

TEST_F(IosTest, CtrlCEndsTheRecordingAndTheAppContinues) {
  const auto app = start_endless("");
  ASSERT_TRUE(listens());
  const auto job = start(ios("attach", {"-o", scratch_ / "traces"}));
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  EXPECT_THAT(job->errors(), AllOf(HasSubstr("collectctl: port 7721 of " + kPhone),
                                   HasSubstr("iOS 17.5.1)\ncollectctl: recording to ")));
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "traces").empty(); }));
  job->send_signal(SIGINT);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("the app continues untraced"));
  ASSERT_EQ(sessions().size(), 1u);
  EXPECT_EQ(sessions()[0].state(), "complete");
  EXPECT_TRUE(app->running());

  // The agent is still in it, and the port may be said.
  const auto again =
      start(ios("attach", {"-o", scratch_ / "more", "--udid", kPhone, "--port", "7721"}));
  ASSERT_TRUE(says(*again, "the agent is connected")) << again->errors();
  ASSERT_TRUE(eventually(kSoon, [&] { return !session_directories(scratch_ / "more").empty(); }));
  app->send_signal(SIGTERM);
  const Ending& end = again->wait(kRunLimit);
  EXPECT_TRUE(end.exited_with(0)) << end.describe() << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("the app ended"));
  EXPECT_EQ(sessions("more").size(), 1u);
}

TEST_F(IosTest, JsonIsAllThatIsSaid) {
  const auto job = start(ios("run", {"-o", scratch_ / "traces", "--json", kPhone, kBundle}));
  const auto app = start_app(kBundle, {traced_program("steady"), "pace", "8000"});
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_EQ(sessions_in(ending), 1u);
}

// What is in the collector of earlier recordings is none of this one's, and neither is what is not
// on the phone.
TEST_F(IosTest, CollectorThatStaysHasOthersToo) {
  CollectorProcess collector(scratch_, {"--usbmux", usbmuxd_.address()});
  const auto first = start(to(collector, "run", {kPhone, kBundle}));
  const auto gone = start_steady("gone", at_port(7722));
  ASSERT_TRUE(says(*first, "runs there with COLLECT_TAG=gone")) << first->errors();
  const auto earlier = start_app(kBundle, {traced_program("steady"), "pace", "8000"});
  const Ending& ending = first->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("collectctl: recording to the collector in "));
  gone->send_signal(SIGUSR2);
  gone->wait(kSoon);
  const auto before = session_directories(collector.root(), earlier->pid());
  ASSERT_EQ(before.size(), 1u);

  const Environment local = {{"COLLECT_LISTEN", ""}, {"COLLECT_CONNECT", collector.ingest()}};
  const auto same_tag = start_steady(kBundle, local);
  const auto elsewhere = start_steady("elsewhere", local);
  for (const auto* there : {same_tag.get(), elsewhere.get()}) {
    ASSERT_TRUE(eventually(
        kSoon, [&] { return !session_directories(collector.root(), there->pid()).empty(); }));
  }
  const auto second = start(to(collector, "run", {kPhone, kBundle}));
  const auto recording = start_steady("records", at_port(7723));
  Environment waits = at_port(7724);
  waits["COLLECT_START"] = "idle";
  const auto idle = start_steady("waits", waits);
  for (const std::string& tag : {std::string("records"), std::string("waits")}) {
    ASSERT_TRUE(says(*second, "collectctl: steady runs there with COLLECT_TAG=" + tag +
                                  ": if it is the app, start it with "
                                  "COLLECT_TAG=com.example.app, or use collectctl ios attach\n"))
        << second->errors();
  }
  EXPECT_THAT(second->errors(),
              Not(testing::AnyOf(HasSubstr("the agent is connected"), HasSubstr("=elsewhere"),
                                 HasSubstr("=gone"), HasSubstr("steady runs there with no"))));
  // The one that is meant is recorded although it does not begin by itself.
  const auto app = start_steady(kBundle, {{"COLLECT_START", "idle"}});
  ASSERT_TRUE(says(*second, "the agent is connected")) << second->errors();
  ASSERT_TRUE(eventually(
      kSoon, [&] { return !session_directories(collector.root(), app->pid()).empty(); }));
  app->send_signal(SIGUSR2);
  const Ending& end = second->wait(kRunLimit);
  EXPECT_TRUE(end.exited_with(0)) << end.describe() << end.errors;
  EXPECT_THAT(end.errors, AllOf(HasSubstr(": the app ended"),
                                HasSubstr(session_directories(collector.root(), app->pid())[0]),
                                Not(HasSubstr(before[0]))));
  for (const auto* process : {same_tag.get(), elsewhere.get(), recording.get(), idle.get()}) {
    process->send_signal(SIGKILL);
  }
}

TEST_F(IosTest, RunningAppIsRecordedAgainAndAgain) {
  CollectorProcess collector(scratch_, {"--usbmux", usbmuxd_.address()});
  const auto app = start_endless("");
  ASSERT_TRUE(listens());
  for (const size_t count : {1u, 2u}) {
    const auto job = start(to(collector, "attach", {"--json"}));
    ASSERT_TRUE(
        eventually(kSoon, [&] { return session_directories(collector.root()).size() == count; }));
    job->send_signal(SIGINT);
    const Ending& ending = job->wait(kRunLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    EXPECT_EQ(sessions_in(ending), 1u);
  }
  app->send_signal(SIGKILL);
}

TEST_F(IosTest, CollectorThatGoesIsSaid) {
  CollectorProcess collector(scratch_, {"--usbmux", usbmuxd_.address()});
  const auto job = start(to(collector, "run", {kPhone, kBundle}));
  ASSERT_TRUE(says(*job, "Ctrl-C ends the wait.")) << job->errors();
  collector.process().send_signal(SIGKILL);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr("lost the connection to the collector"),
                                   Not(HasSubstr("no one started it"))));
}

// Recording needs nothing of it, and Ctrl-C does not wait for it.
TEST_F(IosTest, LockdowndThatDoesNotAnswer) {
  fakes::ListeningSocket listener;
  usbmuxd_.map_port(kPhone, kLockdownPort,
                    static_cast<uint16_t>(std::stoul(listener.address().substr(10))));
  const auto job = start(recording());
  fakes::FrameSocket silent = listener.accept();
  ASSERT_TRUE(eventually(kSoon, [&] {
    char byte = 0;
    return recv(silent.handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  })) << "it is asked";
  job->send_signal(SIGINT);
  expect_refused(job->wait(kRunLimit), "collectctl: " + kPhone + ": interrupted\n");
  usbmuxd_.unmap_port(kPhone, kLockdownPort);
  const auto other = start(recording());
  ASSERT_TRUE(says(*other, "collectctl: com.example.app on " + kPhone + "\n")) << other->errors();
  other->send_signal(SIGINT);
  expect_refused(other->wait(kRunLimit),
                 "the app was not started with COLLECT_TAG=com.example.app");
}

TEST_F(IosTest, CableComesOutWhileItRecords) {
  const auto app = start_endless(kBundle);
  const auto job = start(recording());
  ASSERT_TRUE(says(*job, "the agent is connected")) << job->errors();
  usbmuxd_.detach(phone_id_);
  ASSERT_TRUE(says(*job, kPhone + " is away")) << job->errors();
  usbmuxd_.attach(kPhone);
  ASSERT_TRUE(says(*job, kPhone + " is back")) << job->errors();
  ASSERT_TRUE(eventually(kSoon, [&] { return usbmuxd_.streams() == 2; }));
  app->send_signal(SIGTERM);
  const Ending& ending = job->wait(kRunLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr("the app ended"));
  EXPECT_EQ(sessions().size(), 1u);
}

TEST_F(IosTest, ExplainsErrorsInOneSentence) {
  expect_refused(ctl(ios("run", {"0000", kBundle})), "there is no device 0000; there is " + kPhone);
  expect_refused(ctl(ios("run", {kPhone, "x'; rm -rf /"})), "is no bundle identifier");
  for (const std::string& bundle : {std::string(), std::string("a_b"), std::string(156, 'a')}) {
    expect_refused(ctl(ios("run", {kPhone, bundle})),
                   "\"" + bundle + "\" is no bundle identifier: give one such as com.example.app");
  }
  expect_refused(ctl(ios("run", {"0000", std::string(155, 'a')})), "there is no device 0000");
  expect_refused(ctl(ios("attach")),
                 "no app with an agent runs on " + kPhone +
                     ": start it with COLLECT_LISTEN=tcp:7720-7729 and keep it in the foreground, "
                     "or use collectctl ios run");
  {
    fakes::ListeningSocket first, second;
    const auto port_of = [](const fakes::ListeningSocket& listener) {
      return static_cast<uint16_t>(std::stoul(listener.address().substr(10)));
    };
    usbmuxd_.map_port(kPhone, 7720, port_of(first));
    usbmuxd_.map_port(kPhone, 7729, port_of(second));
    expect_refused(ctl(ios("attach")),
                   "agents listen on ports 7720, 7729 of " + kPhone + ": name one by --port");
    usbmuxd_.unmap_port(kPhone, 7720);
    usbmuxd_.unmap_port(kPhone, 7729);
  }
  lockdownd_.set_value("ProductVersion", "14.8");
  expect_refused(ctl(recording()), kPhone + " runs iOS 14.8; the agent needs iOS 15");
  lockdownd_.set_value("ProductVersion", "17.5.1");
  usbmuxd_.attach("00008030-000A11112222802E");
  expect_refused(ctl(ios("attach")), "several devices are there: 00008030-000A11112222802E, " +
                                         kPhone + "; name one by --udid");
  usbmuxd_.stop();
  expect_refused(ctl(recording()), "no usbmuxd at unix:");
}

TEST_F(IosTest, DoctorSaysWhatThereIs) {
  const Ending none = run_doctor();
  EXPECT_THAT(none.output, AllOf(HasSubstr("Anna\xE2\x80\x99s iPhone"), HasSubstr("17.5.1"),
                                 HasSubstr("start it from Xcode with COLLECT_LISTEN")));
  const auto app = start_endless("");
  ASSERT_TRUE(listens());
  const nlohmann::json json = doctor();
  EXPECT_EQ(json["devices"][0]["agent_ports"], nlohmann::json({kAgentPort}));
  EXPECT_EQ(json["devices"][0]["ios"], "17.5.1");
  app->send_signal(SIGTERM);
  app->wait(kSoon);

  // A lockdownd that is none does not keep anybody from recording.
  lockdownd_.answer_with("\xFF\xFF\xFF\xFFrubbish");
  const Ending odd = run_doctor();
  EXPECT_THAT(odd.output, HasSubstr("lockdownd sent a message of 4294967295 bytes"));
  lockdownd_.answer_with("");
  lockdownd_.set_type("com.apple.mobile.restored");
  EXPECT_THAT(run_doctor().output, HasSubstr("does not run iOS now"));
  usbmuxd_.unmap_port(kPhone, kLockdownPort);
  EXPECT_THAT(run_doctor().output, HasSubstr("no one listens on port 62078"));

  usbmuxd_.detach(phone_id_);
  const Ending empty = run_doctor({"--udid", kPhone});
  EXPECT_TRUE(empty.exited_with(1)) << empty.errors;
  EXPECT_THAT(empty.output, HasSubstr("it is not connected"));
  usbmuxd_.stop();
  EXPECT_THAT(run_doctor().output, HasSubstr("no usbmuxd at"));
}

}  // namespace
}  // namespace collect::e2e
