// The agent with TLS: real programs, recorded over TLS by a daemon that asks for it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

constexpr seconds kJobLimit{120};
constexpr const char* kToken = "correct-horse-battery";

class AgentTlsTest : public testing::Test {
 protected:
  AgentTlsTest() {
    static const Scratch certificates;
    static const bool are_made = make_all_certificates(certificates);
    EXPECT_TRUE(are_made);
    std::filesystem::copy(certificates.path(), scratch_.path(),
                          std::filesystem::copy_options::recursive);
    write_text_file(scratch_ / "token", std::string(kToken) + "\n");
    ::chmod((scratch_ / "token").c_str(), 0600);
  }

  static bool make_all_certificates(const Scratch& scratch) {
    const auto make = [&](const std::string& directory, const Arguments& what) {
      Arguments command = {deploy_script("make-certificates.sh"), scratch / directory};
      command.insert(command.end(), what.begin(), what.end());
      const Ending ending = run(scratch.path(), command);
      EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
      return ending.exited_with(0);
    };
    return make("ca", {"server", "localhost", "127.0.0.1"}) && make("ca", {"client", "phone"}) &&
           make("foreign", {"server", "localhost", "127.0.0.1"}) &&
           make("elsewhere", {"server", "elsewhere.example"});
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
    ChildProcess job(
        scratch_.path(),
        {traced_program("json_iso_codes_counted"), "1", "2", "300", short_documents(scratch_)},
        environment);
    const Ending& ending = job.wait(kJobLimit);
    ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u) << ending.errors << collector_log(collector);
    expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
  }
  // What the agent says when it may not, or can't, send anything; the program runs all the same,
  // until that was said.
  void expect_unrecorded(const CollectorProcess& collector, Environment environment,
                         const std::string& said) {
    environment["COLLECT_FULL"] = "drop";
    environment["COLLECT_EXIT_FLUSH_MS"] = "3000";
    const std::string progress = scratch_ / "progress";
    std::filesystem::remove(progress);
    ChildProcess job(scratch_.path(), {traced_program("chaos"), progress, "1"}, environment);
    EXPECT_TRUE(eventually(kJobLimit, [&] { return job.errors().find(said) != std::string::npos; }))
        << said << " is not said: " << job.errors();
    EXPECT_TRUE(eventually(kJobLimit, [&] { return is_working(progress); })) << "after " << said;
    job.send_signal(SIGTERM);
    const Ending& ending = job.wait(kJobLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    EXPECT_TRUE(session_directories(collector.root()).empty());
  }
  static bool is_working(const std::string& progress) {
    std::error_code none;
    return std::filesystem::file_size(progress, none) > 0 && !none &&
           read_progress(progress, 1)[0].done > 0;
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
  expect_unrecorded(collector, environment, "certificate required");
  environment["COLLECT_TLS_CERTIFICATE"] = scratch_ / "ca/phone.pem";
  environment["COLLECT_TLS_KEY"] = scratch_ / "ca/phone.key";
  expect_recorded(collector, environment);
}

TEST_F(AgentTlsTest, SendsNothingToWrongCollectors) {
  {
    CollectorProcess collector(scratch_, daemon_flags("foreign"));
    expect_unrecorded(collector, tracing(collector), "unable to get local issuer certificate");
  }
  Environment environment;
  {
    CollectorProcess collector(scratch_, daemon_flags("elsewhere"));
    environment = tracing(collector);
    environment["COLLECT_TLS_CA"] = scratch_ / "elsewhere/ca.pem";
    expect_unrecorded(collector, environment, "IP address mismatch");
    environment["COLLECT_CONNECT"] = "tls://localhost:" + std::to_string(collector.ingest_port());
    expect_unrecorded(collector, environment, "hostname mismatch");
  }
  CollectorProcess plain(scratch_);
  expect_unrecorded(plain, tracing(plain), "no link to the collector");
}

TEST_F(AgentTlsTest, SettingsThatCannotBeLeaveItOff) {
  CollectorProcess collector(scratch_, daemon_flags());
  const auto expect_said = [&](const char* variable, const std::string& value,
                               const std::string& said) {
    Environment environment = tracing(collector);
    environment[variable] = value;
    expect_unrecorded(collector, environment, said);
  };
  expect_said("COLLECT_TLS_CA", "", "COLLECT_TLS_CA must name");
  expect_said("COLLECT_TLS_CA", scratch_ / "none", "COLLECT_TLS_CA can't");
  expect_said("COLLECT_TLS_KEY", scratch_ / "ca/phone.key", "belong together");
  expect_said("COLLECT_CONNECT", "tls://unix:/x", "tls://host:port");
  expect_said("LD_PRELOAD", agent_library(), "this agent has no TLS");
  write_text_file(scratch_ / "token", "another\n");
  expect_said("COLLECT_TAG", "x", "has another token");
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

// The daemon ends and comes back: the program continues, and nothing is missing.
TEST_F(AgentTlsTest, RecordingSurvivesARestartOfTheDaemon) {
  CollectorProcess collector(scratch_, daemon_flags());
  Environment environment = tracing(collector);
  environment["UNTIL_FILE"] = scratch_ / "until";
  ChildProcess job(
      scratch_.path(),
      {traced_program("json_iso_codes_counted"), "1", "2", "300", short_documents(scratch_)},
      environment);
  ASSERT_TRUE(eventually(
      seconds(30), [&] { return !session_directories(collector.root(), job.pid()).empty(); }));
  collector.process().send_signal(SIGKILL);
  collector.process().wait(seconds(10));
  collector.start_again();
  ASSERT_TRUE(job.running());
  write_text_file(scratch_ / "until", "");
  const Ending& ending = job.wait(kJobLimit);
  ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
}

}  // namespace
}  // namespace collect::e2e
