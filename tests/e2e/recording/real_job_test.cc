// The main job on real input: nlohmann-json reads Debian's iso-codes on several threads, traced
// over TCP into files, steered in mid-run through gRPC. Not one event is lost, doubled or out of
// order: the judge is a counter linked into the same program.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/grpc_tool.h"
#include "tests/e2e/recorded_session.h"
#include "tests/formats/reference_files.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr seconds kJobLimit{240};

class RealJob : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory("/usr/share/iso-codes/json")) {
      GTEST_SKIP() << "iso-codes is not installed";
    }
  }
};

// 29 million events on four threads.
TEST_P(RealJob, EveryEventIsInTheFilesInOrder) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing("wait", GetParam());
  environment["COUNT_FILE"] = scratch / "count";
  ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1", "4"},
                   environment);
  const Ending ending = job.wait(kJobLimit);
  ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  const IndependentCount count = read_count(scratch / "count", job.pid());
  EXPECT_GT(count.events(), 20'000'000u) << "tens of millions of events";
  EXPECT_EQ(count.threads.size(), 5u);
  expect_exactly(sessions[0], count);
  const Ending verified = collector.ctl({"verify", sessions[0].directory()}, kJobLimit);
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;

  // What ran is named: functions of the library, from the symbols of the program.
  const json& symbols = sessions[0].manifest()["symbols"];
  EXPECT_GT(symbols.size(), 100u);
  const bool has_parser = std::any_of(symbols.begin(), symbols.end(), [](const json& symbol) {
    return symbol.value("name", std::string()).find("nlohmann::") != std::string::npos;
  });
  EXPECT_TRUE(has_parser);
}

INSTANTIATE_TEST_SUITE_P(AtfVersions, RealJob, testing::Values(1, 2),
                         [](const auto& test) { return "Version" + std::to_string(test.param); });

// The independent checker reads all bytes in Python: a smaller run, with detail from the first
// event.
TEST(RealJobTest, IndependentCheckersAcceptIndexAndDetail) {
  for (const char* version : {"1", "2"}) {
    Scratch scratch;
    CollectorProcess collector(scratch);
    Environment environment = collector.tracing("wait", std::atoi(version));
    environment["COUNT_FILE"] = scratch / "count";
    environment["COLLECT_DETAIL"] = "on";
    environment["COLLECT_BUFFER_MB"] = "256";  // all of it fits: detail records do not wait
    ChildProcess job(scratch.path(), {traced_program("threads"), "short"}, environment);
    ASSERT_TRUE(job.wait(kJobLimit).exited_with(0));
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    expect_exactly(sessions[0], read_count(scratch / "count", job.pid()));
    EXPECT_EQ(sessions[0].totals().detail_records, sessions[0].totals().events)
        << "detail was on from the first event to the last";
    for (const auto& program : reference::independent_programs("check_atf.py", "atf_check.py")) {
      const Ending checked =
          run(scratch.path(), {"python3", "-B", program.string(), sessions[0].directory()}, {},
              kJobLimit);
      EXPECT_TRUE(checked.exited_with(0)) << program << checked.output << checked.errors;
    }
  }
}

// Two programs at the same time, one on each ATF version: nothing of one gets into the other.
TEST(RealJobTest, TwoProgramsAtOnceStayApart) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment first = collector.tracing("wait", 1);
  Environment second = collector.tracing("wait", 2);
  first["COUNT_FILE"] = second["COUNT_FILE"] = scratch / "count";
  ChildProcess one(scratch.path(), {traced_program("threads"), "many"}, first);
  ChildProcess other(scratch.path(), {traced_program("threads"), "short"}, second);
  ASSERT_TRUE(one.wait(kJobLimit).exited_with(0));
  ASSERT_TRUE(other.wait(kJobLimit).exited_with(0));
  for (const ChildProcess* child : {&one, &other}) {
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), child->pid());
    ASSERT_EQ(sessions.size(), 1u);
    expect_exactly(sessions[0], read_count(scratch / "count", child->pid()));
  }
}

// 200 threads that all live, on 16 pages: who waits for one gets it of those who write nothing.
TEST(RealJobTest, MoreThreadsThanPagesLoseNothing) {
  for (const char* drain : {"thread", "process"}) {
    Scratch scratch;
    CollectorProcess collector(scratch);
    Environment environment = collector.tracing("wait");
    environment["COUNT_FILE"] = scratch / "count";
    environment["COLLECT_BUFFER_MB"] = "1";
    environment["COLLECT_DRAIN"] = drain;
    ChildProcess job(scratch.path(), {traced_program("threads"), "many"}, environment);
    ASSERT_TRUE(job.wait(kJobLimit).exited_with(0)) << drain;
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    SCOPED_TRACE(drain);
    expect_exactly(sessions[0], read_count(scratch / "count", job.pid()));
  }
}

// With a small ring and the default policy events are dropped: the files say exactly how many.
TEST(RealJobTest, DroppedAndOverwrittenEventsAreCountedExactly) {
  for (const char* policy : {"drop", "overwrite"}) {
    Scratch scratch;
    CollectorProcess collector(scratch);
    Environment environment = collector.tracing(policy);
    environment["COUNT_FILE"] = scratch / "count";
    environment["COLLECT_BUFFER_MB"] = "1";
    ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "1", "4"},
                     environment);
    ASSERT_TRUE(job.wait(kJobLimit).exited_with(0)) << policy;
    const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    SCOPED_TRACE(policy);
    expect_accounted(sessions[0], read_count(scratch / "count", job.pid()));
  }
}

// A stranger's tool steers the recording: reflection, detail on and off in mid-run, the manifest.
class Steering : public testing::TestWithParam<const char*> {};

bool has_detail_file(const std::string& session) {
  for (const auto& thread : std::filesystem::directory_iterator(session)) {
    if (std::filesystem::exists(thread.path() / "detail.atf")) return true;
  }
  return false;
}

TEST_P(Steering, DetailStartsAndStopsDuringTheRun) {
  const GrpcTool tool(GetParam());
  if (!tool.is_there()) {
    GTEST_SKIP() << GetParam() << " names no program (deploy/test.sh sets it)";
  }
  Scratch scratch;
  CollectorProcess collector(scratch);
  Environment environment = collector.tracing();
  environment["COUNT_FILE"] = scratch / "count";
  // Many rounds with a pause after each document: it runs for longer than the steering takes.
  ChildProcess job(scratch.path(), {traced_program("json_iso_codes_counted"), "3", "2", "400"},
                   environment);
  ASSERT_TRUE(eventually(
      seconds(20), [&] { return !session_directories(collector.root(), job.pid()).empty(); }));
  const Ending methods = tool.list_methods(collector, scratch);
  EXPECT_TRUE(methods.exited_with(0)) << methods.errors;
  for (const char* method :
       {"ListAgents", "GetAgent", "WatchAgents", "AttachAgent", "DetachAgent", "ListSessions",
        "GetSession", "StartSession", "StopSession", "WatchSession", "GetManifest", "ArmDetail",
        "StartDetail", "StopDetail", "SetRules", "GetRules", "GetStats"}) {
    EXPECT_NE(methods.output.find(method), std::string::npos) << method << "\n" << methods.output;
  }
  const Ending started = tool.call(collector, scratch, "StartDetail", "{}");
  ASSERT_TRUE(started.exited_with(0)) << started.errors;
  const json outcome = json::parse(started.output, nullptr, false);
  ASSERT_TRUE(outcome.is_object() && outcome.contains("outcomes")) << started.output;
  EXPECT_EQ(outcome["outcomes"].size(), 1u) << started.output;
  EXPECT_FALSE(outcome["outcomes"][0].contains("error")) << started.output;
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return has_detail_file(session_directories(collector.root(), job.pid()).front());
  })) << "no detail record came";
  const Ending stopped = tool.call(collector, scratch, "StopDetail", "{}");
  ASSERT_TRUE(stopped.exited_with(0)) << stopped.errors;
  const Ending fetched = tool.call(collector, scratch, "GetManifest", "{}");
  ASSERT_TRUE(fetched.exited_with(0)) << fetched.errors;
  const json manifest = json::parse(fetched.output, nullptr, false);
  EXPECT_EQ(manifest.value("state", std::string()), "recording");
  EXPECT_TRUE(job.running()) << "the steering was not in mid-run";

  ASSERT_TRUE(job.wait(kJobLimit).exited_with(0));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(scratch / "count", job.pid()));
  const SessionTotals totals = sessions[0].totals();
  EXPECT_GT(totals.detail_records, 0u);
  EXPECT_LT(totals.detail_records, totals.events);
  const Ending asked = tool.call(collector, scratch, "GetStats", "{}");
  ASSERT_TRUE(asked.exited_with(0)) << asked.errors;
  const json stats = json::parse(asked.output, nullptr, false);
  // JSON of Protobuf writes 64-bit numbers as strings.
  EXPECT_EQ(stats.value("eventsStored", std::string()), std::to_string(totals.events));
  EXPECT_EQ(stats.value("detailRecordsStored", std::string()),
            std::to_string(totals.detail_records));
  const json& windows = sessions[0].manifest()["detail_windows"];
  ASSERT_EQ(windows.size(), 1u) << windows.dump();
  EXPECT_LT(windows[0].value("start_ns", uint64_t{0}), windows[0].value("end_ns", uint64_t{0}));
  const Ending verified = collector.ctl({"verify", sessions[0].directory()}, kJobLimit);
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

INSTANTIATE_TEST_SUITE_P(Tools, Steering, testing::Values("COLLECT_BUF", "COLLECT_GRPCURL"),
                         [](const auto& test) { return std::string(test.param).substr(8); });

}  // namespace
}  // namespace collect::e2e
