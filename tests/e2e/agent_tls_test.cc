// The agent with TLS: real programs, recorded over TLS by a daemon that asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using testing::HasSubstr;

constexpr seconds kJobLimit{120};
constexpr const char* kToken = "correct-horse-battery";

class AgentTlsTest : public testing::Test {
 protected:
  AgentTlsTest() {
    make_certificates("ca", {"server", "localhost", "127.0.0.1"});
    make_certificates("ca", {"client", "phone"});
    make_certificates("foreign", {"server", "localhost", "127.0.0.1"});
    make_certificates("elsewhere", {"server", "elsewhere.example"});
    write_text_file(scratch_ / "token", std::string(kToken) + "\n");
    ::chmod((scratch_ / "token").c_str(), 0600);
  }

  void make_certificates(const std::string& directory, const Arguments& what) {
    Arguments command = {deploy_script("make-certificates.sh"), scratch_ / directory};
    command.insert(command.end(), what.begin(), what.end());
    const Ending ending = run(scratch_.path(), command);
    ASSERT_TRUE(ending.exited_with(0)) << ending.errors;
  }
  Arguments daemon_flags(const std::string& directory = "ca") const {
    return {"--tls-certificate", scratch_ / (directory + "/server.pem"),
            "--tls-key",         scratch_ / (directory + "/server.key"),
            "--token-file",      scratch_ / "token"};
  }
  Environment tracing(const CollectorProcess& collector, const std::string& host = "127.0.0.1") {
    return {{"LD_PRELOAD", tls_agent_library()},
            {"COLLECT_CONNECT", "tls://" + host + ":" + std::to_string(collector.ingest_port())},
            {"COLLECT_TLS_CA", scratch_ / "ca/ca.pem"},
            {"COLLECT_TOKEN_FILE", scratch_ / "token"},
            {"COLLECT_FULL", "wait"},
            {"COLLECT_LOG", "1"},
            {"COUNT_FILE", scratch_ / "count"}};
  }
  // Runs the counted program; everything that it counted is in its one session.
  void expect_recorded(const CollectorProcess& collector, const Environment& environment) {
    ChildProcess job(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "2", "300"},
                     environment);
    const Ending& ending = job.wait(kJobLimit);
    ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u) << ending.errors << collector_log(collector);
    expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
  }
  // What the agent says when it may not, or can't, send anything; the program runs all the same.
  std::string log_of_unrecorded(const CollectorProcess& collector, Environment environment) {
    environment["COLLECT_FULL"] = "drop";
    environment["COLLECT_EXIT_FLUSH_MS"] = "3000";
    const Ending ending = run(scratch_.path(), {traced_program("own_allocator")}, environment);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    EXPECT_TRUE(session_directories(collector.root()).empty());
    return ending.errors;
  }
  static std::string collector_log(const CollectorProcess& collector) {
    return const_cast<CollectorProcess&>(collector).process().errors();
  }

  Scratch scratch_;
};

TEST_F(AgentTlsTest, RecordsEverythingOverTls) {
  CollectorProcess collector(scratch_, daemon_flags());
  expect_recorded(collector, tracing(collector));
}

TEST_F(AgentTlsTest, NameOfTheCollectorIsChecked) {
  CollectorProcess collector(scratch_, daemon_flags());
  expect_recorded(collector, tracing(collector, "localhost"));
}

TEST_F(AgentTlsTest, ClientCertificateIsShown) {
  Arguments flags = daemon_flags();
  flags.insert(flags.end(), {"--tls-client-ca", scratch_ / "ca/ca.pem"});
  CollectorProcess collector(scratch_, flags);
  Environment environment = tracing(collector);
  EXPECT_THAT(log_of_unrecorded(collector, environment), HasSubstr("certificate required"));
  environment["COLLECT_TLS_CERTIFICATE"] = scratch_ / "ca/phone.pem";
  environment["COLLECT_TLS_KEY"] = scratch_ / "ca/phone.key";
  expect_recorded(collector, environment);
}

TEST_F(AgentTlsTest, WrongCollectorsAreToldNothing) {
  {
    CollectorProcess collector(scratch_, daemon_flags("foreign"));
    EXPECT_THAT(log_of_unrecorded(collector, tracing(collector)),
                HasSubstr("unable to get local issuer certificate"));
  }
  Environment environment;
  {
    CollectorProcess collector(scratch_, daemon_flags("elsewhere"));
    environment = tracing(collector);
    environment["COLLECT_TLS_CA"] = scratch_ / "elsewhere/ca.pem";
    EXPECT_THAT(log_of_unrecorded(collector, environment), HasSubstr("IP address mismatch"));
    environment["COLLECT_CONNECT"] = "tls://localhost:" + std::to_string(collector.ingest_port());
    EXPECT_THAT(log_of_unrecorded(collector, environment), HasSubstr("hostname mismatch"));
  }
  CollectorProcess plain(scratch_);
  EXPECT_THAT(log_of_unrecorded(plain, tracing(plain)), HasSubstr("no link to the collector"));
}

TEST_F(AgentTlsTest, SettingsThatCannotBeLeaveItOff) {
  CollectorProcess collector(scratch_, daemon_flags());
  const auto log_with = [&](const char* variable, const std::string& value) {
    Environment environment = tracing(collector);
    environment[variable] = value;
    return log_of_unrecorded(collector, environment);
  };
  EXPECT_THAT(log_with("COLLECT_TLS_CA", ""), HasSubstr("COLLECT_TLS_CA must name"));
  EXPECT_THAT(log_with("COLLECT_TLS_CA", scratch_ / "none"), HasSubstr("COLLECT_TLS_CA can't"));
  EXPECT_THAT(log_with("COLLECT_TLS_KEY", scratch_ / "ca/phone.key"), HasSubstr("belong together"));
  EXPECT_THAT(log_with("COLLECT_CONNECT", "tls://unix:/x"), HasSubstr("tls://host:port"));
  EXPECT_THAT(log_with("LD_PRELOAD", agent_library()), HasSubstr("this agent has no TLS"));
  write_text_file(scratch_ / "token", "another\n");
  EXPECT_THAT(log_with("COLLECT_TAG", "x"), HasSubstr("has another token"));
}

// Its allocator ends the program when the agent's thread comes in.
TEST_F(AgentTlsTest, AllocatorOfTheProgramIsItsOwn) {
  CollectorProcess collector(scratch_, daemon_flags());
  ChildProcess job(scratch_.path(), {traced_program("own_allocator")}, tracing(collector));
  const Ending& ending = job.wait(kJobLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].totals().events, 2u * (500'000 + 1));
}

// Children talk to the collector by connections of their own, with what OpenSSL was in the parent.
TEST_F(AgentTlsTest, ForkedChildrenAreRecordedToo) {
  CollectorProcess collector(scratch_, daemon_flags());
  ChildProcess job(scratch_.path(), {traced_program("forks"), "work"}, tracing(collector));
  const Ending& ending = job.wait(kJobLimit);
  ASSERT_TRUE(ending.exited_with(3)) << ending.describe() << ending.errors;  // as without an agent
  EXPECT_TRUE(eventually(seconds(60), [&] {
    return session_directories(collector.root()).size() == 6;  // the parent and five children
  }));
  for (const std::string& directory : session_directories(collector.root())) {
    const size_t at = directory.rfind("pid_");
    const auto sessions = sealed_sessions(collector.root(), std::stoi(directory.substr(at + 4)));
    ASSERT_EQ(sessions.size(), 1u) << directory;
    EXPECT_EQ(sessions[0].state(), "complete") << directory;
  }
}

// The daemon ends and comes back: the program goes on, and nothing is missing.
TEST_F(AgentTlsTest, RecordingSurvivesARestartOfTheDaemon) {
  CollectorProcess collector(scratch_, daemon_flags());
  Environment environment = tracing(collector);
  ChildProcess job(scratch_.path(), {traced_program("json_iso_codes_counted"), "4", "2", "300"},
                   environment);
  ASSERT_TRUE(eventually(
      seconds(30), [&] { return !session_directories(collector.root(), job.pid()).empty(); }));
  collector.process().send_signal(SIGKILL);
  collector.process().wait(seconds(10));
  collector.start_again();
  const Ending& ending = job.wait(kJobLimit);
  ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
}

}  // namespace
}  // namespace collect::e2e
