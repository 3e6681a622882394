// Sessions as folded stacks and as pprof profiles. Times are worked out by hand.
#include "storage/export/export.h"

#include <algorithm>
#include <sstream>

#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using ::testing::HasSubstr;
using testing::json;
using testing::kCall;
using testing::kReturn;

class ExportCallTrees : public testing::ExportTest {
 protected:
  // {root-first stack: values} of a profile.
  static json by_stack(const json& profile) {
    json found = json::object();
    for (const json& sample : profile["samples"]) {
      std::string stack = sample["labels"]["thread"];
      for (const json& frame : sample["stack"]) stack += ";" + frame.get<std::string>();
      EXPECT_FALSE(found.contains(stack)) << stack;
      found[stack] = sample["values"];
    }
    return found;
  }
};

// main: c 1000; b 7000 without c and the wait of 3000; a 3000 beside b without the stop of 500.
// worker: c 19000 without the stop.
TEST_F(ExportCallTrees, FoldedStacksHaveSelfTimesWithoutStalls) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kFolded), 0) << err_.str();
  EXPECT_EQ(written(),
            "app;main;a 2500\n"
            "app;main;a;b 3000\n"
            "app;main;a;b;c 1000\n"
            "app;main;[stalled] 3500\n"
            "app;worker;c 18500\n"
            "app;worker;[stalled] 500\n");
}

TEST_F(ExportCallTrees, PprofHasTheSameTimesAndTheCalls) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kPprof), 0) << err_.str();
  const json found = profile();
  EXPECT_EQ(found["types"], json::parse(R"([["calls","count"],["time","nanoseconds"]])"));
  EXPECT_EQ(found["default"], "time");
  EXPECT_EQ(found["duration_nanos"], 19000);
  EXPECT_EQ(by_stack(found), json::parse(R"({"main;a":[1,2500],"main;a;b":[1,3000],
      "main;a;b;c":[1,1000],"main;[stalled]":[2,3500],"worker;c":[1,18500],
      "worker;[stalled]":[1,500]})"));
  EXPECT_EQ(found["samples"][0]["labels"]["process"], "app");
}

// Off the processor: c 500, b 200, a 200.
TEST_F(ExportCallTrees, FoldedStacksWeighTheChosenTime) {
  write_waiting_session();
  exports::ExportSelection selection;
  selection.value = exports::TimeValue::kCpu;
  ASSERT_EQ(run(Target::kFolded, selection), 0) << err_.str();
  EXPECT_EQ(written(),
            "app;main;a 2300\n"
            "app;main;a;b 2800\n"
            "app;main;a;b;c 500\n"
            "app;worker;c 18500\n");
  selection.value = exports::TimeValue::kWait;
  ASSERT_EQ(run(Target::kFolded, selection), 0) << err_.str();
  EXPECT_EQ(written(),
            "app;main;a 200\n"
            "app;main;a;b 200\n"
            "app;main;a;b;c 500\n");
  write_stalled_session();
  EXPECT_EQ(run(Target::kFolded, selection), 2);
  EXPECT_THAT(err_.str(), HasSubstr("when threads were on a processor is not known"));
}

TEST_F(ExportCallTrees, PprofHasTimeOnTheProcessorToo) {
  write_waiting_session();
  ASSERT_EQ(run(Target::kPprof), 0) << err_.str();
  const json found = profile();
  EXPECT_EQ(found["types"],
            json::parse(R"([["calls","count"],["time","nanoseconds"],["cpu","nanoseconds"]])"));
  EXPECT_EQ(found["default"], "cpu");
  EXPECT_EQ(by_stack(found), json::parse(R"({"main;a":[1,2500,2300],"main;a;b":[1,3000,2800],
      "main;a;b;c":[1,1000,500],"main;[stalled]":[2,3500,0],"worker;c":[1,18500,18500],
      "worker;[stalled]":[1,500,0]})"));
}

// What is called by functions that are not wanted counts to the wanted ones around them.
TEST_F(ExportCallTrees, OnlyWantedFunctionsAreFrames) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.functions = {"b"};
  selection.threads = {"100"};
  ASSERT_EQ(run(Target::kPprof, selection), 0) << err_.str();
  uint64_t time = 0;
  const json found = profile();
  for (const json& sample : found["samples"]) {
    if (sample["stack"] == json::parse(R"(["b"])")) time += sample["values"][1].get<uint64_t>();
    EXPECT_NE(sample["stack"][0], "a");
  }
  EXPECT_EQ(time, 4000u) << "b, and c within it";
}

TEST_F(ExportCallTrees, WindowCountsOnlyTimeInIt) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.when.from = "2500";
  selection.when.until = "3500";
  selection.threads = {"thread_0"};
  ASSERT_EQ(run(Target::kFolded, selection), 0) << err_.str();
  EXPECT_EQ(written(), "app;main;a;b 500\napp;main;a;b;c 500\n");
  selection.when.from = "1.5us";  // since the first event, at 1000 ns
  selection.when.until = "2.5us";
  ASSERT_EQ(run(Target::kFolded, selection), 0) << err_.str();
  EXPECT_EQ(written(), "app;main;a;b 500\napp;main;a;b;c 500\n");
}

TEST_F(ExportCallTrees, RecursionAndCallsAfterALossHaveOwnStacks) {
  write_lossy_session({{1000, kCall, 0xA},
                       {2000, kCall, 0xA},
                       {2500, kReturn, 0xA},
                       {6000, kCall, 0xC},
                       {7000, kReturn, 0xC}},
                      3, 3000, 4000);
  ASSERT_EQ(run(Target::kFolded), 0) << err_.str();
  // The outer a is counted up to the last event before the loss.
  EXPECT_EQ(written(),
            "app;main;[caller lost];c 1000\n"
            "app;main;a 1000\n"
            "app;main;a;a 500\n");
  EXPECT_THAT(err_.str(), ::testing::HasSubstr("5 events were lost while recording"));
}

// A recursion of 20,000 calls made a file of 1 GB: each line has its whole stack.
TEST_F(ExportCallTrees, DeepCallsOfAStackAreOneFrame) {
  constexpr uint64_t kDepth = 20'000;
  constexpr uint64_t kFrames = 1024;  // FORMAT.md, Limits
  std::vector<testing::Step> steps;
  for (uint64_t i = 0; i < kDepth; ++i) steps.push_back({1000 + 10 * i, kCall, 0xA});
  for (uint64_t i = 0; i < kDepth; ++i) steps.push_back({1'000'000 + 10 * i, kReturn, 0xA});
  write_thread(0, testing::index_of(steps, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  const uint64_t all_ns = 1'000'000 + 10 * (kDepth - 1) - 1000;

  ASSERT_EQ(run(Target::kFolded), 0) << err_.str();
  EXPECT_LT(written().size(), 2'000'000u);
  std::istringstream lines(written());
  uint64_t ns = 0, number = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.rfind(' ');
    ns += std::stoull(line.substr(blank));
    ++number;
    // The process, the thread, and the functions: each call but the innermost has 20 ns of its own.
    const auto frames = static_cast<uint64_t>(std::ranges::count(line, ';')) - 1;
    EXPECT_EQ(frames, std::min(number, kFrames + 1));
    EXPECT_EQ(line.ends_with(";[deeper calls] " + line.substr(blank + 1)), frames == kFrames + 1);
  }
  EXPECT_EQ(ns, all_ns);
  EXPECT_EQ(number, kFrames + 1);
  const json left_out = {
      {"calls nested deeper than 1024: they are one frame, [deeper calls]; chrome "
       "and parquet have each of them",
       kDepth - kFrames}};
  EXPECT_EQ(
      report_["left_out"]["calls nested deeper than 1024: they are one frame, [deeper calls]; "
                          "chrome and parquet have each of them"],
      kDepth - kFrames)
      << report_["left_out"];
  EXPECT_THAT(err_.str(), ::testing::HasSubstr("18,976 calls nested deeper than 1024"));

  ASSERT_EQ(run(Target::kPprof), 0) << err_.str();
  EXPECT_EQ(report_["left_out"], left_out);
  uint64_t calls = 0;
  ns = 0;
  const json samples = profile()["samples"];
  for (const json& sample : samples) {
    calls += sample["values"][0].get<uint64_t>();
    ns += sample["values"][1].get<uint64_t>();
  }
  EXPECT_EQ(samples.size(), kFrames + 1);
  EXPECT_EQ(calls, kDepth);
  EXPECT_EQ(ns, all_ns);
}

// A cut that counted frames which a filter leaves out cut stacks at depths of their own
// (memray 164): of each second call here the frames are the wanted ones alone.
TEST_F(ExportCallTrees, FramesThatAreLeftOutAreNoDepth) {
  constexpr uint64_t kDepth = 1024;
  std::vector<testing::Step> steps;
  for (uint64_t i = 0; i < 2 * kDepth; ++i) {
    steps.push_back({1000 + 10 * i, kCall, i % 2 == 0 ? 0xAu : 0xBu});
  }
  steps.push_back({100'000, kCall, 0xC});
  steps.push_back({100'010, kReturn, 0xC});
  write_thread(0, testing::index_of(steps, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  exports::ExportSelection selection;
  selection.functions = {"b", "c"};
  ASSERT_EQ(run(Target::kFolded, selection), 0) << err_.str();
  EXPECT_EQ(report_["left_out"].begin().value(), 1) << "c alone is deeper than 1024 of them";
  EXPECT_THAT(written(), ::testing::EndsWith("b;b;[deeper calls] 10\n"));
}

// Each of the 31,000 stacks here has some 500 frames, and no recursion is deeper than a stack may
// be.
TEST_F(ExportCallTrees, FileDoesNotGrowOutOfProportion) {
  std::vector<testing::Step> steps;
  uint64_t ns = 1000;
  constexpr uint64_t kDepth = 1000;
  constexpr uint64_t kBranches = 30;
  for (uint64_t i = 0; i < kDepth; ++i) {
    steps.push_back({ns += 10, kCall, 0xA});
    for (uint64_t branch = 0; branch < kBranches; ++branch) {
      steps.push_back({ns += 10, kCall, 0x100 + branch});
      steps.push_back({ns += 10, kReturn, 0x100 + branch});
    }
  }
  for (uint64_t i = 0; i < kDepth; ++i) steps.push_back({ns += 10, kReturn, 0xA});
  write_thread(0, testing::index_of(steps, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kFolded), 0) << err_.str();
  const std::string text = written();
  // 128 for each stack and 2^22, and on each line the thread and a frame of deeper calls.
  EXPECT_LT(std::ranges::count(text, ';'), 31'010 * (128 + 2) + (1 << 22));
  EXPECT_THAT(err_.str(),
              ::testing::HasSubstr("so deep that the file would grow out of proportion"));
  uint64_t all_ns = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    all_ns += std::stoull(line.substr(line.rfind(' ')));
  EXPECT_EQ(all_ns, steps.back().ns - steps.front().ns);
}

// Module 1 is at 0x1000; its function at 0x20 is at 0x1020.
TEST_F(ExportCallTrees, PprofKnowsTheModules) {
  const uint64_t function = (uint64_t{1} << 32) | 0x20;
  write_thread(0, testing::index_of({{1000, kCall, function}, {2000, kReturn, function}}, 100));
  write_manifest(R"("modules":[{"module_id":1,"path":"/lib/libz.so","base_address":"0x1000",
                     "size":256,"build_id":"abcd"}],)",
                 R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kPprof), 0) << err_.str();
  const json sample = profile()["samples"][0];
  EXPECT_EQ(sample["stack"], json::parse(R"(["libz.so+0x20"])"));
  EXPECT_EQ(sample["files"], json::parse(R"(["/lib/libz.so"])"));
}

}  // namespace
}  // namespace collect::ctl
