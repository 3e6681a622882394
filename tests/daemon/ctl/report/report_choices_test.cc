// What `report` can be asked for besides the functions of everything. Times are worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "daemon/ctl/report/report.h"
#include "storage/select/time_words.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using select::parse_moment;

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::index_of;
using testing::kCall;
using testing::kReturn;
using testing::Step;

constexpr uint64_t kLib = uint64_t{1} << 32;
constexpr uint64_t kA = 0xA, kB = 0xB, kC = kLib + 0xC;

class ReportChoices : public testing::OfflineTest {
 protected:
  // Thread 0: a 1000..11000, in it b 2000..5000 and b 6000..10000, in the second c 7000..9000 of
  // libc.so. Thread 1: c 1000..3000.
  void SetUp() override {
    OfflineTest::SetUp();
    write_thread(0, index_of({{1000, kCall, kA},
                              {2000, kCall, kB},
                              {5000, kReturn, kB},
                              {6000, kCall, kB},
                              {7000, kCall, kC},
                              {9000, kReturn, kC},
                              {10000, kReturn, kB},
                              {11000, kReturn, kA}},
                             100));
    write_thread(1, index_of({{1000, kCall, kC}, {3000, kReturn, kC}}, 101));
    write_manifest("[]");
    options_.path = session_.string();
    options_.json = true;
  }
  void write_manifest(const std::string& gaps, const fs::path& session = {}) {
    write_text((session.empty() ? session_ : session) / "manifest.json",
               R"({"threads":[{"id":0,"name":"main"},{"id":1}],"modules":[
                 {"module_id":0,"path":"/bin/app"},{"module_id":1,"path":"/lib/libc.so"}],
                 "symbols":[{"function_id":"0xa","name":"a","file":"src/a.c","line":12},{"function_id":"0xb","name":"b"},
                 {"function_id":"0x10000000c","name":"c"}],"gaps":)" +
                   gaps + "}");
  }
  json run() {
    out_.str("");
    EXPECT_EQ(report(options_, out_, err_), 0) << err_.str();
    return json::parse(out_.str());
  }
  std::string text() {
    options_.json = false;
    out_.str("");
    EXPECT_EQ(report(options_, out_, err_), 0) << err_.str();
    return out_.str();
  }
  static json row(const json& rows, const std::string& name) {
    for (const json& each : rows) {
      if (each["name"] == name) return each;
    }
    return nullptr;
  }
  static void expect(const json& row, uint64_t calls, uint64_t total_ns, uint64_t self_ns) {
    ASSERT_FALSE(row.is_null());
    EXPECT_EQ(row["calls"], calls) << row;
    EXPECT_EQ(row["total_ns"], total_ns) << row;
    EXPECT_EQ(row["self_ns"], self_ns) << row;
  }
  ReportOptions options_;
};

TEST_F(ReportChoices, ByThread) {
  options_.by = ReportBy::kThread;
  const json document = run();
  expect(row(document["by_thread"], "main"), 4, 10000, 10000);
  expect(row(document["by_thread"], "thread_1"), 1, 2000, 2000);
  EXPECT_EQ(row(document["by_thread"], "main")["tid"], 100);
  EXPECT_EQ(document["running_ns"], 12000);
}

TEST_F(ReportChoices, ByModule) {
  options_.by = ReportBy::kModule;
  const json document = run();
  expect(row(document["modules"], "app"), 3, 10000, 8000);
  expect(row(document["modules"], "libc.so"), 2, 4000, 4000);
}

TEST_F(ReportChoices, ByCaller) {
  options_.by = ReportBy::kCaller;
  const json document = run();
  ASSERT_EQ(document["callers"].size(), 4u);
  for (const json& each : document["callers"]) {
    if (each["name"] != "c") continue;
    expect(each, 1, 2000, 2000);
    EXPECT_TRUE(each["caller"] == "b" || each["caller"] == "(no caller)") << each;
  }
  expect(row(document["callers"], "b"), 2, 7000, 5000);
  EXPECT_EQ(row(document["callers"], "b")["caller"], "a");
}

TEST_F(ReportChoices, PercentilesOfFewCallsAreTheirDurations) {
  const json b = row(run()["functions"], "b");
  EXPECT_EQ(b["shortest_ns"], 3000);
  EXPECT_EQ(b["longest_ns"], 4000);
  // 3000 is in the bucket 2944..3071, 4000 in 3968..4095, whose middle is not above the longest.
  EXPECT_EQ(b["p50_ns"], 3008);
  EXPECT_EQ(b["p99_ns"], 4000);
  options_.percentiles = true;
  EXPECT_THAT(text(), HasSubstr("p50           p95           p99"));
}

TEST_F(ReportChoices, FilesAndLines) {
  const json functions = run()["functions"];
  EXPECT_EQ(row(functions, "a")["file"], "src/a.c");
  EXPECT_EQ(row(functions, "a")["line"], 12);
  EXPECT_FALSE(row(functions, "b").contains("file"));
  EXPECT_EQ(text().find("src/a.c"), std::string::npos);
  options_.lines = true;
  EXPECT_THAT(text(), HasSubstr("  a  src/a.c:12\n"));
  EXPECT_THAT(text(), HasSubstr("  b\n"));
}

TEST_F(ReportChoices, WindowSinceTheStart) {
  options_.when.from = "3us";
  options_.when.until = "7us";
  const json document = run();
  // 4000..8000: a all of it; b 4000..5000 and 6000..8000, of which c has 7000..8000.
  expect(row(document["functions"], "a"), 1, 4000, 1000);
  expect(row(document["functions"], "b"), 2, 3000, 2000);
  expect(row(document["functions"], "c"), 1, 1000, 1000);
  EXPECT_EQ(document["from_ns"], 4000);
  EXPECT_EQ(document["to_ns"], 8000);
  EXPECT_EQ(document["calls_cut_by_window"], 3);
  options_.when.from = "4000";
  options_.when.until = "8000";
  EXPECT_EQ(run()["functions"], document["functions"]) << "times of the device's clock";
  options_.when.from = "9000";
  out_.str("");
  EXPECT_EQ(report(options_, out_, err_), 2);
  options_.when.from = "noon";
  EXPECT_EQ(report(options_, out_, err_), 2);
  options_.when.from = "12:00:00";
  options_.json = false;
  EXPECT_EQ(report(options_, out_, err_), 2);
  EXPECT_THAT(
      err_.str(),
      HasSubstr("collectctl: --from: \"12:00:00\": the capture does not say what time of day"));
}

TEST_F(ReportChoices, GapCutsWhatEndedInIt) {
  // The second b and its c are lost but for c's begin: c ended in the gap, a did not.
  write_thread(0, index_of({{1000, kCall, kA},
                            {2000, kCall, kB},
                            {5000, kReturn, kB},
                            {6000, kCall, kB},
                            {7000, kCall, kC},
                            {11000, kReturn, kA}},
                           100));
  write_manifest(R"([{"thread":0,"lane":"index","before_seq":5,"lost":2}])");
  const json document = run();
  EXPECT_EQ(document["gaps"], 1);
  EXPECT_EQ(document["calls_cut_by_gap"], 2);
  expect(row(document["functions"], "a"), 1, 10000, 10000 - 3000 - 1000);
  expect(row(document["functions"], "b"), 2, 4000, 4000);
  EXPECT_EQ(row(document["functions"], "b")["calls_cut_by_gap"], 1);
  EXPECT_THAT(text(), HasSubstr("# 2 calls ended while events were lost"));
}

// A function that is called at each level of a recursion has a path for each, as long as it is
// deep.
TEST_F(ReportChoices, PathsOfAGraphAreBounded) {
  constexpr uint64_t kDepth = 3000;
  std::vector<Step> steps;
  for (uint64_t i = 0; i < kDepth; ++i) {
    steps.insert(
        steps.end(),
        {{1000 + 30 * i, kCall, kA}, {1010 + 30 * i, kCall, kB}, {1020 + 30 * i, kReturn, kB}});
  }
  write_thread(0, index_of(steps, 100));
  options_.graph = "b";
  options_.by = ReportBy::kFunction;
  const json found = run();
  size_t frames = 0;
  for (const json& path : found["backtraces"]) {
    frames += path["functions"].size();
    EXPECT_EQ(path["functions"].back(), "b");
    const uint64_t more = path.value("frames_left_out", uint64_t{0});
    EXPECT_EQ(path["functions"].size(),
              more != 0 ? 1024 : std::min<size_t>(path["functions"].size(), 1024));
  }
  EXPECT_LE(frames, size_t{1} << 20);
  EXPECT_EQ(found["backtraces"].size() + found["backtraces_left_out"].get<size_t>(), kDepth);
  EXPECT_EQ(found["callees"][0]["calls"], kDepth) << "the times are those of all";
  const std::string words = text();
  EXPECT_THAT(words, HasSubstr(" more) > a > a"));
  EXPECT_THAT(words, HasSubstr(" more paths: they are too long to be shown, all of them"));
}

TEST_F(ReportChoices, GraphHasThePathsAndWhatWasCalled) {
  options_.graph = "b";
  const json document = run();
  ASSERT_EQ(document["backtraces"].size(), 1u);
  EXPECT_EQ(document["backtraces"][0]["functions"], json({"a", "b"}));
  EXPECT_EQ(document["backtraces"][0]["total_ns"], 7000);
  ASSERT_EQ(document["callees"].size(), 2u);
  EXPECT_EQ(document["callees"][1]["name"], "c");
  EXPECT_EQ(document["callees"][1]["depth"], 1);
  EXPECT_EQ(document["callees"][1]["total_ns"], 2000);
  options_.graph = "c";
  EXPECT_EQ(run()["backtraces"].size(), 2u);
  EXPECT_THAT(text(), HasSubstr("a > b > c\n"));
  options_.graph = "nothing";
  EXPECT_EQ(report(options_, out_, err_), 1);
}

TEST_F(ReportChoices, DiffPutsTheSameNameSideBySide) {
  const fs::path other = root_ / "session_20250102_040506" / "pid_43";
  atf::testing::write_file(
      other / "thread_0" / "index.atf",
      index_of({{0, kCall, kA}, {100, kCall, 0xD}, {400, kReturn, 0xD}, {2000, kReturn, kA}}, 100));
  write_manifest("[]", other);
  options_.other = other.string();
  const json document = run();
  const json a = row(document["functions"], "a");
  EXPECT_EQ(a["before"]["total_ns"], 10000);
  EXPECT_EQ(a["after"]["total_ns"], 2000);
  EXPECT_EQ(a["after"]["self_ns"], 1700);
  EXPECT_EQ(row(document["functions"], "b")["after"]["calls"], 0);
  EXPECT_EQ(document["functions"][0]["name"], "a") << "the largest change comes first";
  EXPECT_EQ(document["before"]["events"], 10);
  EXPECT_EQ(document["after"]["events"], 4);
  EXPECT_THAT(text(), HasSubstr("  10.000 us      2.000 us     -8.000 us   80.0"));
  options_.graph = "a";
  EXPECT_EQ(report(options_, out_, err_), 2);
}

TEST(TimeWords, MomentsAsPeopleWriteThem) {
  select::SessionTimes session;
  session.start_ns = 5'000;
  EXPECT_EQ(*parse_moment("1ms", session), 1'005'000u);
  EXPECT_EQ(*parse_moment("2.5s", session), 2'500'005'000u);
  EXPECT_EQ(*parse_moment("300ns", session), 5'300u);
  EXPECT_EQ(*parse_moment("0s", session), 5'000u);
  EXPECT_EQ(*parse_moment("1234", session), 1'234u);
  EXPECT_EQ(parse_moment("14:03:05", session).code(), Code::kNotFound);
  for (const char* bad : {"", "soon", "-1s", "14:03:05x", "25:00:00", "14:03:05.", "1:2:3:4"}) {
    EXPECT_EQ(parse_moment(bad, session).code(), Code::kInvalidArgument) << bad;
  }
  // 2026-11-25 14:03:00 UTC (`date -u -d ... +%s`) at 5000 of the device's clock.
  storage::Manifest manifest;
  manifest.identity.start_ns = 5'000;
  manifest.identity.start_unix_ns = 1'795'615'380'000'000'000;
  select::TimeLine line;
  session.clock = *line.add(manifest);
  EXPECT_EQ(*parse_moment("14:03:05Z", session), 5'000'005'000u);
  EXPECT_EQ(*parse_moment("14:03:05.25Z", session), 5'250'005'000u);
  EXPECT_EQ(*parse_moment("2026-11-25T14:04:00Z", session), 60'000'005'000u);
  EXPECT_EQ(parse_moment("2026-11-25 14:03Z", session).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace collect::ctl
