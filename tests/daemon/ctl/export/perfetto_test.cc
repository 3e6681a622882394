// Sessions as Perfetto traces, as protoc and an importer by upstream's rules see them. Times are
// worked out by hand.
#include "storage/export/export.h"

#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using ::testing::HasSubstr;
using testing::index_of;
using testing::json;
using testing::kCall;
using testing::kException;
using testing::kReturn;

class ExportPerfetto : public testing::ExportTest {
 protected:
  json tracks() {
    const json trace = imported();
    EXPECT_EQ(trace["dropped"], 0);
    EXPECT_EQ(trace["lone_ends"], 0);
    EXPECT_EQ(trace["too_deep"], 0);
    EXPECT_GE(trace["runs"], 1);
    losses_ = trace["losses"];
    return trace["tracks"];
  }
  int losses_ = 0;
};

TEST_F(ExportPerfetto, CallsStallsAndMarkersLieOnTheirTracks) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  EXPECT_EQ(report_["counts"]["calls"], 4);
  EXPECT_EQ(report_["counts"]["events"], 8);
  EXPECT_EQ(report_["left_out"], json::object());
  const json found = tracks();
  EXPECT_EQ(found["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":1000,"dur":10000,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":1,"ts":2000,"dur":7000,"name":"b"},
      {"depth":2,"ts":3000,"dur":1000,"name":"c"}])"));
  EXPECT_EQ(found["worker/101"]["slices"], json::parse(R"([
      {"depth":0,"ts":1000,"dur":19000,"name":"c"}])"));
  EXPECT_EQ(found["main/100/waits for the collector"]["slices"], json::parse(R"([
      {"depth":0,"ts":5000,"dur":3000,"name":"stall: page_wait","args":{"stalled_ns":3000}}])"));
  EXPECT_EQ(found["app/process stopped"]["slices"], json::parse(R"([
      {"depth":0,"ts":10000,"dur":500,"name":"stall: stopped","args":{"stalled_ns":500}}])"));
  EXPECT_EQ(found["app/markers"]["instants"], json::parse(R"([[2500,"here"]])"));
  // 19,000 ns in parts of 32 ns: two events in the first, none in the second.
  const json counts = found["app/events per second"]["counts"];
  EXPECT_EQ(counts[0], json::parse("[1000,62500000]"));
  EXPECT_EQ(counts[1], json::parse("[1032,0]"));
  EXPECT_EQ(counts.back(), json::parse("[20008,0]"));
  EXPECT_EQ(found.size(), 7u) << found;
}

TEST_F(ExportPerfetto, TimesOffProcessorHaveTheirTrack) {
  write_waiting_session();
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  EXPECT_EQ(report_["left_out"], json::object());
  const json found = tracks();
  EXPECT_EQ(found["main/100/off the processor"]["slices"], json::parse(R"([
      {"depth":0,"ts":3200,"dur":500,"name":"blocked"},
      {"depth":0,"ts":8100,"dur":200,"name":"preempted"},
      {"depth":0,"ts":9200,"dur":200,"name":"blocked"}])"));
  EXPECT_EQ(found.size(), 8u) << found;
}

TEST_F(ExportPerfetto, LossCutsOpenCallsAndShowsSurvivors) {
  write_lossy_session(
      {{1000, kCall, 0xA}, {2000, kCall, 0xB}, {4000, kReturn, 0xB}, {5000, kReturn, 0xA}}, 2, 2500,
      3500);
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  EXPECT_EQ(report_["counts"]["lost_events"], 5);
  const json found = tracks();
  EXPECT_EQ(losses_, 1);
  EXPECT_EQ(found["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":1000,"dur":1500,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":1,"ts":2000,"dur":500,"name":"b"},
      {"depth":0,"ts":3500,"dur":1500,"name":"a","args":{"source":"src/a.c:12","after_loss":true}},
      {"depth":1,"ts":3500,"dur":500,"name":"b","args":{"after_loss":true}}])"));
  EXPECT_EQ(found["main/100/lost events"]["slices"], json::parse(R"([
      {"depth":0,"ts":2500,"dur":1000,"name":"lost: 5 events",
       "args":{"events":5,"reasons":"ring_full"}}])"));
}

// The first end behind the loss is a's: b has ended in it. No one knows when the loss was.
TEST_F(ExportPerfetto, DoesNotReopenCallsThatEndedInALoss) {
  write_lossy_session({{1000, kCall, 0xA}, {2000, kCall, 0xB}, {5000, kReturn, 0xA}}, 2, 0, 0);
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  const json found = tracks();
  EXPECT_EQ(found["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":1000,"dur":1000,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":1,"ts":2000,"dur":0,"name":"b"},
      {"depth":0,"ts":5000,"dur":0,"name":"a","args":{"source":"src/a.c:12","after_loss":true}}])"));
  EXPECT_EQ(found["main/100/lost events"]["slices"][0]["dur"], 3000);
}

// Behind the loss c is called, and nothing that was open before ends: who has called it is unknown.
TEST_F(ExportPerfetto, CallsWhoseCallerIsUnknownStandAlone) {
  write_lossy_session({{1000, kCall, 0xA}, {6000, kCall, 0xC}, {7000, kReturn, 0xC}}, 1, 2000,
                      3000);
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  EXPECT_EQ(tracks()["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":1000,"dur":1000,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":0,"ts":6000,"dur":1000,"name":"c"}])"));
}

TEST_F(ExportPerfetto, HowACallEndedIsSaid) {
  write_thread(0, index_of({{1000, kCall, 0xA},
                            {2000, kCall, 0xB},
                            {2100, kException, 0xB},
                            {3000, kCall, 0xC},
                            {4000, kReturn, 0xA},
                            {5000, kReturn, 0xC},
                            {6000, kCall, 0xA},
                            {7000, kCall, 0xB}},
                           100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  EXPECT_EQ(tracks()["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":1000,"dur":3000,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":1,"ts":2000,"dur":100,"name":"b","args":{"ended_by":"an exception"}},
      {"depth":1,"ts":3000,"dur":1000,"name":"c","args":{"ended_by":"the end of an outer call"}},
      {"depth":0,"ts":6000,"dur":null,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":1,"ts":7000,"dur":null,"name":"b"}])"))
      << "what is open at the end has no end";
  EXPECT_EQ(report_["left_out"]["returns without a call"], 1);
}

TEST_F(ExportPerfetto, DetailRecordsAreNotesOfTheirCalls) {
  write_planned_session();
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  const json slices = tracks()["main/4711"]["slices"];
  ASSERT_EQ(slices.size(), 6u);
  EXPECT_EQ(slices[0]["ts"], 1000);
  EXPECT_EQ(slices[0]["args"]["lr"], 0x1111);
  EXPECT_EQ(slices[3]["ts"], 1060);
  EXPECT_EQ(slices[3]["args"]["stack"], "060606060606");
  EXPECT_FALSE(slices[1].contains("args") && slices[1]["args"].contains("lr"));
}

TEST_F(ExportPerfetto, DeepCallsAreFoldedAndCounted) {
  std::vector<testing::Step> steps;
  for (uint64_t i = 0; i < 600; ++i) steps.push_back({1000 + i, kCall, 0xA});
  for (uint64_t i = 0; i < 600; ++i) steps.push_back({2000 + i, kReturn, 0xA});
  write_thread(0, index_of(steps, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  const json slices = tracks()["main/100"]["slices"];
  ASSERT_EQ(slices.size(), 512u);
  // The innermost that is there is the 512th: 1511, and its end is the 89th.
  EXPECT_EQ(slices[511],
            json::parse(
                R"({"depth":511,"ts":1511,"dur":577,"name":"a","args":{"source":"src/a.c:12"}})"));
  EXPECT_THAT(err_.str(), HasSubstr("88 calls nested deeper than 512"));
}

TEST_F(ExportPerfetto, WindowCutsCalls) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.when.from = "2500";
  selection.when.until = "8500";
  ASSERT_EQ(run(Target::kPerfetto, selection), 0) << err_.str();
  const json found = tracks();
  EXPECT_EQ(found["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":2500,"dur":6000,"name":"a","args":{"source":"src/a.c:12"}},
      {"depth":1,"ts":2500,"dur":6000,"name":"b"},
      {"depth":2,"ts":3000,"dur":1000,"name":"c"}])"));
  EXPECT_FALSE(found.contains("app/process stopped")) << "it was later";
  EXPECT_EQ(found["app/markers"]["instants"].size(), 1u);
}

TEST_F(ExportPerfetto, ShowsMarkersBeforeAndAfterAllEvents) {
  write_thread(0, index_of({{1000, kCall, 0xA}, {2000, kReturn, 0xA}}, 100));
  write_manifest(R"("markers":[{"at_ns":400,"text":"before"},{"at_ns":9000,"text":"behind"}],)",
                 R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kPerfetto), 0) << err_.str();
  EXPECT_EQ(tracks()["app/markers"]["instants"],
            json::parse(R"([[400,"before"],[9000,"behind"]])"));
  ASSERT_EQ(run(Target::kSpeedscope), 0) << err_.str();
  EXPECT_EQ(report_["left_out"]["markers"], 2);
}

TEST_F(ExportPerfetto, WindowThatBeginsWithinALossShowsIt) {
  write_lossy_session(
      {{1000, kCall, 0xA}, {2000, kCall, 0xB}, {4000, kReturn, 0xB}, {5000, kReturn, 0xA}}, 2, 2500,
      3500);
  exports::ExportSelection selection;
  selection.when.from = "3000";
  ASSERT_EQ(run(Target::kPerfetto, selection), 0) << err_.str();
  EXPECT_EQ(report_["counts"]["lost_events"], 5);
  (void)tracks();
  EXPECT_EQ(losses_, 1);
}

TEST_F(ExportPerfetto, OnlyWhatIsAskedFor) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.functions = {"c"};
  selection.threads = {"name=main"};
  ASSERT_EQ(run(Target::kPerfetto, selection), 0) << err_.str();
  const json found = tracks();
  EXPECT_EQ(found["main/100"]["slices"], json::parse(R"([
      {"depth":0,"ts":3000,"dur":1000,"name":"c"}])"));
  EXPECT_FALSE(found.contains("worker/101"));
  selection.functions = {"d"};
  EXPECT_EQ(run(Target::kPerfetto, selection), 1) << "as of every command: nothing matched";
  EXPECT_THAT(err_.str(), HasSubstr("no function of the selected events matches \"d\""));
  selection.functions = {};
  selection.threads = {"name=nobody"};
  EXPECT_EQ(run(Target::kPerfetto, selection), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no thread is \"name=nobody\""));
  selection.threads = {"id="};
  EXPECT_EQ(run(Target::kPerfetto, selection), 2) << "a word that makes no sense";
}

// Two devices whose clocks differ by 5 ms, with the same pid and tid.
TEST_F(ExportPerfetto, SeveralSessionsLieOnOneTimeLine) {
  constexpr uint64_t kEpoch = 1'800'000'000'000'000'000;
  std::vector<std::string> inputs;
  for (const auto& [name, offset_ns] : {std::pair("Phone", 5'000'000), std::pair("Server", 0)}) {
    session_ = root_ / "session_20250102_030405" / name;
    const uint64_t at_ns = 2000 + static_cast<uint64_t>(offset_ns);
    write_thread(0, index_of({{at_ns, kCall, 0xA}, {at_ns + 100, kReturn, 0xA}}, 100));
    write_text(session_ / "manifest.json",
               R"({"threads":[{"id":0,"name":"main","ended":true}],"process":{"name":"app","pid":42,
                   "device_model":")" +
                   std::string(name) + R"("},)" + kSymbols +
                   R"(,"clock_sync":[{"at_ns":1000,"offset_ns":)" + std::to_string(offset_ns) +
                   R"(,"uncertainty_ns":25000,"at_unix_ns":)" + std::to_string(kEpoch + 1000) +
                   R"(,"boot_id":"b"}]})");
    inputs.push_back(session_.string());
  }
  ASSERT_LE(run(Target::kPerfetto, {}, inputs), 1) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("the best within 25 us"));
  const json trace = imported();
  EXPECT_EQ(trace["processes"], json::parse(R"json({"42":"Phone: app",
      "1000000000":"Server: app (pid 42)"})json"));
  const json slices = json::parse(
      R"([{"depth":0,"ts":1800000000000002000,"dur":100,"name":"a","args":{"source":"src/a.c:12"}}])");
  EXPECT_EQ(trace["tracks"]["main/100"]["slices"], slices);
  EXPECT_EQ(trace["tracks"]["main (tid 100)/1000000000"]["slices"], slices);
}

}  // namespace
}  // namespace collect::ctl
