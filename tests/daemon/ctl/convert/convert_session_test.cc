// Sessions as the input of a conversion: what a copy has, what is said of damaged ones, and the
// order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/ctl/dump/dump.h"
#include "formats/dial9/check.h"
#include "formats/dial9/writer.h"
#include "storage/convert/whole_session.h"
#include "tests/daemon/ctl/convert/convert_fixture.h"
#include "tests/daemon/ctl/words/inputs.h"

namespace collect::ctl {
namespace {

using exports::Target;
using nlohmann::json;
using testing::change_manifest;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::index_of;
using testing::kCall;
using testing::kReturn;
using testing::Left;
using testing::Octets;
using testing::small_session;
using ::testing::StartsWith;
using testing::Step;
namespace fs = std::filesystem;

constexpr char kEventsGone[] = "events that the manifest counts and the files do not have";
constexpr char kRecordsGone[] = "detail records that the manifest counts and the files do not have";

class SessionInputs : public testing::ConvertTest {
 protected:
  fs::path small() { return small_session(root_ / "s", atf::Version::kV2); }
  // One call each.
  std::string short_session(const fs::path& root, const std::string& name) {
    convert::SessionBuilder builder(storage::PosixFs(root.string()), atf::Version::kV2);
    convert::BuiltProcess process;
    process.name = name;
    process.pid = 42;
    process.start_unix_ns = 1'700'000'000'000'000'000;
    EXPECT_TRUE(builder.begin(process).ok());
    EXPECT_TRUE(builder.add_thread(1, "main", 0).ok());
    EXPECT_TRUE(builder.event(0, 1000, builder.function_of("f"), kCall).ok());
    const auto made = builder.finish(true, "exit");
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  }
  // Lines of `dump` with these events of a dial9 stream.
  std::vector<std::string> dumped(const std::string& path, std::vector<std::string> names) {
    DumpOptions options;
    options.paths = {path};
    options.functions = std::move(names);
    std::ostringstream out, err;
    EXPECT_EQ(dump(options, out, err), 0) << err.str();
    std::vector<std::string> lines;
    std::istringstream in(out.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  std::vector<std::string> missing() const {
    std::vector<std::string> what;
    for (const json& one : report_["missing"]) what.push_back(one["what"]);
    return what;
  }
};

// ---- copies

TEST_F(SessionInputs, CopyLeavesOutFilesOfARunningRecording) {
  const fs::path session = small();
  for (const char* name :
       {"resume.key", "reserve.space", "manifest.json.new", "thread_0/detail.atf.new"}) {
    write_text(session / name, "of the recording");
  }
  write_text(session / "other.atf", "of a user");
  write_text(session / "large", std::string((size_t{2} << 20) + 1, 'l'));
  write_text(session / "empty", "");
  fs::path deep = session;
  for (const char* name : {"1", "2", "3", "4", "5", "6"}) {
    deep /= name;
    fs::create_directory(deep);
    write_text(deep / "file", name);
  }
  ASSERT_EQ(::mkfifo((session / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(run(session.string(), Target::kAtf, at("copy")), 1) << err_.str();
  const fs::path copy = written();
  for (const char* name : {"resume.key", "reserve.space", "manifest.json.new",
                           "thread_0/detail.atf.new", "1/2/3/4/5/6", "pipe"}) {
    EXPECT_FALSE(fs::exists(fs::symlink_status(copy / name))) << name;
  }
  for (const char* name : {"other.atf", "large", "empty", "1/file", "1/2/3/4/5/file",
                           "thread_0/index.atf", "thread_0/detail.atf", "thread_2/index.atf"}) {
    EXPECT_TRUE(fs::exists(copy / name)) << name;
    EXPECT_TRUE(text_of(copy / name) == text_of(session / name)) << name;
  }
  const std::string why = ": neither a file nor a directory; not copied";
  EXPECT_THAT(missing(), ::testing::UnorderedElementsAre((session / "1/2/3/4/5/6").string() + why,
                                                         session.string() + "/pipe" + why));
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  EXPECT_EQ(report_["written"][0]["bytes"], bytes);
}

// The list in a manifest has room for a hundred kinds.
TEST_F(SessionInputs, CopyAddsMissingPartsUpToTheLimit) {
  for (const size_t known : {size_t{0}, size_t{96}, size_t{98}}) {
    SCOPED_TRACE(known);
    const fs::path session = small();
    change_manifest(session, [&](storage::Manifest& manifest) {
      manifest.state = storage::SessionState::kFailed;
      manifest.threads[1].detail_records = 2;
      for (size_t i = 0; i < known; ++i) {
        manifest.input_missing.push_back({"known " + std::to_string(i), i});
      }
    });
    fs::remove_all(session / "thread_1");
    EXPECT_EQ(run(session.string(), Target::kAtf, at("copy")), 1);
    ASSERT_EQ(missing().size(), 4u) << report_;
    EXPECT_EQ(
        report_["missing"][0],
        (json{{"what", "threads that the manifest names and that are not there"}, {"count", 1}}));
    EXPECT_EQ(report_["missing"][1], (json{{"what", kEventsGone}, {"count", 6}}));
    EXPECT_EQ(report_["missing"][2], (json{{"what", kRecordsGone}, {"count", 2}}));
    EXPECT_THAT(missing()[3], StartsWith("the session is not complete: "));
    const json manifest = json::parse(text_of(fs::path(written()) / "manifest.json"));
    EXPECT_EQ(manifest["state"], "failed");
    const size_t room = std::min(size_t{4}, 100 - known);
    ASSERT_EQ(manifest["input_missing"].size(), known + room);
    for (size_t i = 0; i < room; ++i) {
      EXPECT_EQ(manifest["input_missing"][known + i], report_["missing"][i]);
    }
    EXPECT_EQ(manifest.contains("input_missing_left_out"), room < 4);
    if (room < 4) {
      EXPECT_EQ(manifest["input_missing_left_out"], 4 - room);
    }
    fs::remove_all(root_ / "s");
  }
}

TEST_F(SessionInputs, ReportsAndCopiesAnUnreadableManifest) {
  for (const char* text : {"[]", "{\"", "{\"threads\": 5}"}) {
    SCOPED_TRACE(text);
    const fs::path session = small();
    write_text(session / "manifest.json", text);
    EXPECT_EQ(run(session.string(), Target::kAtf, at("copy")), 1);
    ASSERT_EQ(missing().size(), 1u) << report_;
    EXPECT_THAT(missing()[0], StartsWith((session / "manifest.json").string() + ": "));
    const std::string copied = text_of(fs::path(written()) / "manifest.json");
    if (json::accept(text) && json::parse(text).is_object()) {
      EXPECT_EQ(json::parse(copied)["input_missing"], report_["missing"]);
      EXPECT_FALSE(json::parse(copied).contains("state"));
    } else {
      EXPECT_EQ(copied, text);
    }
    fs::remove_all(root_ / "s");
  }
}

TEST_F(SessionInputs, PartOfASessionIsNoSession) {
  const fs::path session = small();
  for (const char* part : {"thread_0", "thread_0/index.atf"}) {
    EXPECT_EQ(run((session / part).string(), Target::kAtf, at("copy")), 2);
    EXPECT_EQ(err_.str(), "collectctl: " + (session / part).string() +
                              ": a part of a session; name the session's directory; nothing was "
                              "made\n");
    EXPECT_FALSE(fs::exists(at("copy")));
    // Into another format it goes, and what else its session has is not missing.
    EXPECT_EQ(run((session / part).string(), Target::kDial9, at("x.bin")), 0) << err_.str();
    EXPECT_EQ(report_["counts"]["events"], 8);
    EXPECT_EQ(run((session / part).string(), Target::kRtc, at("x.rtc")), 0) << err_.str();
    EXPECT_EQ(report_["counts"]["events"], 8);
  }
}

// ---- a session in the making

TEST_F(SessionInputs, MakesASessionAsideForItsOwnerAlone) {
  const std::string root = at("new/root");
  std::string below;
  const auto made =
      convert::make_whole_session(root, [&](const std::string& path) -> Result<std::string> {
        below = path;
        struct stat there{};
        EXPECT_EQ(::stat(path.c_str(), &there), 0);
        EXPECT_EQ(there.st_mode & 0777, mode_t{0700});
        fs::create_directories(path + "/session_X/pid_1");
        return path + "/session_X/./pid_1";
      });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, root + "/session_X/pid_1");
  EXPECT_THAT(below, StartsWith(root + "/converting-"));
  EXPECT_FALSE(fs::exists(below));
  // Nothing is left of what failed, and not the root that was made for it.
  const auto fails = [](const std::string& path) -> Result<std::string> {
    fs::create_directories(path + "/half");
    return Error{Code::kDamaged, "half"};
  };
  EXPECT_EQ(convert::make_whole_session(at("other"), fails).code(), Code::kDamaged);
  EXPECT_FALSE(fs::exists(at("other")));
  EXPECT_EQ(convert::make_whole_session(root, fails).code(), Code::kDamaged);
  EXPECT_THAT(std::distance(fs::directory_iterator(root), {}), 1);
  // What cannot be moved is said at once, and not that every name is taken.
  const auto elsewhere = [](const std::string& path) -> Result<std::string> {
    return path + "/nowhere/pid_1";
  };
  EXPECT_EQ(convert::make_whole_session(root, elsewhere).code(), Code::kNotFound);
  write_text(at("file"), "x");
  EXPECT_FALSE(convert::make_whole_session(at("file/root"), fails).ok());
  EXPECT_FALSE(convert::make_whole_session(at("file"), fails).ok());
}

// ---- what is said of the input

TEST_F(SessionInputs, SessionThatWasChosenIsSaid) {
  const std::string only = short_session(root_ / "s", "one");
  fs::remove_all(session_.parent_path());
  EXPECT_EQ(run(at("s"), Target::kRtc, at("x.rtc")), 0);
  EXPECT_EQ(err_.str(), "collectctl: " + only + " is the only session in " + at("s") + "\n");
  EXPECT_EQ(run(only, Target::kRtc, at("x.rtc")), 0);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(SessionInputs, ReportsAChecksumMismatchOfEachFile) {
  const fs::path session = small();
  for (const char* name : {"thread_0/index.atf", "thread_1/detail.atf"}) {
    std::string bytes = text_of(session / name);
    bytes[bytes.size() - 64 - 9] ^= 0x40;  // the last bytes in front of the footer
    write_text(session / name, bytes);
  }
  EXPECT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 1);
  EXPECT_THAT(missing(),
              ElementsAre("thread_0: the checksum of the events does not fit them",
                          "thread_1: the checksum of the detail records does not fit them"));
}

TEST_F(SessionInputs, ReportsCountedEventsThatAreMissing) {
  const fs::path session = small();
  change_manifest(session, [](storage::Manifest& manifest) {
    manifest.threads[0].events = 10;
    manifest.threads[0].detail_records = 4;
    manifest.threads[1].events = 7;
    manifest.threads[2].detail_records = 5;
    manifest.threads[2].events = 0;
  });
  EXPECT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 1);
  EXPECT_EQ(report_["missing"],
            (json{{{"what", kEventsGone}, {"count", 3}}, {{"what", kRecordsGone}, {"count", 6}}}));
}

TEST_F(SessionInputs, ThreadsThatCannotBeReadAreCounted) {
  const fs::path session = small();
  write_text(session / "thread_0/index.atf", std::string(200, 'x'));
  write_text(session / "thread_2/index.atf", std::string(200, 'x'));
  EXPECT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 1);
  EXPECT_EQ(report_["counts"]["events"], 6);
  const std::vector<std::string> said = missing();
  ASSERT_EQ(said.size(), 5u) << report_;
  EXPECT_THAT(said[0], StartsWith("thread_0: "));
  EXPECT_EQ(said[1], "threads that cannot be read");
  EXPECT_EQ(report_["missing"][1]["count"], 2);
  EXPECT_THAT(said[2], StartsWith("thread_2: "));
  EXPECT_EQ(report_["missing"][3], (json{{"what", kEventsGone}, {"count", 8}}));
  EXPECT_EQ(report_["missing"][4]["count"], 3);
  // None at all: nothing is made.
  write_text(session / "thread_1/index.atf", std::string(200, 'x'));
  for (const Target target : {Target::kRtc, Target::kDial9, Target::kWtf}) {
    EXPECT_EQ(run(session.string(), target, at("none")), 2);
    EXPECT_THAT(err_.str(), HasSubstr(session.string() + ": no thread of it can be read"));
    EXPECT_FALSE(fs::exists(at("none")));
  }
}

TEST_F(SessionInputs, SessionWithoutThreadsHasNoEvents) {
  const fs::path session = small();
  change_manifest(session, [](storage::Manifest& manifest) {
    manifest.threads.clear();
    manifest.gaps.clear();
  });
  for (const char* name : {"thread_0", "thread_1", "thread_2"}) fs::remove_all(session / name);
  for (const Target target : {Target::kRtc, Target::kDial9, Target::kWtf}) {
    EXPECT_EQ(run(session.string(), target, at("x")), 0) << err_.str();
    EXPECT_EQ(report_["counts"]["events"], 0);
    const Left left_out = report_["left_out"];
    EXPECT_EQ(left_out.contains("markers: there is no thread to put them in"),
              target == Target::kWtf);
  }
  EXPECT_EQ(report_["left_out"]["markers: there is no thread to put them in"], 2);
}

TEST_F(SessionInputs, ContainerOfAnUnsealedSessionIsRecovered) {
  const fs::path session = small();
  change_manifest(session, [](storage::Manifest& manifest) {
    manifest.state = storage::SessionState::kRecording;
    manifest.reason = "";
  });
  EXPECT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 1);
  const std::string unsealed =
      "the end of the session: it is not sealed (collectctl recover seals it)";
  EXPECT_THAT(missing(), ElementsAre(unsealed));
  EXPECT_EQ(run(at("x.rtc"), Target::kAtf, at("back")), 1);
  const storage::Manifest is = manifest_of(written());
  EXPECT_EQ(is.state, storage::SessionState::kRecovered);
  EXPECT_EQ(is.reason, "the session was not sealed when it was converted");
  ASSERT_FALSE(is.input_missing.empty());
  EXPECT_EQ(is.input_missing[0].what, unsealed);
}

TEST_F(SessionInputs, ContainerOfAnIncompleteSessionIsRecovered) {
  const fs::path session = small();
  fs::create_symlink("nowhere", session / "thread_9");
  fs::remove_all(session / "thread_2");
  EXPECT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 1);
  const size_t said = missing().size();
  EXPECT_EQ(run(at("x.rtc"), Target::kAtf, at("back")), 1);
  const storage::Manifest is = manifest_of(written());
  EXPECT_EQ(is.state, storage::SessionState::kRecovered);
  EXPECT_EQ(is.reason, "exit") << "as it was";
  EXPECT_GE(is.input_missing.size(), said);
}

// ---- several inputs

TEST_F(SessionInputs, ReadsContainersOfASessionWithoutThreads) {
  const fs::path session = small();
  ASSERT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 0);
  const std::string container = text_of(at("x.rtc"));
  for (const char* name : {"capture-000001.rtc", "x.rtc", "capture-000001.txt"}) {
    write_text(session / name,
               name == std::string("capture-000001.rtc") ? container : "no capture");
  }
  for (const char* name : {"thread_0", "thread_1", "thread_2"}) fs::remove_all(session / name);
  EXPECT_EQ(run(session.string(), Target::kAtf, at("back")), 0) << err_.str();
  EXPECT_EQ(report_["from"], "rtc");
  EXPECT_EQ(report_["counts"]["events"], 14);
  // Also without a manifest, which makes it any directory.
  fs::remove(session / "manifest.json");
  EXPECT_EQ(run(session.string(), Target::kAtf, at("back")), 0) << err_.str();
  EXPECT_EQ(report_["from"], "rtc");
  fs::remove(session / "capture-000001.rtc");
  EXPECT_EQ(run(session.string(), Target::kAtf, at("back")), 2);
  EXPECT_THAT(err_.str(), HasSubstr(session.string() + ": no session in it"));
}

TEST_F(SessionInputs, SeveralInputsAreContainersOfOneSession) {
  const fs::path session = small();
  ASSERT_EQ(run(session.string(), Target::kRtc, at("x.rtc")), 0);
  ASSERT_EQ(run(session.string(), Target::kDial9, at("x.bin")), 0);
  const std::string why =
      ": several inputs are converted only when all are RTC containers of one session\n";
  for (const auto& [first, second] :
       {std::pair{"x.rtc", "x.bin"}, std::pair{"x.bin", "x.rtc"}, std::pair{"x.bin", "x.bin"}}) {
    EXPECT_EQ(run({at(first), at(second)}, Target::kAtf, at("back")), 2);
    EXPECT_EQ(err_.str(), "collectctl: " + at(second) + why);
  }
  // Another session's.
  const std::string other = short_session(root_ / "o", "other");
  change_manifest(other, [](storage::Manifest& manifest) { manifest.identity.process_id[0] = 9; });
  ASSERT_EQ(run(other, Target::kRtc, at("y.rtc")), 0);
  EXPECT_EQ(run({at("x.rtc"), at("y.rtc")}, Target::kAtf, at("back")), 2);
  EXPECT_THAT(err_.str(), HasSubstr(at("y.rtc") + ": belongs to another session"));
  EXPECT_FALSE(fs::exists(at("back")));
}

// ---- headers, versions, streams of others

TEST_F(SessionInputs, TakesTheMachineFromTheFirstReadableThread) {
  std::vector<uint8_t> index = index_of({{7000, kCall, 0xA}}, 77);
  index[6] = static_cast<uint8_t>(atf::Arch::kArm64);
  write_thread(0, Octets(200, 'x'));
  write_thread(1, index);
  write_thread(2, index_of({{5000, kCall, 0xA}}, 78));
  for (const Target target : {Target::kDial9, Target::kRtc}) {
    EXPECT_EQ(run(session_.string(), target, at("between")), 1);
    EXPECT_EQ(run(at("between"), Target::kAtf, at("back")), 1);
    const storage::Manifest is = manifest_of(written());
    EXPECT_EQ(is.identity.arch, atf::Arch::kArm64);
    ASSERT_EQ(is.threads.size(), 2u);
    EXPECT_EQ(is.threads[0].thread_id, 77u);
    EXPECT_EQ(is.threads[1].thread_id, 78u);
    if (target == Target::kDial9) {
      EXPECT_EQ(is.identity.start_ns, 5000u) << "of all threads";
    }
  }
}

TEST_F(SessionInputs, LeavesThreadsOfAnotherVersionOutOfAContainer) {
  for (int n = 0; n < 3; ++n) {
    atf::testing::ThreadPlan plan;
    plan.version = n == 1 ? atf::Version::kV1 : atf::Version::kV2;
    plan.thread_id = 100 + static_cast<uint32_t>(n);
    plan.detail_every = 2;
    const auto made = build_thread(plan);
    write_thread(n, made.index, made.detail);
  }
  EXPECT_EQ(run(session_.string(), Target::kRtc, at("x.rtc")), 1);
  EXPECT_EQ(report_["left_out"], (json{{"threads of another ATF version than the first one", 1}}));
  EXPECT_EQ(report_["counts"]["events"], 40);
  // A session of two versions is none of either.
  ConvertOptions options;
  options.atf_version = 2;
  EXPECT_EQ(run(session_.string(), Target::kAtf, at("two"), options), 1);
  EXPECT_EQ(report_["left_out"].size(), 1u);
  const storage::Manifest is = manifest_of(written());
  ASSERT_EQ(is.threads.size(), 2u);
  EXPECT_EQ(is.threads[0].thread_id, 100u);
  EXPECT_EQ(is.threads[1].thread_id, 102u);
}

TEST_F(SessionInputs, ReportsAMissingPassthroughStream) {
  storage::PosixFs files(at("streamed"));
  storage::SessionOptions options;
  options.root = at("streamed");
  options.symbolize = false;
  auto writer = storage::Session::create(files, options, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->open_stream({1, 77, "main", 1000}).ok());
  dial9::Encoder frames;
  const auto type = *frames.define({0, "Tick", true, {}});
  frames.begin_event(type, 1);
  ASSERT_TRUE(frames.end_event());
  const Bytes stream = frames.bytes();
  ASSERT_TRUE((*writer)->append_passthrough(storage::PassthroughKind::kDial9, {&stream, 1}).ok());
  ASSERT_TRUE((*writer)->end_passthrough(storage::PassthroughKind::kDial9, 0, "").ok());
  storage::StreamEnd end;
  end.stream_id = 1;
  ASSERT_TRUE((*writer)->close_stream(end).ok());
  ASSERT_TRUE((*writer)->seal(storage::SessionState::kComplete, "exit").ok());
  const std::string session = (*writer)->directory();
  fs::remove(session + "/stream.dial9");
  EXPECT_EQ(run(session, Target::kRtc, at("x.rtc")), 1);
  EXPECT_THAT(missing(), ElementsAre(StartsWith(session + "/stream.dial9: ")));
  // A thread by itself has no such streams.
  EXPECT_EQ(run(session + "/thread_0", Target::kRtc, at("x.rtc")), 0) << err_.str();
}

TEST_F(SessionInputs, NamesAreSymbolsInAnyOrderOfTheManifest) {
  const fs::path session = small();
  change_manifest(session, [](storage::Manifest& manifest) {
    std::reverse(manifest.symbols.begin(), manifest.symbols.end());
    manifest.symbols.push_back(manifest.symbols[1]);
  });
  EXPECT_EQ(run(session.string(), Target::kDial9, at("x.bin")), 0) << err_.str();
  EXPECT_THAT(
      dumped(at("x.bin"), {"FunctionInfo"}),
      ElementsAre(
          StartsWith("0.000001000  FunctionInfo  function=30064771088 name=\"main()\" is_s"),
          HasSubstr("1500  FunctionInfo  function=30064771104 name=\"app::draw(int)\" is_s"),
          HasSubstr("function=30064771136 name=\"libx.so+0x40\" is_symbol=false"),
          EndsWith("=77 name=\"never called\" is_symbol=true file=\"\" line=0")));
}

// ---- order

TEST_F(SessionInputs, TimesThatStepBackAreCountedAndSorted) {
  write_thread(0, index_of({{1000, kCall, 1},
                            {3000, kCall, 2},
                            {2000, kCall, 3},
                            {2500, kCall, 4},
                            {500, kReturn, 4}},
                           77));
  EXPECT_EQ(run(session_.string(), Target::kDial9, at("x.bin")), 1);
  EXPECT_THAT(report_["left_out"], ::testing::IsEmpty());
  EXPECT_EQ(report_["remarks"][0],
            "thread 0: its times step back 2 times; its events are put in the order of time");
  EXPECT_THAT(dumped(at("x.bin"), {"Call", "Return"}),
              ElementsAre("0.000000500  Return  thread=0 function=4",
                          "0.000001000  Call  thread=0 function=1",
                          "0.000002000  Call  thread=0 function=3",
                          "0.000002500  Call  thread=0 function=4",
                          "0.000003000  Call  thread=0 function=2"));
  EXPECT_EQ(run(session_.string(), Target::kWtf, at("x.wtf-trace")), 1);
  EXPECT_THAT(err_.str(),
              HasSubstr("collectctl: thread 0: its times step back 2 times; its events are "
                        "put in the order of time\n"));
}

TEST_F(SessionInputs, EventsOfAnUnknownKindAreCounted) {
  write_thread(0,
               index_of({{1000, kCall, 1}, {2000, atf::EventKind{}, 2}, {3000, kReturn, 1}}, 77));
  for (const auto& [target, name] :
       {std::pair{Target::kDial9, "x.bin"}, std::pair{Target::kWtf, "x.wtf-trace"},
        std::pair{Target::kRtc, "x.rtc"}}) {
    EXPECT_EQ(run(session_.string(), target, at(name)), 1);
    EXPECT_THAT(err_.str(), HasSubstr("missing from the input: 1 events of an unknown kind\n"));
    EXPECT_EQ(report_["counts"]["events"], 2) << name;
  }
}

// Records go front to back with their events.
TEST_F(SessionInputs, DetailRecordsThatEventsDoNotLeadTo) {
  atf::testing::ThreadPlan plan;
  plan.events = 4;
  plan.detail_every = 1;
  const auto made = build_thread(plan);
  constexpr uint64_t kNone = atf::kNoDetail;
  const auto left_out = [&](const std::vector<Step>& steps) {
    write_thread(0, index_of(steps, plan.thread_id), made.detail);
    run(session_.string(), Target::kDial9, at("x.bin"));
    uint64_t gone = 0;
    for (const json& one : report_["missing"]) {
      if (one["what"] == "detail records that events lead to, in the order of the events") {
        gone = one["count"];
      }
    }
    const uint64_t extra = report_["left_out"].value("detail records that no event leads to", 0);
    const size_t written = dumped(at("x.bin"), {"Call", "Detail"}).size() - steps.size();
    return std::vector<uint64_t>{written, extra, gone};
  };
  using Counts = std::vector<uint64_t>;
  const auto calls = [](std::vector<uint64_t> links) {
    std::vector<Step> steps;
    for (const uint64_t link : links) steps.push_back({1000 + 10 * steps.size(), kCall, 5, link});
    return steps;
  };
  EXPECT_EQ(left_out(calls({0, 1, 2, 3})), (Counts{4, 0, 0}));
  EXPECT_EQ(left_out(calls({0, kNone, 2, kNone})), (Counts{2, 2, 0}));
  EXPECT_EQ(left_out(calls({1, 0, 3})), (Counts{2, 2, 1}));
  EXPECT_EQ(left_out(calls({3, 3, 4})), (Counts{1, 3, 2}));
}

// By way of a container, whose events are put in the order of time together with their records.
TEST_F(SessionInputs, DetailRecordsStayWithSortedEvents) {
  atf::testing::ThreadPlan plan;
  plan.events = 4;
  plan.detail_every = 1;
  const auto made = build_thread(plan);
  write_thread(
      0,
      index_of({{1000, kCall, 1, 0}, {4000, kCall, 2, 1}, {2000, kCall, 3, 2}, {3000, kCall, 4, 3}},
               plan.thread_id),
      made.detail);
  ASSERT_LE(run(session_.string(), Target::kRtc, at("x.rtc")), 1);
  ASSERT_LE(run(at("x.rtc"), Target::kDial9, at("x.bin")), 1);
  EXPECT_THAT(dumped(at("x.bin"), {"Call", "Detail"}),  // byte 4 is the number that a record had
              ElementsAre(EndsWith("Call  thread=0 function=1"), HasSubstr("payload=0001000000"),
                          EndsWith("Call  thread=0 function=3"), HasSubstr("payload=0201000002"),
                          EndsWith("Call  thread=0 function=4"), HasSubstr("payload=0001000003"),
                          EndsWith("Call  thread=0 function=2"), HasSubstr("payload=0101000001")));
}

TEST_F(SessionInputs, PutsMarkersAndLossesBeforeTheirEvents) {
  convert::SessionBuilder builder(storage::PosixFs(at("built")), atf::Version::kV2);
  convert::BuiltProcess process;
  process.start_ns = 1;
  ASSERT_TRUE(builder.begin(process).ok());
  ASSERT_TRUE(builder.add_thread(7, "main", 900).ok());
  builder.lost(0, Lane::kIndex, 2, 1, 1, 2);
  ASSERT_TRUE(builder.event(0, 1000, 5, kCall).ok());
  builder.lost(0, Lane::kIndex, 3, 1, 3, 4);
  builder.lost(0, Lane::kDetail, 4, 1, 5, 6);
  ASSERT_TRUE(builder.event(0, 2000, 5, kReturn, Octets{1}).ok());
  builder.lost(0, Lane::kDetail, 6, 2, 7, 8);
  ASSERT_TRUE(builder.marker(3000, "late").ok());
  ASSERT_TRUE(builder.marker(2000, "b").ok());
  ASSERT_TRUE(builder.marker(2000, "a").ok());
  ASSERT_TRUE(builder.marker(1999, "before").ok());
  const auto session = builder.finish(true, "exit");
  ASSERT_TRUE(session.ok());
  ASSERT_EQ(run(*session, Target::kDial9, at("x.bin")), 0) << err_.str();
  EXPECT_THAT(
      dumped(at("x.bin"), {"Call", "Return", "Gap", "Marker", "Detail"}),
      ElementsAre("0.000001000  Gap  thread=0 lane=0 lost=2 reasons=1 first_ns=1 last_ns=2",
                  "0.000001000  Call  thread=0 function=5", "0.000001999  Marker  text=\"before\"",
                  "0.000002000  Marker  text=\"b\"", "0.000002000  Marker  text=\"a\"",
                  "0.000002000  Gap  thread=0 lane=0 lost=3 reasons=1 first_ns=3 last_ns=4",
                  "0.000002000  Gap  thread=0 lane=1 lost=4 reasons=1 first_ns=5 last_ns=6",
                  "0.000002000  Return  thread=0 function=5",
                  "0.000002000  Detail  thread=0 kind=4 flags=0 payload=01",
                  "0.000003000  Marker  text=\"late\"",
                  "0.000002000  Gap  thread=0 lane=1 lost=6 reasons=2 first_ns=7 last_ns=8"));
}

// A set of all functions would grow with the capture.
TEST_F(SessionInputs, BehindAMillionFunctionsTheyAreExplainedAgain) {
  constexpr uint64_t kRemembered = uint64_t{1} << 20;
  std::vector<Step> steps;
  for (uint64_t i = 0; i < kRemembered; ++i) steps.push_back({1000 + i, kCall, i});
  // All of them are known, until there is one more.
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, kRemembered, uint64_t{0}}) {
    steps.push_back({1000 + steps.size(), kCall, id});
  }
  write_thread(0, index_of(steps, 77));
  EXPECT_EQ(run(session_.string(), Target::kDial9, at("x.bin")), 1);
  const auto checked = dial9::check_stream(atf::testing::file_bytes(at("x.bin")));
  EXPECT_EQ(checked.events_by_name.at("FunctionInfo"), kRemembered + 2);
}

}  // namespace
}  // namespace collect::ctl
