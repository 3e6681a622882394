// Tables of sessions, as DuckDB reads them.
#include "storage/export/export.h"
#include "tests/daemon/ctl/export/export_fixture.h"
#include "tests/formats/programs.h"

namespace collect::ctl {
namespace {

using exports::Target;
using ::testing::ElementsAre;
using testing::json;
using testing::kCall;
using testing::kReturn;

class ParquetTest : public testing::ExportTest {
 protected:
  // The rows of a query, in which $calls is the table of calls and so on; a string of what is wrong
  // with it; null where DuckDB is not available.
  json query(std::string sql) {
    for (const char* table :
         {"sessions", "threads", "functions", "calls", "events", "seconds", "histograms"}) {
      const std::string word = "$" + std::string(table);
      const std::string file =
          (word == "$seconds" || word == "$histograms" ? "function_" : "") + std::string(table);
      for (size_t at = sql.find(word); at != std::string::npos; at = sql.find(word, at)) {
        sql.replace(at, word.size(), "'" + output() + "/" + file + ".parquet'");
      }
    }
    const std::string asked = (root_ / "queries.json").string();
    write_text(asked, json{sql}.dump());
    const reference::Ran ran =
        reference::run("node '" FORMAT_TESTS "/parquet/read_parquet.js' x '" + asked + "'");
    if (ran.status == 2 || ran.status == 127) return nullptr;
    EXPECT_EQ(ran.status, 0) << ran.out;
    return json::parse(ran.out, nullptr, false)[0];
  }
};

#define SKIP_WITHOUT_DUCKDB(answer)                                                  \
  if ((answer).is_null()) {                                                          \
    GTEST_SKIP() << "node or its package @duckdb/node-api is not there (NODE_PATH)"; \
  }                                                                                  \
  ASSERT_TRUE((answer).is_array()) << answer

TEST_F(ParquetTest, TablesOfASession) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kParquet), 0) << err_.str();
  EXPECT_EQ(report_["counts"], (json{{"events", 8}, {"calls", 4}, {"functions", 3}}));
  EXPECT_EQ(report_["written"].size(), 7u);
  const json events = query("SELECT thread, seq, time_ns, function, kind FROM $events");
  SKIP_WITHOUT_DUCKDB(events);
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(
      events[0],
      (json{
          {"thread", 0}, {"seq", "0"}, {"time_ns", "1000"}, {"function", "10"}, {"kind", "call"}}));
  EXPECT_EQ(events[7], (json{{"thread", 1},
                             {"seq", "1"},
                             {"time_ns", "20000"},
                             {"function", "12"},
                             {"kind", "return"}}));
  // c in b in a; b waits 3 us of its 7, and the process stops for half of one in a.
  EXPECT_EQ(query("SELECT begin_ns, end_ns, duration_ns, self_ns, caller, depth, ended, seq "
                  "FROM $calls WHERE thread = 0"),
            json::parse(R"([
      {"begin_ns":"3000","end_ns":"4000","duration_ns":"1000","self_ns":"1000","caller":"11",
       "depth":2,"ended":"returned","seq":"2"},
      {"begin_ns":"2000","end_ns":"9000","duration_ns":"4000","self_ns":"3000","caller":"10",
       "depth":1,"ended":"returned","seq":"1"},
      {"begin_ns":"1000","end_ns":"11000","duration_ns":"6500","self_ns":"2500","caller":null,
       "depth":0,"ended":"returned","seq":"0"}])"));
  EXPECT_EQ(query("SELECT name, file, line, calls, total_ns FROM $functions ORDER BY name"),
            json::parse(R"([{"name":"a","file":"src/a.c","line":12,"calls":"1","total_ns":"6500"},
                            {"name":"b","file":null,"line":0,"calls":"1","total_ns":"4000"},
                            {"name":"c","file":null,"line":0,"calls":"2","total_ns":"19500"}])"));
  EXPECT_EQ(query("SELECT thread, tid, name, events FROM $threads"),
            json::parse(R"([{"thread":0,"tid":100,"name":"main","events":"6"},
                            {"thread":1,"tid":101,"name":"worker","events":"2"}])"));
  EXPECT_EQ(query("SELECT process, pid, first_ns, last_ns, state, events FROM $sessions"),
            json::parse(R"([{"process":"app","pid":42,"first_ns":"1000","last_ns":"20000",
                            "state":"complete","events":"8"}])"));
  EXPECT_EQ(query("SELECT count(*) AS n FROM $calls c JOIN $functions f USING (session, function)"),
            json::parse(R"([{"n":"4"}])"));
}

// c is off the processor for 500 ns, b for 200 more, a for 200 more.
TEST_F(ParquetTest, TimesOnAProcessor) {
  write_waiting_session();
  ASSERT_EQ(run(Target::kParquet), 0) << err_.str();
  const json calls = query(
      "SELECT depth, duration_ns, self_ns, cpu_total_ns, cpu_self_ns FROM $calls "
      "WHERE thread = 0 ORDER BY begin_ns");
  SKIP_WITHOUT_DUCKDB(calls);
  EXPECT_EQ(calls, json::parse(R"([
      {"depth":0,"duration_ns":"6500","self_ns":"2500","cpu_total_ns":"5600","cpu_self_ns":"2300"},
      {"depth":1,"duration_ns":"4000","self_ns":"3000","cpu_total_ns":"3300","cpu_self_ns":"2800"},
      {"depth":2,"duration_ns":"1000","self_ns":"1000","cpu_total_ns":"500","cpu_self_ns":"500"}])"));
  const std::string of_functions =
      "SELECT f.name, cpu_total_ns, cpu_self_ns FROM $functions f ORDER BY name";
  const json expected = json::parse(R"([{"name":"a","cpu_total_ns":"5600","cpu_self_ns":"2300"},
                                        {"name":"b","cpu_total_ns":"3300","cpu_self_ns":"2800"},
                                        {"name":"c","cpu_total_ns":"19000","cpu_self_ns":"19000"}])");
  EXPECT_EQ(query(of_functions), expected);
  EXPECT_EQ(query("SELECT f.name, sum(s.cpu_total_ns)::UBIGINT AS cpu_total_ns, "
                  "sum(s.cpu_self_ns)::UBIGINT AS cpu_self_ns FROM $seconds s JOIN $functions f "
                  "USING (session, function) GROUP BY f.name ORDER BY f.name"),
            expected);
}

TEST_F(ParquetTest, UnknownTimesOnAProcessorAreNull) {
  write_stalled_session();
  ASSERT_EQ(run(Target::kParquet), 0) << err_.str();
  const json unknown = query(
      "SELECT count(*) AS n, count(cpu_total_ns) AS known, count(cpu_self_ns) AS own FROM $calls");
  SKIP_WITHOUT_DUCKDB(unknown);
  EXPECT_EQ(unknown, json::parse(R"([{"n":"4","known":"0","own":"0"}])"));
}

// Records that were lost have numbers: the rows behind them continue with the agent's.
TEST_F(ParquetTest, NumbersGoOnBehindALoss) {
  write_lossy_session({{100, kCall, 0xA}, {200, kCall, 0xB}, {900, kReturn, 0xA}}, 2, 300, 800);
  ASSERT_EQ(run(Target::kParquet), 0) << err_.str();
  const json events = query("SELECT seq FROM $events");
  SKIP_WITHOUT_DUCKDB(events);
  EXPECT_EQ(events, json::parse(R"([{"seq":"0"},{"seq":"1"},{"seq":"7"}])"));
  EXPECT_EQ(query("SELECT lost_events FROM $threads"), json::parse(R"([{"lost_events":"5"}])"));
  EXPECT_EQ(query("SELECT ended FROM $calls"),
            json::parse(R"([{"ended":"cut_by_gap"},{"ended":"returned"}])"));
}

// Function 0x100000020 of app with a build id; it runs for 100 ns, for 1.5 s and in 7 s. The
// device's clock says 5 s where the time of day is 1,700,000,000.9 s.
TEST_F(ParquetTest, FunctionsBySecond) {
  constexpr uint64_t kFunction = (uint64_t{1} << 32) + 0x20;
  constexpr uint64_t kStart = 5'000'000'000;
  write_thread(0, testing::index_of({{kStart, kCall, kFunction},
                                     {kStart + 100, kReturn, kFunction},
                                     {kStart + 50'000'000, kCall, kFunction},
                                     {kStart + 1'550'000'000, kReturn, kFunction},
                                     {kStart + 1'550'000'001, kCall, kFunction},
                                     {kStart + 1'550'000'012, kReturn, kFunction}},
                                    100));
  write_text(session_ / "manifest.json",
             R"({"state":"complete","process":{"name":"app","pid":42,"start_ns":5000000000,
                 "start_unix_ns":1700000000900000000},
                 "modules":[{"module_id":1,"path":"/opt/app","build_id":"abcd"}],
                 "threads":[{"id":0,"name":"main","ended":true}]})");
  ASSERT_EQ(run(Target::kParquet), 0) << err_.str();
  const json seconds = query("SELECT * EXCLUDE (session) FROM $seconds");
  SKIP_WITHOUT_DUCKDB(seconds);
  EXPECT_EQ(seconds, json::parse(R"([
      {"thread":0,"function":"4294967328","build_id":"abcd","offset":"32","second":"1700000000",
       "calls":"1","total_ns":"100","self_ns":"100","longest_ns":"100","cpu_total_ns":null,
       "cpu_self_ns":null},
      {"thread":0,"function":"4294967328","build_id":"abcd","offset":"32","second":"1700000002",
       "calls":"2","total_ns":"1500000011","self_ns":"1500000011","longest_ns":"1500000000",
       "cpu_total_ns":null,"cpu_self_ns":null}])"));
  // 100 = 16+9 in steps of 4; 1.5e9 = 16+6 in steps of 2^26.
  EXPECT_EQ(query("SELECT second, bucket, count, build_id FROM $histograms"), json::parse(R"([
      {"second":"1700000000","bucket":57,"count":"1","build_id":"abcd"},
      {"second":"1700000002","bucket":11,"count":"1","build_id":"abcd"},
      {"second":"1700000002","bucket":438,"count":"1","build_id":"abcd"}])"));
}

TEST_F(ParquetTest, PartOfIt) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.when.from = "2500";
  selection.when.until = "5000";
  selection.threads = {"thread_0"};
  selection.functions = {"c"};
  ASSERT_EQ(run(Target::kParquet, selection), 0) << err_.str();
  const json events = query("SELECT time_ns FROM $events");
  SKIP_WITHOUT_DUCKDB(events);
  EXPECT_EQ(events, json::parse(R"([{"time_ns":"3000"},{"time_ns":"4000"}])"));
  EXPECT_EQ(query("SELECT name FROM $functions"), json::parse(R"([{"name":"c"}])"));
  EXPECT_EQ(query("SELECT count(*) AS n FROM $threads"), json::parse(R"([{"n":"1"}])"));
}

TEST_F(ParquetTest, FileIsNoDirectory) {
  write_stalled_session();
  write_text(output(), "kept");
  const auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  convert::ConvertLog log;
  const Status made = exports::export_sessions({&*trace}, {}, Target::kParquet, output(), log);
  EXPECT_EQ(made.code(), Code::kAlreadyExists);
  EXPECT_EQ(made.error().message, output() + ": is a file, and tables of Parquet need a directory");
  EXPECT_EQ(written(), "kept");
}

TEST_F(ParquetTest, RemovesOutputWhenExportFails) {
  write_stalled_session();
  exports::ExportSelection selection;
  selection.functions = {"absent"};
  EXPECT_EQ(run(Target::kParquet, selection), 1);
  EXPECT_FALSE(std::filesystem::exists(output()));
}

}  // namespace
}  // namespace collect::ctl
