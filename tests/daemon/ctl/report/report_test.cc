#include "daemon/ctl/report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using testing::index_of;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using testing::Step;

constexpr uint64_t kA = 0xA, kB = 0xB, kC = 0xC;

class Report : public testing::OfflineTest {
 protected:
  json run(const std::vector<std::vector<Step>>& threads) {
    int n = 0;
    std::string list;
    for (const auto& steps : threads) {
      list += std::string(n == 0 ? "" : ",") + "{\"id\":" + std::to_string(n) + "}";
      write_thread(n++, index_of(steps, 1));
    }
    write_text(session_ / "manifest.json",
               "{\"threads\":[" + list + R"(],"symbols":[{"function_id":"0xa","name":"a"},
                 {"function_id":"0xb","name":"b"},{"function_id":"0xc","name":"c"}]})");
    return again();
  }
  json again() {
    out_.str("");
    options_.path = session_.string();
    options_.json = true;
    code_ = report(options_, out_, err_);
    return json::parse(out_.str());
  }
  static json function(const json& document, const std::string& name) {
    for (const json& row : document["functions"]) {
      if (row["name"] == name) return row;
    }
    return nullptr;
  }
  static void expect(const json& document, const std::string& name, uint64_t calls,
                     uint64_t total_ns, uint64_t self_ns) {
    const json row = function(document, name);
    ASSERT_FALSE(row.is_null()) << name;
    EXPECT_EQ(row["calls"], calls) << name;
    EXPECT_EQ(row["total_ns"], total_ns) << name;
    EXPECT_EQ(row["self_ns"], self_ns) << name;
  }

  ReportOptions options_;
  int code_ = -1;
};

TEST_F(Report, TotalAndSelf) {
  // a 0..100, in it b 10..30 and b 40..80, in the second one c 50..60.
  const json document = run({{{0, kCall, kA},
                              {10, kCall, kB},
                              {30, kReturn, kB},
                              {40, kCall, kB},
                              {50, kCall, kC},
                              {60, kReturn, kC},
                              {80, kReturn, kB},
                              {100, kReturn, kA}}});
  EXPECT_EQ(code_, 0);
  expect(document, "a", 1, 100, 40);
  expect(document, "b", 2, 60, 50);
  expect(document, "c", 1, 10, 10);
  EXPECT_EQ(document["open_calls"], 0);
  EXPECT_EQ(document["unmatched_returns"], 0);
  EXPECT_EQ(document["events"], 8);
}

TEST_F(Report, RecursionCountsTotalOnce) {
  // a 0..100 > a 10..90 > b 20..60 > a 30..50.
  const json document = run({{{0, kCall, kA},
                              {10, kCall, kA},
                              {20, kCall, kB},
                              {30, kCall, kA},
                              {50, kReturn, kA},
                              {60, kReturn, kB},
                              {90, kReturn, kA},
                              {100, kReturn, kA}}});
  expect(document, "a", 3, 100, 20 + 40 + 20);
  expect(document, "b", 1, 40, 20);
}

TEST_F(Report, OpenCallsCountUpToTheEnd) {
  const json document =
      run({{{0, kCall, kA}, {10, kCall, kB}, {30, kReturn, kB}, {70, kCall, kC}}});
  expect(document, "a", 1, 70, 50);
  expect(document, "c", 1, 0, 0);
  EXPECT_EQ(document["open_calls"], 2);
  EXPECT_EQ(function(document, "a")["open_calls"], 1);
  options_.json = false;
  out_.str("");
  EXPECT_EQ(report(options_, out_, err_), 0);
  EXPECT_NE(out_.str().find("2 calls were open at the end"), std::string::npos) << out_.str();
}

TEST_F(Report, ReturnsWithoutACallAreCountedAndHarmless) {
  const json document = run({{{5, kReturn, kC},
                              {10, kCall, kA},
                              {20, kReturn, kB},
                              {30, kReturn, kA},
                              {31, kReturn, kA}}});
  expect(document, "a", 1, 20, 20);
  expect(document, "b", 0, 0, 0);
  EXPECT_EQ(document["unmatched_returns"], 3);
}

// A longjmp: the return of an outer call closes what it skipped.
TEST_F(Report, SkippedReturnsAreClosedByTheOuterOne) {
  const json document =
      run({{{0, kCall, kA}, {10, kCall, kB}, {20, kCall, kC}, {50, kReturn, kA}}});
  expect(document, "a", 1, 50, 10);
  expect(document, "b", 1, 40, 10);
  expect(document, "c", 1, 30, 30);
  EXPECT_EQ(document["calls_without_return"], 2);
  EXPECT_EQ(document["unmatched_returns"], 0);
}

TEST_F(Report, ExceptionEndsItsCall) {
  // a 0..100 > b 10..60 > c 20..50, both left by an exception; b 70..80 again.
  const json document = run({{{0, kCall, kA},
                              {10, kCall, kB},
                              {20, kCall, kC},
                              {50, kException, kC},
                              {60, kException, kB},
                              {70, kCall, kB},
                              {80, kReturn, kB},
                              {100, kReturn, kA}}});
  expect(document, "a", 1, 100, 40);
  expect(document, "b", 2, 60, 30);
  expect(document, "c", 1, 30, 30);
  EXPECT_EQ(function(document, "b")["exceptions"], 1);
  EXPECT_EQ(function(document, "c")["exceptions"], 1);
  EXPECT_EQ(document["calls_without_return"], 0);
  EXPECT_EQ(document["unmatched_returns"], 0);
}

TEST_F(Report, ThreadsAddUpAndDoNotMix) {
  const json document = run({{{0, kCall, kA}, {10, kReturn, kA}},
                             {{0, kCall, kA}, {5, kCall, kB}, {7, kReturn, kB}, {30, kReturn, kA}},
                             {{100, kReturn, kA}}});
  expect(document, "a", 2, 40, 38);
  EXPECT_EQ(document["threads"], 3);
  EXPECT_EQ(document["unmatched_returns"], 1);
  options_.threads = {"thread_0"};
  expect(again(), "a", 1, 10, 10);
  options_.threads = {"99"};
  options_.json = false;
  EXPECT_EQ(report(options_, out_, err_), 1);
  EXPECT_NE(err_.str().find("no thread is \"99\""), std::string::npos) << err_.str();
}

TEST_F(Report, TimeThatStepsBackMakesNoNegativeTimes) {
  const json document =
      run({{{100, kCall, kA}, {50, kCall, kB}, {90, kReturn, kB}, {20, kReturn, kA}}});
  expect(document, "a", 1, 0, 0);
  expect(document, "b", 1, 40, 40);
}

TEST_F(Report, SortsAndLimits) {
  const std::vector<Step> steps = {{0, kCall, kB},     {1, kReturn, kB},  {1, kCall, kB},
                                   {2, kReturn, kB},   {2, kCall, kA},    {10, kCall, kC},
                                   {100, kReturn, kC}, {110, kReturn, kA}};
  const auto order = [&](ReportSort sort) {
    options_.sort = sort;
    const json document = run({steps});
    std::string names;
    for (const json& row : document["functions"]) names += row["name"];
    return names;
  };
  EXPECT_EQ(order(ReportSort::kTotal), "acb");
  EXPECT_EQ(order(ReportSort::kSelf), "cab");
  EXPECT_EQ(order(ReportSort::kCalls), "bac");
  EXPECT_EQ(order(ReportSort::kName), "abc");
  options_.limit = 1;
  EXPECT_EQ(order(ReportSort::kName), "a");
}

// A wait for the collector has a part of the time in which the thread is blocked.
class ReportWaits : public Report {
 protected:
  void SetUp() override {
    Report::SetUp();
    options_.path = session_.string();
    write_thread(
        0,
        index_of({{1000, kCall, kA}, {1020, kCall, kB}, {1060, kReturn, kB}, {1100, kReturn, kA}},
                 1));
    using storage::StallKind;
    std::vector<storage::Stall> switches = {storage::make_stall(StallKind::kBlocked, 1030, 1050),
                                            storage::make_stall(StallKind::kPreempted, 1070, 1080)};
    for (storage::Stall& one : switches) one.thread = 0;
    const std::vector<uint8_t> frames = storage::encode_switches(switches);
    write_text(session_ / storage::kSwitchesFile, {frames.begin(), frames.end()});
    write_manifest(true);
  }
  void write_manifest(bool has_switches) {
    const json manifest = {
        {"state", "complete"},
        {"threads", {{{"id", 0}, {"ended", true}}}},
        {"process", {{"switches", has_switches}}},
        {"symbols",
         {{{"function_id", "0xa"}, {"name", "a"}}, {{"function_id", "0xb"}, {"name", "b"}}}},
        {"stalls",
         {{{"kind", "page_wait"}, {"first_ns", 1025}, {"last_ns", 1035}, {"thread", 0}}}}};
    write_text(session_ / "manifest.json", manifest.dump());
  }
};

TEST_F(ReportWaits, PathsWithTheLongestFirst) {
  options_.waits = true;
  const json document = again();
  EXPECT_EQ(document["waited_ns"], 25);
  EXPECT_EQ(document["backtraces"],
            json::parse(R"([{"functions": ["a", "b"], "calls": 1, "waited_ns": 15},
                            {"functions": ["a"], "calls": 1, "waited_ns": 10}])"));
  options_.json = false;
  out_.str("");
  EXPECT_EQ(report(options_, out_, err_), 0);
  EXPECT_EQ(out_.str(),
            "      Waited      %         Calls  Off the processor on the path\n"
            "    0.015 us   60.0             1  a > b\n"
            "    0.010 us   40.0             1  a\n"
            "# 1 stall, 0.010 us, subtracted from the times\n");
}

// Of functions that are recorded and of others, in the calls that were open then.
TEST_F(ReportWaits, SamplesOnTheirPaths) {
  const auto sample = [](uint64_t ns, uint64_t place) {
    storage::Stall stall = storage::make_stall(storage::StallKind::kSample, ns, ns);
    stall.thread = 0;
    stall.place = place;
    return stall;
  };
  constexpr uint64_t kOtherModule = uint64_t{7} << 32 | 0x99;
  std::vector<storage::Stall> samples = {
      sample(990, 0xC1),  sample(1010, 0xA4), sample(1015, 0xA8),        sample(1030, 0xC1),
      sample(1040, 0xC5), sample(1050, 0xC1), sample(1050, kOtherModule)};
  samples.push_back(sample(1200, 0));
  samples.back().count = 4;
  const std::vector<uint8_t> frames = storage::encode_switches(samples);
  write_text(session_ / storage::kSwitchesFile, {frames.begin(), frames.end()});
  json manifest = json::parse(std::ifstream(session_ / "manifest.json"));
  manifest["process"] = {{"sample_hz", 500}};
  manifest["totals"]["samples"] = 11;
  manifest["symbols"] = json::parse(R"([
      {"function_id": "0xa", "name": "a"}, {"function_id": "0xb", "name": "b"},
      {"function_id": "0xa4", "name": "a+0x4"}, {"function_id": "0xa8", "name": "a+0x8"},
      {"function_id": "0xc1", "name": "plain"}, {"function_id": "0xc5", "name": "plain+0x4"}])");
  manifest["modules"] = {{{"module_id", 7}, {"path", "/lib/libx.so"}}};
  write_text(session_ / "manifest.json", manifest.dump());
  options_.samples = true;
  const json document = again();
  EXPECT_EQ(document["samples"], 11);
  EXPECT_EQ(document["sample_hz"], 500);
  EXPECT_EQ(document["paths"][1],
            json::parse(R"({"functions": ["a", "b", "plain"], "samples": 3})"));
  options_.json = false;
  out_.str("");
  EXPECT_EQ(report(options_, out_, err_), 0);
  EXPECT_EQ(out_.str(),
            "       Samples      %  Function, and the call that ran it\n"
            "             4   36.4  (not known)\n"
            "             3   27.3  plain  in b\n"
            "             2   18.2  a\n"
            "             1    9.1  [libx.so]  in b\n"
            "             1    9.1  plain\n"
            "# 11 samples, 500 in each second that a thread ran outside of the kernel\n");
}

TEST_F(ReportWaits, SamplesThatAreNotThere) {
  options_.samples = true;
  EXPECT_EQ(report(options_, out_, err_), 1);
  EXPECT_NE(err_.str().find("--sample 1kHz"), std::string::npos) << err_.str();
}

// B, which a called, waits for a lock twice, and a itself for one once; what was joined is of no
// call.
TEST_F(ReportWaits, LocksWithTheirOwners) {
  const auto wait = [](uint64_t first_ns, uint64_t last_ns, uint64_t lock, uint32_t owner) {
    storage::Stall stall = storage::make_stall(storage::StallKind::kLock, first_ns, last_ns);
    stall.thread = 0;
    stall.place = lock;
    stall.owner = owner;
    return stall;
  };
  std::vector<storage::Stall> waits = {wait(1020, 1060, 0x7010, 42), wait(1070, 1080, 0x7010, 42),
                                       wait(1085, 1095, 0x9000, 0)};
  waits.push_back(wait(1096, 1099, 0, 0));
  waits.back().count = 3;
  const std::vector<uint8_t> frames = storage::encode_switches(waits);
  write_text(session_ / storage::kSwitchesFile, {frames.begin(), frames.end()});
  write_thread(0, index_of({{1000, kCall, kA},
                            {1020, kCall, kB},
                            {1060, kReturn, kB},
                            {1070, kCall, kB},
                            {1080, kReturn, kB},
                            {1100, kReturn, kA}},
                           1));
  write_text(
      session_ / "manifest.json",
      json{{"state", "complete"},
           {"threads",
            {{{"id", 0},
              {"ended", true},
              {"thread_id", 42},
              {"name", "worker"},
              {"lock_waits", 6},
              {"lock_wait_ns", 63}}}},
           {"totals", {{"lock_waits", 6}, {"lock_wait_ns", 63}}},
           {"process", {{"pid", 1}}},
           {"modules",
            {{{"module_id", 0},
              {"path", "/lib/libq.so"},
              {"base_address", "0x7000"},
              {"size", 4096}}}},
           {"symbols",
            {{{"function_id", "0xa"}, {"name", "a"}}, {{"function_id", "0xb"}, {"name", "b"}}}}}
          .dump());
  options_.locks = true;
  const json document = again();
  EXPECT_EQ(document["waits"], 6);
  EXPECT_EQ(document["waited_ns"], 63);
  const json first = {{"waited_ns", 50},        {"waits", 2},      {"longest_ns", 40},
                      {"name", "libq.so+0x10"}, {"function", "a"}, {"owner", "worker (42)"},
                      {"lock", "0x7010"},       {"owner_tid", 42}};
  EXPECT_EQ(document["rows"][0], first);
  options_.json = false;
  out_.str("");
  EXPECT_EQ(report(options_, out_, err_), 0);
  EXPECT_EQ(
      out_.str(),
      "      Waited      %         Waits       Longest  Function, the lock that it waited for, and "
      "who had that\n"
      "    0.050 us   79.4             2      0.040 us  a  libq.so+0x10  worker (42)\n"
      "    0.010 us   15.9             1      0.010 us  (no caller)  0x9000  (not known)\n"
      "    0.003 us    4.8             3      0.000 us  (no caller)  (several locks)  (not known)\n"
      "# 6 waits, 0.063 us, of all threads together\n");
  options_.wall = true;
  EXPECT_EQ(report(options_, out_, err_), 2);
  options_.wall = false;
  write_text(session_ / storage::kSwitchesFile, {frames.begin(), frames.end() - 1});
  EXPECT_EQ(report(options_, out_, err_), 1);
  EXPECT_NE(err_.str().find("no frame of switches"), std::string::npos) << err_.str();
}

TEST_F(ReportWaits, AreOfOneCaptureThatHasThem) {
  options_.waits = true;
  options_.wall = true;
  EXPECT_EQ(report(options_, out_, err_), 2);
  options_.wall = false;
  write_manifest(false);
  EXPECT_EQ(report(options_, out_, err_), 1);
}

TEST_F(ReportWaits, TimesOnTheProcessor) {
  const json document = again();
  expect(document, "a", 1, 90, 60);
  expect(document, "b", 1, 30, 30);
  EXPECT_EQ(function(document, "a")["cpu_total_ns"], 65);
  EXPECT_EQ(function(document, "a")["cpu_self_ns"], 50);
  EXPECT_EQ(function(document, "b")["cpu_total_ns"], 15);
  EXPECT_EQ(document["cpu_ns"], 65);
  EXPECT_EQ(document["stalls"], 1);
  options_.wall = true;
  EXPECT_FALSE(again().contains("cpu_ns"));
}

TEST_F(Report, TextColumns) {
  run({{{0, kCall, kA},
        {1'500'000, kCall, kB},
        {1'512'345, kReturn, kB},
        {2'500'000'000, kReturn, kA}}});
  options_.json = false;
  out_.str("");
  EXPECT_EQ(report(options_, out_, err_), 0);
  EXPECT_EQ(out_.str(),
            "  Total time      %     Self time      %         Calls  Function\n"
            "    2.500 s   100.0      2.499 s   100.0             1  a\n"
            "   12.345 us    0.0     12.345 us    0.0             1  b\n");
}

TEST_F(Report, LossIsSaid) {
  write_thread(0, index_of({{0, kCall, kA}, {10, kReturn, kA}}, 1));
  write_text(session_ / "manifest.json", R"({"threads":[{"id":0,"lost_events":7}]})");
  EXPECT_EQ(again()["lost_events"], 7);
}

TEST_F(Report, WindowSaysItsOwnLossAlone) {
  write_thread(
      0,
      index_of({{0, kCall, kA}, {1000, kReturn, kA}, {5000, kCall, kB}, {6000, kReturn, kB}}, 1));
  write_text(session_ / "manifest.json",
             R"({"threads":[{"id":0,"lost_events":7}],"gaps":[
                 {"thread":0,"lane":"index","before_seq":1,"lost":4,"first_ns":100,"last_ns":200},
                 {"thread":0,"lane":"index","before_seq":3,"lost":3,"first_ns":5100,
                  "last_ns":5200}]})");
  EXPECT_EQ(again()["lost_events"], 7);
  options_.when.from = "4us";
  EXPECT_EQ(again()["lost_events"], 3);
  options_.when.until = "5us";
  EXPECT_EQ(again()["lost_events"], 0);
}

TEST_F(Report, BadThreadIsLeftOut) {
  write_thread(1, {'n', 'o'});
  const json document = run({{{0, kCall, kA}, {10, kReturn, kA}}});
  EXPECT_EQ(code_, 1);
  expect(document, "a", 1, 10, 10);
}

}  // namespace
}  // namespace collect::ctl
