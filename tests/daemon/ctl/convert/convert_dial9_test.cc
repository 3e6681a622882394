// dial9 streams on the command line: a session into one and back, what tokio services recorded, and
// what every command makes of streams that are packed, cut off or damaged.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/recover.h"
#include "daemon/ctl/dump/dump.h"
#include "formats/atf/writer.h"
#include "formats/dial9/check.h"
#include "formats/dial9/writer.h"
#include "storage/convert/session_builder.h"
#include "tests/formats/atf/reference_files.h"

namespace collect::ctl {
namespace {

using exports::Target;

namespace fs = std::filesystem;
using atf::testing::file_bytes;
using atf::testing::write_file;
using nlohmann::json;
using ByteVector = std::vector<uint8_t>;

std::string text_of(const ByteVector& bytes) {
  return {bytes.begin(), bytes.end()};
}

// Events that are older than one before them, without those of another clock (symbols, metadata):
// counted in the lines of the pack's own decoder.
constexpr const char* kOlderByDay = R"({"2026-03-18": 4392, "2026-03-28": 17354,
    "2026-04-15": 14713, "2026-04-17": 118491, "2026-05-15": 160033})";

class Dial9Test : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dial9_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }
  void compare_vectors(const fs::path& folder);

  // Three threads with nested calls and exceptions, functions with and without a name, losses of
  // both lanes, also behind the last event, and markers before, between and behind the events.
  std::string make_session(atf::Version version, bool with_details) {
    convert::SessionBuilder builder(storage::PosixFs((directory_ / "recorded").string()), version);
    convert::BuiltProcess process;
    process.name = "program \xC3\xA9";
    process.executable = "/opt/program";
    process.pid = 4711;
    process.start_ns = 500;
    process.start_unix_ns = 1'800'000'000'000'000'000;
    process.arch = atf::Arch::kArm64;
    process.os = atf::Os::kAndroid;
    process.clock = atf::ClockType::kBoottime;
    EXPECT_TRUE(builder.begin(process).ok());
    builder.add_module({7, "/lib/libx.so", {1, 2, 3}, 0x7000, 4096, 600, 0});
    builder.name_function({uint64_t{7} << 32 | 9, "named(int)"});
    builder.name_function({77, "never called"});
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(builder.add_thread(100 + i, i == 2 ? "" : "worker", 900 + i).ok());
    }
    EXPECT_TRUE(builder.marker(10, "before everything").ok());
    std::mt19937 random(5);
    std::array<uint64_t, 3> now{1000, 1000, 900'000'000};
    ByteVector payload;
    for (int i = 0; i < 12'000; ++i) {
      const auto thread = static_cast<uint32_t>(random() % 3);
      now[thread] += random() % 60;
      if (random() % 1000 == 0) now[thread] += 20'000'000;  // beyond a delta of dial9
      const uint64_t function = uint64_t{7} << 32 | random() % 30;
      const auto kind = static_cast<atf::EventKind>(1 + random() % 3);
      payload.assign(with_details && i % 3 == 0 ? 1 + random() % 600 : 0, uint8_t(i));
      if (i == 4000) builder.lost(thread, Lane::kIndex, 5, 1, now[thread], now[thread]);
      if (i == 6000 && with_details) builder.lost(thread, Lane::kDetail, 3, 8, 4, 5);
      const Status put = builder.event(thread, now[thread], function, kind, payload);
      EXPECT_TRUE(put.ok()) << to_string(put.error());
    }
    builder.lost(1, Lane::kIndex, 9, 2, 1, 2);
    EXPECT_TRUE(builder.marker(2000, "between \"them\"\n").ok());
    EXPECT_TRUE(builder.marker(UINT64_MAX - 1, "behind").ok());
    auto made = builder.finish(storage::SessionState::kComplete, "exit");
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  }

  int run_convert(const std::string& input, Target to, const fs::path& output, int version = 2) {
    ConvertOptions options;
    options.inputs = {input};
    options.to = to;
    options.output = output.string();
    options.atf_version = static_cast<uint8_t>(version);
    options.force = true;
    options.json = true;
    clear();
    const int code = convert(options, out_, err_);
    if (code != 2) report_ = json::parse(out_.str());
    return code;
  }
  std::string written() { return report_["written"][0]["path"]; }
  int run_verify(const std::string& path, bool strict = false, bool allow_incomplete = false) {
    clear();
    return verify({.path = path, .strict = strict, .allow_incomplete = allow_incomplete}, out_,
                  err_);
  }
  int run_dump(const std::string& path, bool as_json = false, DumpOptions options = {}) {
    options.paths = {path};
    options.json = as_json;
    clear();
    return dump(options, out_, err_);
  }
  int run_recover(const std::string& path, const fs::path& output) {
    clear();
    return recover({.path = path, .output = output.string(), .force = true}, out_, err_);
  }
  json run_inspect(const std::string& path, int expected) {
    clear();
    EXPECT_EQ(inspect({.path = path, .json = true}, out_, err_), expected) << path << err_.str();
    return json::parse(out_.str(), nullptr, false);
  }
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    std::istringstream in(out_.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  void clear() {
    out_.str("");
    err_.str("");
  }
  std::string put(const std::string& name, const ByteVector& bytes) {
    write_file(directory_ / name, bytes);
    return (directory_ / name).string();
  }

  static json manifest_of(const std::string& session) {
    return json::parse(file_bytes(fs::path(session) / "manifest.json"));
  }
  static size_t expect_same_threads(const std::string& a, const std::string& b) {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(a)) {
      if (entry.path().extension() != ".atf") continue;
      ++files;
      const fs::path twin = fs::path(b) / fs::relative(entry.path(), a);
      EXPECT_TRUE(file_bytes(entry.path()) == file_bytes(twin)) << twin;
    }
    return files;
  }
  static json without(json list, const std::string& key) {
    for (json& element : list) element.erase(key);
    return list;
  }

  fs::path directory_;
  std::ostringstream out_, err_;
  json report_;
};

TEST_F(Dial9Test, SessionComesBackByteForByte) {
  for (const int version : {1, 2}) {
    for (const bool with_details : {false, true}) {
      SCOPED_TRACE("version " + std::to_string(version) + (with_details ? " with details" : ""));
      const std::string session =
          make_session(version == 1 ? atf::Version::kV1 : atf::Version::kV2, with_details);
      const fs::path stream =
          directory_ / ("s" + std::to_string(version) + (with_details ? "d" : "") + ".bin");
      ASSERT_EQ(run_convert(session, Target::kDial9, stream), 0) << err_.str() << out_.str();
      EXPECT_EQ(report_["counts"]["events"], 12'000);
      const dial9::Report checked = dial9::check_stream(file_bytes(stream));
      EXPECT_EQ(checked.grade, dial9::Grade::kOk);
      EXPECT_EQ(checked.findings.errors() + checked.findings.warnings(), 0u);
      EXPECT_EQ(checked.sub_streams, 1u);
      EXPECT_EQ(checked.times.clock_sync->realtime_ns, 1'800'000'000'000'000'000u);

      const fs::path back = directory_ / ("back" + std::to_string(version));
      ASSERT_EQ(run_convert(stream.string(), Target::kAtf, back, version), 0) << out_.str();
      EXPECT_EQ(expect_same_threads(session, written()), with_details ? 6u : 3u);
      const json was = manifest_of(session), is = manifest_of(written());
      for (const char* key : {"modules", "symbols", "markers", "gaps", "totals", "time_start_ns",
                              "time_end_ns", "clock_type", "process"}) {
        EXPECT_EQ(was[key], is[key]) << key;
      }
      EXPECT_EQ(was["markers"].size(), 3u);
      EXPECT_EQ(was["gaps"].size(), with_details ? 3u : 2u);
      EXPECT_EQ(was["threads"], is["threads"]);
      EXPECT_EQ(run_verify(written()), 0) << out_.str();
      fs::remove_all(directory_ / "recorded");
    }
  }
}

// The pack's decoder was not written from this code: it must read the stream, and show what ours
// shows.
TEST_F(Dial9Test, SessionThatIsNotCompleteDoesNotBecomeSo) {
  int streams = 0;
  for (const auto& [target, state] :
       {std::pair(Target::kDial9, "recovered"), std::pair(Target::kDial9, "failed"),
        std::pair(Target::kWtf, "recovered"), std::pair(Target::kWtf, "failed")}) {
    const std::string session = make_session(atf::Version::kV2, false);
    const fs::path path = fs::path(session) / "manifest.json";
    json manifest = json::parse(text_of(file_bytes(path)));
    manifest["state"] = state;
    const std::string text = manifest.dump();
    write_file(path, ByteVector(text.begin(), text.end()));
    const std::string stream = directory_ / (std::to_string(++streams) + ".bin");
    EXPECT_EQ(run_convert(session, target, stream), 1) << err_.str();
    EXPECT_THAT(err_.str(), ::testing::HasSubstr("the session is not complete: "));
    EXPECT_EQ(run_convert(stream, Target::kAtf, directory_ / "back"), 1) << err_.str();
    EXPECT_THAT(err_.str(), ::testing::HasSubstr("the session is not complete: "));
    const fs::path back = fs::path(std::string(report_["written"][0]["path"])) / "manifest.json";
    EXPECT_EQ(json::parse(text_of(file_bytes(back)))["state"], state);
    fs::remove_all(directory_ / "back");
    fs::remove_all(directory_ / "recorded");
  }
}

TEST_F(Dial9Test, IndependentDecodersReadTheStream) {
  const std::string session = make_session(atf::Version::kV2, true);
  const std::string stream = (directory_ / "s.bin").string();
  ASSERT_EQ(run_convert(session, Target::kDial9, stream), 0);
  EXPECT_EQ(run_dump(stream, true), 0);
  for (const fs::path& program : reference::independent_programs("read_dial9.py", "d9dump.py")) {
    const auto [status, theirs] =
        reference::run("python3 -B '" + program.string() + "' '" + stream + "'");
    EXPECT_EQ(status, 0) << program;
    EXPECT_TRUE(out_.str() == theirs) << program;
  }
  size_t calls = 0;
  for (const std::string& line : lines()) {
    const json frame = json::parse(line);
    if (frame["k"] != "event") continue;
    calls += frame["name"] == "Call" || frame["name"] == "Return" || frame["name"] == "Exception";
    if (frame["name"] == "FunctionInfo" && frame["v"][2] == true) {
      EXPECT_TRUE(frame["v"][1] == "named(int)" || frame["v"][1] == "never called") << line;
    }
  }
  EXPECT_EQ(calls, 12'000u);
}

// What recorders wrote, and a golden of that kind, against what independent programs count in it.
TEST_F(Dial9Test, RecordingsOfServices) {
  const auto folders = reference::sample_folders("data/dial9");
  size_t seen = 0;
  for (const fs::path& path : reference::files_with(folders, ".expected.json")) {
    const json expected = json::parse(file_bytes(path));
    const std::string sample = path.parent_path() / expected["sample"].get<std::string>();
    SCOPED_TRACE(sample);
    ++seen;
    const json inspected = run_inspect(sample, 0);
    EXPECT_EQ(inspected["format"], "dial9");
    EXPECT_EQ(inspected["result"], "ok");
    for (const char* key :
         {"bytes", "sub_streams", "pool_strings", "pool_stacks", "events_by_name"}) {
      EXPECT_EQ(inspected[key], expected[key]) << key;
    }
    const std::string day = fs::path(sample).filename().string().substr(5, 10);
    EXPECT_EQ(inspected["events_older_than_an_earlier_one"],
              expected.value("events_older_on_the_same_clock", json::parse(kOlderByDay)[day]));
    EXPECT_EQ(run_verify(sample), 0) << out_.str();
    EXPECT_EQ(run_dump(sample), 0);
    EXPECT_EQ(lines().size(), expected["frames"]["events"]);
    EXPECT_EQ(run_dump(sample, true), 0);
    EXPECT_EQ(lines().back(), R"({"k":"end"})");
    EXPECT_EQ(run_recover(sample, directory_ / "recovered.bin"), 0) << err_.str();
    EXPECT_EQ(fs::file_size(directory_ / "recovered.bin"), expected["bytes"]);

    EXPECT_EQ(run_convert(sample, Target::kAtf, directory_ / "atf"), 0);
    const json names = expected["events_by_name"];
    const auto count = [&](const char* name) { return names.value(name, uint64_t{0}); };
    const uint64_t starts = count("PollStartEvent") + count("WorkerParkEvent");
    const uint64_t ends = count("PollEndEvent") + count("WorkerUnparkEvent");
    const json left_out = report_["left_out"];
    const uint64_t without_start =
        left_out.value("ends of polls whose start the stream does not have", uint64_t{0}) +
        left_out.value("ends of parks whose start the stream does not have", uint64_t{0});
    EXPECT_LE(without_start, 1u) << "the recordings begin within a poll or a park at most";
    EXPECT_EQ(report_["counts"]["events"], starts + ends - without_start);
    uint64_t others = 0;
    for (const auto& [what, number] : left_out.items()) {
      if (what.ends_with("an ATF session has calls and returns of threads")) {
        others += number.get<uint64_t>();
      }
    }
    EXPECT_EQ(others + starts + ends, expected["frames"]["events"]);
    EXPECT_FALSE(
        left_out.contains("times that stepped back within a thread, moved to the event before"));
    EXPECT_EQ(run_verify(written()), 0) << out_.str();
    if (starts != 0) {
      const json manifest = manifest_of(written());
      EXPECT_EQ(manifest["threads"].size(), 2u);
      EXPECT_EQ(manifest["threads"][0]["name"].get<std::string>().substr(0, 7), "worker ");
      std::string symbols = manifest["symbols"].dump();
      EXPECT_NE(symbols.find("service/src/"), std::string::npos) << symbols;
    }
  }
  EXPECT_EQ(seen, folders.size() == 1 ? 2u : 2u + 5u);
}

// Small streams at the edge of the format: each outcome is reported, and what is
// recovered is whole.
TEST_F(Dial9Test, Vectors) {
  for (const fs::path& folder : reference::sample_folders("data/dial9")) compare_vectors(folder);
}

void Dial9Test::compare_vectors(const fs::path& folder) {
  const json vectors = json::parse(file_bytes(folder / "vectors.json"));
  for (const auto& [name, expected] : vectors.items()) {
    SCOPED_TRACE(name);
    const std::string path = (folder / "vectors" / (name + ".bin")).string();
    const dial9::Report report = dial9::check_stream(file_bytes(path));
    if (!dial9::looks_like_dial9(file_bytes(path))) continue;  // no one's, to every command
    const bool rejected = report.grade == dial9::Grade::kRejected;
    const bool whole = report.grade == dial9::Grade::kOk;
    const json inspected = run_inspect(path, rejected ? 1 : 0);
    if (!rejected) {
      const json& strict = expected.contains("strict") ? expected["strict"] : expected["d9dump"];
      EXPECT_EQ(inspected["events"], strict["events"]);
    }
    EXPECT_EQ(run_verify(path), whole ? 0 : 1);
    EXPECT_EQ(run_verify(path, false, true),
              whole || report.grade == dial9::Grade::kTruncated ? 0 : 1);
    EXPECT_EQ(run_dump(path), whole ? 0 : 1) << err_.str();
    EXPECT_EQ(run_dump(path, true), whole ? 0 : 1);
    const fs::path recovered = directory_ / "recovered.bin";
    const int code = run_recover(path, recovered);
    EXPECT_EQ(code, rejected ? 2 : whole ? 0 : 1) << err_.str();
    if (!rejected) {
      const ByteVector bytes = file_bytes(recovered);
      EXPECT_EQ(bytes.size(), report.whole_bytes);
      EXPECT_EQ(dial9::check_stream(bytes).grade, dial9::Grade::kOk);
      EXPECT_EQ(dial9::check_stream(bytes).events, report.events);
    }
    EXPECT_EQ(run_convert(path, Target::kAtf, directory_ / "atf"), rejected ? 2
                                                                   : whole  ? 0
                                                                            : 1)
        << err_.str();
    const fs::path golden = folder / "golden" / (name + ".jsonl");
    if (name.starts_with("ok_") && fs::exists(golden)) {
      EXPECT_EQ(run_dump(path, true), 0);
      // A terminal gets escapes of characters that no one sees: the same JSON.
      std::istringstream expected_lines(text_of(file_bytes(golden)));
      std::vector<json> shown, there;
      for (const std::string& line : lines()) shown.push_back(json::parse(line));
      for (std::string line; std::getline(expected_lines, line);)
        there.push_back(json::parse(line));
      EXPECT_EQ(shown, there);
    }
  }
}

TEST_F(Dial9Test, RecoversACutStreamUpToAWholeFrame) {
  const std::string session = make_session(atf::Version::kV2, true);
  ASSERT_EQ(run_convert(session, Target::kDial9, directory_ / "s.bin"), 0);
  const ByteVector whole = file_bytes(directory_ / "s.bin");
  for (const size_t size : {whole.size() - 1, whole.size() / 2, whole.size() / 3, size_t{6}}) {
    SCOPED_TRACE(size);
    const ByteVector cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const std::string path = put("cut.bin", cut);
    EXPECT_EQ(run_verify(path), 1) << "not all of it is there";
    EXPECT_EQ(run_verify(path, false, true), 0) << "cut off is no damage";
    EXPECT_EQ(run_recover(path, directory_ / "recovered.bin"), 1);
    EXPECT_NE(err_.str().find("bytes, from offset"), std::string::npos) << err_.str();
    const ByteVector recovered = file_bytes(directory_ / "recovered.bin");
    EXPECT_LT(recovered.size(), size);
    EXPECT_TRUE(std::equal(recovered.begin(), recovered.end(), whole.begin()));
    EXPECT_EQ(dial9::check_stream(recovered).grade, dial9::Grade::kOk);
    EXPECT_EQ(run_convert(path, Target::kAtf, directory_ / "atf"), 1);
    EXPECT_NE(report_.dump().find("the stream breaks off"), std::string::npos);
    EXPECT_EQ(run_verify(written(), false, true), 0) << out_.str();
  }
}

// Files of every kind of writer and damage: what dial9 has no place for is counted, and the stream
// is a whole one.
TEST_F(Dial9Test, AtfSamples) {
  const auto folders = reference::sample_folders("data/atf");
  size_t seen = 0;
  for (const char* group : {".", "v1", "v2"}) {
    std::vector<fs::path> in_group;
    for (const fs::path& folder : folders) in_group.push_back(folder / group);
    constexpr std::string_view kSuffix = ".expected.json";
    for (const std::string name : reference::files_with(in_group, kSuffix)) {
      const std::string sample = name.substr(0, name.size() - kSuffix.size());
      SCOPED_TRACE(sample);
      const int code = run_convert(sample, Target::kDial9, directory_ / "s.bin");
      if (code == 2) continue;
      ++seen;
      const dial9::Report checked = dial9::check_stream(file_bytes(directory_ / "s.bin"));
      EXPECT_EQ(checked.grade, dial9::Grade::kOk);
      uint64_t calls = 0;
      for (const char* type : {"Call", "Return", "Exception"}) {
        const auto found = checked.events_by_name.find(type);
        if (found != checked.events_by_name.end()) calls += found->second;
      }
      EXPECT_EQ(report_["counts"]["events"], calls);
      const int back =
          run_convert((directory_ / "s.bin").string(), Target::kAtf, directory_ / "atf");
      EXPECT_NE(back, 2) << err_.str();
      if (back != 2) {
        EXPECT_EQ(report_["counts"]["events"], calls);
      }
    }
  }
  EXPECT_GE(seen, 10u);
}

// After any changed byte, a stream of ours becomes a session or ends with a reason.
TEST_F(Dial9Test, EveryFlippedByteOfAHeadIsSurvived) {
  const std::string session = make_session(atf::Version::kV2, true);
  ASSERT_EQ(run_convert(session, Target::kDial9, directory_ / "s.bin"), 0);
  const ByteVector whole = file_bytes(directory_ / "s.bin");
  std::mt19937 random(3);
  size_t failed = 0;
  for (size_t i = 0; i < 100; ++i) {
    ByteVector flipped(whole.begin(), whole.begin() + 6000);
    const size_t at = 5 + random() % (flipped.size() - 5);
    flipped[at] = static_cast<uint8_t>(flipped[at] ^ (1u << random() % 8));
    SCOPED_TRACE(at);
    const int code = run_convert(put("flipped.bin", flipped), Target::kAtf, directory_ / "atf");
    if (code == 2) {
      ++failed;
      EXPECT_NE(err_.str().find("nothing was made"), std::string::npos);
    } else {
      EXPECT_EQ(run_verify(written(), false, true), 0) << out_.str();
    }
  }
  EXPECT_EQ(failed, 0u);
}

// Sub-streams overlap, a poll lost its end, a worker has no start, one event has no worker.
TEST_F(Dial9Test, SortsWorkersAndCountsUnpairedEvents) {
  dial9::Encoder out;
  const auto number = dial9::FieldType::kVarint;
  const auto start = *out.define({0,
                                  "PollStart",
                                  true,
                                  {{"worker_id", number},
                                   {"task_id", number},
                                   {"spawn_loc", dial9::FieldType::kPooledString}}});
  const auto end = *out.define({1, "PollEnd", true, {{"worker_id", number}}});
  const auto park = *out.define({2, "WorkerPark", true, {{"worker_id", number}, {"tid", number}}});
  const auto strange = *out.define({3, "PollEndEvent", true, {{"worker", number}}});
  const auto poll = [&](uint64_t ns, uint64_t task, std::string_view where) {
    out.begin_event(start, ns);
    out.put_varint(3);
    out.put_varint(task);
    out.put_pooled_string(where);
    EXPECT_TRUE(out.end_event());
  };
  const auto put_one = [&](dial9::EventType type, uint64_t ns, std::vector<uint64_t> values) {
    out.begin_event(type, ns);
    for (const uint64_t value : values) out.put_varint(value);
    EXPECT_TRUE(out.end_event());
  };
  poll(5000, 8, "");
  put_one(park, 6000, {3, 777});  // the poll's end is missing
  ASSERT_TRUE(out.begin_stream());
  put_one(end, 900, {3});  // its start is missing
  poll(1000, 7, "src/main.rs:1");
  put_one(end, 2000, {3});
  put_one(strange, 2100, {3});
  const Bytes bytes = out.bytes();
  const std::string path = put("workers.bin", {bytes.begin(), bytes.end()});
  ASSERT_EQ(run_convert(path, Target::kAtf, directory_ / "atf"), 0);
  EXPECT_EQ(
      report_["left_out"],
      (json{{"ends of polls whose start the stream does not have", 1},
            {"ends of polls that the stream does not have: ended where the next one starts", 1},
            {"PollEndEvent: an ATF session has calls and returns of threads", 1}}));
  EXPECT_EQ(run_dump(written(), true), 0);
  std::vector<std::string> seen;
  for (const std::string& line : lines()) {
    const json event = json::parse(line);
    EXPECT_EQ(event["tid"], 777);
    seen.push_back(std::to_string(event["ts_ns"].get<uint64_t>()) + " " +
                   event["kind"].get<std::string>() + " " + event["name"].get<std::string>());
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{"1000 call src/main.rs:1", "2000 return src/main.rs:1",
                                      "5000 call task 8", "6000 return task 8", "6000 call park"}));
}

TEST_F(Dial9Test, CountsASecondSessionInTheStream) {
  const std::string session = make_session(atf::Version::kV2, false);
  ASSERT_EQ(run_convert(session, Target::kDial9, directory_ / "s.bin"), 0);
  ByteVector twice = file_bytes(directory_ / "s.bin");
  const ByteVector once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  ASSERT_EQ(run_convert(put("twice.bin", twice), Target::kAtf, directory_ / "atf"), 0);
  EXPECT_EQ(expect_same_threads(session, written()), 3u);
  uint64_t left_out = 0;
  for (const auto& [what, number] : report_["left_out"].items()) {
    EXPECT_NE(what.find("another session behind the first one"), std::string::npos) << what;
    left_out += number.get<uint64_t>();
  }
  EXPECT_EQ(left_out, dial9::check_stream(once).events);
}

TEST_F(Dial9Test, DumpSelectsByNameTimeAndNumber) {
  const std::string session = make_session(atf::Version::kV2, false);
  const std::string path = (directory_ / "s.bin").string();
  ASSERT_EQ(run_convert(session, Target::kDial9, path), 0);
  DumpOptions by_name;
  by_name.functions = {"Mark*", "Clock?yncEvent"};
  EXPECT_EQ(run_dump(path, false, by_name), 0);
  EXPECT_EQ(lines(), (std::vector<std::string>{
                         "0.000000500  ClockSyncEvent  realtime_ns=1800000000000000000",
                         "0.000000010  Marker  text=\"before everything\"",
                         "0.000002000  Marker  text=\"between \\\"them\\\"\\n\"",
                         "18446744073.709551614  Marker  text=\"behind\""}));
  by_name.when.from = "1500";
  by_name.when.until = "2500";
  EXPECT_EQ(run_dump(path, false, by_name), 0);
  EXPECT_EQ(lines().size(), 1u);
  DumpOptions some;
  some.limit = 7;
  EXPECT_EQ(run_dump(path, false, some), 0);
  EXPECT_EQ(lines().size(), 7u);
  some.limit = 0;
  EXPECT_EQ(run_dump(path, false, some), 0);
  EXPECT_TRUE(out_.str().empty());
  DumpOptions nothing;
  nothing.functions = {"Marker", "Mraker"};
  EXPECT_EQ(run_dump(path, false, nothing), 1);
  EXPECT_EQ(lines().size(), 3u) << "what the other pattern matches is printed";
  EXPECT_NE(err_.str().find("no event type matches \"Mraker\""), std::string::npos) << err_.str();
  DumpOptions markers;
  markers.functions = {"Marker"};
  EXPECT_EQ(run_dump(path, true, markers), 0);
  size_t events = 0;
  for (const std::string& line : lines()) {
    const json frame = json::parse(line);
    EXPECT_NE(frame["k"], "strings");
    events += frame["k"] == "event";
  }
  EXPECT_EQ(events, 3u);
  DumpOptions merged, threads, detail;
  merged.merged = detail.detail = true;
  threads.threads = {"1"};
  for (const DumpOptions& senseless : {merged, threads, detail}) {
    EXPECT_EQ(run_dump(path, false, senseless), 2);
  }
}

}  // namespace
}  // namespace collect::ctl
