// RTC containers on the command line: a session into one and back, and what every command makes of
// containers that are foreign, cut off or damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/recover.h"
#include "daemon/ctl/dump/dump.h"
#include "formats/atf/session_reader.h"
#include "formats/atf/writer.h"
#include "formats/dial9/writer.h"
#include "storage/convert/session_builder.h"
#include "tests/child/child_process.h"
#include "tests/formats/reference_files.h"

namespace collect::ctl {
namespace {

using exports::Target;

namespace fs = std::filesystem;
using nlohmann::json;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void put_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class RtcTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rtc_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Three threads with nested calls, details, losses and a marker.
  std::string make_session(atf::Version version, uint32_t seed) {
    convert::SessionBuilder builder(storage::PosixFs((directory_ / "recorded").string()), version);
    convert::BuiltProcess process;
    process.name = "program";
    process.pid = 4711;
    process.start_ns = 500;
    process.start_unix_ns = 1'800'000'000'000'000'000;
    process.arch = atf::Arch::kX86_64;
    process.os = atf::Os::kLinux;
    process.clock = atf::ClockType::kBoottime;
    EXPECT_TRUE(builder.begin(process).ok());
    std::mt19937 random(seed);
    std::vector<uint64_t> now(3, 1000);
    for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(builder.add_thread(100 + i, "worker", 900).ok());
    std::vector<uint8_t> payload(atf::kFunctionPayloadBytes + 8);
    const std::vector<uint8_t> stack(8, 7);
    for (int i = 0; i < 20'000; ++i) {
      const auto thread = static_cast<uint32_t>(random() % 3);
      now[thread] += random() % 50;
      const bool call = random() % 2 == 0;
      const uint64_t function = builder.function_of("f" + std::to_string(random() % 40));
      Bytes detail;
      if (i > 5000 && i < 9000) {
        atf::FunctionPayload content{};
        content.function_id = function;
        const size_t size = atf::encode_function_payload(content, stack, payload);
        detail = Bytes(payload).first(size);
      }
      if (i == 12'000) builder.lost(thread, Lane::kIndex, 5, 1, now[thread], now[thread]);
      if (i == 6'000) builder.lost(thread, Lane::kDetail, 3, 1, now[thread], now[thread]);
      const Status put =
          builder.event(thread, now[thread], function,
                        call ? atf::EventKind::kCall : atf::EventKind::kReturn, detail);
      EXPECT_TRUE(put.ok()) << to_string(put.error());
    }
    EXPECT_TRUE(builder.marker(3000, "here").ok());
    auto made = builder.finish(storage::SessionState::kComplete, "exit");
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  }

  int run_convert(const std::vector<std::string>& inputs, Target to, const fs::path& output,
                  ConvertOptions options = {}) {
    options.inputs = inputs;
    options.to = to;
    options.output = output.string();
    options.json = true;
    out_.str("");
    err_.str("");
    const int code = convert(options, out_, err_);
    // As words, too: an error is where the report would.
    if (out_.str().find("\"error\":{") != std::string::npos) {
      options.json = false;
      out_.str("");
      err_.str("");
      EXPECT_EQ(convert(options, out_, err_), code);
    }
    return code;
  }
  // The first path of the report.
  std::string written() { return json::parse(out_.str())["written"][0]["path"]; }
  int run_verify(const std::string& path, bool allow_incomplete = false) {
    out_.str("");
    err_.str("");
    return verify({.path = path, .allow_incomplete = allow_incomplete}, out_, err_);
  }

  static void expect_same_threads(const std::string& a, const std::string& b) {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(a)) {
      if (entry.path().extension() != ".atf") continue;
      ++files;
      const fs::path twin = fs::path(b) / fs::relative(entry.path(), a);
      EXPECT_EQ(bytes_of(entry.path()), bytes_of(twin)) << twin;
    }
    EXPECT_EQ(files, 6u);
  }

  fs::path directory_;
  std::ostringstream out_, err_;
};

TEST_F(RtcTest, SessionComesBackByteForByte) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    const std::string session = make_session(version, 3);
    EXPECT_EQ(run_verify(session), 0) << out_.str();
    const std::string container = (directory_ / "one.rtc").string();
    ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
    EXPECT_EQ(run_verify(container), 0) << out_.str();
    ASSERT_EQ(run_convert({container}, Target::kAtf, directory_ / "back"), 0) << err_.str();
    const std::string back = written();
    expect_same_threads(session, back);
    const json was = json::parse(bytes_of(session + "/manifest.json"));
    const json is = json::parse(bytes_of(back + "/manifest.json"));
    for (const char* key : {"gaps", "symbols", "markers", "totals", "state", "process"}) {
      EXPECT_EQ(was[key], is[key]) << key;
    }
    fs::remove_all(directory_ / "recorded");
    fs::remove_all(directory_ / "back");
    fs::remove(container);
  }
}

TEST_F(RtcTest, DoesNotOverwriteExistingOutput) {
  const std::string session = make_session(atf::Version::kV2, 1);
  const fs::path container = directory_ / "one.rtc";
  put_bytes(container, "mine");
  EXPECT_EQ(run_convert({session}, Target::kRtc, container), 2);
  EXPECT_NE(err_.str().find("--force"), std::string::npos);
  EXPECT_EQ(bytes_of(container), "mine");
  EXPECT_EQ(run_convert({(directory_ / "missing").string()}, Target::kRtc, directory_ / "y"), 2);
  EXPECT_FALSE(fs::exists(directory_ / "y"));
}

TEST_F(RtcTest, DamagedContainerIsRecoveredAsFarAsItHolds) {
  const std::string session = make_session(atf::Version::kV2, 5);
  const fs::path container = directory_ / "one.rtc";
  ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
  std::string bytes = bytes_of(container);
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 40; ++i) bytes[i] ^= 0x33;
  const fs::path damaged = directory_ / "damaged.rtc";
  put_bytes(damaged, bytes);
  EXPECT_EQ(run_verify(damaged.string()), 1);

  RecoverOptions options;
  options.path = damaged.string();
  EXPECT_EQ(recover(options, out_, err_), 2) << "a file needs an output";
  options.output = (directory_ / "whole.rtc").string();
  EXPECT_EQ(recover(options, out_, err_), 1) << err_.str();
  EXPECT_EQ(run_verify(options.output), 0) << out_.str();

  // The whole one still rebuilds the session, with what is missing counted.
  const int code = run_convert({options.output}, Target::kAtf, directory_ / "rebuilt");
  EXPECT_LE(code, 1) << err_.str();
  const std::string rebuilt = written();
  EXPECT_EQ(run_verify(rebuilt), 1) << "it is recovered";
  EXPECT_EQ(run_verify(rebuilt, true), 0) << out_.str();
  const json manifest = json::parse(bytes_of(rebuilt + "/manifest.json"));
  const uint64_t lost = manifest["totals"]["lost_events"];
  const uint64_t events = manifest["totals"]["events"];
  EXPECT_EQ(events + lost, 20'005u);
}

TEST_F(RtcTest, CountsACutInTheNewManifest) {
  const std::string session = make_session(atf::Version::kV2, 5);
  const fs::path container = directory_ / "one.rtc";
  ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
  const std::string bytes = bytes_of(container);
  const fs::path cut = directory_ / "cut.rtc";
  put_bytes(cut, bytes.substr(0, bytes.size() * 2 / 3));
  ASSERT_EQ(run_convert({cut.string()}, Target::kAtf, directory_ / "back"), 1);
  EXPECT_NE(err_.str().find("collectctl: missing from the input: "), std::string::npos)
      << err_.str();
  const json report = json::parse(out_.str());
  const json manifest = json::parse(bytes_of(written() + "/manifest.json"));
  EXPECT_EQ(manifest["state"], "recovered");
  EXPECT_EQ(manifest["input_missing"], report["missing"]);
  const uint64_t events = manifest["totals"]["events"];
  EXPECT_LT(events, 20'000u);
  EXPECT_EQ(report["missing"][0]["what"], "events that were stored and are not in the containers");
  EXPECT_EQ(report["missing"][0]["count"], 20'000 - events);
  // It remains in the result, in any format.
  const std::string back = written();
  ASSERT_EQ(run_convert({back}, Target::kRtc, directory_ / "again.rtc"), 1) << err_.str();
  ASSERT_EQ(run_convert({(directory_ / "again.rtc").string()}, Target::kAtf, directory_ / "b"), 1);
  EXPECT_THAT(err_.str(), ::testing::HasSubstr("the session in it is not complete: "));
  json missing = json::parse(bytes_of(written() + "/manifest.json"))["input_missing"];
  ASSERT_EQ(missing.size(), manifest["input_missing"].size() + 1);
  EXPECT_THAT(missing.back()["what"].get<std::string>(),
              ::testing::StartsWith("the session is not complete: "));
  missing.erase(missing.size() - 1);
  EXPECT_EQ(missing, manifest["input_missing"]);
  // Straight into another format: said and counted in the report.
  for (const Target to : {Target::kWtf, Target::kDial9}) {
    EXPECT_EQ(run_convert({cut.string()}, to, directory_ / ("x" + std::to_string(int(to)))), 1);
    EXPECT_EQ(json::parse(out_.str())["missing"], report["missing"]);
  }
}

TEST_F(RtcTest, CountsTheMissingThreadsOfASession) {
  const std::string session = make_session(atf::Version::kV2, 5);
  const uint64_t events = json::parse(bytes_of(session + "/manifest.json"))["threads"][1]["events"];
  fs::remove_all(session + "/thread_1");
  for (const Target to : {Target::kRtc, Target::kWtf, Target::kDial9}) {
    const fs::path output = directory_ / ("x" + std::to_string(int(to)));
    EXPECT_EQ(run_convert({session}, to, output), 1);
    const json missing = json::parse(out_.str())["missing"];
    ASSERT_EQ(missing.size(), 3u) << missing;
    EXPECT_EQ(missing[0]["count"], 1) << missing;
    EXPECT_EQ(missing[1]["count"], events) << missing;
  }
  const fs::path container = directory_ / ("x" + std::to_string(int(Target::kRtc)));
  ASSERT_EQ(run_convert({container.string()}, Target::kAtf, directory_ / "b"), 1) << err_.str();
  const json manifest = json::parse(bytes_of(written() + "/manifest.json"));
  EXPECT_EQ(manifest["state"], "recovered");
  EXPECT_EQ(manifest["input_missing"][1]["count"], events);
}

TEST_F(RtcTest, ReportsLeftOutPartsWithoutFailing) {
  const std::string session = make_session(atf::Version::kV2, 5);
  const fs::path output = directory_ / "x.wtf-trace";
  EXPECT_EQ(run_convert({session}, Target::kWtf, output), 0);
  const std::string said = err_.str();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_TRUE(said.starts_with("collectctl: left out, wtf has no place for it: ")) << said;
  EXPECT_NE(said.find("detail records"), std::string::npos) << said;
  ConvertOptions strictly;
  strictly.strict = true;
  strictly.force = true;
  EXPECT_EQ(run_convert({session}, Target::kWtf, output, strictly), 1);
  EXPECT_EQ(run_convert({session}, Target::kRtc, directory_ / "x.rtc", strictly), 0) << err_.str();
}

// What `dump` shows of each stream that is no clock: without the place in the file, and without the
// remark that a first object may be only an end.
std::map<std::string, std::vector<json>> dumped(const std::string& path) {
  std::ostringstream out, err;
  DumpOptions options;
  options.paths = {path};
  options.json = true;
  EXPECT_LE(dump(options, out, err), 1) << err.str();
  std::map<std::string, std::vector<json>> streams;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    json object = json::parse(line);
    object.erase("offset");
    object.erase("possibly_incomplete");
    const std::string stream = object["stream"];
    const bool is_clock = stream == "clock" || stream == "clk" || stream.starts_with("clk ");
    if (!is_clock) streams[stream].push_back(std::move(object));
  }
  return streams;
}

// The first exit code of an independent checker that is not 0, or 0.
int checked_by_others(const std::string& session) {
  for (const fs::path& tool : reference::independent_programs("check_atf.py", "atf_check.py")) {
    const child::Ending ending =
        child::run_shell("python3 -B '" + tool.string() + "' '" + session + "'");
    if (!ending.exited_with(0)) return ending.exit_code;
  }
  return 0;
}

// Every event and every record, each with its link, as an ATF reader has it.
void expect_same_records(const std::string& session, const std::string& converted,
                         uint8_t version_of_converted) {
  const auto was = read::open_trace(session), is = read::open_trace(converted);
  ASSERT_TRUE(was.ok() && is.ok());
  const atf::SessionReader before(was->files()), after(is->files());
  ASSERT_EQ(before.threads().size(), after.threads().size());
  for (size_t t = 0; t < before.threads().size(); ++t) {
    const auto& a = before.threads()[t];
    const auto& b = after.threads()[t];
    ASSERT_EQ(a.index->size(), b.index->size());
    ASSERT_EQ(a.detail->size(), b.detail->size());
    EXPECT_EQ(a.index->header().thread_id, b.index->header().thread_id);
    for (uint64_t i = 0; i < a.index->size(); ++i) {
      const atf::IndexEvent x = a.index->event(i), y = b.index->event(i);
      ASSERT_EQ(x.timestamp_ns, y.timestamp_ns);
      ASSERT_EQ(x.function_id, y.function_id);
      ASSERT_EQ(x.kind, y.kind);
      ASSERT_EQ(x.detail_seq, y.detail_seq);
      if (version_of_converted == 1) {
        ASSERT_EQ(y.thread_id, b.index->header().thread_id);
      }
    }
    auto x = a.detail->records(), y = b.detail->records();
    while (const auto one = x.next()) {
      const auto two = y.next();
      ASSERT_TRUE(two);
      ASSERT_EQ(one->index_seq, two->index_seq);
      ASSERT_EQ(one->timestamp_ns, two->timestamp_ns);
      ASSERT_EQ(one->flags, two->flags);
      ASSERT_EQ(one->type, two->type);
      ASSERT_TRUE(std::ranges::equal(one->payload, two->payload));
    }
  }
}

TEST_F(RtcTest, SessionIsUnchangedAfterOtherVersionAndBack) {
  for (const bool by_container : {false, true}) {
    for (const uint8_t version : {uint8_t{1}, uint8_t{2}}) {
      SCOPED_TRACE(std::to_string(version) + (by_container ? " by a container" : ""));
      const auto other = static_cast<uint8_t>(3 - version);
      const std::string session = make_session(static_cast<atf::Version>(version), 3);
      const auto input = [&](const std::string& from) {
        if (!by_container) return from;
        const std::string container = (directory_ / "one.rtc").string();
        fs::remove(container);
        EXPECT_EQ(run_convert({from}, Target::kRtc, container), 0) << err_.str();
        return container;
      };
      ConvertOptions options;
      options.atf_version = other;
      options.strict = true;
      ASSERT_EQ(run_convert({input(session)}, Target::kAtf, directory_ / "other", options), 0)
          << err_.str();
      const json left_out = json::parse(out_.str())["left_out"];
      EXPECT_TRUE(left_out.empty()) << left_out;
      const std::string converted = written();
      EXPECT_EQ(checked_by_others(converted), 0);
      EXPECT_EQ(run_verify(converted), 0) << out_.str();
      EXPECT_EQ(bytes_of(converted + "/thread_0/index.atf")[5], other);
      EXPECT_EQ(bytes_of(converted + "/thread_0/detail.atf")[5], other);
      ASSERT_NO_FATAL_FAILURE(expect_same_records(session, converted, other));
      options.atf_version = version;
      ASSERT_EQ(run_convert({input(converted)}, Target::kAtf, directory_ / "back", options), 0)
          << err_.str();
      const std::string back = written();
      expect_same_threads(session, back);
      for (const char* key : {"gaps", "symbols", "markers", "totals", "state", "process"}) {
        EXPECT_EQ(json::parse(bytes_of(session + "/manifest.json"))[key],
                  json::parse(bytes_of(back + "/manifest.json"))[key])
            << key;
      }
      for (const char* name : {"recorded", "other", "back"}) fs::remove_all(directory_ / name);
    }
  }
}

TEST_F(RtcTest, WithoutAVersionTheNewSessionHasTheInputs) {
  const std::string session = make_session(atf::Version::kV1, 3);
  const std::string container = (directory_ / "one.rtc").string();
  ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
  for (const std::string& input : {session, container}) {
    ASSERT_EQ(run_convert({input}, Target::kAtf, directory_ / "made"), 0) << err_.str();
    EXPECT_EQ(bytes_of(written() + "/thread_0/index.atf")[5], 1) << input;
    expect_same_threads(session, written());
  }
}

TEST_F(RtcTest, StreamOfAnotherFormatGoesAlong) {
  storage::PosixFs files((directory_ / "streamed").string());
  storage::SessionOptions options;
  options.root = (directory_ / "streamed").string();
  options.symbolize = false;
  auto writer = storage::Session::create(files, options, {});
  ASSERT_TRUE(writer.ok()) << to_string(writer.error());
  dial9::Encoder frames;
  const auto type = *frames.define({0, "Tick", true, {}});
  for (uint64_t i = 0; i < 500; ++i) {
    frames.begin_event(type, i);
    ASSERT_TRUE(frames.end_event());
  }
  const Bytes stream = frames.bytes();
  ASSERT_TRUE((*writer)->append_passthrough(storage::PassthroughKind::kDial9, {&stream, 1}).ok());
  ASSERT_TRUE((*writer)->end_passthrough(storage::PassthroughKind::kDial9, 0, "").ok());
  ASSERT_TRUE((*writer)->seal(storage::SessionState::kComplete, "exit").ok());
  const std::string session = (*writer)->directory();
  const std::string container = (directory_ / "one.rtc").string();
  ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
  // A manifest counts what is before it.
  const std::vector<json> manifests = dumped(container)["manifest"];
  ASSERT_EQ(manifests.size(), 2u);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const auto manifest = storage::manifest_from_json(manifests[i]["text"].get<std::string>());
    ASSERT_TRUE(manifest.ok());
    EXPECT_EQ(manifest->passthrough_streams.size(), i);
  }
  for (const std::string& input : {session, container}) {
    ASSERT_EQ(run_convert({input}, Target::kAtf, directory_ / "made"), 0) << err_.str();
    EXPECT_EQ(bytes_of(written() + "/stream.dial9"), std::string(stream.begin(), stream.end()));
  }
}

TEST_F(RtcTest, CopiesASessionOfTheSameVersionByFile) {
  const std::string session = make_session(atf::Version::kV2, 3);
  put_bytes(session + "/capture-000001.rtc", "a container");
  put_bytes(session + "/notes.txt", "of a user");
  put_bytes(session + "/resume.key", "secret");
  for (const std::optional<uint8_t> version :
       {std::optional<uint8_t>(), std::optional<uint8_t>(2)}) {
    ConvertOptions options;
    options.atf_version = version;
    ASSERT_EQ(run_convert({session}, Target::kAtf, directory_ / "copies", options), 0)
        << err_.str();
    const std::string copy = written();
    EXPECT_EQ(json::parse(out_.str())["counts"]["events"], 20'000);
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(session)) {
      if (!entry.is_regular_file() || entry.path().filename() == "resume.key") continue;
      ++files;
      EXPECT_EQ(bytes_of(entry.path()), bytes_of(copy / fs::relative(entry.path(), session)));
    }
    EXPECT_GE(files, 9u);
    EXPECT_FALSE(fs::exists(copy + "/resume.key"));
    EXPECT_EQ(checked_by_others(copy), 0);
  }
  // One beside the other.
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "copies"), {}), 2);
}

TEST_F(RtcTest, CopyWithoutAThreadRecordsItInItsManifest) {
  const std::string session = make_session(atf::Version::kV2, 3);
  fs::remove_all(session + "/thread_1");
  fs::create_symlink("/etc/hostname", session + "/link");
  ASSERT_EQ(run_convert({session}, Target::kAtf, directory_ / "copy"), 1);
  const json report = json::parse(out_.str());
  const std::string copy = report["written"][0]["path"];
  const json manifest = json::parse(bytes_of(copy + "/manifest.json"));
  EXPECT_EQ(manifest["state"], "recovered");
  EXPECT_EQ(manifest["input_missing"], report["missing"]);
  EXPECT_EQ(manifest["input_missing"].size(), 4u) << manifest["input_missing"];
  EXPECT_FALSE(fs::exists(fs::symlink_status(copy + "/link")));
  // A part of a session is no session.
  EXPECT_EQ(run_convert({session + "/thread_0"}, Target::kAtf, directory_ / "part"), 2);
}

TEST_F(RtcTest, ContainerIntoAContainerKeepsEveryObject) {
  const std::string session = make_session(atf::Version::kV2, 3);
  const std::string container = (directory_ / "one.rtc").string();
  ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
  const std::string copy = (directory_ / "copy.rtc").string();
  ASSERT_EQ(run_convert({container}, Target::kRtc, copy), 0) << err_.str();
  EXPECT_EQ(dumped(container), dumped(copy));
  EXPECT_EQ(run_verify(copy), 0) << out_.str();
  // Several become one, whose objects are those of the first and then those of the second.
  const std::string both = (directory_ / "both.rtc").string();
  ASSERT_EQ(run_convert({container, copy}, Target::kRtc, both), 0) << err_.str();
  auto twice = dumped(container);
  for (auto& [stream, objects] : twice) {
    const auto once = objects;
    objects.insert(objects.end(), once.begin(), once.end());
  }
  EXPECT_EQ(dumped(both), twice);
  EXPECT_EQ(run_verify(both), 0) << out_.str();
  // One that is cut: what is there is kept, what is missing is said.
  const std::string bytes = bytes_of(container);
  put_bytes(container, bytes.substr(0, bytes.size() / 2));
  const std::string cut = (directory_ / "cut.rtc").string();
  EXPECT_EQ(run_convert({container}, Target::kRtc, cut), 1);
  EXPECT_EQ(dumped(container), dumped(cut));
}

TEST_F(RtcTest, DumpShowsStreamsInOrder) {
  const std::string session = make_session(atf::Version::kV2, 2);
  const fs::path container = directory_ / "one.rtc";
  ASSERT_EQ(run_convert({session}, Target::kRtc, container), 0) << err_.str();
  out_.str("");
  DumpOptions options;
  options.paths = {container.string()};
  options.json = true;
  EXPECT_EQ(dump(options, out_, err_), 0) << err_.str();
  std::istringstream lines(out_.str());
  std::map<std::string, int> objects;
  for (std::string line; std::getline(lines, line);) ++objects[json::parse(line)["stream"]];
  EXPECT_EQ(objects["manifest"], 2);
  EXPECT_GT(objects["index pages"], 8);
  EXPECT_GT(objects["detail pages"], 2);
  EXPECT_GT(objects["clock"], 2);
  options.threads = {"1"};
  EXPECT_EQ(dump(options, out_, err_), 2) << "a container has no threads";
}

TEST_F(RtcTest, RecoverKeepsAllThatDumpShowsWithoutAHead) {
  const std::string container = (directory_ / "session.rtc").string();
  ASSERT_EQ(run_convert({make_session(atf::Version::kV2, 3)}, Target::kRtc, container), 0);
  // Of these a cut may leave no Marker.
  std::vector<fs::path> of_few_units = {container};
  for (const char* name : {"mk_ieee_fixed.rtc", "mk_bigmeta.rtc", "mk_big_endian.rtc"}) {
    of_few_units.push_back(reference::golden_folder() / "data/rtc" / name);
  }
  std::vector<fs::path> files = of_few_units;
  const fs::path pack = reference::reference_folder();
  if (!pack.empty()) {
    for (const char* name : {"up_small_late.rtc", "up_16k_late.rtc", "mk_ieee_fixed.rtc"}) {
      files.push_back(pack / "data/rtc" / name);
    }
  }
  for (const std::string path : files) {
    const std::string bytes = bytes_of(path);
    for (const size_t part : {1, 2, 3, 4, 5, 6}) {
      const std::string cut = (directory_ / "cut.rtc").string();
      put_bytes(cut, bytes.substr(bytes.size() * part / 7));
      RecoverOptions options;
      options.path = cut;
      options.output = (directory_ / "whole.rtc").string();
      options.force = true;
      if (recover(options, out_, err_) == 2) {
        EXPECT_NE(std::find(of_few_units.begin(), of_few_units.end(), path), of_few_units.end())
            << path << ": no Marker behind the cut: " << err_.str();
        continue;
      }
      EXPECT_EQ(dumped(cut), dumped(options.output)) << path << " from part " << part;
      EXPECT_EQ(run_verify(options.output), 0) << out_.str();
    }
  }
}

TEST_F(RtcTest, EverySampleIsReadByEveryCommand) {
  const auto folders = reference::sample_folders("data/rtc");
  const auto samples = reference::files_with(folders, ".rtc");
  EXPECT_GE(samples.size(), folders.size() == 1 ? 13u : 13u + 19u);
  for (const std::string path : samples) {
    out_.str("");
    EXPECT_EQ(inspect({.path = path, .json = true}, out_, err_), 0) << path;
    const json shown = json::parse(out_.str());
    EXPECT_EQ(shown["format"], "rtc");
    const bool is_whole = shown["errors"] == 0 && shown["result"] == "ok";
    EXPECT_EQ(run_verify(path) == 0, is_whole) << path << out_.str();
    EXPECT_EQ(run_verify(path, true) == 0, shown["errors"] == 0) << path << out_.str();
    RecoverOptions options;
    options.path = path;
    options.output = (directory_ / "whole.rtc").string();
    options.force = true;
    EXPECT_LE(recover(options, out_, err_), 1) << path << err_.str();
    EXPECT_EQ(run_verify(options.output), 0) << path << out_.str();
    // No session of ours: said, and nothing made.
    EXPECT_EQ(run_convert({path}, Target::kAtf, directory_ / "none"), 2) << path;
  }
}

}  // namespace
}  // namespace collect::ctl
