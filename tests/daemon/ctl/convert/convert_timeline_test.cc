// Traces of other programs: into a session, from there into reports and pages, and the way back of
// what was exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <random>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/dump/dump.h"
#include "daemon/ctl/report/report.h"
#include "storage/convert/timeline/timeline_session.h"
#include "tests/daemon/ctl/convert/convert_fixture.h"

namespace collect::ctl {
namespace {

using exports::Target;
using nlohmann::json;
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kCall;
using testing::kReturn;

constexpr std::string_view kChrome = R"([
{"ph":"M","pid":7,"name":"process_name","args":{"name":"browser"}},
{"ph":"M","pid":7,"tid":8,"name":"thread_name","args":{"name":"main"}},
{"ph":"X","pid":7,"tid":8,"ts":10,"dur":5,"name":"inner"},
{"ph":"X","pid":7,"tid":8,"ts":10,"dur":20.5,"name":"outer"},
{"ph":"B","pid":7,"tid":9,"ts":12,"name":"work"},
{"ph":"i","pid":7,"tid":8,"ts":13,"s":"g","name":"flush"},
{"ph":"C","pid":7,"ts":14,"name":"bytes","args":{"n":1}},
{"ph":"E","pid":7,"tid":9,"ts":15},
)";

std::string packed(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class TimelineInputs : public testing::ConvertTest {
 protected:
  json reported(const std::string& path, ReportBy by = ReportBy::kFunction) {
    ReportOptions options;
    options.path = path;
    options.by = by;
    options.json = true;
    options.wall = true;
    std::ostringstream out, err;
    EXPECT_EQ(report(options, out, err), 0) << err.str();
    return json::parse(out.str(), nullptr, false);
  }
  // "parse: 2 calls, 30 ns in all, 12 ns itself", by name.
  std::vector<std::string> functions(const std::string& path) {
    std::vector<std::string> rows;
    const json report = reported(path);
    for (const json& row : report["functions"]) {
      rows.push_back(fmt::format("{}: {} calls, {} ns in all, {} ns itself",
                                 row["name"].get<std::string>(), row["calls"].get<uint64_t>(),
                                 row["total_ns"].get<uint64_t>(), row["self_ns"].get<uint64_t>()));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  std::string converted(std::string_view text, int code = 0) {
    write_text(root_ / "input", std::string(text));
    EXPECT_EQ(run(at("input"), Target::kAtf, at("made")), code) << err_.str();
    return report_.contains("written") ? written() : "";
  }
  // Three threads with nested calls of five functions, all of which end; times in whole ns.
  std::string nested_session() {
    convert::SessionBuilder builder(storage::PosixFs(at("source")), atf::Version::kV2);
    convert::BuiltProcess process;
    process.name = "app";
    process.pid = 42;
    process.start_ns = 1'000'000'000'007;
    process.start_unix_ns = 1'700'000'000'000'000'000;
    EXPECT_TRUE(builder.begin(process).ok());
    std::mt19937 random(5);
    for (uint32_t thread = 0; thread < 3; ++thread) {
      uint64_t now = process.start_ns + thread;
      EXPECT_TRUE(builder.add_thread(100 + thread, fmt::format("worker {}", thread), now).ok());
      std::vector<uint64_t> open;
      for (size_t left = 2000; left != 0 || !open.empty();) {
        const bool calls = left != 0 && open.size() < 20 && (open.empty() || random() % 2 == 0);
        if (calls) {
          --left;
          open.push_back(builder.function_of(fmt::format("f{}", random() % 5)));
        }
        now += random() % 3000;
        EXPECT_TRUE(builder.event(thread, now, open.back(), calls ? kCall : kReturn).ok());
        if (!calls) open.pop_back();
      }
    }
    EXPECT_TRUE(builder.marker(process.start_ns + 1000, "half way").ok());
    const auto made = builder.finish(true, "exit");
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  }
  std::vector<std::string> thread_names(const std::string& session) {
    std::vector<std::string> names;
    for (const auto& thread : manifest_of(session).threads) names.push_back(thread.name);
    return names;
  }
};

TEST_F(TimelineInputs, ChromeTraceBecomesASession) {
  const std::string session = converted(kChrome);
  EXPECT_EQ(report_["from"], "chrome");
  EXPECT_EQ(report_["left_out"], json({{"counter events (C)", 1}}));
  EXPECT_EQ(report_["missing"], json::array());
  const storage::Manifest manifest = manifest_of(session);
  EXPECT_EQ(manifest.identity.process_name, "browser");
  EXPECT_EQ(manifest.identity.pid, 7u);
  EXPECT_THAT(thread_names(session), ElementsAre("main", ""));
  ASSERT_EQ(manifest.markers.size(), 1u);
  EXPECT_EQ(manifest.markers[0].text, "flush");
  EXPECT_EQ(manifest.markers[0].at_ns, 13'000u);
  EXPECT_THAT(functions(session), ElementsAre("inner: 1 calls, 5000 ns in all, 5000 ns itself",
                                              "outer: 1 calls, 20500 ns in all, 15500 ns itself",
                                              "work: 1 calls, 3000 ns in all, 3000 ns itself"));
}

TEST_F(TimelineInputs, MadeSessionsAreSound) {
  VerifyOptions options;
  options.path = converted(kChrome);
  std::ostringstream out, err;
  EXPECT_EQ(verify(options, out, err), 0) << out.str() << err.str();
}

TEST_F(TimelineInputs, PackedOnesAreUnpacked) {
  EXPECT_EQ(functions(converted(packed(kChrome))), functions(converted(kChrome)));
}

TEST_F(TimelineInputs, PagesAndContainersAreMadeOfThem) {
  write_text(root_ / "input", std::string(kChrome));
  EXPECT_EQ(run(at("input"), Target::kHtml, at("page.html")), 0) << err_.str();
  EXPECT_GT(fs::file_size(at("page.html")), 10'000u);
  EXPECT_EQ(run(at("input"), Target::kRtc, at("trace.rtc")), 0) << err_.str();
  EXPECT_EQ(run(at("trace.rtc"), Target::kAtf, at("again")), 0) << err_.str();
  EXPECT_EQ(functions(written()), functions(converted(kChrome)));
}

TEST_F(TimelineInputs, SeveralProcessesAreNamedInTheThreads) {
  const std::string session = converted(
      R"([{"ph":"M","pid":1,"name":"process_name","args":{"name":"app"}},
          {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"main"}},
          {"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"f"},
          {"ph":"X","pid":2,"tid":1,"ts":1,"dur":1,"name":"f"}])");
  EXPECT_THAT(thread_names(session), ElementsAre("app: main", "process 2: thread 1"));
  EXPECT_EQ(manifest_of(session).identity.process_name, "2 processes");
  ASSERT_EQ(report_["remarks"].size(), 1u);
  EXPECT_THAT(report_["remarks"][0], HasSubstr("2 processes are in one session"));
}

TEST_F(TimelineInputs, NegativeTimesBeginAtZero) {
  const std::string session = converted(
      R"([{"ph":"X","pid":1,"tid":1,"ts":-3,"dur":1,"name":"f"},
          {"ph":"i","s":"g","pid":1,"ts":-4,"name":"m"}])");
  EXPECT_EQ(manifest_of(session).markers[0].at_ns, 0u);
  EXPECT_THAT(functions(session), ElementsAre("f: 1 calls, 1000 ns in all, 1000 ns itself"));
  EXPECT_THAT(report_["remarks"][0], HasSubstr("times begin at -4000 ns"));
}

TEST_F(TimelineInputs, CutOnesAreRecovered) {
  const std::string session = converted(std::string(kChrome) + R"({"ph":"B","na)", 1);
  EXPECT_EQ(manifest_of(session).state, storage::SessionState::kRecovered);
  EXPECT_THAT(report_["missing"][0]["what"], HasSubstr("the file is cut off at"));
  EXPECT_EQ(functions(session).size(), 3u);
}

TEST_F(TimelineInputs, DamagedOnesNameFileAndOffset) {
  converted(R"([{"ph":"B",,}])", 2);
  EXPECT_THAT(err_.str(),
              HasSubstr(at("input") + ": at 11: a string is expected; nothing was made"));
  EXPECT_FALSE(fs::exists(at("made")));
}

TEST_F(TimelineInputs, OtherCommandsNameConvert) {
  write_text(root_ / "input", std::string(kChrome));
  const std::string sentence =
      at("input") + ": Chrome trace: collectctl convert --to atf makes a session of it";
  const auto check = [&](const std::function<int(std::ostream&, std::ostream&)>& command) {
    std::ostringstream out, err;
    EXPECT_EQ(command(out, err), 2);
    EXPECT_THAT(err.str(), HasSubstr(sentence));
  };
  check([&](auto& out, auto& err) {
    ReportOptions options;
    options.path = at("input");
    return report(options, out, err);
  });
  check([&](auto& out, auto& err) {
    DumpOptions options;
    options.paths = {at("input")};
    return dump(options, out, err);
  });
  check([&](auto& out, auto& err) {
    VerifyOptions options;
    options.path = at("input");
    return verify(options, out, err);
  });
  check([&](auto& out, auto& err) {
    InspectOptions options;
    options.path = at("input");
    return inspect(options, out, err);
  });
}

TEST_F(TimelineInputs, ExportedCallsComeBack) {
  const std::string session = nested_session();
  for (const Target target : {Target::kChrome, Target::kPerfetto, Target::kSpeedscope}) {
    SCOPED_TRACE(name_of(target));
    const std::string back = by_way_of(target, session);
    EXPECT_EQ(report_["from"], name_of(target));
    EXPECT_EQ(report_["missing"], json::array());
    EXPECT_EQ(functions(back).size(), 5u);
    EXPECT_EQ(functions(back), functions(session));
    EXPECT_EQ(manifest_of(back).threads.size(), 3u);
    EXPECT_EQ(reported(back)["functions"][0]["p99_ns"],
              reported(session)["functions"][0]["p99_ns"]);
  }
}

TEST_F(TimelineInputs, ExportedMarkersComeBack) {
  const std::string session = nested_session();
  for (const Target target : {Target::kChrome, Target::kPerfetto}) {
    SCOPED_TRACE(name_of(target));
    const storage::Manifest back = manifest_of(by_way_of(target, session));
    EXPECT_EQ(back.identity.process_name, "app");
    EXPECT_EQ(back.identity.pid, 42u);
    std::vector<std::string> texts;
    for (const auto& marker : back.markers) texts.push_back(marker.text);
    EXPECT_THAT(texts, ::testing::Contains("half way"));
  }
}

// Of folded stacks the times come back, and how often a function was called does not.
TEST_F(TimelineInputs, ExportedStacksKeepTheirTimes) {
  const std::string session = nested_session();
  const std::string back = by_way_of(Target::kFolded, session);
  EXPECT_EQ(report_["from"], "folded");
  EXPECT_THAT(report_["remarks"][0], HasSubstr("folded stacks have no times"));
  std::map<std::string, std::pair<uint64_t, uint64_t>> was, is;
  for (const auto& [path, times] : {std::pair{session, &was}, {back, &is}}) {
    const json report = reported(path);
    for (const json& row : report["functions"]) {
      const std::string name = row["name"];
      // The first frames of a stack are the process and the thread.
      if (name[0] == 'f') (*times)[name] = {row["total_ns"], row["self_ns"]};
    }
  }
  EXPECT_EQ(is, was);
  EXPECT_EQ(was.size(), 5u);
}

TEST_F(TimelineInputs, LimitsAreCounted) {
  convert::SessionBuilder builder(storage::PosixFs(at("limits")), atf::Version::kV2);
  convert::ConvertLog log;
  convert::TimelineSession timeline(builder, log, at(""), 0);
  for (size_t i = 0; i < convert::kMaxTimelineTracks; ++i) ASSERT_EQ(timeline.add_track(), i);
  for (size_t i = 0; i < convert::kMaxTimelineProcesses; ++i) {
    ASSERT_EQ(timeline.add_process(1), i);
  }
  EXPECT_EQ(timeline.add_track(), TimelineSink::kNone);
  EXPECT_EQ(timeline.add_process(1), TimelineSink::kNone);
  timeline.name_track(TimelineSink::kNone, "x");
  timeline.name_process(TimelineSink::kNone, "x");
  timeline.place_track(TimelineSink::kNone, TimelineSink::kNone, 1);
  for (size_t i = 0; i < convert::kMaxTimelineFunctions; ++i) {
    ASSERT_EQ(timeline.function(std::to_string(i), {}, 0), i + 1);
  }
  const uint32_t further = timeline.function("one more", {}, 0);
  EXPECT_EQ(timeline.function("and another", {}, 0), further);
  EXPECT_EQ(timeline.function("7", {}, 0), 8u);
  EXPECT_TRUE(timeline.begin(0, 1, further).ok());
  EXPECT_TRUE(timeline.begin(TimelineSink::kNone, 1, 1).ok());
  EXPECT_TRUE(timeline.end(0, convert::kMaxTimelineNs).ok());
  EXPECT_TRUE(timeline.end(0, -convert::kMaxTimelineNs).ok());
  EXPECT_TRUE(timeline.call(0, 1, uint64_t{convert::kMaxTimelineNs} + 1, 1).ok());
  for (size_t i = 0; i <= storage::kMaxMarkers; ++i) {
    EXPECT_TRUE(timeline.marker(static_cast<int64_t>(i), "m").ok());
  }
  ASSERT_TRUE(timeline.build("limits").ok());
  EXPECT_EQ(log.left_out(),
            (testing::Left{{"names of functions past the number that is distinguished", 2},
                           {"events of threads past the number of threads in a session", 1},
                           {"marks past the number of markers in a session", 1},
                           {"events whose time or duration is out of range", 3}}));
}

TEST_F(TimelineInputs, DeepCallsAreKept) {
  std::string text = "[";
  for (int i = 0; i < 50'000; ++i) {
    text += fmt::format(R"({{"ph":"X","pid":1,"tid":1,"ts":{},"dur":{},"name":"f"}},)", i,
                        200'000 - 2 * i);
  }
  const std::string session = converted(text);
  EXPECT_EQ(report_["counts"]["events"], 100'000);
  EXPECT_EQ(reported(session)["functions"][0]["calls"], 50'000);
}

}  // namespace
}  // namespace collect::ctl
