// Whole files of every format, as readers that are not ours see them, against expected/NAME.json.
// With COLLECT_WRITE_EXPORTS=1 they are written there; each was worked out by hand from the session
// below before it was kept.
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using testing::index_of;
using testing::json;
using testing::kCall;
using testing::kException;
using testing::kReturn;

constexpr uint64_t kModule1 = uint64_t{1} << 32;
constexpr uint64_t kModule2 = uint64_t{2} << 32;

class ExportWhole : public testing::ExportTest {
 protected:
  // main: a calls b, which throws; a return of no one; two losses before the next event, behind
  // which a ends; c calls a and ends around it; d is open at the end. A thread without a name, and
  // one without events. Module 2 has no size.
  void write_busy_session() {
    write_thread(0, index_of({{1000, kCall, kModule1 | 0xA},
                              {1100, kCall, kModule1 | 0xB},
                              {1200, kException, kModule1 | 0xB},
                              {1300, kReturn, kModule2 | 0xC},
                              {1700, kReturn, kModule1 | 0xA},
                              {1800, kCall, kModule2 | 0xC},
                              {1900, kCall, kModule1 | 0xA},
                              {2000, kReturn, kModule2 | 0xC},
                              {2100, kCall, kModule1 | 0xD}},
                             100));
    write_thread(1,
                 index_of({{1500, kCall, kModule1 | 0xB}, {1600, kReturn, kModule1 | 0xB}}, 101));
    write_thread(2, index_of({}, 102));
    write_text(session_ / "manifest.json", R"({
      "state":"complete",
      "process":{"name":"app","pid":42,"device_model":"Phone","start_unix_ns":1700000000000000000},
      "modules":[
        {"module_id":1,"path":"/bin/app","base_address":"0x5000","size":4096,"build_id":"abcd"},
        {"module_id":2,"path":"/lib/none.so","base_address":"0x9000","size":0,"build_id":""}],
      "symbols":[{"function_id":"0x10000000a","name":"a"},{"function_id":"0x10000000b","name":"b"},
                 {"function_id":"0x10000000d","name":"d"},
                 {"function_id":"0x20000000c","name":"c"}],
      "markers":[{"at_ns":900,"text":"before"},{"at_ns":1150,"text":"within"}],
      "stalls":[{"kind":"page_wait","first_ns":1810,"last_ns":1850,"thread":0},
                {"kind":"page_wait","first_ns":2010,"last_ns":2060,"thread":0,"joined":2,
                 "stalled_ns":30},
                {"kind":"suspended","first_ns":2070,"last_ns":2090}],
      "gaps":[{"thread":0,"lane":"index","before_seq":4,"lost":5,"numbered_lost":5,
               "first_ns":1400,"last_ns":1500,"reasons":["ring_full"]},
              {"thread":0,"lane":"index","before_seq":4,"lost":2,"numbered_lost":2,
               "first_ns":1550,"last_ns":1600,"reasons":["no_memory"]}],
      "threads":[{"id":0,"name":"main","ended":true,"lost_events":7},
                 {"id":1,"name":"","ended":true},{"id":2,"name":"idle","ended":true}]})");
  }
};

TEST_F(ExportWhole, EveryFormatHasAllThatItCanHold) {
  write_busy_session();
  expect_all_formats("");
}

TEST_F(ExportWhole, EveryFormatHasAPartOfIt) {
  write_busy_session();
  exports::ExportSelection selection;
  selection.functions = {"c", "b"};
  selection.when.from = "1150";
  selection.when.until = "2050";
  expect_part("_part", selection, {}, {});
}

// Deeper than viewers follow: the innermost calls are folded into those around them.
TEST_F(ExportWhole, SpeedscopeFoldsDeepCalls) {
  constexpr uint64_t kDepth = 515;
  for (uint32_t thread = 0; thread < 2; ++thread) {
    std::vector<testing::Step> steps;
    for (uint64_t i = 0; i < kDepth; ++i) steps.push_back({1000 + i, kCall, 0xA});
    for (uint64_t i = 0; i < kDepth; ++i) steps.push_back({2000 + i, kReturn, 0xA});
    write_thread(static_cast<int>(thread), index_of(steps, 100 + thread));
  }
  write_manifest("", R"([{"id":0,"name":"main","ended":true},{"id":1,"name":"two","ended":true}])");
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  const json file = json::parse(written());
  for (size_t thread = 0; thread < 2; ++thread) {
    const json& events = file["profiles"][thread]["events"];
    ASSERT_EQ(events.size(), 2 * 512u);
    EXPECT_EQ(events[511]["at"], 511);
    EXPECT_EQ(events[512]["at"], 1003) << "the ends of three were left out";
    EXPECT_EQ(events[1023]["at"], 1514);
  }
  EXPECT_EQ(
      report_["left_out"],
      json({{"calls nested deeper than 512: they are folded into the calls around them", 6}}));
}

// More stalls than a page shows: the longest of them.
TEST_F(ExportWhole, PageShowsTheLongestStallsAndGaps) {
  std::string stalls;
  std::string gaps;
  std::vector<testing::Step> steps;
  for (uint64_t i = 0; i < 2003; ++i) {
    const std::string first = std::to_string(10'000 + 1000 * i);
    const uint64_t length = i >= 1000 && i < 1003 ? 5 : 10 + i % 7;
    stalls += (i == 0 ? "" : ",") + (R"({"kind":"page_wait","thread":0,"first_ns":)" + first) +
              R"(,"last_ns":)" + std::to_string(10'000 + 1000 * i + length) + "}";
    gaps +=
        (i == 0 ? "" : ",") +
        (R"({"thread":0,"lane":"index","lost":1,"numbered_lost":1,"reasons":["ring_full"],"before_seq":)" +
         std::to_string(i + 1)) +
        R"(,"first_ns":)" + std::to_string(10'100 + 1000 * i) + R"(,"last_ns":)" +
        std::to_string(10'100 + 1000 * i + length) + "}";
    steps.push_back({10'000 + 1000 * i, i % 2 == 0 ? kCall : kReturn, 0xA});
  }
  write_thread(0, index_of(steps, 100));
  write_manifest("\"stalls\":[" + stalls + "],\"gaps\":[" + gaps + "],",
                 R"([{"id":0,"name":"main","ended":true,"lost_events":2003}])");
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json thread = page()["threads"][0];
  ASSERT_EQ(thread["stalls"].size(), 2000u);
  ASSERT_EQ(thread["gaps"].size(), 2000u);
  EXPECT_EQ(thread["stalls"][999], json::parse("[1009000,1009015]"));
  EXPECT_EQ(thread["stalls"][1000], json::parse("[1013000,1013012]"))
      << "the three shortest are not there";
  EXPECT_EQ(thread["gaps"][1000], json::parse("[1013100,1013112]"));
  for (size_t i = 1; i < 2000; ++i) ASSERT_LT(thread["stalls"][i - 1][0], thread["stalls"][i][0]);
  EXPECT_EQ(report_["left_out"]["short stalls and gaps on the time line"], 6);
}

TEST_F(ExportWhole, NotesOfACallHoldItsDetailRecord) {
  write_planned_session();
  ASSERT_EQ(run(Target::kChrome), 0) << err_.str();
  expect_same("chrome_detail", json::parse(written(), nullptr, false));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  for (const size_t bytes : {64u, 65u}) {
    atf::testing::ThreadPlan plan;
    plan.events = 2;
    plan.detail_every = 1;
    plan.stack_bytes = bytes;
    const auto made = build_thread(plan);
    write_thread(0, made.index, made.detail);
    ASSERT_EQ(run(Target::kChrome), 0) << err_.str();
    std::string stack(128, '0');
    if (bytes == 65) stack += "…";
    const json file = json::parse(written());
    size_t found = 0;
    for (const json& event : file["traceEvents"]) {
      if (event["ph"] != "B") continue;
      ++found;
      EXPECT_EQ(event["args"]["stack"], stack);
    }
    EXPECT_EQ(found, 1u);
  }
}

// 500 calls of 100 ns, 490 of 10 us and 10 of 1 ms, and a wait of 1,250,000 ns.
TEST_F(ExportWhole, PageHasFiguresOfEachFunction) {
  std::vector<testing::Step> steps;
  uint64_t ns = 1000;
  for (uint64_t i = 0; i < 1000; ++i) {
    steps.push_back({ns, kCall, 0xA});
    ns += i < 500 ? 100 : i < 990 ? 10'000 : 1'000'000;
    steps.push_back({ns, kReturn, 0xA});
  }
  steps.push_back({ns + 2'000'000, kCall, 0xB});
  write_thread(0, index_of(steps, 100));
  write_manifest(R"("stalls":[{"kind":"page_wait","thread":0,"first_ns":)" +
                     std::to_string(ns + 100'000) + R"(,"last_ns":)" +
                     std::to_string(ns + 1'350'000) + "}],",
                 R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  EXPECT_EQ(data["facts"], json::parse(R"([["time","16.9 ms"],["events","2,001"],
      ["calls","1,001"],["threads","1"],["functions","2"],
      ["stalled, left out of the times","1.2 ms"]])"));
  EXPECT_EQ(report_["counts"], json::parse(R"({"calls":1001,"events":2001})"));
  EXPECT_EQ(report_["left_out"], json::object());
  json figures;
  for (const json& one : data["functions"]) {
    figures[data["names"][one[0].get<size_t>()]] =
        json(std::vector<json>(one.begin() + 1, one.end()));
  }
  EXPECT_EQ(figures["a"][0], 1000);
  EXPECT_EQ(figures["a"][1], 14'950'000);
  EXPECT_EQ(figures["a"][2], 14'950'000);
  EXPECT_NEAR(figures["a"][3].get<double>(), 100, 10) << "of half of the calls";
  EXPECT_NEAR(figures["a"][4].get<double>(), 10'000, 1000) << "of all but ten";
  EXPECT_EQ(figures["a"][5], 1'000'000);
  EXPECT_EQ(figures["b"], json::parse("[1,0,0,0,0,0]")) << "no one saw how long it is";
}

TEST_F(ExportWhole, ThreadOfOneEventHasItsTime) {
  write_thread(0, index_of({{5000, kCall, 0xA}}, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kChrome), 0) << err_.str();
  const json file = json::parse(written());
  EXPECT_EQ(file["otherData"]["origin_ns"], "5000");
  EXPECT_EQ(file["traceEvents"].back()["ts"], 0.001) << "the end of its part";
  EXPECT_EQ(report_["counts"], json::parse(R"({"calls":1,"events":1})"));
}

// Each of two threads has 400 calls open at its end: that is not 800 in each other.
TEST_F(ExportWhole, CallsOfOneThreadDoNotDeepenTheNext) {
  for (uint32_t thread = 0; thread < 2; ++thread) {
    std::vector<testing::Step> steps;
    for (uint64_t i = 0; i < 400; ++i) steps.push_back({1000 + i, kCall, 0xA});
    write_thread(static_cast<int>(thread), index_of(steps, 100 + thread));
  }
  write_manifest("", R"([{"id":0,"name":"main","ended":true},{"id":1,"name":"two","ended":true}])");
  for (const Target to : {Target::kPerfetto, Target::kChrome, Target::kSpeedscope}) {
    ASSERT_EQ(run(to), 0) << err_.str();
    report_["left_out"].erase("source lines of functions");  // Chrome has no place for them
    EXPECT_EQ(report_["left_out"], json::object());
    EXPECT_EQ(report_["counts"], json::parse(R"({"calls":800,"events":800})"));
  }
}

TEST_F(ExportWhole, CountsLateEventsAtTheTimeLinesEnd) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {50'000, kReturn, 0xA}, {2000, kCall, 0xB}}, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  EXPECT_EQ(data["last_ns"], 2000) << "the time of the last event";
  EXPECT_EQ(data["threads"][0]["activity"].size(), 800u);
  EXPECT_EQ(data["threads"][0]["activity"][0], 1);
  EXPECT_GE(data["threads"][0]["activity"][799], 1);
}

TEST_F(ExportWhole, FunctionsBeyondTheLimitHaveOneNameTogether) {
  write_thread(0, index_of({{1000, kCall, UINT64_MAX}, {1100, kReturn, UINT64_MAX}}, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kFolded), 0) << err_.str();
  EXPECT_EQ(written(), "app;main;(all other functions) 100\n");
}

}  // namespace
}  // namespace collect::ctl
