// A capture into its own format, or the other form of it, keeps everything; what the input has lost
// is said. The pack's readers and the published viewer's library are asked what they see.
#include <algorithm>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/convert/recover.h"
#include "formats/wtf/binary/writer.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/transcode.h"
#include "tests/daemon/ctl/convert/wtf_sessions.h"

namespace collect::ctl {
namespace {

using ByteVector = std::vector<uint8_t>;
using atf::testing::file_bytes;
using atf::testing::sample_folders;
using atf::testing::write_file;
using exports::Target;
using nlohmann::json;
using testing::kSecond;
using testing::kStart;
using testing::Plan;
namespace fs = std::filesystem;

class SameFormat : public testing::WtfSessions {
 protected:
  // Three zones with scopes, flows, ranges, texts of all sorts, in several chunks.
  static ByteVector wtf_file() {
    VectorSink sink;
    wtf::Writer writer(sink, {.chunk_bytes = 300});
    EXPECT_TRUE(writer.begin(wtf::FileHeader{}).ok());
    for (const char* zone : {"one", "two", "three"}) {
      EXPECT_TRUE(writer.set_zone(*writer.create_zone(zone)).ok());
      const uint32_t work = *writer.define_scope("work", "uint32 n, utf8 text, any value");
      for (uint32_t i = 0; i < 20; ++i) {
        const uint64_t ns = (i + 1) * 10'000;
        EXPECT_TRUE(
            writer.enter(work, ns, {i, i % 2 == 0 ? "\xC3\xA9" : "", "{\"a\": [1, null]}"}).ok());
        EXPECT_TRUE(writer.branch_flow(ns + 1000, i, 0, "flow").ok());
        EXPECT_TRUE(writer.mark(ns + 2000, "a mark").ok());
        EXPECT_TRUE(writer.leave(ns + 3000).ok());
      }
    }
    EXPECT_TRUE(writer.finish().ok());
    return sink.bytes();
  }
  int run_json(const std::string& input, const std::string& output, wtf::JsonOptions form) {
    ConvertOptions options;
    options.inputs = {input};
    options.to = Target::kWtfJson;
    options.output = output;
    options.wtf_json = form;
    options.force = true;
    std::ostringstream out, err;
    const int code = convert(options, out, err);
    said_ = err.str();
    return code;
  }
  json inspected(const std::string& path, std::string* text = nullptr) {
    std::ostringstream out, err;
    InspectOptions options;
    options.path = path;
    if (text != nullptr) {
      EXPECT_EQ(inspect(options, out, err), 0);
      *text = out.str();
      out.str("");
    }
    options.json = true;
    EXPECT_EQ(inspect(options, out, err), 0);
    return json::parse(out.str(), nullptr, false);
  }
  static std::string text_of(const ByteVector& bytes) { return {bytes.begin(), bytes.end()}; }
};

TEST_F(SameFormat, WholeFileOfEachFormatKeepsEveryByte) {
  write_file(at("a.wtf-trace"), wtf_file());
  EXPECT_EQ(run_convert(at("a.wtf-trace"), Target::kWtf, at("b.wtf-trace")), 0) << said_;
  EXPECT_EQ(file_bytes(at("b.wtf-trace")), file_bytes(at("a.wtf-trace")));
  EXPECT_EQ(report_["counts"]["events"], 3 * 20 * 4);
  EXPECT_EQ(report_["left_out"], json::object());
  for (const fs::path& sample : reference::files_with(sample_folders("data/wtf"), ".wtf-trace")) {
    if (sample.string().find(".legacy.") != std::string::npos) continue;  // another form
    EXPECT_EQ(run_convert(sample, Target::kWtf, at("c.wtf-trace")), 0) << said_;
    EXPECT_EQ(file_bytes(at("c.wtf-trace")), file_bytes(sample)) << sample;
    fs::remove(at("c.wtf-trace"));
  }
  for (const fs::path& path :
       reference::files_with(sample_folders("data/dial9"), ".expected.json")) {
    const json expected = json::parse(file_bytes(path));
    const fs::path sample = path.parent_path() / expected["sample"].get<std::string>();
    EXPECT_EQ(run_convert(sample, Target::kDial9, at("d.bin")), 0) << said_;
    EXPECT_EQ(report_["counts"]["events"], expected["frames"]["events"]) << sample;
    const auto unpacked = read::FileBytes::open(sample);  // it may be gzip
    ASSERT_TRUE(unpacked.ok());
    EXPECT_TRUE(std::ranges::equal(file_bytes(at("d.bin")), unpacked->bytes())) << sample;
    fs::remove(at("d.bin"));
  }
}

TEST_F(SameFormat, CopiesACutStreamUpToAWholeFrame) {
  const fs::path folder = reference::golden_folder() / "data/dial9";
  const json expected = json::parse(file_bytes(folder / "service.expected.json"));
  auto bytes = file_bytes(folder / "service.bin");
  bytes.resize(bytes.size() - 3);  // an event is its last frame
  write_file(at("cut.bin"), bytes);
  EXPECT_EQ(run_convert(at("cut.bin"), Target::kDial9, at("whole.bin")), 1);
  ASSERT_EQ(report_["missing"].size(), 2u) << report_;
  EXPECT_EQ(report_["missing"][1]["what"], "bytes behind the last whole frame");
  EXPECT_GT(report_["missing"][1]["count"], 0u);
  EXPECT_EQ(report_["left_out"], json::object()) << "the target has a place for everything";
  EXPECT_EQ(report_["counts"]["events"], expected["frames"]["events"].get<int>() - 1);
  const auto whole = file_bytes(at("whole.bin"));
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), bytes.begin()));
  write_file(at("none.bin"), {'T', 'R', 'C', 0, 9});
  EXPECT_EQ(run_convert(at("none.bin"), Target::kDial9, at("nothing.bin")), 2);
  EXPECT_FALSE(fs::exists(at("nothing.bin")));
}

TEST_F(SameFormat, CutWtfFileIsMendedAndThatIsSaid) {
  auto bytes = wtf_file();
  bytes.resize(bytes.size() - 20);
  write_file(at("cut.wtf-trace"), bytes);
  for (const Target target : {Target::kWtf, Target::kWtfJson}) {
    const std::string output = at(target == Target::kWtf ? "whole.wtf-trace" : "whole.wtf-json");
    EXPECT_EQ(run_convert(at("cut.wtf-trace"), target, output), 1);
    EXPECT_FALSE(report_["missing"].empty());
    EXPECT_EQ(report_["left_out"], json::object());
    const wtf::FileReport whole = check(output);
    EXPECT_TRUE(whole.viewer_has_events);
    EXPECT_EQ(whole.events, report_["counts"]["events"]);
    EXPECT_GT(whole.events, 3u * 20 * 4 - 8);
    EXPECT_LT(whole.events, 3u * 20 * 4);
  }
}

// The form is the user's choice; back in binary all of them are the same file.
TEST_F(SameFormat, EveryJsonFormHoldsAllBytesOfTheBinary) {
  const auto binary = wtf_file();
  write_file(at("a.wtf-trace"), binary);
  using wtf::JsonEvents, wtf::JsonMode;
  std::string text;
  for (const JsonMode mode : {JsonMode::kComplete, JsonMode::kPartial}) {
    for (const JsonEvents events : {JsonEvents::kBase64, JsonEvents::kEvents}) {
      const bool complete = mode == JsonMode::kComplete, base64 = events == JsonEvents::kBase64;
      SCOPED_TRACE(std::to_string(complete) + std::to_string(base64));
      const std::string path =
          at("form" + std::to_string(complete) + std::to_string(base64) + ".wtf-json");
      EXPECT_EQ(run_json(at("a.wtf-trace"), path, {mode, events}), 0) << said_;
      const std::string document = text_of(file_bytes(path));
      EXPECT_EQ(document.find("json_event_buffer") == std::string::npos, base64);
      EXPECT_EQ(json::accept(document), complete);
      // From one JSON form into another.
      EXPECT_EQ(run_json(path, at("again.wtf-json"), {}), 0) << said_;
      EXPECT_NE(text_of(file_bytes(at("again.wtf-json"))).find("json_event_buffer"),
                std::string::npos);
      EXPECT_EQ(run_convert(at("again.wtf-json"), Target::kWtf, at("back.wtf-trace")), 0) << said_;
      EXPECT_EQ(file_bytes(at("back.wtf-trace")), binary);
      fs::remove(at("back.wtf-trace"));
      // What the viewer does with it is said as it is.
      const json seen = inspected(path, &text);
      EXPECT_EQ(seen["events"], 3 * 20 * 4);
      EXPECT_EQ(seen["viewer_loads"], complete);
      EXPECT_EQ(seen["viewer_has_events"], complete && base64);
      EXPECT_EQ(text.find("named *.wtf-json") != std::string::npos, complete && base64) << text;
      EXPECT_EQ(text.find("PARTIAL mode") != std::string::npos, !complete) << text;
      EXPECT_EQ(text.find("without its events") != std::string::npos, complete && !base64) << text;
      const json published = viewed(path, complete);
      if (published.is_null()) continue;
      EXPECT_EQ(published["ok"], complete);
      uint64_t listed = 0;
      if (complete) {
        for (const json& zone : published["zones"]) listed += zone["count"].get<uint64_t>();
      }
      EXPECT_EQ(listed, complete && base64 ? 3u * 20 * 4 : 0u);
    }
  }
}

// What `convert` makes of a session by default, event by event.
TEST_F(SameFormat, ViewerHasEveryEventOfASessionsJson) {
  Plan plan;
  for (uint32_t i = 0; i < 3; ++i) {
    testing::PlannedThread thread{100 + i, "worker " + std::to_string(i), {}};
    for (uint32_t k = 0; k < 50; ++k) {
      const uint64_t ns = kStart + k * 10'000;
      thread.steps.push_back({ns, atf::EventKind::kCall, "f" + std::to_string(k % 7)});
      thread.steps.push_back({ns + 5000, atf::EventKind::kReturn, "f" + std::to_string(k % 7)});
    }
    plan.push_back(std::move(thread));
  }
  const std::string session = build(plan);
  ASSERT_LE(run_convert(session, Target::kWtf, at("s.wtf-trace")), 1) << said_;
  ASSERT_LE(run_convert(session, Target::kWtfJson, at("s.wtf-json")), 1) << said_;
  EXPECT_TRUE(check(at("s.wtf-json")).viewer_has_events);
  json binary = viewed(at("s.wtf-trace")), document = viewed(at("s.wtf-json"));
  if (binary.is_null()) GTEST_SKIP() << "node or the package tracing-framework is not there";
  EXPECT_EQ(document["zones"], binary["zones"]);
  EXPECT_EQ(document["types"], binary["types"]);
  ASSERT_EQ(document["zones"].size(), plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    const json& events = document["zones"][i]["events"];
    ASSERT_EQ(events.size(), plan[i].steps.size());
    for (size_t k = 0; k < events.size(); k += 2) {
      EXPECT_EQ(events[k]["n"], plan[i].steps[k].name);
      EXPECT_EQ(events[k + 1]["n"], "wtf.scope#leave");
      EXPECT_NEAR(events[k]["end"].get<double>() - events[k]["t"].get<double>(), 0.005, 0.0011);
    }
  }
}

// A viewer goes by the name: what stood in JSON stays JSON.
TEST_F(SameFormat, RecoverKeepsTheFormOfACutDocument) {
  write_file(at("a.wtf-trace"), wtf_file());
  ASSERT_EQ(run_json(at("a.wtf-trace"), at("a.wtf-json"), {}), 0);
  auto bytes = file_bytes(at("a.wtf-json"));
  bytes.resize(bytes.size() * 3 / 4);
  write_file(at("cut.wtf-json"), bytes);
  RecoverOptions options;
  options.path = at("cut.wtf-json");
  options.output = at("whole.wtf-json");
  std::ostringstream out, err;
  EXPECT_EQ(recover(options, out, err), 1) << err.str();
  const wtf::FileReport whole = check(options.output);
  EXPECT_EQ(whole.kind, wtf::FileKind::kJson);
  EXPECT_TRUE(whole.viewer_has_events);
  EXPECT_GT(whole.events, 3u * 20 * 4 / 3);
  const json published = viewed(options.output);
  if (published.is_null()) return;
  uint64_t listed = 0;
  for (const json& zone : published["zones"]) listed += zone["count"].get<uint64_t>();
  EXPECT_EQ(listed, whole.events);
}

}  // namespace
}  // namespace collect::ctl
