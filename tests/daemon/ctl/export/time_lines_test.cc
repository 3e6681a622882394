// Sessions as Chrome's trace events and as speedscope files. Times are worked out by hand.
#include "storage/export/export.h"

#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using ::testing::HasSubstr;
using testing::index_of;
using testing::json;
using testing::kCall;
using testing::kReturn;

class ExportTimeLines : public testing::ExportTest {};

TEST_F(ExportTimeLines, ChromeHasCallsStallsAndMarkers) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kChrome), 0) << err_.str();
  const json file = json::parse(written());
  EXPECT_EQ(file["otherData"]["origin_ns"], "1000");
  json calls, others;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == "B" || event["ph"] == "E") {
      calls.push_back({event["ph"], event["tid"], event["ts"], event["name"]});
    } else if (event["ph"] != "C") {
      others.push_back(event);
    }
  }
  EXPECT_EQ(calls, json::parse(R"([["B",100,0.0,"a"],["B",100,1.0,"b"],["B",100,2.0,"c"],
      ["E",100,3.0,"c"],["E",100,8.0,"b"],["E",100,10.0,"a"],
      ["B",101,0.0,"c"],["E",101,19.0,"c"]])"));
  EXPECT_EQ(others, json::parse(R"([
      {"ph":"M","pid":42,"name":"process_name","args":{"name":"app"}},
      {"ph":"i","pid":42,"tid":0,"ts":1.5,"s":"p","name":"here"},
      {"ph":"b","pid":42,"tid":42,"ts":9.0,"cat":"stall","id":1,"name":"stall: stopped",
       "args":{"stalled_ns":500}},
      {"ph":"e","pid":42,"tid":42,"ts":9.5,"cat":"stall","id":1,"name":"stall: stopped"},
      {"ph":"M","pid":42,"tid":100,"name":"thread_name","args":{"name":"main"}},
      {"ph":"b","pid":42,"tid":100,"ts":4.0,"cat":"stall","id":2,"name":"stall: page_wait",
       "args":{"stalled_ns":3000}},
      {"ph":"e","pid":42,"tid":100,"ts":7.0,"cat":"stall","id":2,"name":"stall: page_wait"},
      {"ph":"M","pid":42,"tid":101,"name":"thread_name","args":{"name":"worker"}}])"));
}

TEST_F(ExportTimeLines, ChromeCutsCallsAtALoss) {
  write_lossy_session(
      {{1000, kCall, 0xA}, {2000, kCall, 0xB}, {4000, kReturn, 0xB}, {5000, kCall, 0xC}}, 2, 2500,
      3500);
  ASSERT_EQ(run(Target::kChrome), 0) << err_.str();
  json events;
  const json file = json::parse(written());
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == "M" || event["ph"] == "C") continue;
    events.push_back({event["ph"], event["ts"], event["name"]});
    if (event.contains("args")) events.back().push_back(event["args"]);
  }
  EXPECT_EQ(events, json::parse(R"([["B",0.0,"a"],["B",1.0,"b"],["E",1.5,"b"],["E",1.5,"a"],
      ["b",1.5,"lost: 5 events",{"events":5,"reasons":"ring_full"}],["e",2.5,"lost: 5 events"],
      ["B",2.5,"a",{"after_loss":true}],["B",2.5,"b",{"after_loss":true}],
      ["E",3.0,"b"],["B",4.0,"c"]])"))
      << "a and c are open at the end";
}

TEST_F(ExportTimeLines, SpeedscopeHasStallsWithinCalls) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  const json file = json::parse(written());
  const json& frames = file["shared"]["frames"];
  const auto events_of = [&](size_t profile) {
    json events;
    for (const json& event : file["profiles"][profile]["events"]) {
      events.push_back({event["type"], event["at"], frames[event["frame"].get<size_t>()]["name"]});
    }
    return events;
  };
  ASSERT_EQ(file["profiles"].size(), 2u);
  EXPECT_EQ(file["profiles"][0]["name"], "app: main (100)");
  EXPECT_EQ(events_of(0), json::parse(R"([["O",0,"a"],["O",1000,"b"],["O",2000,"c"],["C",3000,"c"],
      ["O",4000,"[stall: page_wait]"],["C",7000,"[stall: page_wait]"],["C",8000,"b"],
      ["O",9000,"[stall: stopped]"],["C",9500,"[stall: stopped]"],["C",10000,"a"]])"));
  EXPECT_EQ(events_of(1), json::parse(R"([["O",0,"c"],["O",9000,"[stall: stopped]"],
      ["C",9500,"[stall: stopped]"],["C",19000,"c"]])"));
  EXPECT_EQ(report_["left_out"]["markers"], 1);
}

TEST_F(ExportTimeLines, TimesOffProcessorAreWithinCalls) {
  write_waiting_session();
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  const std::string speedscope = written();
  const json file = json::parse(speedscope);
  json events;
  for (const json& event : file["profiles"][0]["events"]) {
    events.push_back({event["type"], event["at"],
                      file["shared"]["frames"][event["frame"].get<size_t>()]["name"]});
  }
  EXPECT_EQ(events, json::parse(R"([["O",0,"a"],["O",1000,"b"],["O",2000,"c"],
      ["O",2200,"[blocked]"],["C",2700,"[blocked]"],["C",3000,"c"],
      ["O",4000,"[stall: page_wait]"],["C",7000,"[stall: page_wait]"],
      ["O",7100,"[preempted]"],["C",7300,"[preempted]"],["C",8000,"b"],
      ["O",8200,"[blocked]"],["C",8400,"[blocked]"],
      ["O",9000,"[stall: stopped]"],["C",9500,"[stall: stopped]"],["C",10000,"a"]])"));
  ASSERT_EQ(run(Target::kChrome), 0) << err_.str();
  json found;
  const json chrome = json::parse(written());
  for (const json& event : chrome["traceEvents"]) {
    if (event.value("cat", "") != "off_processor" || event["ph"] != "b") continue;
    found.push_back({event["name"], event["tid"], event["ts"]});
  }
  EXPECT_EQ(found, json::parse(R"([["blocked",100,2.2],["preempted",100,7.1],
      ["blocked",100,8.2]])"));
}

TEST_F(ExportTimeLines, SpeedscopeShowsALossBetweenCalls) {
  write_lossy_session(
      {{1000, kCall, 0xA}, {2000, kCall, 0xB}, {4000, kReturn, 0xB}, {5000, kCall, 0xC}}, 2, 2500,
      3500);
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  const json file = json::parse(written());
  json events;
  for (const json& event : file["profiles"][0]["events"]) {
    events.push_back({event["type"], event["at"],
                      file["shared"]["frames"][event["frame"].get<size_t>()]["name"]});
  }
  EXPECT_EQ(events, json::parse(R"([["O",0,"a"],["O",1000,"b"],["C",1500,"b"],["C",1500,"a"],
      ["O",1500,"[lost: 5 events]"],["C",2500,"[lost: 5 events]"],["O",2500,"a"],["O",2500,"b"],
      ["C",3000,"b"],["O",4000,"c"],["C",4000,"c"],["C",4000,"a"]])"))
      << "what is open at the end is closed at the last event";
}

// It waits 2200..2400, and once more while events are lost: the loss begins where it began.
TEST_F(ExportTimeLines, StallWithinALossMovesNothing) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {4000, kReturn, 0xA}}, 100));
  write_manifest(R"("gaps":[{"thread":0,"lane":"index","before_seq":1,"lost":5,"numbered_lost":5,
      "first_ns":2500,"last_ns":3500,"reasons":["ring_full"]}],
      "stalls":[{"kind":"page_wait","first_ns":2200,"last_ns":2400,"thread":0},
                {"kind":"page_wait","first_ns":2600,"last_ns":3600,"thread":0}],)",
                 R"([{"id":0,"name":"main","ended":true,"lost_events":5}])");
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  const json file = json::parse(written());
  json events;
  for (const json& event : file["profiles"][0]["events"]) {
    events.push_back({event["type"], event["at"],
                      file["shared"]["frames"][event["frame"].get<size_t>()]["name"]});
  }
  EXPECT_EQ(events, json::parse(R"([["O",0,"a"],
      ["O",1200,"[stall: page_wait]"],["C",1400,"[stall: page_wait]"],["C",1500,"a"],
      ["O",1500,"[lost: 5 events]"],["C",2500,"[lost: 5 events]"],["O",2500,"a"],
      ["O",2500,"[stall: page_wait]"],["C",2600,"[stall: page_wait]"],["C",3000,"a"]])"));
}

TEST_F(ExportTimeLines, TimesThatStepBackAreShownAndCounted) {
  write_thread(
      0,
      index_of({{1000, kCall, 0xA}, {2000, kCall, 0xB}, {1500, kReturn, 0xB}, {500, kReturn, 0xA}},
               100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  EXPECT_EQ(json::parse(written())["profiles"][0]["events"].size(), 4u);
  EXPECT_EQ(
      report_["left_out"]["times that stepped back within a thread, moved to the event before"], 2)
      << report_.dump();
}

// No one saw it return.
TEST_F(ExportTimeLines, OpenCallLastsUntilTheEnd) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {2000, kCall, 0xB}, {5000, kReturn, 0xB}}, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  exports::ExportSelection selection;
  selection.functions = {"a"};
  ASSERT_EQ(run(Target::kSpeedscope, selection), 0) << err_.str();
  EXPECT_EQ(json::parse(written())["profiles"][0]["endValue"], 4000);
}

TEST_F(ExportTimeLines, ThreadWithoutEventsInTheWindowIsNotThere) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.when.from = "12000";
  ASSERT_EQ(run(Target::kSpeedscope, selection), 0) << err_.str();
  const json file = json::parse(written());
  ASSERT_EQ(file["profiles"].size(), 1u);
  EXPECT_EQ(file["profiles"][0]["name"], "app: worker (101)");
  EXPECT_EQ(file["profiles"][0]["startValue"], 0);
  EXPECT_EQ(file["profiles"][0]["endValue"], 8000);
}

TEST_F(ExportTimeLines, FileThatIsThereStays) {
  write_stalled_session();
  write_text(output(), "mine");
  ConvertOptions options;
  options.inputs = {session_.string()};
  options.to = Target::kChrome;
  options.output = output();
  EXPECT_EQ(convert(options, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--force"));
  EXPECT_EQ(written(), "mine");
}

}  // namespace
}  // namespace collect::ctl
