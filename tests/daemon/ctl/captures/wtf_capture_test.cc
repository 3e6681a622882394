// What collectctl does with WTF-trace files by themselves: inspect, verify, dump, recover.
#include <algorithm>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/convert/recover.h"
#include "daemon/ctl/dump/dump.h"
#include "formats/wtf/binary/writer.h"
#include "storage/convert/conversions.h"
#include "tests/daemon/ctl/convert/wtf_sessions.h"

namespace collect::ctl {
namespace {

using atf::EventKind;
using exports::Target;
using nlohmann::json;
using testing::PlannedThread;
using testing::Step;
namespace fs = std::filesystem;

class WtfCapture : public testing::WtfSessions {
 protected:
  // Zones "main" and "other"; a scope, an instance event, and a scope that is never left.
  std::vector<uint8_t> small_file() {
    VectorSink sink;
    wtf::WriterOptions options;
    options.pair_scopes = false;
    wtf::Writer writer(sink, options);
    wtf::FileHeader header;
    header.timebase_ms = 1'700'000'000'000;
    EXPECT_TRUE(writer.begin(header).ok());
    const auto main = writer.create_zone("main", "script");
    const auto other = writer.create_zone("other");
    EXPECT_TRUE(writer.set_zone(*main).ok());
    const uint32_t draw = *writer.define_scope("draw", "uint32 n, utf8 what");
    EXPECT_TRUE(writer.enter(draw, 1'500'000, {7, "a\x1B"}).ok());
    EXPECT_TRUE(writer.enter_named("inner", 1'600'000).ok());
    EXPECT_TRUE(writer.set_zone(*other).ok());
    EXPECT_TRUE(writer.mark(1'700'000, "here", "{\"k\": 1}").ok());
    EXPECT_TRUE(writer.set_zone(*main).ok());
    EXPECT_TRUE(writer.leave(1'750'000).ok());
    EXPECT_TRUE(writer.leave(2'000'000).ok());
    EXPECT_TRUE(writer.enter_named("open", 2'100'000).ok());
    EXPECT_TRUE(writer.finish().ok());
    return sink.bytes();
  }
  int run_dump(DumpOptions options) {
    options.paths = {at("x.wtf-trace")};
    out_.str("");
    err_.str("");
    return dump(options, out_, err_);
  }
  size_t lines() const {
    const std::string text = out_.str();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  std::ostringstream out_, err_;
};

TEST_F(WtfCapture, DumpIndentsScopesWithinTheirZone) {
  atf::testing::write_file(at("x.wtf-trace"), small_file());
  EXPECT_EQ(run_dump({}), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            "# zone 0, \"main\", \"script\"\n"
            "        1500             | draw(n=7, what=\"a\\x1b\") {\n"
            "        1600             |   inner() {\n"
            "# zone 1, \"other\", \"native_script\"\n"
            "        1700             | wtf.trace#mark(name=\"here\", value={\"k\": 1})\n"
            "# zone 0, \"main\", \"script\"\n"
            "        1750         150 |   } inner\n"
            "        2000         500 | } draw\n"
            "        2100             | open() {\n");
  DumpOptions options;
  options.json = true;
  EXPECT_EQ(run_dump(options), 0);
  std::istringstream in(out_.str());
  std::vector<json> events;
  for (std::string line; std::getline(in, line);) events.push_back(json::parse(line));
  ASSERT_EQ(events.size(), 6u);
  const json first = {{"version", 1},    {"zone", "main"},
                      {"zone_index", 0}, {"time_us", 1500},
                      {"event", "draw"}, {"kind", "scope"},
                      {"depth", 0},      {"args", {{"n", 7}, {"what", "a\x1B"}}}};
  EXPECT_EQ(events[0], first);
  EXPECT_EQ(events[2]["args"]["value"]["k"], 1);
  EXPECT_EQ(events[3]["event"], "inner");
  EXPECT_EQ(events[3]["kind"], "leave");
}

TEST_F(WtfCapture, DumpFilters) {
  atf::testing::write_file(at("x.wtf-trace"), small_file());
  DumpOptions options;
  options.json = true;
  options.functions = {"dr*"};
  EXPECT_EQ(run_dump(options), 0);
  EXPECT_EQ(lines(), 2u);
  options.functions = {"inner", "wtf.trace#mark"};
  EXPECT_EQ(run_dump(options), 0);
  EXPECT_EQ(lines(), 3u);
  options.functions = {"inner", "outer"};
  options.json = false;
  EXPECT_EQ(run_dump(options), 1);
  EXPECT_NE(err_.str().find("no scope or mark matches \"outer\""), std::string::npos) << err_.str();
  options.functions = {};
  options.json = true;
  options.when.from = "1600000";
  options.when.until = "1750000";
  EXPECT_EQ(run_dump(options), 0);
  EXPECT_EQ(lines(), 3u);
  options.limit = 1;
  EXPECT_EQ(run_dump(options), 0);
  EXPECT_EQ(lines(), 1u);
  for (int i = 0; i < 3; ++i) {
    DumpOptions senseless;
    if (i == 0) senseless.merged = true;
    if (i == 1) senseless.detail = true;
    if (i == 2) senseless.threads = {"0"};
    EXPECT_EQ(run_dump(senseless), 2);
    EXPECT_TRUE(out_.str().empty());
  }
}

// Every form says the same.
TEST_F(WtfCapture, JsonFormIsShownAsTheBinaryOne) {
  atf::testing::write_file(at("x.wtf-trace"), small_file());
  ASSERT_EQ(run_dump({}), 0);
  const std::string binary = out_.str();
  EXPECT_EQ(run_convert(at("x.wtf-trace"), Target::kWtfJson, at("x.json")), 0) << said_;
  DumpOptions options;
  fs::rename(at("x.json"), at("x.wtf-trace"));
  ASSERT_EQ(run_dump(options), 0) << err_.str();
  EXPECT_EQ(out_.str(), binary);
  EXPECT_EQ(run_convert(at("x.wtf-trace"), Target::kAtf, at("back")), 0);
  EXPECT_EQ(read_session(written())[0].steps.size(), 5u);
}

TEST_F(WtfCapture, CutFileIsRecoveredToAWholeOne) {
  const auto whole = small_file();
  uint64_t most = 0;
  for (size_t size = 0; size < whole.size(); size += size < 50 ? 1 : 4) {
    atf::testing::write_file(at("cut.wtf-trace"),
                             {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    RecoverOptions options;
    options.path = at("cut.wtf-trace");
    options.output = at("whole.wtf-trace");
    options.force = true;
    std::ostringstream out, err;
    fs::remove(options.output);
    const int code = recover(options, out, err);
    if (size < 12) {
      EXPECT_EQ(code, 2) << size;
      continue;
    }
    // A file that ends with a chunk may have been meant so.
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const bool is_whole = wtf::check_file(cut).findings.errors() == 0;
    ASSERT_EQ(code, is_whole ? 0 : 1) << size << ": " << err.str();
    EXPECT_EQ(err.str().find("missing") == std::string::npos, is_whole);
    const wtf::FileReport report = check(options.output);
    EXPECT_GE(report.events, most) << size;
    most = report.events;
  }
  EXPECT_EQ(most, 5u) << "all but the last";
}

TEST_F(WtfCapture, DamagedBytesNeverEndTheProgram) {
  const auto whole = small_file();
  for (size_t i = 0; i < whole.size(); ++i) {
    auto bytes = whole;
    bytes[i] ^= 0x5A;
    const CaptureFormat& format = kWtfCapture;
    (void)format.check(bytes, {});
    std::ostringstream text;
    TextOut out(text);
    (void)format.dump({}, {}, bytes, out, {});
    VectorSink sink;
    (void)format.recover(bytes, sink, {});
    if (i % 16 != 0) continue;
    convert::ConvertLog log;
    convert::SessionBuilder builder(storage::PosixFs(at("flips")), atf::Version::kV2);
    if (convert::wtf_to_atf(bytes, builder, log).ok()) {
      EXPECT_TRUE(builder.finish(storage::SessionState::kComplete, "flipped").ok());
    }
  }
}

TEST_F(WtfCapture, EverySampleGoesThroughEveryCommand) {
  const auto folders = atf::testing::sample_folders("data/wtf");
  size_t samples = 0;
  for (const fs::path& sample : atf::testing::files_with(folders, ".wtf-trace")) {
    SCOPED_TRACE(sample);
    // Both folders have a "tiny".
    const std::string name = std::to_string(++samples) + sample.stem().string();
    std::ifstream in(sample.parent_path() / (sample.stem().string() + ".expected.json"));
    const json expected = json::parse(in, nullptr, false);
    std::ostringstream out, err;
    InspectOptions inspecting;
    inspecting.path = sample.string();
    inspecting.json = true;
    EXPECT_EQ(inspect(inspecting, out, err), 0);
    const json seen = json::parse(out.str(), nullptr, false);
    EXPECT_EQ(seen["format"], "wtf");
    EXPECT_EQ(seen["events"], expected["events"]);
    EXPECT_EQ(seen["format_version"], expected["format_version"]);
    EXPECT_EQ(seen["viewer_loads"], expected["ok"]);
    uint64_t scopes = 0, calls = 0;
    ASSERT_EQ(seen["zones"].size(), expected["zones"].size());
    for (size_t i = 0; i < seen["zones"].size(); ++i) {
      EXPECT_EQ(seen["zones"][i]["scopes"], expected["zones"][i]["scopes"]);
      scopes += expected["zones"][i]["scopes"].get<uint64_t>() +
                seen["zones"][i]["open_scopes"].get<uint64_t>();
    }
    VerifyOptions verifying;
    verifying.path = inspecting.path;
    EXPECT_EQ(verify(verifying, out, err), 0) << err.str();
    DumpOptions dumping;
    dumping.paths = {inspecting.path};
    dumping.limit = 5000;
    out.str("");
    EXPECT_EQ(dump(dumping, out, err), 0) << err.str();
    EXPECT_FALSE(out.str().empty());
    RecoverOptions recovering;
    recovering.path = inspecting.path;
    recovering.output = at(name + ".whole.wtf-trace");
    EXPECT_LE(recover(recovering, out, err), 1) << err.str();
    EXPECT_EQ(check(recovering.output).events, expected["events"]);
    EXPECT_LE(run_convert(inspecting.path, Target::kAtf, at(name)), 1) << said_;
    for (const PlannedThread& thread : read_session(written())) {
      for (const Step& step : thread.steps) calls += step.kind == EventKind::kCall ? 1 : 0;
    }
    EXPECT_EQ(calls, scopes);
    for (const Target target : {Target::kWtf, Target::kRtc}) {
      EXPECT_LE(run_convert(inspecting.path, target, at(name + ".as")), 1) << said_;
      fs::remove(at(name + ".as"));
    }
  }
  EXPECT_GE(samples, folders.size() == 1 ? 3u : 3u + 7u);
}

}  // namespace
}  // namespace collect::ctl
