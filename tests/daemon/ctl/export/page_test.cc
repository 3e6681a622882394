// The page for browsers: what its data say of sessions whose times are worked out by hand.
#include <map>

#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using testing::json;
using testing::kCall;
using testing::kReturn;

class ExportPage : public testing::ExportTest {
 protected:
  // Of a thread's tree: total, self and calls by stack.
  static std::map<std::string, json> stacks(const json& data, size_t thread) {
    std::map<std::string, json> found;
    const json& tree = data["threads"][thread]["tree"];
    std::vector<std::string> stack = {""};
    for (size_t i = 1; i < tree["parent"].size(); ++i) {
      const int64_t name = tree["name"][i];
      const std::string& above = stack[tree["parent"][i].get<size_t>()];
      stack.push_back((above.empty() ? "" : above + ";") +
                      (name < 0 ? std::to_string(name)
                                : data["names"][static_cast<size_t>(name)].get<std::string>()));
      if (tree["calls"][i] == 0) continue;  // the ones that are no function, here
      found[stack.back()] = {tree["total"][i], tree["self"][i], tree["calls"][i]};
    }
    return found;
  }
};

// Viewers hang at some thousand threads (Firefox Profiler 3703, HPCToolkit 2): a page shows those
// with the most events, its functions are those of all.
TEST_F(ExportPage, ThreadsBeyondTheLimitAreInTheTotalsAlone) {
  constexpr uint32_t kThreads = 1003;
  std::string threads;
  for (uint32_t n = 0; n < kThreads; ++n) {
    std::vector<testing::Step> steps = {{1000, kCall, 0xC}, {1010, kReturn, 0xC}};
    // The last two have more, the first one has nothing.
    if (n >= kThreads - 2) steps.insert(steps.end(), {{2000, kCall, 0xB}, {2100, kReturn, 0xB}});
    if (n == 0) steps.clear();
    write_thread(static_cast<int>(n), testing::index_of(steps, 2000 + n));
    threads += (n == 0 ? "" : ",") + (R"({"id":)" + std::to_string(n)) + R"(,"ended":true})";
  }
  write_manifest("", "[" + threads + "]");
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  ASSERT_EQ(data["threads"].size(), 1000u);
  EXPECT_EQ(data["threads"][0]["number"], 1);
  EXPECT_EQ(data["threads"][998]["number"], kThreads - 2);
  EXPECT_EQ(data["threads"][999]["number"], kThreads - 1);
  std::map<std::string, json> calls;
  for (const json& one : data["functions"]) {
    calls[data["names"][one[0].get<size_t>()]] = {one[1], one[2]};
  }
  EXPECT_EQ(calls, (std::map<std::string, json>{{"b", {2, 200}}, {"c", {1002, 10'020}}}));
  const std::string what =
      "threads with fewer events than the 1,000 that a page shows: --thread chooses others";
  EXPECT_EQ(report_["left_out"], json({{what, 3}}));
  EXPECT_EQ(data["missing"], json::array({"left out: " + what + " (3)"}));
  EXPECT_EQ(report_["counts"]["events"], 2 * 1002 + 4);
}

TEST_F(ExportPage, TimesAreThoseOfReport) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  ASSERT_EQ(data["threads"].size(), 2u);
  EXPECT_EQ(data["title"], "app (42)");
  EXPECT_EQ(data["missing"], json::array());
  EXPECT_EQ(data["first_ns"], 1000);
  EXPECT_EQ(data["last_ns"], 20000);
  EXPECT_EQ(data["threads"][0]["name"], "main (100)");
  EXPECT_EQ(data["threads"][0]["stalls"], json::parse("[[5000,8000],[10000,10500]]"));
  EXPECT_EQ(data["threads"][1]["stalls"], json::parse("[[10000,10500]]"));
  EXPECT_EQ(stacks(data, 0),
            (std::map<std::string, json>{
                {"a", {6500, 2500, 1}}, {"a;b", {4000, 3000, 1}}, {"a;b;c", {1000, 1000, 1}}}));
  EXPECT_EQ(stacks(data, 1), (std::map<std::string, json>{{"c", {18500, 18500, 1}}}));
  std::map<std::string, json> functions;
  for (const json& one : data["functions"]) {
    functions[data["names"][one[0].get<size_t>()]] = {one[1], one[2], one[3], one[6]};
  }
  EXPECT_EQ(functions, (std::map<std::string, json>{{"a", {1, 6500, 2500, 6500}},
                                                    {"b", {1, 4000, 3000, 4000}},
                                                    {"c", {2, 19500, 19500, 18500}}}));
  ASSERT_EQ(data["places"].size(), data["names"].size());
  for (size_t i = 0; i < data["names"].size(); ++i) {
    EXPECT_EQ(data["places"][i], data["names"][i] == "a" ? "src/a.c:12" : "");
  }
}

TEST_F(ExportPage, HasTimesOffTheProcessor) {
  write_waiting_session();
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  EXPECT_EQ(report_["left_out"], json::object());
  const json data = page();
  EXPECT_EQ(data["markers"].size(), 1u);
  EXPECT_EQ(data["has_waits"], true);
  EXPECT_EQ(data["threads"][0]["waits"], json::parse("[[3200,3700],[8100,8300],[9200,9400]]"));
  EXPECT_EQ(data["threads"][1]["waits"], json::array());
  EXPECT_EQ(data["threads"][0]["stalls"], json::parse("[[5000,8000],[10000,10500]]"));
  const json& tree = data["threads"][0]["tree"];
  EXPECT_EQ(tree["waited"], json::parse("[0,900,700,500]"));
  EXPECT_EQ(tree["self_waited"], json::parse("[0,200,200,500]"));
  std::map<std::string, json> waited;
  for (const json& one : data["functions"]) waited[data["names"][one[0].get<size_t>()]] = one[7];
  EXPECT_EQ(waited, (std::map<std::string, json>{{"a", 200}, {"b", 200}, {"c", 500}}));
}

// Six events in the time from 1000 to 20000, in parts of 24 ns; the two of worker are at its ends.
TEST_F(ExportPage, ActivityCountsEventsWhereTheyAre) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  const json& main = data["threads"][0]["activity"];
  ASSERT_EQ(main.size(), 800u);
  for (const uint64_t ns : {1000, 2000, 3000, 4000, 9000, 11000}) {
    EXPECT_EQ(main[(ns - 1000) / 24], 1) << ns;
  }
  const json& worker = data["threads"][1]["activity"];
  EXPECT_EQ(worker[0], 1);
  EXPECT_EQ(worker[19000 / 24], 1);
}

TEST_F(ExportPage, LossesAreSaidAndShown) {
  write_lossy_session({{1000, kCall, 0xA}, {2000, kReturn, 0xA}, {6000, kCall, 0xC}}, 2, 3000,
                      4000);
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  EXPECT_EQ(data["threads"][0]["gaps"], json::parse("[[3000,4000]]"));
  ASSERT_EQ(data["missing"].size(), 1u);
  EXPECT_THAT(data["missing"][0].get<std::string>(),
              ::testing::HasSubstr("5 events were lost while recording"));
}

// What is called behind a loss has no known caller: its place is as wide as it is.
TEST_F(ExportPage, ShowsCallsKnownAfterALoss) {
  write_lossy_session({{1000, kCall, 0xA},
                       {2000, kCall, 0xB},
                       {5000, kCall, 0xC},
                       {8000, kReturn, 0xC},
                       {9000, kCall, 0xC},
                       {9500, kReturn, 0xC}},
                      2, 3000, 4000);
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  const json& tree = data["threads"][0]["tree"];
  bool is_there = false;
  for (size_t i = 1; i < tree["name"].size(); ++i) {
    if (tree["name"][i] != -2) continue;
    is_there = true;
    EXPECT_EQ(tree["total"][i], 3500);
  }
  EXPECT_TRUE(is_there);
  for (const json& one : data["functions"]) {
    EXPECT_GE(one[2], one[3]) << "total and self of " << data["names"][one[0].get<size_t>()];
  }
}

TEST_F(ExportPage, AddsUnselectedFunctionsToTheirCaller) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.functions = {"a", "c"};
  selection.threads = {"100"};
  ASSERT_EQ(run(Target::kHtml, selection), 0) << err_.str();
  const json data = page();
  ASSERT_EQ(data["threads"].size(), 1u);
  EXPECT_EQ(stacks(data, 0),
            (std::map<std::string, json>{{"a", {6500, 5500, 1}}, {"a;c", {1000, 1000, 1}}}));
}

// Half of the most nodes have nodes of their own then, and all time is still there.
TEST_F(ExportPage, RarePathsArePutTogether) {
  std::vector<testing::Step> steps;
  uint64_t ns = 1000;
  steps.push_back({ns, kCall, 0xA});
  for (uint64_t i = 0; i < 60'000; ++i) {
    steps.push_back({ns += 1, kCall, 0x1000 + i});
    steps.push_back({ns += 1 + i % 7, kReturn, 0x1000 + i});
  }
  steps.push_back({ns += 1, kReturn, 0xA});
  write_thread(0, testing::index_of(steps, 100));
  write_manifest("", R"([{"id":0,"name":"main","ended":true}])");
  ASSERT_EQ(run(Target::kHtml), 0) << err_.str();
  const json data = page();
  const json& tree = data["threads"][0]["tree"];
  EXPECT_LE(tree["parent"].size(), 50'000u);
  uint64_t self = 0, calls = 0;
  for (const json& one : tree["self"]) self += one.get<uint64_t>();
  for (const json& one : tree["calls"]) calls += one.get<uint64_t>();
  EXPECT_EQ(self, ns - 1000);
  EXPECT_EQ(calls, 60'001u);
}

}  // namespace
}  // namespace collect::ctl
