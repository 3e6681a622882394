// What a page is answered of the calls of one function: of sessions worked out by hand, and of many
// calls beside a count that sorts them all.
#include "storage/export/page/function_calls.h"

#include <algorithm>
#include <random>

#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using testing::json;
using testing::kCall;
using testing::kReturn;

class FunctionCallsTest : public testing::ExportTest {
 protected:
  json calls_of(std::string_view name, const calls::Window& window = {}) {
    const auto trace = read::open_trace(session_.string());
    EXPECT_TRUE(trace.ok());
    auto session = exports::ExportedSession::open(*trace, {});
    EXPECT_TRUE(session.ok());
    exports::ExportedSessions sessions;
    sessions.push_back(std::move(*session));
    sessions.front()->choose_window(window);
    VectorSink out;
    convert::ConvertLog log;
    EXPECT_TRUE(exports::export_function_calls(sessions, name, out, log).ok());
    return json::parse(out.bytes(), nullptr, false);
  }
};

TEST_F(FunctionCallsTest, SaysWhatEachCallTook) {
  write_waiting_session();
  EXPECT_EQ(calls_of("c"),
            json::parse(R"({"version": 1, "origin": "1000", "calls": 2, "durations": [
    [992, 1023, 1, {"thread": 0, "waited": 500,
      "bar": [2, 2000, 1000, 0, 1, 1000, 1, 1000, 1000, 2000, "returned", -1, -1]}],
    [18432, 19455, 1, {"thread": 1, "waited": 0,
      "bar": [0, 0, 19000, 0, 1, 19000, 1, 18500, 18500, 0, "returned", -1, -1]}]],
    "slowest": [
      {"thread": 1, "waited": 0,
       "bar": [0, 0, 19000, 0, 1, 19000, 1, 18500, 18500, 0, "returned", -1, -1]},
      {"thread": 0, "waited": 500,
       "bar": [2, 2000, 1000, 0, 1, 1000, 1, 1000, 1000, 2000, "returned", -1, -1]}]})"));
}

TEST_F(FunctionCallsTest, CallsThatAreCutHaveNoDuration) {
  write_stalled_session();
  const json inside = calls_of("a", {2000, 4000});
  EXPECT_EQ(inside["calls"], 1);
  EXPECT_EQ(inside["durations"], json::array());
  EXPECT_EQ(inside["slowest"][0]["bar"],
            json::parse(R"([0, 0, 2000, 0, 1, 2000, 0, 2000, 0, -1000, "cut_by_window", -1, -1])"));
}

TEST_F(FunctionCallsTest, WithoutTheNameThereAreNone) {
  write_stalled_session();
  const json none = calls_of("d");
  EXPECT_EQ(none["calls"], 0);
  EXPECT_EQ(none["durations"], json::array());
  EXPECT_EQ(none["slowest"], json::array());
}

// On four threads, with durations over seven powers of ten, many of them the same.
TEST_F(FunctionCallsTest, SlowestOfManyAreThoseOfASort) {
  struct Made {
    uint64_t total_ns, begin_ns, thread;
    bool operator<(const Made& other) const {
      return std::tuple(other.total_ns, begin_ns, thread) <
             std::tuple(total_ns, other.begin_ns, other.thread);
    }
  };
  std::vector<Made> all;
  std::mt19937_64 random(42);
  for (uint64_t thread = 0; thread < 4; ++thread) {
    std::vector<testing::Step> steps;
    for (uint64_t ns = 1000, i = 0; i < 5000; ++i) {
      const uint64_t took = uint64_t{1} << random() % 24;
      steps.insert(steps.end(), {{ns, kCall, 0xA}, {ns + took, kReturn, 0xA}});
      all.push_back({took, ns, thread});
      ns += took + 10;
    }
    write_thread(static_cast<int>(thread),
                 testing::index_of(steps, 100 + static_cast<uint32_t>(thread)));
  }
  write_manifest("", R"([{"id":0,"ended":true},{"id":1,"ended":true},
                         {"id":2,"ended":true},{"id":3,"ended":true}])");
  const json found = calls_of("a");
  EXPECT_EQ(found["calls"], all.size());
  std::sort(all.begin(), all.end());
  const uint64_t origin = std::stoull(found["origin"].get<std::string>());
  ASSERT_EQ(found["slowest"].size(), exports::kSlowestCalls);
  for (size_t i = 0; i < exports::kSlowestCalls; ++i) {
    const json& one = found["slowest"][i];
    EXPECT_EQ(one["bar"][7], all[i].total_ns) << i;
    EXPECT_EQ(one["bar"][1].get<uint64_t>() + origin, all[i].begin_ns) << i;
    EXPECT_EQ(one["thread"], all[i].thread) << i;
  }
  std::map<uint64_t, uint64_t> times;
  for (const Made& one : all) ++times[one.total_ns];
  ASSERT_EQ(found["durations"].size(), times.size());
  size_t at = 0;
  for (const auto& [ns, count] : times) {
    const json& duration = found["durations"][at++];
    EXPECT_LE(duration[0], ns);
    EXPECT_GE(duration[1], ns);
    EXPECT_EQ(duration[2], count);
    EXPECT_EQ(duration[3]["bar"][7], ns);
  }
}

}  // namespace
}  // namespace collect::ctl
