// index.lod beside the events of a large thread: views say with it what they say without it, and
// a damaged or stale one is noticed and made again.
#include "storage/read/lod_files.h"

#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/report/report.h"
#include "formats/calls/lod/lod_summary.h"
#include "formats/core/crc32.h"
#include "tests/daemon/ctl/export/export_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using testing::json;
namespace fs = testing::fs;
using testing::kCall;
using testing::kReturn;

class LodFiles : public testing::ExportTest {
 protected:
  static constexpr uint64_t kRounds = calls::kLeastLodEvents / 4 + 1000;

  // main a, which calls b, which calls c, as long as that takes; a loss and a stall on the way.
  void write_large_session(const std::string& state = "complete") {
    std::vector<testing::Step> steps;
    steps.reserve(4 * kRounds + 2);
    uint64_t ns = 1000;
    steps.push_back({ns, kCall, 0xA});
    for (uint64_t i = 0; i < kRounds; ++i) {
      steps.push_back({ns += 5, kCall, 0xB});
      steps.push_back({ns += 3, kCall, 0xC});
      steps.push_back({ns += 10 + i % 50, kReturn, 0xC});
      steps.push_back({ns += 4, kReturn, 0xB});
    }
    steps.push_back({ns += 5, kReturn, 0xA});
    last_ns_ = ns;
    write_thread(0, testing::index_of(steps, 100));
    write_text(session_ / "manifest.json",
               R"({"state":")" + state + R"(","process":{"name":"app","pid":42},)" + kSymbols +
                   R"(,"gaps":[{"thread":0,"lane":"index","before_seq":400001,"lost":7,
                   "numbered_lost":7,"reasons":["ring_full"]}],
                   "stalls":[{"kind":"stopped","first_ns":50000,"last_ns":60000}],
                   "threads":[{"id":0,"thread_id":100,"name":"main","ended":true,"lost_events":7}]})");
    add_switches({storage::make_stall(storage::StallKind::kBlocked, 2000, 2500),
                  storage::make_stall(storage::StallKind::kPreempted, 70000, 90000)});
  }
  fs::path lod() const { return session_ / "thread_0" / "index.lod"; }

  json report(const std::string& from = "", const std::string& to = "") {
    ReportOptions options;
    options.path = session_.string();
    options.json = true;
    options.when.from = from;
    options.when.until = to;
    std::ostringstream out, err;
    EXPECT_NE(ctl::report(options, out, err), 2) << err.str();
    return json::parse(out.str(), nullptr, false);
  }
  std::string verified(int* code = nullptr) {
    VerifyOptions options;
    options.path = session_.string();
    options.allow_incomplete = true;
    std::ostringstream out, err;
    const int exit_code = verify(options, out, err);
    if (code != nullptr) *code = exit_code;
    return out.str();
  }
  // Another summary, with all checksums right: LOD.md "Header".
  void change_totals(const std::function<void(calls::FunctionTimes&)>& change) {
    std::ifstream in(lod(), std::ios::binary);
    std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(in)), {});
    const auto reader = calls::LodReader::open(bytes);
    ASSERT_TRUE(reader.ok());
    const auto summary = reader->summary();
    ASSERT_TRUE(summary.ok());
    calls::FunctionTimes times = (*summary)->totals.times()[0];
    change(times);
    (*summary)->totals.put(0, times);
    const std::vector<uint8_t> changed = calls::encode_lod_summary(**summary);
    bytes.resize(load_le<uint64_t>(bytes.data() + 64));
    bytes.insert(bytes.end(), changed.begin(), changed.end());
    store_le(bytes.data() + 72, uint64_t{bytes.size()});
    store_le(bytes.data() + 80, crc32c(changed));
    store_le(bytes.data() + 124, crc32c(Bytes(bytes).first(124)));
    std::ofstream(lod(), std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  uint64_t last_ns_ = 0;
};

TEST_F(LodFiles, ViewsSayTheSameWithIt) {
  write_large_session("of another program");
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  EXPECT_FALSE(fs::exists(lod())) << "another program's directory is left as it is";
  const json events_page = page();
  const json whole = report();
  const std::string from = "0.005s", to = "0.006s";
  const json part = report(from, to);

  write_large_session();
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  ASSERT_TRUE(fs::exists(lod()));
  EXPECT_LT(fs::file_size(lod()) * 50, fs::file_size(session_ / "thread_0" / "index.atf"))
      << "at most 2 % of the events";
  const json lod_page = page();
  EXPECT_EQ(lod_page["functions"], events_page["functions"]);
  EXPECT_EQ(lod_page["threads"][0]["tree"], events_page["threads"][0]["tree"]);
  EXPECT_EQ(lod_page["threads"][0]["gaps"], events_page["threads"][0]["gaps"]);
  EXPECT_EQ(lod_page["threads"][0]["all_calls"], false);
  EXPECT_EQ(events_page["threads"][0]["all_calls"], true);
  // As many events, in the same places but for the edges of parts.
  uint64_t lod_events = 0, events = 0;
  for (const json& one : lod_page["threads"][0]["activity"]) lod_events += one.get<uint64_t>();
  for (const json& one : events_page["threads"][0]["activity"]) events += one.get<uint64_t>();
  EXPECT_NEAR(static_cast<double>(lod_events), static_cast<double>(events), 8.0);
  // One bar for a, as long as all of it.
  const json& bars = lod_page["threads"][0]["bars"];
  EXPECT_EQ(bars[0][0], 0);
  EXPECT_EQ(bars[0][2], last_ns_ - 1000);
  EXPECT_LE(bars.size(), 3u * 2 * 1600);

  EXPECT_EQ(report()["functions"], whole["functions"]);
  EXPECT_EQ(report(from, to)["functions"], part["functions"]);
  EXPECT_THAT(verified(), ::testing::Not(::testing::HasSubstr("index.lod")));
}

TEST_F(LodFiles, NoticesAndRemakesADamagedOne) {
  write_large_session();
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  const json before = report();
  std::fstream file(lod(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-5, std::ios::end);  // in the summary
  file.put('\x7f');
  file.close();
  EXPECT_THAT(verified(), ::testing::HasSubstr("index.lod: warning: "));
  EXPECT_EQ(report()["functions"], before["functions"]);
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  EXPECT_THAT(verified(), ::testing::Not(::testing::HasSubstr("index.lod")));
}

// Seen: verify found nothing, and the report showed 64,335 %.
TEST_F(LodFiles, FiguresThatAreNotOfTheEventsAreFound) {
  write_large_session();
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  const json before = report();
  int code = 0;
  verified(&code);
  EXPECT_EQ(code, 0);
  change_totals([](calls::FunctionTimes& times) { times.total_ns *= 1000; });
  EXPECT_THAT(verified(), ::testing::HasSubstr("does not say what the events say: views read"));
  EXPECT_EQ(report()["functions"], before["functions"]);
  change_totals([](calls::FunctionTimes& times) { times.calls = 1ull << 40; });
  EXPECT_EQ(report()["functions"], before["functions"]);
}

TEST_F(LodFiles, FigureThatCouldBeTrueIsFoundByVerify) {
  write_large_session();
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  change_totals([](calls::FunctionTimes& times) { times.total_ns -= 1; });
  int code = 0;
  EXPECT_THAT(verified(&code), ::testing::HasSubstr("does not say what the events say: remove"));
  EXPECT_EQ(code, 1);
}

// The manifest counts another loss now, which changes what is paired.
TEST_F(LodFiles, StaleOneIsNotUsed) {
  write_large_session();
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  std::ifstream in(session_ / "manifest.json");
  std::string manifest((std::istreambuf_iterator<char>(in)), {});
  manifest.replace(manifest.find("400001"), 6, "400003");
  write_text(session_ / "manifest.json", manifest);
  EXPECT_THAT(verified(), ::testing::HasSubstr("index.lod: warning: was made of another state"));
  auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  ASSERT_TRUE(read::make_lods(*trace, [](size_t, size_t) {}).ok());
  EXPECT_THAT(verified(), ::testing::Not(::testing::HasSubstr("index.lod")));
}

// What a process left that was killed is in no one's way.
TEST_F(LodFiles, InterruptedOneIsReplaced) {
  write_large_session();
  write_text(session_ / "thread_0" / "index.lod.new", "half");
  auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  ASSERT_TRUE(read::make_lods(*trace, [](size_t, size_t) {}).ok());
  EXPECT_TRUE(fs::exists(lod()));
  EXPECT_FALSE(fs::exists(session_ / "thread_0" / "index.lod.new"));
}

// A window has the single calls, with what a view says of each.
TEST_F(LodFiles, WindowHasItsCalls) {
  write_large_session();
  ASSERT_NE(run(Target::kHtml), 2) << err_.str();
  exports::ExportSelection selection;
  selection.when.from = "5000000";  // ns of the device's clock
  selection.when.until = "5000200";
  ASSERT_NE(run(Target::kHtml, selection), 2) << err_.str();
  const json data = page();
  const json& thread = data["threads"][0];
  EXPECT_EQ(thread["all_calls"], true);
  size_t whole_calls = 0;
  for (const json& bar : thread["bars"]) {
    ASSERT_EQ(bar.size(), 13u) << "each is one call";
    whole_calls += bar[6] == 1 ? 1 : 0;
    if (bar[6] == 1) {
      EXPECT_GE(bar[7], bar[8]);
    }
  }
  EXPECT_GE(whole_calls, 4u);
}

// Seen in the quick start: the summary of `run` and the collector made it at the same time, over
// each other's temporary file, and verify met one that was half written.
TEST_F(LodFiles, TwoMakersAtOnceLeaveOneWholeFile) {
  write_large_session();
  for (int round = 0; round < 3; ++round) {
    fs::remove(lod());
    Status made[2];
    {
      std::vector<std::jthread> makers;
      for (Status& status : made) {
        makers.emplace_back([&] {
          auto trace = read::open_trace(session_.string());
          status = trace.ok() ? read::make_lods(*trace, [](size_t, size_t) {}) : trace.error();
          EXPECT_TRUE(trace->threads[0].lod.has_value());
        });
      }
    }
    EXPECT_TRUE(made[0].ok() && made[1].ok()) << (made[0].ok() ? made[1] : made[0]).error().message;
    EXPECT_FALSE(fs::exists(session_ / "thread_0" / storage::kLodTemporaryFile));
    EXPECT_THAT(verified(), ::testing::Not(::testing::HasSubstr("index.lod")));
  }
}

}  // namespace
}  // namespace collect::ctl
