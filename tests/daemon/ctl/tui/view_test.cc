// What `report --tui` shows for keys, beside what `report --json` says of the same session. Times
// are worked out by hand.
#include "daemon/ctl/tui/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/report/tui_request.h"
#include "daemon/ctl/terminal/terminal.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl::tui {
namespace {

using ctl::testing::index_of;
using ctl::testing::kCall;
using ctl::testing::kReturn;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kA = 0xA, kB = 0xB, kC = 0xC;
constexpr char kLongName[] =
    "std::map<int, std::string>::find_or_insert(std::vector<int, std::allocator<int> > const&)";

class ViewTest : public ctl::testing::OfflineTest {
 protected:
  // Thread 0: a 1000..11000, in it b 2000..5000 and b 6000..10000, in the second c 7000..9000.
  // Thread 1: c 1000..3000.
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
    write_text(session_ / "manifest.json",
               std::string(R"json({"threads":[{"id":0,"name":"main"},{"id":1,"name":"other"}],
                 "symbols":[{"function_id":"0xa","name":"a()","file":"src/a.c","line":12
  }
  , {"function_id":"0xb","name":")json") +
                   kLongName + R"json("},{"function_id":"0xc","name":"c"}]})json");
    options_.path = session_.string();
  }
  void open() {
    auto capture = std::make_unique<Capture>([this](const std::string& what) { busy_ += what; });
    ASSERT_EQ(capture->open(options_, {false, out_, err_}), 0) << err_.str();
    view_ = std::make_unique<View>(std::move(capture));
  }
  json report_json(ReportOptions options) {
    options.json = true;
    out_.str("");
    EXPECT_EQ(report(options, out_, err_), 0) << err_.str();
    return json::parse(out_.str());
  }
  // Each letter is a key.
  void type(const std::string& letters) {
    for (const char letter : letters) EXPECT_TRUE(view_->press({Key::kText, {letter}}));
  }
  void press(Key key) { EXPECT_TRUE(view_->press({key})); }

  std::vector<Line> lines(size_t columns = 100, size_t rows = 20) {
    auto lines = view_->lines(columns, rows);
    EXPECT_EQ(lines.size(), std::max(rows, View::kLeastRows));
    for (const Line& line : lines) EXPECT_LE(columns_of(line.text), columns) << line.text;
    return lines;
  }
  std::string screen(size_t columns = 100, size_t rows = 20) {
    std::string text;
    for (const Line& line : lines(columns, rows)) text += line.text + "\n";
    return text;
  }
  std::string chosen() {
    for (const Line& line : lines()) {
      if (line.style == Style::kChosen) return line.text;
    }
    return {};
  }
  std::string foot() { return lines().back().text; }

  ReportOptions options_;
  std::string busy_;
  std::unique_ptr<View> view_;
};

std::string time_cell(const json& ns) {
  TextBuffer out;
  put_time_cell(out, ns.get<uint64_t>());
  return std::string(out.text());
}

TEST_F(ViewTest, TableHasFiguresOfReport) {
  open();
  const json functions = report_json(options_)["functions"];
  ASSERT_EQ(functions.size(), 3u);
  const auto shown = lines(160);
  EXPECT_THAT(shown[1].text, HasSubstr("SELF       *TOTAL       CALLS      AVERAGE          P99"));
  for (size_t i = 0; i < functions.size(); ++i) {
    const std::string& line = shown[2 + i].text;
    EXPECT_THAT(line, HasSubstr(functions[i]["name"].get<std::string>().substr(0, 3)));
    for (const char* key : {"self_ns", "total_ns", "p99_ns", "longest_ns"}) {
      EXPECT_THAT(line, HasSubstr(time_cell(functions[i][key]))) << key;
    }
  }
  EXPECT_THAT(shown[2].text, HasSubstr("83.3")) << "10000 of 12000";
}

TEST_F(ViewTest, SortsByEachColumn) {
  open();
  EXPECT_THAT(chosen(), HasSubstr("a()"));
  type("<");  // self: b 5000, c 4000, a 3000
  EXPECT_THAT(screen(), HasSubstr("*SELF"));
  EXPECT_THAT(chosen(), HasSubstr("find_or_insert"));
  type(">>");  // calls: b and c 2
  EXPECT_THAT(screen(), HasSubstr("*CALLS"));
  type(">");
  EXPECT_THAT(screen(), HasSubstr("*AVERAGE"));
  EXPECT_THAT(chosen(), HasSubstr("10.000 us"));
  type(">>>");
  EXPECT_THAT(screen(), HasSubstr("*FUNCTION"));
  type(">");
  EXPECT_THAT(screen(), HasSubstr("*SELF")) << "round and round";
}

TEST_F(ViewTest, MovesAndScrolls) {
  open();
  type("jj");
  EXPECT_THAT(chosen(), HasSubstr("  c"));
  type("j");
  EXPECT_THAT(chosen(), HasSubstr("  c")) << "the last one";
  press(Key::kHome);
  EXPECT_THAT(chosen(), HasSubstr("a()"));
  press(Key::kEnd);
  press(Key::kUp);
  EXPECT_THAT(chosen(), HasSubstr("find_or_insert"));
  press(Key::kPageDown);
  EXPECT_THAT(screen(60, 5), HasSubstr("  c\n")) << "scrolled to it";
  press(Key::kPageUp);
  EXPECT_THAT(screen(60, 5), Not(HasSubstr("  c\n")));
}

TEST_F(ViewTest, FitsIntoAnySize) {
  open();
  type("j");
  for (const size_t columns : {1, 20, 60, 80, 300}) {
    for (const size_t rows : {1, 5, 15, 24, 100}) (void)lines(columns, rows);
  }
  EXPECT_THAT(screen(60, 15), HasSubstr("  …nd_or_insert\n")) << "the end of a long name";
  EXPECT_THAT(screen(300, 15), HasSubstr(std::string("  ") + kLongName));
  const auto small = lines(60, 15);
  EXPECT_EQ(small[12].text + small[13].text, kLongName) << "all of it below";
  EXPECT_EQ(small[12].style, Style::kName);
}

TEST_F(ViewTest, SearchesAndSearchesAgain) {
  open();
  type("/Find");
  EXPECT_EQ(foot(), "/Find");
  press(Key::kEnter);
  EXPECT_EQ(foot(), "not here: Find") << "capital letters count";
  type("/FIX");
  press(Key::kBackspace);
  press(Key::kEscape);
  EXPECT_THAT(chosen(), HasSubstr("a()"));
  type("/(");
  press(Key::kEnter);
  EXPECT_THAT(chosen(), HasSubstr("find_or_insert"));
  type("n");
  EXPECT_THAT(chosen(), HasSubstr("a()")) << "from the start again";
  type("N");
  EXPECT_THAT(chosen(), HasSubstr("find_or_insert"));
  type("/q");
  EXPECT_EQ(foot(), "/q") << "letters are no keys while typing";
}

TEST_F(ViewTest, OpensCallersAndCallees) {
  open();
  options_.by = ReportBy::kCaller;
  const json pairs = report_json(options_)["callers"];
  type("j");
  press(Key::kEnter);
  EXPECT_EQ(busy_, "adding up the calls …reading who called what …");
  const std::string page = screen();
  for (const json& pair : pairs) {
    const bool is_caller = pair["name"] == kLongName;
    if (!is_caller && pair["caller"] != kLongName) continue;
    EXPECT_THAT(page, HasSubstr(time_cell(pair["total_ns"]) + "           " + pair["calls"].dump() +
                                "  " + pair[is_caller ? "caller" : "name"].get<std::string>()));
  }
  EXPECT_THAT(page, HasSubstr("28.6     2.000 us           1  c")) << "of b's 7000";
  EXPECT_THAT(page, HasSubstr("71.4     5.000 us           2  (itself)"));
  EXPECT_THAT(page, HasSubstr("Calls      2                  Average    3.500 us"));
  EXPECT_THAT(chosen(), HasSubstr("  a()"));
  press(Key::kEnter);
  EXPECT_THAT(screen(), HasSubstr("\n a()\n"));
  EXPECT_THAT(chosen(), HasSubstr("(no caller)"));
  press(Key::kEnter);
  EXPECT_THAT(screen(), HasSubstr("\n a()\n")) << "that is no function";
  press(Key::kBackspace);
  EXPECT_THAT(chosen(), HasSubstr("  a()")) << "of b again";
  press(Key::kEscape);
  press(Key::kEscape);
  EXPECT_THAT(screen(), HasSubstr("Functions: 3"));
}

TEST_F(ViewTest, GraphFoldsAndUnfolds) {
  open();
  type("g");
  EXPECT_THAT(screen(), HasSubstr("   83.3    10.000 us           1  - a()\n"));
  EXPECT_THAT(screen(), HasSubstr("   58.3     7.000 us           2    - std::map"));
  EXPECT_THAT(screen(), HasSubstr("   16.7     2.000 us           1        c\n"));
  press(Key::kEnter);
  EXPECT_THAT(screen(), HasSubstr("+ a()"));
  EXPECT_THAT(screen(), Not(HasSubstr("std::map")));
  press(Key::kRight);
  press(Key::kRight);
  EXPECT_THAT(chosen(), HasSubstr("- std::map"));
  type("-");
  EXPECT_THAT(chosen(), HasSubstr("+ std::map"));
  press(Key::kLeft);
  EXPECT_THAT(chosen(), HasSubstr("- a()"));
  type("*");
  EXPECT_THAT(screen(), HasSubstr("        c\n"));
  type("=");
  EXPECT_THAT(screen(), HasSubstr("+ a()"));
  type("/c");
  press(Key::kEnter);
  type("n");
  EXPECT_THAT(chosen(), HasSubstr("        c")) << "found within a fold";
  type("f");
  EXPECT_THAT(screen(), HasSubstr("\n c\n"));
  press(Key::kBackspace);
  EXPECT_THAT(screen(), HasSubstr("Call graph"));
}

TEST_F(ViewTest, SlowestCalls) {
  open();
  type("j");
  type("c");
  EXPECT_THAT(screen(), HasSubstr("Slowest 2 of 2 calls of std::map"));
  EXPECT_THAT(screen(), HasSubstr("\n     4.000 us     2.000 us     5.000 us  main\n"
                                  "     3.000 us     3.000 us     1.000 us  main\n"));
  EXPECT_THAT(screen(), HasSubstr("collectctl dump --from 6000 --thread thread_0"));
}

TEST_F(ViewTest, ChoosesAThread) {
  open();
  type("t");
  EXPECT_THAT(screen(), HasSubstr("all threads"));
  EXPECT_THAT(screen(), HasSubstr("             2       101  other\n"));
  type("/other");
  press(Key::kEnter);
  press(Key::kEnter);
  ReportOptions only = options_;
  only.threads = {"thread_1"};
  const json functions = report_json(only)["functions"];
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_THAT(screen(), HasSubstr("Functions: 1   other (thread_1)   2 events"));
  EXPECT_THAT(chosen(), HasSubstr(time_cell(functions[0]["total_ns"])));
  type("g");
  type("t");
  press(Key::kEnter);
  EXPECT_THAT(screen(), HasSubstr("Call graph   2 threads")) << "the same page of all threads";
}

TEST_F(ViewTest, WindowAndOrderAreThoseOfTheOptions) {
  options_.when.until = "7us";
  options_.sort = ReportSort::kName;
  const auto parsed = parse_tui_arguments(tui_arguments(options_));
  ASSERT_TRUE(parsed.ok());
  options_ = *parsed;
  open();
  EXPECT_THAT(screen(), HasSubstr("*FUNCTION"));
  EXPECT_THAT(chosen(), HasSubstr(time_cell(report_json(options_)["functions"][0]["total_ns"])));
  type("i");
  EXPECT_THAT(screen(), HasSubstr("calls continued behind the end of the window"));
  EXPECT_FALSE(parse_tui_arguments({"path=x", "graph=main"}).ok());
  EXPECT_FALSE(parse_tui_arguments({"sort=1"}).ok());
  EXPECT_FALSE(parse_tui_arguments({"path=x", "sort=99"}).ok());
}

TEST_F(ViewTest, ListsKeysAndEnds) {
  open();
  type("?");
  EXPECT_THAT(screen(100, 40), HasSubstr("the slowest calls of the function"));
  type("?");
  press(Key::kBackspace);
  EXPECT_THAT(screen(), HasSubstr("Functions: 3"));
  EXPECT_FALSE(view_->press({Key::kText, "q"}));
}

TEST_F(ViewTest, CaptureWithoutCalls) {
  write_thread(0, index_of({}, 100));
  write_thread(1, index_of({}, 101));
  open();
  for (const std::string keys : {"j", "c", "g", "f", "n", "*", "<", "t", "?"}) type(keys);
  open();
  press(Key::kEnter);
  EXPECT_THAT(screen(), HasSubstr("nothing was called"));
  type("g");
  press(Key::kEnter);
  press(Key::kLeft);
  EXPECT_THAT(screen(), HasSubstr("Call graph"));
}

TEST(ShortNameTest, LeavesOutWhatSaysLeast) {
  const std::string name = "ns::box<int>::put(std::pair<int, int>) const";
  EXPECT_EQ(short_name(name, 60), name);
  EXPECT_EQ(short_name(name, 30), "ns::box<int>::put(…) const");
  EXPECT_EQ(short_name(name, 24), "ns::box<…>::put(…) const");
  EXPECT_EQ(short_name(name, 15), "…::put(…) const");
  EXPECT_EQ(short_name("box<int>::put(int)", 10), "…x<…>::put");
  EXPECT_EQ(short_name("a::operator<(int)", 15), "a::operator<(…)");
  EXPECT_EQ(short_name("a::operator<<int>(int)", 20), "a::operator<<int>(…)");
  EXPECT_EQ(short_name("unclosed<template", 10), "…<template");
  EXPECT_EQ(short_name("x", 0), "");
}

TEST(WrappedTest, CutsTheLastLine) {
  EXPECT_THAT(wrapped("abcdef", 4, 2), ::testing::ElementsAre("abcd", "ef"));
  EXPECT_THAT(wrapped("äöüäöüäöü", 4, 2), ::testing::ElementsAre("äöüä", "öüä…"));
  EXPECT_THAT(wrapped("", 4, 2), ::testing::ElementsAre("", ""));
}

}  // namespace
}  // namespace collect::ctl::tui
