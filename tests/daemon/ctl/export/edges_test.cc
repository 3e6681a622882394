// What is at an edge: losses whose time is not known, at the end, and one behind another; stalls
// that reach over an event; times that step back; calls without a place. Whole files against
// expected/FORMAT_edges.json, each worked out by hand from the session below before it was kept.
#include <algorithm>
#include <filesystem>

#include "formats/calls/call_tree.h"
#include "formats/calls/open_calls.h"
#include "storage/convert/convert_log.h"
#include "storage/export/export.h"
#include "storage/export/thread_time_line.h"
#include "storage/read/session_files.h"
#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::ExportSelection;
using exports::Target;
using ::testing::HasSubstr;
using testing::index_of;
using testing::json;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using testing::Step;

constexpr auto kUnknownKind = static_cast<atf::EventKind>(9);

class ExportEdges : public testing::ExportTest {
 protected:
  // main: behind the first loss, of which no one knows when it was, b ends, and so a was open too;
  // the second one lasts longer than up to the event behind it; of b and c no one knows whether
  // they survived the third one, but a fourth one; a fifth one is behind the last event. waiter:
  // a loss behind an open call, and it has two pieces. stepping: its clock steps back. The gaps
  // are not in order, and some are of another lane, or of a thread that is not there.
  void write_edges() {
    write_thread(0, index_of({{1000, kCall, 0xA},
                              {1100, kCall, 0xB},
                              {1300, kReturn, 0xB},
                              {1400, kCall, 0xC},
                              {1600, kReturn, 0xC},
                              {1650, kReturn, 0xA},
                              {1700, kCall, 0xB},
                              {1800, kCall, 0xC},
                              {2000, kCall, 0xA},
                              {2100, kReturn, 0xA},
                              {2200, kReturn, 0xB},
                              {2210, kReturn, 0xD}},
                             100));
    write_thread(1, index_of({{1050, kCall, 0xC}, {1150, kCall, 0xA}, {1250, kReturn, 0xA}}, 101));
    write_thread(2, index_of({{1500, kCall, 0xA},
                              {1700, kCall, 0xB},
                              {1650, kReturn, 0xB},
                              {1550, kCall, 0xC},
                              {1560, kUnknownKind, 0xC},
                              {1900, kReturn, 0xC},
                              {1800, kReturn, 0xA}},
                             102));
    write_manifest(R"(
      "stalls":[{"kind":"page_wait","first_ns":900,"last_ns":950,"thread":0},
                {"kind":"page_wait","first_ns":980,"last_ns":1020,"thread":0},
                {"kind":"page_wait","first_ns":1250,"last_ns":1290,"thread":0},
                {"kind":"page_wait","first_ns":1420,"last_ns":1440,"thread":0,"joined":3,
                 "stalled_ns":12},
                {"kind":"page_wait","first_ns":2390,"last_ns":2500,"thread":0},
                {"kind":"page_wait","first_ns":1200,"last_ns":1300,"thread":1},
                {"kind":"page_wait","first_ns":1210,"last_ns":1310,"thread":7},
                {"kind":"suspended","first_ns":1620,"last_ns":1640},
                {"kind":"stopped","first_ns":2150,"last_ns":2900}],
      "gaps":[{"thread":0,"lane":"index","before_seq":12,"lost":9000,"numbered_lost":9000,
               "first_ns":2300,"last_ns":2400,"reasons":["ring_full"]},
              {"thread":0,"lane":"index","before_seq":2,"lost":4,"numbered_lost":4,
               "first_ns":0,"last_ns":0,"reasons":[]},
              {"thread":0,"lane":"index","before_seq":8,"lost":2,"numbered_lost":2,
               "first_ns":1850,"last_ns":1900,"reasons":["ring_full"]},
              {"thread":0,"lane":"index","before_seq":4,"lost":1,"numbered_lost":1,
               "first_ns":1450,"last_ns":1700,"reasons":["ring_full","no_memory"]},
              {"thread":0,"lane":"index","before_seq":10,"lost":3,"numbered_lost":3,
               "first_ns":2150,"last_ns":2160,"reasons":["no_memory"]},
              {"thread":0,"lane":"detail","before_seq":3,"lost":70,"numbered_lost":70,
               "first_ns":1310,"last_ns":1320,"reasons":["ring_full"]},
              {"thread":7,"lane":"index","before_seq":1,"lost":80,"numbered_lost":80,
               "first_ns":1110,"last_ns":1120,"reasons":["ring_full"]},
              {"thread":1,"lane":"index","before_seq":3,"lost":5,"numbered_lost":5,
               "first_ns":1270,"last_ns":1280,"reasons":["ring_full"]},
              {"thread":1,"lane":"index","before_seq":3,"lost":6,"numbered_lost":6,
               "first_ns":1320,"last_ns":0,"reasons":["ring_full"]}],)",
                   R"([{"id":0,"name":"main","ended":true,"lost_events":9010},
                       {"id":1,"name":"waiter","ended":true,"lost_events":11},
                       {"id":2,"name":"stepping","ended":true}])");
  }

  // So many calls in each other at 1000 ns, then these.
  static std::vector<Step> nested(size_t depth, const std::vector<Step>& more) {
    std::vector<Step> steps(depth, Step{1000, kCall, 0xA});
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  }
  void write_one(const std::vector<Step>& steps) {
    write_thread(0, index_of(steps, 100));
    write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  }
  // {type, at, name} of a profile of a speedscope file.
  json profile_events(size_t profile) const {
    const json file = json::parse(written());
    json events = json::array();
    for (const json& event : file["profiles"][profile]["events"]) {
      events.push_back({event["type"], event["at"],
                        file["shared"]["frames"][event["frame"].get<size_t>()]["name"]});
    }
    return events;
  }
};

TEST_F(ExportEdges, EveryFormatHasThem) {
  write_edges();
  expect_all_formats("_edges");
}

TEST_F(ExportEdges, EveryFormatHasAPartOfThem) {
  write_edges();
  ExportSelection selection;
  selection.when.from = "1250";
  selection.when.until = "2170";
  selection.functions = {"a", "c"};
  expect_part("_edges_part", selection, {}, {Target::kSpeedscope, Target::kHtml});
}

// A loss in whose middle the window begins, and one in whose middle it ends.
TEST_F(ExportEdges, EveryFormatHasAPartStartingInALoss) {
  write_edges();
  ExportSelection selection;
  selection.when.from = "1500";
  selection.when.until = "1875";
  selection.threads = {"100", "102"};
  expect_part("_edges_within", selection, {}, {Target::kHtml});
}

TEST_F(ExportEdges, EveryFormatHasASessionWithoutEvents) {
  write_one({});
  expect_all_formats("_empty");
}

// ---- depth

// One call deeper than can be followed, three paths more than a call tree has, and an event of a
// kind that no one knows, which is missing from the input.
TEST_F(ExportEdges, CallsWithoutAPlaceAreCounted) {
  constexpr size_t kDepth = calls::OpenCalls::kMaxDepth;
  static_assert(calls::CallTree::kMaxNodes == kDepth);
  // The call tree's first three nodes are no functions: its last three paths have no place.
  write_one(nested(kDepth, {{1000, kCall, 0xB}, {1500, kUnknownKind, 0xB}}));
  ExportSelection none;
  none.functions = {"c"};
  const json left_out = json::parse(R"({"calls nested deeper than can be followed":1,
                                        "events of an unknown kind":1})");
  const auto with = [&](json more) {
    more.update(left_out);
    return more;
  };
  const std::string other =
      "calls of more stacks than 1048576 of a thread: they are one frame, "
      "[other stacks]";
  const std::string lines = "source lines of functions";
  ASSERT_EQ(run(Target::kFolded), 1) << err_.str();
  EXPECT_EQ(written(), "app;main;[other stacks] 500\n");
  const std::string deeper =
      "calls nested deeper than 1024: they are one frame, [deeper calls]; "
      "chrome and parquet have each of them";
  EXPECT_EQ(report_["left_out"], with({{deeper, kDepth - 3 - 1024}, {other, 3}, {lines, 1}}));
  EXPECT_EQ(report_["counts"], json({{"calls", kDepth}, {"events", kDepth + 2}}));
  ASSERT_EQ(run(Target::kPprof, none), 1) << err_.str();
  EXPECT_EQ(report_["left_out"], with({{other, 3}}));
  EXPECT_EQ(profile()["samples"][0]["stack"], json::parse(R"(["[other stacks]"])"));
  EXPECT_EQ(profile()["samples"][0]["values"], json::parse("[3,500]"));
  EXPECT_EQ(profile()["samples"].size(), 1u);
  ASSERT_EQ(run(Target::kHtml, none), 1) << err_.str();
  EXPECT_EQ(report_["left_out"], left_out);
  EXPECT_EQ(page()["threads"][0]["tree"],
            json::parse(R"({"parent":[0,0],"name":[-1,-3],"total":[0,500],"self":[0,500],
                            "calls":[0,3]})"));
  ASSERT_EQ(run(Target::kChrome, none), 1) << err_.str();
  EXPECT_EQ(report_["left_out"], with({{lines, 1}}));
}

// The innermost of 513 has no frame; what happens in it belongs to the one around it.
TEST_F(ExportEdges, SpeedscopeShowsNothingWithinAFoldedCall) {
  write_thread(0, index_of(nested(513, {{2000, kReturn, 0xA}, {3000, kReturn, 0xA}}), 100));
  write_thread(1, index_of(nested(513, {}), 101));
  write_thread(2, index_of({{4000, kCall, 0xB}, {5000, kReturn, 0xB}, {6000, kCall, 0xC}}, 102));
  write_manifest(R"("stalls":[{"kind":"page_wait","first_ns":1500,"last_ns":1600,"thread":0},
                              {"kind":"page_wait","first_ns":2500,"last_ns":2600,"thread":0}],)",
                 R"([{"id":0,"name":"main","ended":true},{"id":1,"name":"open","ended":true},
                     {"id":2,"name":"next","ended":true}])");
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  const json deep = profile_events(0);
  ASSERT_EQ(deep.size(), 2 * 512u + 2);
  EXPECT_EQ(deep[511], json::parse(R"(["O",0,"a"])"));
  EXPECT_EQ(deep[512], json::parse(R"(["O",1500,"[stall: page_wait]"])"))
      << "the one in the folded call is not there";
  EXPECT_EQ(deep[513], json::parse(R"(["C",1600,"[stall: page_wait]"])"));
  EXPECT_EQ(deep[514], json::parse(R"(["C",2000,"a"])"));
  EXPECT_EQ(profile_events(2), json::parse(R"([["O",3000,"b"],["C",4000,"b"],
      ["O",5000,"c"],["C",5000,"c"]])"))
      << "the folded call of the thread before is open there alone";
  EXPECT_EQ(
      report_["left_out"],
      json({{"calls nested deeper than 512: they are folded into the calls around them", 2}}));
}

// ---- the page's limits

// Function i lasts `functions` - i ns. With the root and two other nodes that are no function there
// are as many nodes as a page takes, then one more: then half of them keep their own.
TEST_F(ExportEdges, PageHasAsManyNodesAsItTakes) {
  for (const uint64_t functions : {49'997u, 49'998u}) {
    std::vector<Step> steps;
    uint64_t ns = 1000;
    for (uint64_t i = 0; i < functions; ++i) {
      steps.push_back({ns, kCall, 0x1000 + i});
      steps.push_back({ns += functions - i, kReturn, 0x1000 + i});
    }
    write_one(steps);
    ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
    const json tree = page()["threads"][0]["tree"];
    if (functions == 49'997) {
      EXPECT_EQ(tree["name"].size(), 1u + functions);
      EXPECT_EQ(std::count(tree["name"].begin(), tree["name"].end(), -3), 0);
      continue;
    }
    ASSERT_EQ(tree["name"].size(), 1u + 1 + 25'000);
    EXPECT_EQ(tree["total"][1], 49'998);
    EXPECT_EQ(tree["total"][25'000], 24'999) << "the shortest that has its own";
    EXPECT_EQ(tree["name"][25'001], -3);
    EXPECT_EQ(tree["calls"][25'001], 24'998);
    EXPECT_EQ(tree["total"][25'001], 24'998u * 24'999 / 2) << "1 + 2 + … ns";
    EXPECT_EQ(tree["self"][25'001], 24'998u * 24'999 / 2);
  }
}

// ---- notes of calls

// Two events with one record; a record that is not there; exceptions with and without one.
TEST_F(ExportEdges, EachRecordIsANoteOfOneEvent) {
  atf::testing::ThreadPlan plan;
  plan.events = 5;
  plan.detail_every = 1;
  const std::vector<uint8_t> records = build_thread(plan).detail;
  write_thread(0,
               index_of({{1000, kCall, 0xA, 0},
                         {1010, kCall, 0xB, 0},
                         {1020, kException, 0xB, 1},
                         {1030, kCall, 0xB, 3},
                         {1040, kException, 0xB},
                         {1050, kCall, 0xC, 9},
                         {1060, kReturn, 0xC, 4},
                         {1070, kReturn, 0xA}},
                        100),
               records);
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_LE(run(Target::kChrome), 1) << err_.str();
  json notes = json::array();
  const json file = json::parse(written());
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == "B" || event["ph"] == "E") notes.push_back(event.value("args", json()));
  }
  EXPECT_EQ(notes, json::parse(R"([{"lr":"0x1111"},null,
      {"return.lr":"0x1111","return.stack":"01","ended_by":"an exception"},
      {"lr":"0x1111","stack":"030303"},{"ended_by":"an exception"},null,null,null])"));
}

// ---- small things

TEST_F(ExportEdges, LastOpenCallEndsWithTheLastEvent) {
  write_one({{1000, kCall, 0xA}, {2000, kCall, 0xB}});
  ExportSelection selection;
  selection.functions = {"a"};
  ASSERT_EQ(run(Target::kSpeedscope, selection), 0) << err_.str();
  EXPECT_EQ(profile_events(0), json::parse(R"([["O",0,"a"],["C",1000,"a"]])"));
}

// A stall ends with the event behind it, of any kind.
TEST_F(ExportEdges, UnmatchedReturnEndsAStall) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {1200, kReturn, 0xB}, {2000, kReturn, 0xA}}, 100));
  write_manifest(R"("stalls":[{"kind":"page_wait","first_ns":1100,"last_ns":1500,"thread":0}],)",
                 R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  EXPECT_EQ(profile_events(0), json::parse(R"([["O",0,"a"],["O",100,"[stall: page_wait]"],
      ["C",200,"[stall: page_wait]"],["C",1000,"a"]])"));
}

TEST_F(ExportEdges, LeavesOutAStallEndingAtTheWindowsBegin) {
  write_stalled_session();  // it waits 5000..8000
  ExportSelection selection;
  for (const uint64_t from_ns : {7999u, 8000u}) {
    selection.when.from = std::to_string(from_ns);
    ASSERT_EQ(run(Target::kChrome, selection), 0) << err_.str();
    EXPECT_EQ(written().find("stall: page_wait") != std::string::npos, from_ns == 7999);
  }
}

TEST_F(ExportEdges, PageSaysItsTime) {
  write_one({{1000, kCall, 0xA}, {2'001'000, kReturn, 0xA}});
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  EXPECT_EQ(page()["facts"], json::parse(R"([["time","2.0 ms"],["events","2"],["calls","1"],
      ["threads","1"],["functions","1"]])"));
}

TEST_F(ExportEdges, NamesFunctionsMissingFromTheSelectedEvents) {
  write_stalled_session();
  ExportSelection selection;
  selection.functions = {"none"};
  EXPECT_EQ(run(Target::kChrome, selection), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no function matches \"none\""));
  selection.when.from = "1";
  EXPECT_EQ(run(Target::kChrome, selection), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no function of the selected events matches \"none\""));
  selection.when.from = "0";
  selection.when.until = "30000";
  EXPECT_EQ(run(Target::kChrome, selection), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no function of the selected events matches \"none\""));
}

// A manifest that has a mistake says names all the same; what is of it alone is not there.
TEST_F(ExportEdges, NamesAreTakenFromAManifestWithAMistake) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {1100, kReturn, 0xA}}, 100));
  write_manifest(R"("stalls":"none",)", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_LE(run(Target::kFolded), 1) << err_.str();
  EXPECT_EQ(written(), "app;main;a 100\n");
}

TEST_F(ExportEdges, WithoutAManifestThereAreNumbers) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {1100, kReturn, 0xA}}, 100));
  ASSERT_LE(run(Target::kFolded), 1) << err_.str();
  EXPECT_EQ(written(), "process;thread 100;0xa 100\n");
  ASSERT_LE(run(Target::kHtml), 1) << err_.str();
  EXPECT_EQ(page()["threads"][0]["name"], "thread (100)");
  EXPECT_EQ(page()["title"], "process (0)");
}

TEST_F(ExportEdges, EachThreadIsAStepOfTheProgress) {
  for (int n = 0; n < 3; ++n) write_thread(n, index_of({{1000, kCall, 0xA}}, 100));
  write_manifest("", "[]");
  const auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  exports::for_each_view([&](Target format) {
    std::vector<std::pair<uint64_t, uint64_t>> said;
    convert::ConvertLog log([&](uint64_t done, uint64_t all) { said.emplace_back(done, all); });
    const bool is_one_file = format != Target::kParquet;
    const std::string path = is_one_file ? output() : (root_ / "tables").string();
    ASSERT_TRUE(exports::export_sessions({&*trace}, {}, format, path, log).ok());
    EXPECT_EQ(said, (std::vector<std::pair<uint64_t, uint64_t>>{{0, 3}, {1, 3}, {2, 3}}));
    if (!is_one_file) return;
    ASSERT_EQ(log.written().size(), 1u);
    EXPECT_EQ(log.written()[0].first, output());
    EXPECT_EQ(log.written()[0].second, written().size());
  });
}

// Captures are made by storage/convert.
TEST_F(ExportEdges, KindOfCaptureIsNoView) {
  write_thread(0, index_of({{1000, kCall, 0xA}}, 100));
  write_manifest("", "[]");
  const auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  convert::ConvertLog log;
  const Status made = exports::export_sessions({&*trace}, {}, Target::kRtc, output(), log);
  EXPECT_EQ(made.code(), Code::kInvalidArgument);
  EXPECT_EQ(made.error().message, "rtc is no format of viewers");
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(ExportEdges, TwentyMillionCallsAreNotTooMany) {
  exports::ExportCounts counts;
  counts.calls = 20'000'000;
  EXPECT_FALSE(counts.are_too_many());
  counts.calls = 20'000'001;
  EXPECT_TRUE(counts.are_too_many());
}

// ---- an output that takes no more

}  // namespace
}  // namespace collect::ctl
