// Sessions as WTF-trace files: where one file ends and the next begins, what is opened again there,
// what the header says, and what a loss or an odd name becomes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "daemon/ctl/dump/dump.h"
#include "formats/wtf/binary/writer.h"
#include "formats/wtf/check.h"
#include "tests/daemon/ctl/convert/convert_fixture.h"
#include "tests/daemon/ctl/words/inputs.h"

namespace collect::ctl {
namespace {

using exports::Target;
using nlohmann::json;
using testing::change_manifest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::index_of;
using testing::kCall;
using testing::kException;
using testing::kReturn;
using testing::Left;
using testing::Step;
namespace fs = std::filesystem;

constexpr uint64_t kWtfFileNs = (uint64_t{wtf::kMaxTimeUs} + 1) * 1000;  // that a file holds
constexpr const char* kSplit =
    "calls open where a file ends: shown as a call of their own in the next file";
constexpr const char* kForgotten =
    "calls open where a file ends that the next file cannot open again";
constexpr const char* kFine = "times finer than a microsecond: a WTF-trace counts microseconds";

class WtfFilesOf : public testing::ConvertTest {
 protected:
  // A session of one thread for each list of steps; `also` changes its manifest.
  std::string built(const std::vector<std::vector<Step>>& threads,
                    convert::BuiltProcess process = {},
                    const std::function<void(storage::Manifest&)>& also = {}) {
    fs::remove_all(at("built"));
    convert::SessionBuilder builder(storage::PosixFs(at("built")), atf::Version::kV2);
    EXPECT_TRUE(builder.begin(process).ok());
    for (uint32_t i = 0; i < threads.size(); ++i) {
      EXPECT_TRUE(builder.add_thread(100 + i, "t" + std::to_string(i), process.start_ns).ok());
      for (const Step& step : threads[i]) {
        EXPECT_TRUE(builder.event(i, step.ns, step.function_id, step.kind).ok());
      }
    }
    const auto made = builder.finish(true, "exit");
    EXPECT_TRUE(made.ok());
    if (also) change_manifest(*made, also);
    return *made;
  }
  static convert::BuiltProcess on_day() {
    convert::BuiltProcess process;
    process.name = "app";
    process.pid = 42;
    process.start_ns = 5'000'000;
    process.start_unix_ns = 1'700'000'000'000'000'000;
    return process;
  }
  static wtf::FileReport checked(const std::string& path) {
    return wtf::check_file(atf::testing::file_bytes(path));
  }
  Left left_out() const { return report_["left_out"].get<Left>(); }
  std::vector<std::string> dumped(const std::string& path) {
    DumpOptions options;
    options.paths = {path};
    std::ostringstream out, err;
    EXPECT_EQ(dump(options, out, err), 0) << err.str();
    std::vector<std::string> lines;
    std::istringstream in(out.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(WtfFilesOf, FileEndsWithItsLastMicrosecond) {
  constexpr uint64_t kFirst = 5'000'000;
  for (const uint64_t beyond : {uint64_t{0}, uint64_t{1}}) {
    const std::string session =
        built({{{kFirst, kCall, 1}, {kFirst + kWtfFileNs - 1 + beyond, kReturn, 1}}}, on_day());
    ASSERT_EQ(run(session, Target::kWtf, at("x.wtf-trace")), 0) << err_.str();
    ASSERT_EQ(report_["written"].size(), 1 + beyond);
    EXPECT_EQ(left_out().contains(kSplit), beyond == 1);
    EXPECT_FALSE(report_["counts"].contains("calls open at the end"));
    EXPECT_EQ(checked(written()).zones[0].scopes, 1u) << "a file that ends closes what is open";
    EXPECT_EQ(checked(written()).last_us, wtf::kMaxTimeUs);
    if (beyond == 0) continue;
    EXPECT_EQ(written(1), at("x.2.wtf-trace"));
    const wtf::FileReport second = checked(written(1));
    EXPECT_EQ(second.zones[0].scopes, 1u);
    EXPECT_EQ(second.header->timebase_ms, 1'700'000'000'000.0 + 4'294'967.0);
    EXPECT_EQ(report_["written"][1]["bytes"], fs::file_size(written(1)));
  }
}

TEST_F(WtfFilesOf, LeavesOutAnOlderFileBehindTheLast) {
  const std::vector<Step> steps = {{5'000'000, kCall, 1},
                                   {5'000'000 + kWtfFileNs, kCall, 2},
                                   {5'001'000 + kWtfFileNs, kReturn, 2},
                                   {5'000'000 + 2 * kWtfFileNs, kReturn, 1}};
  ASSERT_EQ(run(built({steps}, on_day()), Target::kWtf, at("x.wtf-trace")), 0);
  EXPECT_EQ(report_["written"].size(), 3u);
  EXPECT_EQ(report_["remarks"], json::array());
  const std::string shorter =
      built({{{5'000'000, kCall, 1}, {5'000'000 + kWtfFileNs, kReturn, 1}}}, on_day());
  ASSERT_EQ(run(shorter, Target::kWtf, at("x.wtf-trace")), 0);
  EXPECT_EQ(report_["written"].size(), 2u);
  EXPECT_EQ(report_["remarks"], (json{at("x.3.wtf-trace") + " is older and no part of this"}));
  // What was not there before is no one's: a file of that name is not looked for.
  fs::remove(at("x.wtf-trace"));
  fs::remove(at("x.2.wtf-trace"));
  ASSERT_EQ(run(shorter, Target::kWtf, at("x.wtf-trace")), 0);
  EXPECT_EQ(report_["remarks"], json::array());
  // In the JSON form each is a file too.
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(run(built({steps}, on_day()), Target::kWtfJson, at("y.json")), 0) << err_.str();
    ASSERT_EQ(report_["written"].size(), 3u);
    for (size_t n = 0; n < 3; ++n) {
      EXPECT_EQ(written(n), n == 0 ? at("y.json") : at("y." + std::to_string(n + 1) + ".json"));
      EXPECT_EQ(report_["written"][n]["bytes"], fs::file_size(written(n)));
      EXPECT_EQ(checked(written(n)).kind, wtf::FileKind::kJson);
      EXPECT_EQ(checked(written(n)).zones[0].scopes, n == 1 ? 2u : 1u);
    }
    EXPECT_EQ(left_out().at(kSplit), 2u);
  }
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(root_)) {
    entries += entry.path().filename().string().find(".session-") != std::string::npos;
  }
  EXPECT_EQ(entries, 0u);
}

TEST_F(WtfFilesOf, ThereAreTenThousandFilesAtMost) {
  std::vector<Step> steps;
  constexpr uint64_t kFiles = 10'000;
  for (uint64_t i = 0; i < kFiles; ++i) steps.push_back({i * kWtfFileNs, kCall, 1});
  // In memory where that can be: these are many files.
  const bool has_memory = fs::is_directory("/dev/shm");
  std::string directory = has_memory ? "/dev/shm/files_XXXXXX" : at("files_XXXXXX");
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  EXPECT_EQ(run(built({steps}), Target::kWtf, directory + "/x.wtf-trace"), 0);
  EXPECT_EQ(report_["written"].size(), kFiles);
  fs::remove_all(directory);
  fs::create_directory(directory);
  steps.push_back({kFiles * kWtfFileNs, kCall, 1});
  EXPECT_EQ(run(built({steps}), Target::kWtf, directory + "/x.wtf-trace"), 2);
  EXPECT_THAT(err_.str(), HasSubstr(directory + "/x.wtf-trace: it would take more than 10000 files "
                                                "of 71 minutes; nothing was made\n"));
  EXPECT_TRUE(fs::is_empty(directory));
  fs::remove_all(directory);
}

// Of at most 32768 functions, which leaves room for others.
TEST_F(WtfFilesOf, OpenCallsContinueWhenTypeNumbersRunOut) {
  constexpr uint64_t kDepth = wtf::kMaxRememberedScopes, kKept = 32'768;
  for (const uint64_t more : {uint64_t{0}, uint64_t{1}}) {
    std::vector<std::vector<Step>> threads(9);
    uint64_t function = 1;
    for (uint64_t t = 0; t < kKept / kDepth; ++t) {
      for (uint64_t i = 0; i < kDepth; ++i) threads[t].push_back({1000, kCall, function++});
    }
    for (uint64_t i = 0; i < more; ++i) threads[8].push_back({1000, kCall, function++});
    const uint64_t open = function - 1;
    for (uint64_t i = 0; i < 40'000; ++i) {
      threads[8].push_back({2000 + i * 1000, kCall, function});
      threads[8].push_back({2000 + i * 1000, kReturn, function++});
    }
    // A call that is not open in the second file has returned all the same.
    const uint64_t returned = threads[8][0].function_id;
    threads[8].push_back({kWtfFileNs / 2, kReturn, returned});
    ASSERT_EQ(run(built(threads, on_day()), Target::kWtf, at("x.wtf-trace")), 0) << err_.str();
    ASSERT_EQ(report_["written"].size(), 2u);
    EXPECT_EQ(report_["counts"].contains("returns without a call"), more == 0);
    const Left left = left_out();
    EXPECT_EQ(left.contains(kSplit) ? left.at(kSplit) : 0, more == 0 ? kKept : 0);
    EXPECT_EQ(left.contains(kForgotten) ? left.at(kForgotten) : 0, more == 0 ? 0 : kKept + 1);
    EXPECT_EQ(report_["counts"]["calls open at the end"], open - more);
    const wtf::FileReport second = checked(written(1));
    EXPECT_EQ(second.zones[0].scopes, more == 0 ? kDepth : 0);
    EXPECT_EQ(second.zones[0].unmatched_leaves + second.zones[0].open_scopes, 0u);
    EXPECT_EQ(checked(written()).zones[8].scopes + second.zones[8].scopes, 40'000 + more);
    fs::remove(at("x.wtf-trace"));
    fs::remove(at("x.2.wtf-trace"));
  }
}

TEST_F(WtfFilesOf, CallsTooDeepToBeFollowedAreCounted) {
  constexpr uint64_t kDepth = calls::OpenCalls::kMaxDepth;
  std::vector<Step> steps;
  for (uint64_t i = 0; i < kDepth + 2; ++i) steps.push_back({1000, kCall, 1});
  steps.push_back({2000, kReturn, 1});
  steps.push_back({3000, kException, 1});
  steps.push_back({4000, kReturn, 1});
  ASSERT_EQ(run(built({steps}), Target::kWtf, at("x.wtf-trace")), 0) << err_.str();
  EXPECT_EQ(left_out(),
            (Left{{"calls nested deeper than can be followed, with their returns", 2}}));
  EXPECT_EQ(report_["counts"],
            (json{{"calls open at the end", kDepth - 1}, {"events", kDepth + 5}}));
  EXPECT_EQ(checked(written()).zones[0].max_scope_depth, kDepth);
}

// ---- losses, markers, names

TEST_F(WtfFilesOf, PutsLossesAndMarkersBeforeTheirEvents) {
  const std::vector<Step> one = {{10'000, kCall, 1}, {20'000, kReturn, 1}};
  const auto change = [](storage::Manifest& manifest) {
    using storage::Gap;
    manifest.markers = {{20'000, "at twenty"}, {9500, "first"}, {20'000, "too"}, {30'001, "last"}};
    const auto gap = [](uint32_t thread, Lane lane, uint64_t before, uint64_t lost,
                        uint32_t reasons) {
      Gap made;
      made.thread = thread;
      made.lane = lane;
      made.before_seq = before;
      made.lost = lost;
      made.reasons = reasons;
      return made;
    };
    manifest.gaps = {gap(1, Lane::kIndex, 2, 5, kLostRingFull | kLostReentry),
                     gap(0, Lane::kIndex, 1, 3, kLostRingFull),
                     gap(1, Lane::kIndex, 0, 7, 1),
                     gap(0, Lane::kDetail, 1, 9, 1),
                     gap(5, Lane::kIndex, 1, 9, 1),
                     gap(1, Lane::kIndex, 1, 2, 0)};
  };
  const std::string session = built({one, one}, {}, change);
  run(session, Target::kWtf, at("x.wtf-trace"));
  EXPECT_EQ(report_["counts"]["lost_events"], 17);
  EXPECT_EQ(left_out().at(kFine), 2u) << "two markers";
  const auto mark = [](const std::string& text, const std::string& value) {
    return "wtf.trace#mark(name=\"" + text + "\", value=" + value + ")";
  };
  const auto lost = [&](const std::string& text, int count, int reasons) {
    return mark(std::to_string(count) + " events are missing" + text,
                "{\"lost_events\":" + std::to_string(count) +
                    ",\"lost_reasons\":" + std::to_string(reasons) + "}");
  };
  std::vector<std::string> found;
  for (const std::string& line : dumped(at("x.wtf-trace"))) {
    const size_t at = line.find("| ");
    const size_t text = at == line.npos ? 0 : line.find_first_not_of(' ', at + 2);
    found.push_back(line.substr(text));
  }
  EXPECT_THAT(found, ElementsAre("# zone 0, \"process (0) / t0 (100)\", \"native_script\"",
                                 mark("first", "null"), found[2], mark("at twenty", "null"),
                                 mark("too", "null"), lost(" (ring_full)", 3, 1), found[6],
                                 "# zone 1, \"process (0) / t1 (101)\", \"native_script\"",
                                 lost(" (ring_full)", 7, 1), found[9], lost("", 2, 0), found[11],
                                 lost(" (ring_full, reentry)", 5, 5),
                                 "# zone 0, \"process (0) / t0 (100)\", \"native_script\"",
                                 mark("last", "null")));
}

TEST_F(WtfFilesOf, LimitsMarkerTextsAsInAManifest) {
  const std::string session = built({{{10'000, kCall, 1}}}, {}, [](storage::Manifest& manifest) {
    manifest.markers = {{20'000, std::string(storage::kMaxTextBytes, 'm')},
                        {30'000, std::string(storage::kMaxTextBytes + 1, 'n')}};
  });
  run(session, Target::kWtf, at("x.wtf-trace"));
  const std::vector<std::string> lines = dumped(at("x.wtf-trace"));
  EXPECT_EQ(run(at("x.wtf-trace"), Target::kAtf, at("back")), 0);
  const storage::Manifest is = manifest_of(written());
  ASSERT_EQ(is.markers.size(), 2u);
  EXPECT_EQ(is.markers[0].text, std::string(storage::kMaxTextBytes, 'm'));
  EXPECT_EQ(is.markers[1].text, std::string(storage::kMaxTextBytes, 'n'));
}

TEST_F(WtfFilesOf, CountsDuplicateAndChangedNamesOnce) {
  const std::vector<std::string> names = {
      "same", "same", "with\nline", "wtf.zone#set", "collect#return", "plain", ""};
  std::vector<Step> steps;
  for (const uint64_t hour : {uint64_t{0}, uint64_t{1}}) {
    for (uint64_t i = 0; i < names.size(); ++i) {
      steps.push_back({5'000'000 + hour * kWtfFileNs + 1000 * i, kCall, i});
      steps.push_back({5'000'000 + hour * kWtfFileNs + 1000 * i, kReturn, i});
    }
  }
  const std::string session = built({steps}, on_day(), [&](storage::Manifest& manifest) {
    manifest.symbols.clear();
    for (uint64_t i = 0; i < names.size(); ++i) manifest.symbols.push_back({i, names[i]});
  });
  ASSERT_EQ(run(session, Target::kWtf, at("x.wtf-trace")), 0);
  ASSERT_EQ(report_["written"].size(), 2u);
  EXPECT_EQ(left_out(),
            (Left{{"functions of another function's name: a WTF-trace knows them by name alone", 1},
                  {"names of functions changed: too long, not UTF-8, with line ends, or the "
                   "format's own",
                   3}}));
  std::vector<std::string> called;
  const std::string first = written();
  EXPECT_EQ(run(first, Target::kAtf, at("back")), 0);
  for (const storage::Symbol& symbol : manifest_of(written()).symbols)
    called.push_back(symbol.name);
  ASSERT_EQ(called.size(), 6u);
  called.resize(5);
  EXPECT_THAT(called, ElementsAre("same", "with line", "wtf.zone#set (function)",
                                  "collect#return (function)", "plain"));
}

// ---- the header

TEST_F(WtfFilesOf, HeaderSaysWhatTheProcessWas) {
  convert::BuiltProcess process = on_day();
  process.executable = "/opt/app";
  process.arch = atf::Arch::kArm64;
  process.os = atf::Os::kAndroid;
  process.clock = atf::ClockType::kBoottime;
  const std::string session = built({{{7'000'500, kCall, 1}}}, process);
  ASSERT_EQ(run(session, Target::kWtf, at("x.wtf-trace")), 0);
  const wtf::FileHeader header = *checked(written()).header;
  EXPECT_EQ(header.timebase_ms, 1'700'000'000'002.0);
  EXPECT_EQ(header.context->title, "app");
  EXPECT_EQ(header.context->uri, "/opt/app");
  EXPECT_EQ(header.context->user_agent.value, "collectord");
  EXPECT_EQ(header.context->user_agent.platform, "android");
  EXPECT_EQ(json::parse(header.metadata),
            (json{{"collectord",
                   {{"pid", 42}, {"arch", 2}, {"os", 2}, {"clock", 3}, {"start_ns", 7'000'000}}}}));
}

// Events before the session's start, and days that the clock cannot count to.
TEST_F(WtfFilesOf, TimesOfDayThatThereAreNot) {
  const auto timebase = [&](uint64_t event_ns, uint64_t start_ns, uint64_t unix_ns) {
    const std::string session =
        built({{{event_ns, kCall, 1}}}, {}, [&](storage::Manifest& manifest) {
          manifest.identity.start_ns = start_ns;
          manifest.identity.start_unix_ns = unix_ns;
        });
    EXPECT_LE(run(session, Target::kWtf, at("x.wtf-trace")), 1) << err_.str();
    return checked(at("x.wtf-trace")).header->timebase_ms;
  };
  EXPECT_EQ(timebase(3'000'000, 5'000'000, 7'000'000), 5.0);
  EXPECT_EQ(timebase(3'000'000, 5'000'000, 2'000'000), 0.0);
  EXPECT_EQ(timebase(3'000'000, 5'000'000, 1'999'999), 0.0);
  EXPECT_EQ(timebase(3'000'000, 5'000'000, 3'000'000), 1.0);
  EXPECT_EQ(timebase(8'000'000, 5'000'000, 7'000'000), 10.0);
  EXPECT_EQ(timebase(5'001'000, 5'000'000, UINT64_MAX - 1000), 18'446'744'073'709.0);
  EXPECT_EQ(timebase(5'002'000, 5'000'000, UINT64_MAX - 1000), 0.0) << "beyond the last";
}

// What storage does not take as a manifest may still say who it was.
TEST_F(WtfFilesOf, ReadsAForeignManifestAsFarAsPossible) {
  write_thread(0, index_of({{10'000, kCall, 0xA}, {20'000, kReturn, 0xA}}, 77));
  write_text(session_ / "manifest.json",
             R"({"process": {"name": "theirs", "pid": "many"}, "threads": [
                {"id": 0, "thread_id": 77, "name": "loop"}],
                "symbols": [{"function_id": "0xA", "name": "spin"}]})");
  run(session_.string(), Target::kWtf, at("x.wtf-trace"));
  const wtf::FileReport report = checked(at("x.wtf-trace"));
  EXPECT_EQ(report.header->context->title, "theirs");
  EXPECT_EQ(report.zones[0].name, "theirs (0) / loop (77)");
  EXPECT_THAT(dumped(at("x.wtf-trace"))[1], HasSubstr("| spin() {"));
}

}  // namespace
}  // namespace collect::ctl
