// Sockets that someone else listens on: systemd-socket-activate binds them, waits for the first
// connection and becomes the daemon. That they outlive it is tested under a real systemd
// (tests/deploy).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/e2e/collector_process.h"

namespace collect::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kActivate = "/usr/bin/systemd-socket-activate";

class InheritedSocketsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kActivate, X_OK) != 0) GTEST_SKIP() << kActivate << " is not installed";
  }

  // The settings name ports that no one may listen on: only the sockets can be meant.
  std::unique_ptr<ChildProcess> activate(const std::string& names, const Arguments& addresses,
                                         const Arguments& more = {}) {
    Arguments command = {kActivate, "--fdname=" + names};
    for (const std::string& address : addresses) command.push_back("--listen=" + address);
    command.insert(command.end(), {program("collectord"), "--root", scratch_ / "root", "--ingest",
                                   "127.0.0.1:1", "--control", "127.0.0.1:2"});
    command.insert(command.end(), more.begin(), more.end());
    auto process = std::make_unique<ChildProcess>(scratch_.path(), command);
    EXPECT_TRUE(eventually(seconds(30), [&] {
      const std::string& last = addresses.back();
      return process->errors().find("Listening on " + last) != std::string::npos;
    })) << process->errors();
    return process;
  }
  Ending ctl(const std::string& control, Arguments arguments) {
    Arguments command = {program("collectctl"), "--control", control};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(scratch_.path(), command);
  }
  void records_a_program(ChildProcess& daemon, const std::string& control) {
    // The first connection starts it; the client waits in the socket meanwhile.
    const Ending first = ctl(control, {"collectors"});
    ASSERT_TRUE(first.exited_with(0)) << first.errors << daemon.errors();
    const Ending traced = ctl(control, {"run", "--", traced_program("threads")});
    ASSERT_TRUE(traced.exited_with(0)) << traced.errors << daemon.errors();
    const Ending sessions = ctl(control, {"--json", "sessions"});
    EXPECT_THAT(sessions.output, HasSubstr(R"("state":"complete")")) << sessions.errors;
    daemon.send_signal(SIGTERM);
    EXPECT_TRUE(daemon.wait(seconds(30)).exited_with(0)) << daemon.errors();
  }

  Scratch scratch_;
};

std::string loopback_address() {
  return "127.0.0.1:" + std::to_string(free_port());
}

TEST_F(InheritedSocketsTest, BothAreServedAndTheSettingsAreNotUsed) {
  const std::string ingest = loopback_address();
  const std::string control = loopback_address();
  const auto daemon = activate("ingest:control", {ingest, control});
  records_a_program(*daemon, control);
  EXPECT_THAT(daemon->errors(), HasSubstr("ingest: the inherited socket is at " + ingest +
                                          "; the setting 127.0.0.1:1 is not used"));
  EXPECT_THAT(daemon->errors(), HasSubstr("control: the inherited socket is at " + control));
}

TEST_F(InheritedSocketsTest, UnixSocketsAreServedAndNotRemoved) {
  // A path of the scratch may be longer than a Unix address.
  std::string directory = "/tmp/collect_inherited_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string ingest = directory + "/ingest";
  const std::string control = directory + "/control";
  const auto daemon = activate("control:ingest", {control, ingest});
  records_a_program(*daemon, "unix:" + control);
  EXPECT_EQ(::unlink(ingest.c_str()), 0);
  EXPECT_EQ(::unlink(control.c_str()), 0);
  ::rmdir(directory.c_str());
}

TEST_F(InheritedSocketsTest, ControlSocketSpeaksTlsWhereItIsConfigured) {
  const Ending made = run(scratch_.path(), {deploy_script("make-certificates.sh"), scratch_ / "ca",
                                            "server", "localhost", "127.0.0.1"});
  ASSERT_TRUE(made.exited_with(0)) << made.errors;
  const std::string control = loopback_address();
  const auto daemon = activate(
      "ingest:control", {loopback_address(), control},
      {"--tls-certificate", scratch_ / "ca/server.pem", "--tls-key", scratch_ / "ca/server.key"});
  const Ending called = ctl(control, {"--tls-ca", scratch_ / "ca/ca.pem", "collectors"});
  EXPECT_TRUE(called.exited_with(0)) << called.errors << daemon->errors();
  EXPECT_FALSE(ctl(control, {"collectors"}).exited_with(0));
}

// The setting is at the loopback; the socket is what counts.
TEST_F(InheritedSocketsTest, ReachableSocketsNeedTlsAndACheck) {
  for (const bool is_ingest : {true, false}) {
    const std::string port = std::to_string(free_port());
    const std::string here = loopback_address();
    const auto daemon = is_ingest ? activate("control:ingest", {here, "0.0.0.0:" + port})
                                  : activate("ingest:control", {here, "0.0.0.0:" + port});
    (void)ctl("127.0.0.1:" + port, {"collectors"});  // starts it, and fails
    EXPECT_TRUE(daemon->wait(seconds(30)).exited_with(2));
    EXPECT_THAT(daemon->errors(), HasSubstr("0.0.0.0:" + port));
    EXPECT_THAT(daemon->errors(), HasSubstr("other machines can reach it, so it needs "
                                            "tls_certificate and tls_key"));
  }
}

TEST_F(InheritedSocketsTest, RefusesUnexpectedSockets) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"ingest:gate", "\"gate\": the names are ingest and control"},
      {"ingest:ingest", "\"ingest\": there is one already"},
  };
  for (const auto& [names, why] : wrong) {
    const std::string last = loopback_address();
    const auto daemon = activate(names, {loopback_address(), last});
    (void)ctl(last, {"collectors"});  // starts it, and fails
    EXPECT_TRUE(daemon->wait(seconds(30)).exited_with(2)) << names;
    EXPECT_THAT(daemon->errors(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace collect::e2e
