// RTC containers of a real program: rolled and annotated while it runs, and enough to build the
// session again, byte for byte; a daemon that was killed leaves containers that rebuild too.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collect/control/v1/control.grpc.pb.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

std::vector<std::string> containers_in(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".rtc") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void expect_same_threads(const std::string& recorded, const std::string& rebuilt) {
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(recorded)) {
    if (entry.path().extension() != ".atf") continue;
    ++files;
    const fs::path twin = fs::path(rebuilt) / fs::relative(entry.path(), recorded);
    EXPECT_TRUE(bytes_of(entry.path()) == bytes_of(twin)) << twin;
  }
  EXPECT_GT(files, 1u);
}

// collectctl convert --json … --to atf -o target: the directory of the session.
std::string rebuild(const Scratch& scratch, const std::vector<std::string>& containers,
                    const std::string& target, int expected_code = 0) {
  Arguments command = {program("collectctl"), "convert", "--json", "--to", "atf", "-o", target};
  command.insert(command.end(), containers.begin(), containers.end());
  const Ending ending = run(scratch.path(), command, {}, seconds(120));
  EXPECT_TRUE(ending.exited_with(expected_code)) << ending.describe() << ending.errors;
  const auto report = nlohmann::json::parse(ending.output, nullptr, false);
  if (report.is_discarded() || report["written"].empty()) return "";
  return report["written"][0]["path"];
}

// RollContainer, for which collectctl has no command.
std::pair<grpc::Status, control::v1::RollContainerResponse> roll(
    const CollectorProcess& collector) {
  const auto stub = control::v1::Collector::NewStub(
      grpc::CreateChannel(collector.control(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  control::v1::RollContainerResponse response;
  const grpc::Status status =
      stub->RollContainer(&context, control::v1::RollContainerRequest(), &response);
  return {status, response};
}

TEST(CaptureTest, ContainersOfARealProgramRebuildItsSession) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--rtc-roll-bytes", "4000000"});
  Environment environment = collector.tracing();
  environment["COLLECT_BUFFER_MB"] = "64";
  environment["UNTIL_FILE"] = scratch / "until";
  ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1", "3", "40"},
                   environment);
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const auto directories = session_directories(collector.root(), job.pid());
    return !directories.empty() && !containers_in(directories[0]).empty();
  }));
  // They are there a moment before the session is shown as recording.
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return collector.ctl({"sessions"}).output.find("recording") != std::string::npos;
  }));
  const Ending detail = collector.ctl({"detail", "start"});
  EXPECT_TRUE(detail.exited_with(0)) << detail.errors;
  const Ending marked = collector.ctl({"annotate", "half way"});
  EXPECT_TRUE(marked.exited_with(0)) << marked.errors;
  const Ending stopped = collector.ctl({"detail", "stop"});
  EXPECT_TRUE(stopped.exited_with(0)) << stopped.errors;
  const auto rolled = roll(collector);
  EXPECT_TRUE(rolled.first.ok()) << rolled.first.error_message();
  ASSERT_EQ(rolled.second.outcomes_size(), 1);
  const std::string begun = rolled.second.outcomes(0).path();
  EXPECT_TRUE(fs::exists(begun)) << begun;
  write_text_file(scratch / "until", "");
  ASSERT_TRUE(job.wait(seconds(120)).exited_with(0));

  const auto sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  ASSERT_EQ(sessions[0].state(), "complete");
  ASSERT_EQ(sessions[0].manifest()["markers"].size(), 1u);
  EXPECT_EQ(sessions[0].manifest()["markers"][0]["text"], "half way");
  const auto containers = containers_in(sessions[0].directory());
  ASSERT_GT(containers.size(), 2u);
  for (const std::string& container : containers) {
    const Ending verified = run(scratch.path(), {program("collectctl"), "verify", container});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }
  const std::string rebuilt = rebuild(scratch, containers, scratch / "rebuilt");
  ASSERT_FALSE(rebuilt.empty());
  expect_same_threads(sessions[0].directory(), rebuilt);
  // Names came after the containers' end; they are looked up again, with the same outcome.
  const Ending named = run(scratch.path(), {program("collectctl"), "symbolize", rebuilt});
  EXPECT_EQ(named.signal, 0) << named.output << named.errors;
  auto was = sessions[0].manifest();
  auto is = nlohmann::json::parse(bytes_of(rebuilt + "/manifest.json"));
  EXPECT_FALSE(is["symbols"].empty());
  for (const char* key : {"threads", "gaps", "symbols", "modules", "markers", "detail_windows",
                          "totals", "process", "state"}) {
    EXPECT_EQ(was[key], is[key]) << key;
  }
  const Ending verified = run(scratch.path(), {program("collectctl"), "verify", rebuilt});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;

  // And the other way: the session into one container, and back.
  const std::string one = scratch / "one.rtc";
  const Ending converted =
      run(scratch.path(), {program("collectctl"), "convert", rebuilt, "--to", "rtc", "-o", one});
  EXPECT_TRUE(converted.exited_with(0)) << converted.output << converted.errors;
  const std::string again = rebuild(scratch, {one}, scratch / "again");
  ASSERT_FALSE(again.empty());
  expect_same_threads(rebuilt, again);
}

TEST(CaptureTest, DaemonThatWasKilledLeavesContainersThatRebuild) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1000", "2", "20"},
                   environment);
  std::string directory;
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const auto directories = session_directories(collector.root(), job.pid());
    if (directories.empty()) return false;
    directory = directories[0];
    std::error_code none;
    return fs::file_size(directory + "/capture-000001.rtc", none) > 1'000'000 && !none;
  }));
  collector.process().send_signal(SIGKILL);
  collector.process().wait(seconds(10));
  job.send_signal(SIGKILL);
  job.wait(seconds(10));
  const std::string rebuilt =
      rebuild(scratch, containers_in(directory), scratch / "rebuilt", 1);  // the end is missing
  ASSERT_FALSE(rebuilt.empty());
  const Ending verified =
      run(scratch.path(), {program("collectctl"), "verify", "--allow-incomplete", rebuilt});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  // The thread files of the killed daemon, sealed offline, hold at least as much.
  const Ending recovered = run(scratch.path(), {program("collectctl"), "recover", directory});
  EXPECT_TRUE(recovered.exited_with(0)) << recovered.output << recovered.errors;
  const Ending sealed =
      run(scratch.path(), {program("collectctl"), "verify", "--allow-incomplete", directory});
  EXPECT_TRUE(sealed.exited_with(0)) << sealed.output << sealed.errors;
  EXPECT_GT(RecordedSession(rebuilt).totals().events, 10'000u);
  EXPECT_GE(RecordedSession(directory).totals().events, RecordedSession(rebuilt).totals().events);
  collector.start_again();
}

TEST(CaptureTest, RefusesToRollWithContainersOff) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--rtc", "false"});
  Environment environment = collector.tracing();
  ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1000", "1", "20"},
                   environment);
  ASSERT_TRUE(eventually(
      seconds(30), [&] { return !session_directories(collector.root(), job.pid()).empty(); }));
  // Its directory is there a moment before its agent is shown as recording.
  std::string refusal;
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const auto [status, response] = roll(collector);
    refusal = status.error_message();
    for (const auto& outcome : response.outcomes()) refusal += outcome.error().message();
    return refusal.find("no session records now") == std::string::npos;
  }));
  EXPECT_NE(refusal.find("rtc = true"), std::string::npos) << refusal;
  job.send_signal(SIGKILL);
  job.wait(seconds(10));
  EXPECT_TRUE(containers_in(session_directories(collector.root(), job.pid())[0]).empty());
}

}  // namespace
}  // namespace collect::e2e
