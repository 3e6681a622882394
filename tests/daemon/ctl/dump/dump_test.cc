#include "daemon/ctl/dump/dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using testing::index_of;
using testing::kCall;
using testing::kException;
using testing::kReturn;

class Dump : public testing::OfflineTest {
 protected:
  void SetUp() override {
    OfflineTest::SetUp();
    options_.paths = {session_.string()};
  }
  int run() {
    out_.str("");
    err_.str("");
    return dump(options_, out_, err_);
  }
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    std::istringstream in(out_.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  std::vector<json> objects() {
    std::vector<json> objects;
    for (const std::string& line : lines()) objects.push_back(json::parse(line));
    return objects;
  }
  std::vector<uint64_t> times() {
    std::vector<uint64_t> times;
    for (const json& object : objects()) times.push_back(object["ts_ns"]);
    return times;
  }
  // main() calls parse(char*) on thread 0 and an unnamed function of libz.so on thread 1.
  void write_two_threads() {
    write_thread(0, index_of({{100, kCall, 0x10},
                              {1350, kCall, 0x100},
                              {2600, kReturn, 0x100},
                              {5100, kReturn, 0x10}},
                             4711));
    write_thread(1, index_of({{1000, kCall, 0x100000020}, {3000, kReturn, 0x100000020}}, 4712));
    write_text(session_ / "manifest.json", R"json({"threads":[{"id":0,"name":"main"},{"id":1}],
      "modules":[{"module_id":0,"path":"/bin/app"},{"module_id":1,"path":"/lib/libz.so"}],
      "symbols":[{"function_id":"0x10","name":"main"},
                 {"function_id":"0x0000000000000100","name":"parse(char*)"}]})json");
  }

  DumpOptions options_;
};

TEST_F(Dump, JsonLinesHaveExactlyTheseKeys) {
  write_planned_session();
  options_.json = true;
  EXPECT_EQ(run(), 0);
  const auto printed = lines();
  ASSERT_EQ(printed.size(), 12u);
  EXPECT_EQ(
      printed[0],
      R"({"version":1,"thread":0,"tid":4711,"seq":0,"ts_ns":1000,"kind":"call","function_id":"0x100",)"
      R"json("name":"parse(char*)","detail_seq":0})json");
  EXPECT_EQ(printed[1],
            R"({"version":1,"thread":0,"tid":4711,"seq":1,"ts_ns":1010,"kind":"return",)"
            R"("function_id":"0x100000101","name":"libz.so+0x101"})");
  EXPECT_EQ(printed[2], R"({"version":1,"thread":0,"tid":4711,"seq":2,"ts_ns":1020,"kind":"call",)"
                        R"("function_id":"0x200000102","name":"0x200000102"})");
}

TEST_F(Dump, TextIndentsByDepthWithRelativeTimes) {
  write_two_threads();
  EXPECT_EQ(run(), 0);
  const std::vector<std::string> expected = {
      "# microseconds since 100 ns; duration at each return",
      "# thread 0, tid 4711, \"main\", 4 events",
      "         0.000             | main() {",
      "         1.250             |   parse(char*) {",
      "         2.500       1.250 |   } parse(char*)",
      "         5.000       5.000 | } main",
      "# thread 1, tid 4712, 2 events",
      "         0.900             | libz.so+0x20() {",
      "         2.900       2.000 | } libz.so+0x20",
  };
  EXPECT_EQ(lines(), expected);
}

TEST_F(Dump, ExceptionEndsItsCall) {
  write_two_threads();
  write_thread(0, index_of({{100, kCall, 0x10},
                            {200, kCall, 0x100},
                            {1200, kException, 0x100},
                            {2100, kCall, 0x100},
                            {2200, kReturn, 0x100},
                            {3100, kException, 0x10}},
                           4711));
  options_.threads = {"thread_0"};
  EXPECT_EQ(run(), 0);
  const std::vector<std::string> expected = {
      "# microseconds since 100 ns; duration at each return",
      "# thread 0, tid 4711, \"main\", 6 events",
      "         0.000             | main() {",
      "         0.100             |   parse(char*) {",
      "         1.100       1.000 |   } parse(char*) ! exception",
      "         2.000             |   parse(char*) {",
      "         2.100       0.100 |   } parse(char*)",
      "         3.000       3.000 | } main ! exception",
  };
  EXPECT_EQ(lines(), expected);
}

TEST_F(Dump, MergedIsTimeOrderAcrossThreads) {
  write_two_threads();
  options_.json = true;
  options_.merged = true;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(times(), (std::vector<uint64_t>{100, 1000, 1350, 2600, 3000, 5100}));
}

TEST_F(Dump, TimeWindowIsInclusive) {
  write_two_threads();
  options_.json = true;
  options_.when.from = "1000";
  options_.when.until = "2600";
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(times(), (std::vector<uint64_t>{1350, 2600, 1000}));
  options_.merged = true;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(times(), (std::vector<uint64_t>{1000, 1350, 2600}));
}

TEST_F(Dump, TakesAWindowSinceTheStartOrByClock) {
  write_planned_session();  // from 1000 ns on, one event in 10 ns
  options_.json = true;
  options_.when.from = "0.05us";
  options_.when.until = "70ns";
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(times(), (std::vector<uint64_t>{1050, 1060, 1070}));
  options_.when.until = "14:03:00Z";
  EXPECT_EQ(run(), 2) << "its manifest has no time of day";
  EXPECT_EQ(objects()[0]["error"]["code"], "not_found");
  std::string manifest = planned_manifest();
  manifest.insert(1, R"("process":{"start_ns":1000,"start_unix_ns":1795615380000000000},)");
  write_text(session_ / "manifest.json", manifest);
  EXPECT_EQ(run(), 2) << "it began then, which is before --from";
  EXPECT_EQ(objects()[0]["error"]["message"], "--until is before --from");
  options_.when.from = "14:03:00.000000050Z";
  options_.when.until = "2026-11-25T15:03:00.000000070+01:00";
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(times(), (std::vector<uint64_t>{1050, 1060, 1070}));
}

// Each of several sessions has its own start.
TEST_F(Dump, WindowOfSeveralSessionsIsOfEach) {
  write_planned_session();
  const std::string first = session_.string();
  session_ = root_ / "session_20250102_030405" / "pid_43";
  std::filesystem::create_directories(session_);
  write_thread(0, index_of({{5'000, kCall, 0x100}, {5'020, kReturn, 0x100}}, 4711));
  options_.paths = {first, session_.string()};
  options_.json = true;
  options_.when.from = "15ns";
  options_.when.until = "25ns";
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(times(), (std::vector<uint64_t>{1020, 5020}));
}

// What is before the window still decides depth and durations.
TEST_F(Dump, WindowKeepsDepthAndDurations) {
  write_two_threads();
  options_.when.from = "2600";
  options_.threads = {"thread_0"};
  for (const bool merged : {false, true}) {
    options_.merged = merged;
    EXPECT_EQ(run(), 0);
    const auto printed = lines();
    ASSERT_EQ(printed.size(), merged ? 3u : 4u) << out_.str();
    EXPECT_NE(printed[printed.size() - 2].find("1.250"), std::string::npos) << out_.str();
    EXPECT_NE(printed[printed.size() - 2].find("|   } parse(char*)"), std::string::npos);
    EXPECT_NE(printed[printed.size() - 1].find("5.000"), std::string::npos);
  }
}

TEST_F(Dump, FiltersByFunction) {
  write_two_threads();
  options_.json = true;
  const auto matches = [&](std::vector<std::string> words) {
    options_.functions = std::move(words);
    EXPECT_EQ(run(), 0);
    return lines().size();
  };
  EXPECT_EQ(matches({"main"}), 2u);
  EXPECT_EQ(matches({"parse"}), 2u) << "as filter and detail start take it";
  EXPECT_EQ(matches({"parse*"}), 2u);
  EXPECT_EQ(matches({"parse(char*)"}), 2u);
  EXPECT_EQ(matches({"libz.so+*"}), 2u);
  EXPECT_EQ(matches({"0x10"}), 2u);
  EXPECT_EQ(matches({"0x10", "libz.so+0x20"}), 4u);
  options_.functions = {"0xnothex"};
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(objects()[0]["error"]["code"], "invalid_argument");
}

// Seen: `dump --function leaf` printed nothing, and that was exit code 0.
TEST_F(Dump, UnknownFunctionFailsAndSuggestsNearNames) {
  write_two_threads();
  options_.json = true;
  for (const bool merged : {false, true}) {
    options_.merged = merged;
    options_.functions = {"main", "prase"};
    EXPECT_EQ(run(), 1);
    EXPECT_EQ(lines().size(), 2u) << "what matches is printed all the same";
    EXPECT_EQ(err_.str(), "collectctl: no function matches \"prase\"; did you mean parse?\n");
    options_.functions = {"0x999"};
    EXPECT_EQ(run(), 1);
    EXPECT_NE(err_.str().find("no function matches \"0x999\"; 2 are known, such as"),
              std::string::npos)
        << err_.str();
  }
}

// A function of the session without an event in the window is no mistake; nor is one beyond
// --limit.
TEST_F(Dump, FunctionWithoutAnEventInTheWindowIsNone) {
  write_two_threads();
  options_.json = true;
  options_.functions = {"main", "libz.so+0x20"};
  options_.when.until = "100";
  EXPECT_EQ(run(), 0) << err_.str();
  EXPECT_EQ(lines().size(), 1u);
  options_.functions = {"main", "libz.so+0x999"};
  EXPECT_EQ(run(), 1);
  EXPECT_NE(err_.str().find("no function of the selected events matches"), std::string::npos);
  options_.when.until = "";
  options_.limit = 1;
  EXPECT_EQ(run(), 0) << err_.str();
}

TEST_F(Dump, FiltersByThreadAndSaysWhenThereIsNone) {
  write_two_threads();
  options_.json = true;
  for (const auto& [word, events] :
       std::map<std::string, size_t>{{"thread_1", 2}, {"4712", 2}, {"4711", 4}, {"name=ma*", 4}}) {
    options_.threads = {word};
    EXPECT_EQ(run(), 0) << word << err_.str();
    EXPECT_EQ(lines().size(), events) << word;
  }
  options_.threads = {"thread_1", "thread_9"};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(objects()[0]["error"]["code"], "not_found");
  options_.json = false;
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(out_.str().empty());
  EXPECT_NE(err_.str().find("no thread is \"thread_9\"; there is"), std::string::npos);
  options_.threads = {"1"};
  EXPECT_EQ(run(), 1) << "an operating system's id, not the number of a directory";
}

TEST_F(Dump, LimitCountsPrintedEvents) {
  write_two_threads();
  options_.json = true;
  options_.limit = 5;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(lines().size(), 5u);
  options_.merged = true;
  options_.limit = 0;
  EXPECT_EQ(run(), 0);
  EXPECT_TRUE(out_.str().empty());
}

TEST_F(Dump, DetailShowsTheValidRegistersAndTheStack) {
  write_planned_session();
  options_.json = true;
  options_.detail = true;
  EXPECT_EQ(run(), 0);
  const auto all = objects();
  // The plan says that lr alone was captured, and record 1 (event 3) has three stack bytes of 3.
  EXPECT_EQ(all[3]["detail"], (json{{"registers", {{"lr", "0x1111"}}}, {"stack", "030303"}}));
  EXPECT_FALSE(all[1].contains("detail"));
  options_.json = false;
  EXPECT_EQ(run(), 0);
  EXPECT_NE(out_.str().find("detail 1: lr=0x1111 stack[3] 030303\n"), std::string::npos)
      << out_.str();
}

// Filters leave out events between linked ones; each printed event must still get its own record.
TEST_F(Dump, DetailFollowsItsEventUnderFilters) {
  write_planned_session();
  options_.json = true;
  options_.detail = true;
  options_.when.from = "1060";
  for (const bool merged : {false, true}) {
    options_.merged = merged;
    EXPECT_EQ(run(), 0);
    const auto all = objects();
    ASSERT_EQ(all.size(), 6u);
    EXPECT_EQ(all[0]["detail_seq"], 2);
    EXPECT_EQ(all[0]["detail"]["stack"], "060606060606");
    EXPECT_EQ(all[3]["detail"]["stack"], "");
  }
}

TEST_F(Dump, LoneDetailFileGivesItsRecords) {
  write_planned_session();
  options_.paths = {(session_ / "thread_0" / "detail.atf").string()};
  options_.json = true;
  EXPECT_EQ(run(), 0);
  const auto all = objects();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1]["detail_seq"], 1);
  EXPECT_EQ(all[1]["index_seq"], 3);
  EXPECT_EQ(all[1]["registers"]["lr"], "0x1111");
}

TEST_F(Dump, BadThreadIsLeftOutAndSaid) {
  write_two_threads();
  write_thread(2, {'n', 'o'});
  options_.json = true;
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(lines().size(), 6u);
  EXPECT_NE(err_.str().find("thread 2"), std::string::npos);
}

TEST_F(Dump, NamesAreEscaped) {
  write_two_threads();
  // Published writers leave control characters raw; a quote and bytes that are not UTF-8 come too.
  write_text(
      session_ / "manifest.json",
      "{\"threads\":[],\"symbols\":[{\"function_id\":\"0x10\",\"name\":\"a\x01\\\"\xC3\xA9\"}]}");
  options_.json = true;
  options_.functions = {"0x10"};
  EXPECT_EQ(run(), 0);
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(objects()[0]["name"], "a\x01\"\xC3\xA9");
  options_.json = false;
  EXPECT_EQ(run(), 0);
  EXPECT_NE(out_.str().find("a\\x01\"\xC3\xA9() {"), std::string::npos) << out_.str();
}

TEST_F(Dump, MissingPathIsTwo) {
  options_.paths = {(root_ / "nowhere").string()};
  EXPECT_EQ(run(), 2);
}

// Takes some bytes and then fails, as a pipe does whose reader has gone.
class ClosedPipe : public std::streambuf {
 public:
  size_t writes = 0;

 private:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    return ++writes <= 1 ? count : 0;
  }
};

TEST_F(Dump, ReaderThatGoesAwayEndsItQuietly) {
  std::vector<testing::Step> steps;
  for (uint64_t i = 0; i < 200000; ++i) steps.push_back({i, i % 2 == 0 ? kCall : kReturn, 0x10});
  write_thread(0, index_of(steps, 1));
  write_text(session_ / "manifest.json", R"({"threads":[{"id":0}]})");
  ClosedPipe pipe;
  std::ostream closed(&pipe);
  options_.json = true;
  EXPECT_EQ(dump(options_, closed, err_), 0);
  EXPECT_TRUE(err_.str().empty()) << err_.str();
  EXPECT_EQ(pipe.writes, 2u) << "nothing is written after the first failure";
}

}  // namespace
}  // namespace collect::ctl
