// What the commands that read files make of stalls. Times are worked out by hand, in the comments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/report/report.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::index_of;
using testing::kCall;
using testing::kReturn;
using ::testing::Not;

class StalledSession : public testing::OfflineTest {
 protected:
  // Thread 0: a 1000..11000, in it b 2000..9000, in b c 3000..4000. It waits 3500..3700 (in c) and
  // 5000..8000 (in b). Thread 1: c 1000..20000. The process is stopped 10000..10500 (a) and the
  // machine sleeps 12000..15000 (thread 1 alone is there).
  void SetUp() override {
    OfflineTest::SetUp();
    write_thread(0, index_of({{1000, kCall, 0xA},
                              {2000, kCall, 0xB},
                              {3000, kCall, 0xC},
                              {4000, kReturn, 0xC},
                              {9000, kReturn, 0xB},
                              {11000, kReturn, 0xA}},
                             100));
    write_thread(1, index_of({{1000, kCall, 0xC}, {20000, kReturn, 0xC}}, 101));
    write_manifest(R"([{"kind":"stopped","first_ns":10000,"last_ns":10500},
      {"kind":"suspended","first_ns":12000,"last_ns":15000},
      {"kind":"page_wait","first_ns":3500,"last_ns":3700,"thread":0},
      {"kind":"page_wait","first_ns":5000,"last_ns":8000,"joined":4,"stalled_ns":1500,"thread":0}])");
  }
  void write_manifest(const std::string& stalls) {
    write_text(session_ / "manifest.json",
               R"({"state":"complete","threads":[{"id":0,"ended":true},{"id":1,"ended":true}],
                   "symbols":[{"function_id":"0xa","name":"a"},{"function_id":"0xb","name":"b"},
                              {"function_id":"0xc","name":"c"}],"stalls":)" +
                   stalls + "}");
  }
  std::string report_text(bool as_json) {
    out_.str("");
    ReportOptions options;
    options.path = session_.string();
    options.json = as_json;
    EXPECT_EQ(report(options, out_, err_), 0) << err_.str();
    return out_.str();
  }
  std::string dumped(bool as_json, bool merged, std::vector<std::string> functions = {}) {
    out_.str("");
    DumpOptions options;
    options.paths = {session_.string()};
    options.json = as_json;
    options.merged = merged;
    options.functions = std::move(functions);
    EXPECT_EQ(dump(options, out_, err_), 0) << err_.str();
    return out_.str();
  }
};

TEST_F(StalledSession, LeavesStallsOutOfTheTimesOfOpenCalls) {
  const json document = json::parse(report_text(true));
  std::map<std::string, std::pair<uint64_t, uint64_t>> times;
  for (const json& row : document["functions"]) {
    times[row["name"]] = {row["total_ns"], row["self_ns"]};
  }
  // c: 1000 - 200, and on thread 1 19000 - 500 - 3000.
  EXPECT_EQ(times["c"], std::make_pair(uint64_t{800 + 15500}, uint64_t{800 + 15500}));
  // b: 7000 - 200 - 1500, of these 800 in c.
  EXPECT_EQ(times["b"], std::make_pair(uint64_t{5300}, uint64_t{4500}));
  // a: 10000 - 1700 - 500, of these 5300 in b.
  EXPECT_EQ(times["a"], std::make_pair(uint64_t{7800}, uint64_t{2500}));
  EXPECT_EQ(document["stalls"], 1 + 4 + 1 + 2);  // the stop is one of both threads
  EXPECT_EQ(document["stalled_ns"], 200 + 1500 + 500 + 500 + 3000);
  EXPECT_THAT(report_text(false), HasSubstr("\n# 8 stalls, 5.700 us, subtracted from the times\n"));
}

TEST_F(StalledSession, WithoutStallsNothingIsSaidOfThem) {
  write_manifest("[]");
  EXPECT_THAT(report_text(false), Not(HasSubstr("stall")));
  EXPECT_EQ(json::parse(report_text(true))["stalled_ns"], 0);
  EXPECT_THAT(dumped(false, false), Not(HasSubstr("~")));
}

TEST_F(StalledSession, DumpShowsEachInItsPlace) {
  const std::string text = dumped(false, false);
  EXPECT_THAT(text,
              HasSubstr("c() {\n"
                        "         2.500       0.200 |       ~ waited for the collector\n"
                        "         3.000       1.000 |     } c\n"
                        "         4.000       1.500 |     ~ waited for the collector, 4 times "
                        "in 3.000 us\n"
                        "         8.000       7.000 |   } b\n"
                        "         9.000       0.500 |   ~ the process was stopped\n"));
  EXPECT_THAT(text, HasSubstr("~ the machine slept\n"));
  EXPECT_THAT(dumped(false, false, {"b"}), Not(HasSubstr("~")));
}

TEST_F(StalledSession, MergedTheyStandInTheOrderOfTime) {
  std::vector<uint64_t> times;
  size_t stalls = 0;
  std::istringstream lines(dumped(true, true));
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    times.push_back(object["ts_ns"]);
    if (object["kind"] != "stall") continue;
    ++stalls;
    EXPECT_FALSE(object.contains("seq"));
    if (object["ts_ns"] != 5000) continue;
    EXPECT_EQ(object["stall"], "page_wait");
    EXPECT_EQ(object["tid"], 100);
    EXPECT_EQ(object["last_ns"], 8000);
    EXPECT_EQ(object["stalled_ns"], 1500);
    EXPECT_EQ(object["joined"], 4);
  }
  EXPECT_EQ(times.size(), 8u + 6u);
  EXPECT_EQ(stalls, 6u);  // two of thread 0, two of the process on each of two threads
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

TEST_F(StalledSession, InspectCountsThem) {
  InspectOptions options;
  options.path = session_.string();
  EXPECT_EQ(inspect(options, out_, err_), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("stalls    7, 5.20 us, of these 1.70 us waiting"));
  out_.str("");
  options.json = true;
  EXPECT_EQ(inspect(options, out_, err_), 0);
  const json manifest = json::parse(out_.str())["manifest"];
  EXPECT_EQ(manifest["stalls"], 7);
  EXPECT_EQ(manifest["stalled_ns"], 5200);
}

json converted(const std::string& input, exports::Target to, const std::string& output) {
  ConvertOptions options;
  options.inputs = {input};
  options.to = to;
  options.output = output;
  options.json = true;
  std::ostringstream out, err;
  EXPECT_EQ(convert(options, out, err), 0) << err.str();
  return json::parse(out.str());
}

TEST_F(StalledSession, ReportsStallsLeftOutByOtherFormats) {
  for (const auto& [target, file] : {std::pair(exports::Target::kWtf, "x.wtf-trace"),
                                     std::pair(exports::Target::kDial9, "x.d9")}) {
    const json said = converted(session_.string(), target, (root_ / file).string());
    uint64_t left_out = 0;
    for (const auto& [what, count] : said["left_out"].items()) {
      if (what == "stalls") left_out = count;
    }
    EXPECT_EQ(left_out, 7u) << file << said["left_out"];
  }
}

TEST_F(StalledSession, ContainerHoldsThem) {
  const std::string container = (root_ / "x.rtc").string();
  const json there = converted(session_.string(), exports::Target::kRtc, container);
  EXPECT_TRUE(there["left_out"].empty()) << there["left_out"];
  const json was = json::parse(report_text(true));
  const json back = converted(container, exports::Target::kAtf, (root_ / "back").string());
  session_ = back["written"][0]["path"].get<std::string>();
  const json is = json::parse(report_text(true));
  EXPECT_EQ(is["stalled_ns"], 5700);
  EXPECT_EQ(is["stalls"], was["stalls"]);
  EXPECT_EQ(is["functions"], was["functions"]);
}

}  // namespace
}  // namespace collect::ctl
