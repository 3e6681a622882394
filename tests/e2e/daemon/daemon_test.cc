// How collectord starts, refuses to start, and ends.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/daemon/web/http_client.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

Arguments daemon(const std::string& root, uint16_t ingest, uint16_t control) {
  return {program("collectord"),
          "--root",
          root,
          "--ingest",
          "127.0.0.1:" + std::to_string(ingest),
          "--control",
          "127.0.0.1:" + std::to_string(control)};
}

// Refused at the start: exit code 2, one clear line that names the culprit, nothing begun.
void expect_refused(const Ending& ending, const std::string& named) {
  EXPECT_TRUE(ending.exited_with(2)) << ending.describe() << "\n" << ending.errors;
  EXPECT_NE(ending.errors.find(named), std::string::npos) << ending.errors;
  EXPECT_EQ(std::count(ending.errors.begin(), ending.errors.end(), '\n'), 1)
      << "one line, please:\n"
      << ending.errors;
}

TEST(DaemonTest, StartsOncePerPort) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  const std::string other = scratch / "other_root";
  expect_refused(run(scratch.path(), daemon(other, collector.ingest_port(), free_port())),
                 std::to_string(collector.ingest_port()));
  expect_refused(run(scratch.path(), daemon(other, free_port(), collector.control_port())),
                 std::to_string(collector.control_port()));
}

TEST(DaemonTest, StartsOncePerRoot) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  expect_refused(run(scratch.path(), daemon(collector.root(), free_port(), free_port())),
                 collector.root());
}

TEST(DaemonTest, RootThatCannotBeWritten) {
  Scratch scratch;
  write_text_file(scratch / "a_file", "in the way\n");
  expect_refused(run(scratch.path(), daemon(scratch / "a_file/root", free_port(), free_port())),
                 "a_file");
  // /proc is not writable for root either.
  expect_refused(run(scratch.path(), daemon("/proc/collect_root", free_port(), free_port())),
                 "/proc/collect_root");
}

TEST(DaemonTest, ConfigErrorsNameTheLine) {
  Scratch scratch;
  const std::string config = scratch / "collectord.toml";
  write_text_file(config, "# fine\nroot = \"" + (scratch / "r") + "\"\ningest = \n");
  expect_refused(run(scratch.path(), {program("collectord"), "--config", config}),
                 "collectord.toml:3");
  write_text_file(config, "root = \"" + (scratch / "r") + "\"\n\nno_such_key = 1\n");
  expect_refused(run(scratch.path(), {program("collectord"), "--config", config}), "no_such_key");
  write_text_file(config, "\n\n\nroot = 42\n");
  expect_refused(run(scratch.path(), {program("collectord"), "--config", config}),
                 "collectord.toml:4");
  expect_refused(run(scratch.path(), {program("collectord"), "--config", scratch / "missing.toml"}),
                 "missing.toml");
  EXPECT_FALSE(std::filesystem::exists(scratch / "r")) << "nothing half-started";
}

TEST(DaemonTest, UnknownFlagsAndBadAddresses) {
  Scratch scratch;
  expect_refused(run(scratch.path(), {program("collectord"), "--no-such-flag"}), "--no-such-flag");
  Arguments command = daemon(scratch / "r", free_port(), free_port());
  command[4] = "nowhere";
  expect_refused(run(scratch.path(), command), "nowhere");
}

// Without TLS and something to show there; access_test.cc has the rest.
TEST(DaemonTest, OtherAddressesThanLoopbackAreRefused) {
  Scratch scratch;
  Arguments command = daemon(scratch / "r", free_port(), free_port());
  command[4] = "0.0.0.0:" + std::to_string(free_port());
  expect_refused(run(scratch.path(), command), "0.0.0.0");
  command = daemon(scratch / "r", free_port(), free_port());
  command[6] = "0.0.0.0:" + std::to_string(free_port());
  expect_refused(run(scratch.path(), command), "0.0.0.0");
}

TEST(DaemonTest, PrintsItsEffectiveConfiguration) {
  Scratch scratch;
  const std::string config = scratch / "collectord.toml";
  write_text_file(config, "root = \"" + (scratch / "from_file") + "\"\n");
  const Ending ending = run(scratch.path(), {program("collectord"), "--config", config, "--ingest",
                                             "127.0.0.1:4711", "--print-config"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  EXPECT_NE(ending.output.find(scratch / "from_file"), std::string::npos) << ending.output;
  EXPECT_NE(ending.output.find("127.0.0.1:4711"), std::string::npos) << ending.output;
  // What it prints is a configuration.
  write_text_file(scratch / "again.toml", ending.output);
  const Ending again = run(scratch.path(), {program("collectord"), "--config",
                                            scratch / "again.toml", "--print-config"});
  EXPECT_EQ(again.output, ending.output) << again.errors;
}

TEST(DaemonTest, OutputThatCannotBeWrittenIsSaid) {
  Scratch scratch;
  for (const char* flag : {"--help", "--version", "--print-config"}) {
    const std::string command = program("collectord") + " " + flag + " > /dev/full";
    const Ending ending = run(scratch.path(), {"sh", "-c", command});
    EXPECT_TRUE(ending.exited_with(1)) << flag << ending.describe();
    EXPECT_EQ(ending.errors, "collectord: cannot write standard output: No space left on device\n");
  }
}

// Starts a program and waits until its recording is under way.
std::unique_ptr<ChildProcess> recording_program(const Scratch& scratch,
                                                const CollectorProcess& collector,
                                                const std::string& rounds = "1000",
                                                const std::string& pause_ms = "20") {
  Environment environment = collector.tracing();
  environment["COUNT_FILE"] = scratch / "count";
  environment["UNTIL_FILE"] = scratch / "until";
  auto job = std::make_unique<ChildProcess>(
      scratch.path(), Arguments{traced_program("json_iso_codes_counted"), rounds, "2", pause_ms},
      environment);
  // Two counts, one after the other: the recording is under way.
  EXPECT_TRUE(eventually(seconds(30), [&] {
    const std::vector<std::string> directories = session_directories(collector.root(), job->pid());
    std::error_code none;
    return !directories.empty() &&
           std::filesystem::file_size(directories[0] + "/thread_1/index.atf", none) > 100'000 &&
           !none;
  }));
  return job;
}

Ending verify(const Scratch& scratch, const std::string& directory, const Arguments& more = {}) {
  Arguments command = {program("collectctl"), "verify", directory};
  command.insert(command.end(), more.begin(), more.end());
  return run(scratch.path(), command);
}

// It says what is missing, and what is there holds.
void expect_incomplete(const Scratch& scratch, const std::string& directory,
                       const std::string& said) {
  const Ending verified = verify(scratch, directory);
  EXPECT_TRUE(verified.exited_with(1)) << verified.output << verified.errors;
  EXPECT_NE(verified.output.find(said), std::string::npos) << verified.output;
  const Ending files = verify(scratch, directory, {"--allow-incomplete"});
  EXPECT_TRUE(files.exited_with(0)) << files.output << files.errors;
}

// The daemon is asked to end in mid-run, and no other one comes: the program does not notice, and
// what is stored can be read, and sealed without a daemon.
TEST(DaemonTest, TerminationLeavesASessionThatCanBeSealed) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  const auto job = recording_program(scratch, collector);
  const Ending& ending = collector.stop();
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_TRUE(job->running());
  const std::vector<std::string> directories = session_directories(collector.root(), job->pid());
  ASSERT_EQ(directories.size(), 1u);
  EXPECT_NE(ending.errors.find("collectctl recover " + directories[0]), std::string::npos)
      << ending.errors;
  EXPECT_EQ(RecordedSession(directories[0]).state(), "recording");
  expect_incomplete(scratch, directories[0], "collectctl recover seals it");
  const Ending recovered = run(scratch.path(), {program("collectctl"), "recover", directories[0]});
  EXPECT_TRUE(recovered.exited_with(0)) << recovered.output << recovered.errors;
  EXPECT_NE(recovered.output.find("how much is not known"), std::string::npos) << recovered.output;
  EXPECT_EQ(RecordedSession(directories[0]).state(), "recovered");
  expect_incomplete(scratch, directories[0], "the program's end of the recording never came");
}

// systemctl restart in mid-run: one session, and every event in its place.
TEST(DaemonTest, RestartContinuesTheSameSession) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  const auto job = recording_program(scratch, collector, "1", "300");
  EXPECT_TRUE(collector.stop().exited_with(0));
  EXPECT_TRUE(job->running());
  collector.start_again();
  write_text_file(scratch / "until", "");
  ASSERT_TRUE(job->wait(seconds(120)).exited_with(0));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job->pid());
  ASSERT_EQ(sessions.size(), 1u) << "the recording is one session, not two";
  expect_exactly(sessions[0], read_count(scratch / "count", job->pid()));
  const Ending verified = verify(scratch, sessions[0].directory());
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

TEST(DaemonTest, SealAtStopLeavesNothingToTheNextStart) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--seal-at-stop", "true"});
  const auto job = recording_program(scratch, collector);
  EXPECT_TRUE(collector.stop().exited_with(0));
  EXPECT_TRUE(job->running());
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job->pid());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "recovered");
  EXPECT_EQ(sessions[0].manifest().value("reason", ""), "collector stopped");
  expect_incomplete(scratch, sessions[0].directory(), "collector stopped");
}

// The session waits for its agent to come back, until someone says that it need not.
TEST(DaemonTest, KilledProgramLeavesAReadableSession) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--seal-at-stop", "true"});
  const auto job = recording_program(scratch, collector);
  job->send_signal(SIGKILL);
  job->wait(seconds(10));
  EXPECT_TRUE(collector.stop().exited_with(0));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job->pid());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "recovered");
  uint64_t in_files = 0;
  for (const CountedThread& thread : sessions[0].count_threads()) {
    in_files += thread.calls + thread.returns;
  }
  EXPECT_GT(in_files, 1000u);
  EXPECT_EQ(in_files, sessions[0].totals().events);
  expect_incomplete(scratch, sessions[0].directory(), "collector stopped");
}

// The daemon is killed in mid-run and started again: the session continues, and nothing is missing.
TEST(DaemonTest, KilledDaemonResumesItsSessions) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  environment["COUNT_FILE"] = scratch / "count";
  environment["UNTIL_FILE"] = scratch / "until";
  ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1", "2", "300"},
                   environment);
  ASSERT_TRUE(eventually(
      seconds(30), [&] { return !session_directories(collector.root(), job.pid()).empty(); }));
  collector.process().send_signal(SIGKILL);
  collector.process().wait(seconds(10));
  ASSERT_TRUE(job.running());
  collector.start_again();
  write_text_file(scratch / "until", "");
  ASSERT_TRUE(job.wait(seconds(120)).exited_with(0));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u) << "the recording is one session, not two";
  expect_exactly(sessions[0], read_count(scratch / "count", job.pid()));
}

// The disk is full: that session ends readable, the daemon lives on.
TEST(DaemonTest, FullDiskEndsTheSessionNotTheDaemon) {
  Scratch scratch;
  const std::string small = scratch / "small";
  std::filesystem::create_directories(small);
  if (!run(scratch.path(), {"mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", small})
           .exited_with(0)) {
    GTEST_SKIP() << "mounting is not permitted here (it takes root)";
  }
  {
    CollectorProcess collector(scratch, {}, small);
    ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1", "2"},
                     collector.tracing("drop"));
    EXPECT_TRUE(job.wait(seconds(120)).exited_with(0));
    const std::vector<RecordedSession> sessions = sealed_sessions(small, job.pid());
    // What the first one had reserved may be room for a short second one.
    EXPECT_FALSE(sessions.empty());
    EXPECT_LE(sessions.size(), 2u) << collector.process().errors();
    for (const RecordedSession& session : sessions) EXPECT_EQ(session.state(), "failed");
    if (!sessions.empty()) {
      EXPECT_GT(sessions[0].totals().events, 0u);
      expect_incomplete(scratch, sessions[0].directory(), "failed: storing ended (no space");
      const Ending shown = collector.ctl({"--json", "sessions"});
      EXPECT_NE(shown.output.find("storing ended (no space"), std::string::npos) << shown.output;
      const Ending report = collector.ctl({"report", sessions[0].directory()});
      EXPECT_NE(report.output.find("# the session is not complete: failed"), std::string::npos)
          << report.output;
      const Ending inspected = collector.ctl({"inspect", sessions[0].directory()});
      EXPECT_NE(inspected.output.find("how much is not known"), std::string::npos)
          << inspected.output;
    }
    EXPECT_TRUE(collector.process().running());
    EXPECT_TRUE(collector.ctl({"sessions"}).exited_with(0));
  }
  EXPECT_TRUE(run(scratch.path(), {"umount", small}).exited_with(0));
}

// What a recording was, as Prometheus hears of it.
TEST(DaemonTest, MetricsCountWhatIsStored) {
  Scratch scratch;
  const uint16_t port = free_port();
  CollectorProcess collector(scratch, {"--metrics", "127.0.0.1:" + std::to_string(port)});
  const Ending traced = run(scratch.path(), {traced_program("steady"), "burst", "100", "5"},
                            collector.tracing(), seconds(60));
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), 0);
  ASSERT_EQ(sessions.size(), 1u);
  web::HttpClient client(port);
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string text = client.read_answer().body;
  const auto value = [&](const std::string& metric) {
    const size_t at = text.find("\n" + metric + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + metric.size() + 2));
  };
  EXPECT_EQ(value("collectord_stored_events_total"),
            static_cast<double>(sessions[0].totals().events));
  EXPECT_EQ(value("collectord_lost_events_total"), 0);
  expect_refused(run(scratch.path(), {program("collectord"), "--root", scratch / "other",
                                      "--ingest", "127.0.0.1:0", "--control", "127.0.0.1:0",
                                      "--metrics", "127.0.0.1:" + std::to_string(port)}),
                 std::to_string(port));
}

TEST(DaemonTest, PacksSealedSessions) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--pack", "true"});
  const auto listed = [&collector] {
    const Ending ending = collector.ctl({"sessions", "--json"});
    const auto parsed = nlohmann::json::parse(ending.output, nullptr, false);
    return parsed.is_object() && parsed.contains("sessions") && !parsed["sessions"].empty()
               ? parsed["sessions"][0]
               : nlohmann::json::object();
  };
  const auto becomes_packed = [&] {
    return eventually(seconds(60), [&] { return listed().value("packed", false); });
  };
  const Ending traced = run(scratch.path(), {traced_program("steady"), "burst", "100", "5"},
                            collector.tracing(), seconds(60));
  ASSERT_TRUE(traced.exited_with(0)) << traced.errors;
  ASSERT_TRUE(becomes_packed());
  const std::string directory = listed().value("path", "");
  const std::string file = directory + "/thread_0/index.atf";
  EXPECT_EQ(listed().value("stored_bytes", 1u), 0u);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(verify(scratch, directory).exited_with(0));
  const Ending unpacked = collector.ctl({"unpack", "--at-collector"});
  EXPECT_TRUE(unpacked.exited_with(0)) << unpacked.errors;
  EXPECT_NE(unpacked.output.find(": not packed, "), std::string::npos) << unpacked.output;
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(verify(scratch, directory).exited_with(0));
  // The next start takes it for one that was left.
  collector.process().send_signal(SIGKILL);
  (void)collector.process().wait(seconds(30));
  collector.start_again();
  EXPECT_TRUE(becomes_packed());
  EXPECT_TRUE(verify(scratch, directory).exited_with(0));
}

TEST(DaemonTest, IsReadySoonAndIdleIsSmall) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  const uint64_t resident = collector.process().resident_bytes();
  EXPECT_GT(resident, 0u);
  EXPECT_LT(resident, 40u << 20) << "an idle daemon takes less than 40 MB";
}

}  // namespace
}  // namespace collect::e2e
