// What a conversion carries over, field by field and both ways, what it says of itself in the
// manifest, and what it does when the disk is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/convert_report.h"
#include "daemon/ctl/dump/dump.h"
#include "formats/dial9/writer.h"
#include "formats/wtf/check.h"
#include "storage/convert/conversions.h"
#include "storage/convert/convert.h"
#include "storage/convert/session_builder.h"
#include "storage/convert/whole_session.h"
#include "storage/fs/output_file.h"
#include "storage/manifest/manifest.h"
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
using testing::Octets;
using testing::small_session;
namespace fs = std::filesystem;

constexpr size_t kArchAt = 6;  // in an index's header
constexpr const char* kLineAgain = "\r\x1b[K";

class CarriedTest : public testing::ConvertTest {};

void expect_same_process(const storage::SessionIdentity& was, const storage::SessionIdentity& is) {
  EXPECT_EQ(is.process_name, was.process_name);
  EXPECT_EQ(is.executable, was.executable);
  EXPECT_EQ(is.pid, was.pid);
  EXPECT_EQ(is.arch, was.arch);
  EXPECT_EQ(is.os, was.os);
  EXPECT_EQ(is.clock, was.clock);
  EXPECT_EQ(is.version, was.version);
  EXPECT_EQ(is.start_ns, was.start_ns);
  EXPECT_EQ(is.start_unix_ns, was.start_unix_ns);
}

void expect_same_threads(const storage::Manifest& was, const storage::Manifest& is) {
  ASSERT_EQ(is.threads.size(), was.threads.size());
  for (size_t i = 0; i < was.threads.size(); ++i) {
    const storage::ManifestThread &a = was.threads[i], &b = is.threads[i];
    SCOPED_TRACE(a.id);
    EXPECT_EQ(b.id, a.id);
    EXPECT_EQ(b.thread_id, a.thread_id);
    EXPECT_EQ(b.name, a.name);
    EXPECT_EQ(b.has_detail, a.has_detail);
    EXPECT_TRUE(b.ended);
    EXPECT_EQ(b.events, a.events);
    EXPECT_EQ(b.detail_records, a.detail_records);
    EXPECT_EQ(b.lost_events, a.lost_events);
    EXPECT_EQ(b.lost_detail_records, a.lost_detail_records);
    EXPECT_EQ(b.start_ns, a.start_ns);
    EXPECT_EQ(b.end_ns, a.end_ns);
    EXPECT_EQ(b.first_ns, a.first_ns);
    EXPECT_EQ(b.last_ns, a.last_ns);
  }
}

void expect_same_lists(const storage::Manifest& was, const storage::Manifest& is) {
  ASSERT_EQ(is.modules.size(), was.modules.size());
  for (size_t i = 0; i < was.modules.size(); ++i) {
    EXPECT_EQ(is.modules[i].module_id, was.modules[i].module_id);
    EXPECT_EQ(is.modules[i].path, was.modules[i].path);
    EXPECT_EQ(is.modules[i].build_id, was.modules[i].build_id);
    EXPECT_EQ(is.modules[i].base_address, was.modules[i].base_address);
    EXPECT_EQ(is.modules[i].size, was.modules[i].size);
    EXPECT_EQ(is.modules[i].loaded_ns, was.modules[i].loaded_ns);
    EXPECT_EQ(is.modules[i].unloaded_ns, was.modules[i].unloaded_ns);
  }
  ASSERT_EQ(is.symbols.size(), was.symbols.size());
  for (size_t i = 0; i < was.symbols.size(); ++i) {
    EXPECT_EQ(is.symbols[i].function_id, was.symbols[i].function_id);
    EXPECT_EQ(is.symbols[i].name, was.symbols[i].name);
  }
  ASSERT_EQ(is.gaps.size(), was.gaps.size());
  for (size_t i = 0; i < was.gaps.size(); ++i) {
    EXPECT_EQ(is.gaps[i].thread, was.gaps[i].thread);
    EXPECT_EQ(is.gaps[i].lane, was.gaps[i].lane);
    EXPECT_EQ(is.gaps[i].reasons, was.gaps[i].reasons);
    EXPECT_EQ(is.gaps[i].before_seq, was.gaps[i].before_seq);
    EXPECT_EQ(is.gaps[i].lost, was.gaps[i].lost);
    EXPECT_EQ(is.gaps[i].first_ns, was.gaps[i].first_ns);
    EXPECT_EQ(is.gaps[i].last_ns, was.gaps[i].last_ns);
  }
  ASSERT_EQ(is.markers.size(), was.markers.size());
  for (size_t i = 0; i < was.markers.size(); ++i) {
    EXPECT_EQ(is.markers[i].at_ns, was.markers[i].at_ns);
    EXPECT_EQ(is.markers[i].text, was.markers[i].text);
  }
}

void expect_same_totals(const storage::SessionTotals& was, const storage::SessionTotals& is) {
  EXPECT_EQ(is.threads, was.threads);
  EXPECT_EQ(is.events, was.events);
  EXPECT_EQ(is.detail_records, was.detail_records);
  EXPECT_EQ(is.lost_events, was.lost_events);
  EXPECT_EQ(is.lost_detail_records, was.lost_detail_records);
  EXPECT_EQ(is.first_ns, was.first_ns);
  EXPECT_EQ(is.last_ns, was.last_ns);
}

// The module has another value in every field, and one is unloaded.
std::string full_session(const fs::path& root, atf::Version version) {
  const fs::path session = small_session(root, version);
  change_manifest(session, [](storage::Manifest& manifest) {
    manifest.modules.push_back({9, "/lib/liby.so", {4}, 0x9000, 512, 700, 8000});
  });
  return session.string();
}

TEST_F(CarriedTest, Dial9StreamKeepsEveryFieldOfASession) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    const std::string session = full_session(root_ / "s", version);
    EXPECT_LE(run(session, Target::kDial9, at("x.bin")), 1) << err_.str();
    ConvertOptions options;
    options.atf_version = static_cast<uint8_t>(version);
    EXPECT_EQ(run(at("x.bin"), Target::kAtf, at("back"), options), 0) << err_.str();
    const storage::Manifest was = manifest_of(session), is = manifest_of(written());
    expect_same_process(was.identity, is.identity);
    expect_same_threads(was, is);
    expect_same_lists(was, is);
    expect_same_totals(was.totals, is.totals);
    EXPECT_EQ(is.time_start_ns, was.time_start_ns);
    EXPECT_EQ(is.time_end_ns, was.time_end_ns);
    EXPECT_EQ(is.state, storage::SessionState::kComplete);
    EXPECT_EQ(is.reason, "converted from dial9");
    fs::remove_all(root_ / "s");
  }
}

TEST_F(CarriedTest, ContainerHasEveryFieldOfTheManifest) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  ASSERT_EQ(run(session, Target::kRtc, at("x.rtc")), 0) << err_.str();
  // As the container's last manifest has it.
  DumpOptions dumping;
  dumping.paths = {at("x.rtc")};
  dumping.json = true;
  std::ostringstream dumped;
  ASSERT_EQ(dump(dumping, dumped, err_), 0);
  std::istringstream lines(dumped.str());
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    if (object["stream"] == "manifest") last = object["text"];
  }
  const auto within = storage::manifest_from_json(last);
  ASSERT_TRUE(within.ok());
  const storage::Manifest was = manifest_of(session);
  expect_same_process(was.identity, within->identity);
  expect_same_threads(was, *within);
  expect_same_totals(was.totals, within->totals);
  EXPECT_EQ(within->totals.lost_detail_records, 3u);
  EXPECT_EQ(within->totals.lost_events, 5u);
  ASSERT_EQ(run(at("x.rtc"), Target::kAtf, at("back")), 0) << err_.str();
  const storage::Manifest is = manifest_of(written());
  expect_same_process(was.identity, is.identity);
  expect_same_threads(was, is);
  expect_same_lists(was, is);
  expect_same_totals(was.totals, is.totals);
  EXPECT_EQ(is.identity.tag, "nightly");
  EXPECT_EQ(is.identity.device_model, "Phone 1");
  EXPECT_EQ(is.reason, was.reason);
  EXPECT_EQ(is.notes.size(), was.notes.size());
  EXPECT_EQ(is.clock_syncs.size(), 1u);
  EXPECT_EQ(is.detail_windows.size(), 1u);
  EXPECT_EQ(is.stalls.size(), 2u);
}

TEST_F(CarriedTest, WtfTraceHasTheProcessAndItsClock) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  const storage::Manifest was = manifest_of(session);
  const storage::Manifest is = manifest_of(by_way_of(Target::kWtf, session));
  EXPECT_EQ(is.identity.process_name, "app \xC3\xA9\x1B");
  EXPECT_EQ(is.identity.executable, was.identity.executable);
  EXPECT_EQ(is.identity.pid, was.identity.pid);
  EXPECT_EQ(is.identity.arch, was.identity.arch);
  EXPECT_EQ(is.identity.os, was.identity.os);
  EXPECT_EQ(is.identity.clock, was.identity.clock);
  EXPECT_EQ(is.identity.start_ns, 1000u);
  EXPECT_EQ(is.identity.start_unix_ns, was.identity.start_unix_ns);
  EXPECT_EQ(is.threads[1].name, was.threads[1].name);
  EXPECT_EQ(is.threads[1].thread_id, was.threads[1].thread_id);
  EXPECT_EQ(is.threads[2].name, "thread 2") << "a zone has a name";
  ASSERT_EQ(is.gaps.size(), 1u) << "the gap of detail records went with them";
  EXPECT_EQ(is.gaps[0].lost, 5u);
  EXPECT_EQ(is.gaps[0].first_ns, 0u) << "a mark does not say when";
  EXPECT_EQ(is.gaps[0].last_ns, 0u);
  EXPECT_EQ(is.reason, "converted from wtf");
}

// Without a manifest the files' own headers say what they can.
TEST_F(CarriedTest, SessionWithoutAManifestTakesItsHeaders) {
  std::vector<uint8_t> index = index_of({{7000, kCall, 0xA}, {9000, kCall, 0xB}}, 77);
  index[kArchAt] = static_cast<uint8_t>(atf::Arch::kArm64);
  write_thread(0, index);
  const auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  const atf::SessionReader session(trace->files());
  const atf::IndexHeader& header = session.threads()[0].index->header();
  ASSERT_EQ(header.arch, atf::Arch::kArm64);
  for (const Target target : {Target::kDial9, Target::kRtc}) {
    EXPECT_EQ(run(session_.string(), target, at("between")), 1);
    EXPECT_EQ(run(at("between"), Target::kAtf, at("back")), 1) << "no one knows what it lacks";
    const storage::Manifest is = manifest_of(written());
    EXPECT_EQ(is.identity.arch, header.arch);
    EXPECT_EQ(is.identity.os, header.os);
    EXPECT_EQ(is.identity.clock, header.clock);
    EXPECT_EQ(is.identity.version, header.version);
    if (target == Target::kDial9) {
      EXPECT_EQ(is.identity.start_ns, 7000u) << "the first event";
      EXPECT_EQ(is.identity.start_unix_ns, 0u);
    }
    EXPECT_EQ(is.threads[0].thread_id, 77u);
  }
}

TEST_F(CarriedTest, ReasonSaysWhatTheSessionInTheStreamWas) {
  for (const auto& [state, name, missing] :
       {std::tuple{storage::SessionState::kRecovered, "recovered",
                   "end of the recording never came"},
        std::tuple{storage::SessionState::kFailed, "failed", "storing ended"}}) {
    const fs::path session = small_session(root_ / name, atf::Version::kV2);
    change_manifest(session, [&](storage::Manifest& manifest) { manifest.state = state; });
    const storage::Manifest is = manifest_of(by_way_of(Target::kDial9, session.string()));
    EXPECT_EQ(is.state, state);
    EXPECT_EQ(is.reason, std::string("converted from dial9; the session in it was ") + name);
    EXPECT_THAT(report_["missing"].dump(), HasSubstr(missing));
  }
}

// A stream that is cut makes a session that is recovered, and its manifest says what it lacks.
TEST_F(CarriedTest, SessionOfACutStreamIsRecovered) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  ASSERT_EQ(run(session, Target::kDial9, at("x.bin")), 0);
  fs::resize_file(at("x.bin"), fs::file_size(at("x.bin")) - 1);
  EXPECT_EQ(run(at("x.bin"), Target::kAtf, at("back")), 1);
  const storage::Manifest is = manifest_of(written());
  EXPECT_EQ(is.state, storage::SessionState::kRecovered);
  EXPECT_EQ(is.reason, "converted from dial9");
  ASSERT_EQ(is.input_missing.size(), 2u);
  EXPECT_THAT(is.input_missing[0].what, HasSubstr("the stream breaks off"));
  EXPECT_EQ(is.input_missing[1].what, "bytes behind the last whole frame");
  EXPECT_EQ(is.input_missing[1].count, report_["missing"][1]["count"]);
}

TEST_F(CarriedTest, ServiceIsAProcessOfLinux) {
  atf::testing::write_file(at("x.bin"), testing::dial9_of_workers());
  ASSERT_EQ(run(at("x.bin"), Target::kAtf, at("back")), 0) << err_.str();
  const storage::Manifest is = manifest_of(written());
  EXPECT_EQ(is.identity.process_name, "shop");
  EXPECT_EQ(is.identity.pid, 99u);
  EXPECT_EQ(is.identity.os, atf::Os::kLinux);
  EXPECT_EQ(is.identity.clock, atf::ClockType::kBoottime);
  EXPECT_EQ(is.identity.start_ns, 1500u) << "the first event of a worker";
  EXPECT_EQ(is.identity.start_unix_ns, 1'700'000'000'000'001'500u);
  ASSERT_EQ(is.threads.size(), 2u);
  EXPECT_EQ(is.threads[0].name, "worker 0");
  EXPECT_EQ(is.threads[0].thread_id, 777u);
  EXPECT_EQ(is.threads[0].start_ns, 1500u);
  EXPECT_EQ(is.threads[1].thread_id, 778u);
}

// As the first version of the format counts them: a return has the depth of its call.
TEST_F(CarriedTest, CallsHaveTheirDepth) {
  convert::SessionBuilder builder(storage::PosixFs(at("depths")), atf::Version::kV1);
  ASSERT_TRUE(builder.begin({}).ok());
  ASSERT_TRUE(builder.add_thread(1, "main", 0).ok());
  const auto kReturned = atf::EventKind::kReturn;
  for (const auto kind : {kReturned, kCall, kCall, kReturned, kReturned, kReturned, kCall}) {
    ASSERT_TRUE(builder.event(0, 1000, 5, kind).ok());
  }
  const auto session = builder.finish(true, "");
  ASSERT_TRUE(session.ok());
  const auto trace = read::open_trace(*session);
  ASSERT_TRUE(trace.ok());
  const atf::SessionReader reader(trace->files());
  std::vector<uint32_t> depths;
  reader.threads()[0].index->events().for_each(
      [&](uint64_t, const atf::IndexEvent& event) { depths.push_back(event.call_depth); });
  EXPECT_THAT(depths, ElementsAre(0, 1, 2, 2, 1, 0, 1));
}

// The timebase of each file, in milliseconds; the last with the time of day that is given.
std::vector<double> timebases(const std::string& root, uint64_t start_ns, uint64_t unix_ns,
                              uint64_t later_ns) {
  convert::SessionBuilder builder(storage::PosixFs(root + "/timed"), atf::Version::kV2);
  convert::BuiltProcess process;
  process.start_ns = start_ns;
  process.start_unix_ns = unix_ns;
  EXPECT_TRUE(builder.begin(process).ok());
  EXPECT_TRUE(builder.add_thread(1, "main", start_ns).ok());
  for (const uint64_t ns : {start_ns, start_ns + later_ns}) {
    EXPECT_TRUE(builder.event(0, ns, builder.function_of("f"), kCall).ok());
  }
  const auto session = builder.finish(true, "");
  EXPECT_TRUE(session.ok());
  const auto trace = read::open_trace(*session);
  EXPECT_TRUE(trace.ok());
  convert::ConvertLog log;
  EXPECT_TRUE(convert::atf_to_wtf(*trace, root + "/timed.wtf-trace", log).ok());
  std::vector<double> found;
  for (const auto& [path, bytes] : log.written()) {
    found.push_back(wtf::check_file(atf::testing::file_bytes(path)).header->timebase_ms);
    fs::remove(path);
  }
  fs::remove_all(root + "/timed");
  return found;
}

TEST_F(CarriedTest, TimebasesAreWholeMillisecondsWhereTheClockHasRoom) {
  constexpr uint64_t kDay = 1'700'000'000'000'500'000;  // half a millisecond into one
  EXPECT_THAT(timebases(root_, 7'000'000, kDay, 1000), ElementsAre(1'700'000'000'000.0));
  EXPECT_THAT(timebases(root_, 500'000, kDay, 1000), ElementsAre(1'700'000'000'000.0));
  EXPECT_THAT(timebases(root_, 499'000, kDay, 1000), ElementsAre(1'700'000'000'000.5));
  EXPECT_THAT(timebases(root_, 1000, kDay, 1000), ElementsAre(1'700'000'000'000.5));
  // Without a time of day, the second file is at its distance from the first.
  constexpr uint64_t kTwoHours = 7'200'000'000'000;
  EXPECT_THAT(timebases(root_, 1000, 0, kTwoHours + 2'500'000), ElementsAre(0.0, 7'200'002.5));
}

// ---- what a conversion says

TEST_F(CarriedTest, OnATerminalItSaysHowFarItIs) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  ConvertOptions options;
  options.progress = true;
  ASSERT_EQ(run(session, Target::kRtc, at("x.rtc"), options), 0);
  // The first page has the 5 of the 14 events that stand before the loss.
  EXPECT_EQ(err_.str(), kLineAgain + std::string("converting 35 %") + kLineAgain + kLineAgain);
  ASSERT_EQ(run(session, Target::kRtc, at("x.rtc")), 0);
  EXPECT_EQ(err_.str(), "");
  // By way of a session, whose making is half of it.
  ASSERT_EQ(run(at("x.rtc"), Target::kDial9, at("x.bin"), options), 0);
  EXPECT_THAT(err_.str(), ::testing::StartsWith(kLineAgain + std::string("converting 50 %")));
}

TEST_F(CarriedTest, CopySaysHowFarItIs) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  ConvertOptions options;
  options.progress = true;
  for (const Target target : {Target::kRtc, Target::kDial9, Target::kWtf}) {
    ASSERT_LE(run(session, target, at("one")), 1);
    EXPECT_EQ(run(at("one"), target, at("two"), options), 0);
    EXPECT_EQ(text_of(at("one")), text_of(at("two")));
    // Besides the line that is made empty at the end.
    EXPECT_THAT(err_.str(), ::testing::StartsWith(kLineAgain));
    EXPECT_NE(err_.str(), kLineAgain) << name_of(target);
  }
}

TEST_F(CarriedTest, StreamSaysHowFarItIsEveryMegabyte) {
  dial9::Encoder out;
  const auto type = *out.define({0, "Other", true, {{"text", dial9::FieldType::kString}}});
  const std::string text(size_t{64} << 10, 'x');
  for (uint64_t i = 0; i < 40; ++i) {
    out.begin_event(type, i);
    out.put_string(text);
    ASSERT_TRUE(out.end_event());
  }
  const Octets file = out.take();
  std::vector<uint64_t> steps;
  convert::ConvertLog log([&](uint64_t done, uint64_t all) {
    steps.push_back(done);
    EXPECT_EQ(all, file.size());
  });
  convert::SessionBuilder builder(storage::PosixFs(at("made")), atf::Version::kV2);
  ASSERT_TRUE(convert::dial9_to_atf(file, builder, log).ok());
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_GE(steps[0], uint64_t{1} << 20);
  EXPECT_LT(steps[0], (uint64_t{1} << 20) + 2 * text.size());
  EXPECT_GE(steps[1], steps[0] + (uint64_t{1} << 20));
}

TEST_F(CarriedTest, LongConversionsSayHowFarTheyAre) {
  convert::SessionBuilder builder(storage::PosixFs(at("long")), atf::Version::kV2);
  convert::BuiltProcess process;
  process.name = "app";
  process.start_ns = 1000;
  ASSERT_TRUE(builder.begin(process).ok());
  ASSERT_TRUE(builder.add_thread(1, "main", 1000).ok());
  constexpr uint64_t kEvents = 65'537;
  for (uint64_t i = 0; i < kEvents; ++i) {
    const auto kind = i % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn;
    ASSERT_TRUE(builder.event(0, 1000 + i * 1000, builder.function_of("f"), kind).ok());
  }
  const auto session = builder.finish(true, "exit");
  ASSERT_TRUE(session.ok());
  const auto trace = read::open_trace(*session);
  ASSERT_TRUE(trace.ok());
  using Steps = std::vector<std::pair<uint64_t, uint64_t>>;
  Steps steps;
  const auto note = [&](uint64_t done, uint64_t all) { steps.emplace_back(done, all); };
  convert::ConvertLog to_dial9(note);
  ASSERT_TRUE(convert::atf_to_dial9(*trace, at("x.bin"), to_dial9).ok());
  EXPECT_EQ(steps, (Steps{{65'536, kEvents}}));
  steps.clear();
  convert::ConvertLog to_wtf(note);
  ASSERT_TRUE(convert::atf_to_wtf(*trace, at("x.wtf-trace"), to_wtf).ok());
  ASSERT_GE(steps.size(), 2u);
  EXPECT_EQ(steps.front(), std::make_pair(uint64_t{65'536}, kEvents));
  EXPECT_EQ(steps.back(), std::make_pair(kEvents, kEvents));
  const auto back = [&](const std::string& path, auto into) {
    steps.clear();
    const auto bytes = atf::testing::file_bytes(path);
    convert::SessionBuilder made(storage::PosixFs(at("made")), atf::Version::kV2);
    convert::ConvertLog log(note);
    EXPECT_TRUE(into(Bytes(bytes), made, log).ok());
    EXPECT_TRUE(made.finish(true, "").ok());
    for (const auto& [done, all] : steps) EXPECT_EQ(all, bytes.size());
    return steps.size();
  };
  EXPECT_EQ(back(at("x.wtf-trace"), convert::wtf_to_atf), 1u);
  EXPECT_EQ(back(at("x.bin"), convert::dial9_to_atf), fs::file_size(at("x.bin")) >> 20);
}

TEST(ConvertWords, ThreeKindsOfWhatIsLeftOutAreShown) {
  convert::ConvertLog log;
  for (const auto& [what, count] : {std::pair{"a", 1}, {"b", 3000}, {"c", 2}}) {
    log.leave_out(what, static_cast<uint64_t>(count));
  }
  std::ostringstream three, four;
  print_convert_losses(Target::kRtc, log, three);
  EXPECT_EQ(three.str(), "collectctl: left out, rtc has no place for it: 3,000 b; 2 c; 1 a\n");
  log.leave_out("d", 1);
  print_convert_losses(Target::kRtc, log, four);
  EXPECT_EQ(four.str(),
            "collectctl: left out, rtc has no place for it: 3,000 b; 2 c; 1 a; and 1 kinds more "
            "(--json lists them)\n");
}

// ---- where it goes

TEST_F(CarriedTest, SessionTakesTheFirstNameThatIsFree) {
  // In memory where that can be: these are many names.
  const bool has_memory = fs::is_directory("/dev/shm");
  std::string root = has_memory ? "/dev/shm/names_XXXXXX" : at("names_XXXXXX");
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const auto made = [&] {
    return convert::make_whole_session(root, [](const std::string& below) -> Result<std::string> {
      fs::create_directories(fs::path(below) / "session_X" / "pid_1");
      return below + "/session_X/pid_1";
    });
  };
  EXPECT_EQ(*made(), root + "/session_X/pid_1");
  EXPECT_EQ(*made(), root + "/session_X_2/pid_1");
  for (int i = 3; i < 10'000; ++i) {
    fs::create_directory(root + "/session_X_" + std::to_string(i));
  }
  EXPECT_EQ(*made(), root + "/session_X_10000/pid_1");
  const auto none = made();
  EXPECT_EQ(none.code(), Code::kAlreadyExists);
  EXPECT_EQ(none.error().message, root + "/session_X: every name is taken");
  fs::remove_all(root);
}

TEST_F(CarriedTest, FileThatWasNamedTakesNoMore) {
  auto file = storage::OutputFile::create(at("x"), false);
  ASSERT_TRUE(file.ok());
  const Octets some(1000, 1), much(size_t{1} << 20, 2);
  ASSERT_TRUE(file->write(some).ok());
  EXPECT_EQ(file->size(), 1000u) << "what is not written yet counts";
  ASSERT_TRUE(file->write(much).ok());
  EXPECT_EQ(file->size(), some.size() + much.size());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(fs::file_size(at("x")), some.size() + much.size());
  EXPECT_FALSE(file->write(much).ok());
  EXPECT_EQ(fs::file_size(at("x")), some.size() + much.size());
}

// Files may not grow beyond a size, as on a disk that is full.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    was_ignored_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &was_);
    rlimit now = was_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &was_);
    ::signal(SIGXFSZ, was_ignored_);
  }

 private:
  rlimit was_{};
  sighandler_t was_ignored_ = SIG_DFL;
};

TEST_F(CarriedTest, OnAFullDiskNothingIsMade) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  ASSERT_EQ(run(session, Target::kRtc, at("x.rtc")), 0);
  ASSERT_EQ(run(session, Target::kDial9, at("x.bin")), 0);
  ASSERT_EQ(run(session, Target::kWtf, at("x.wtf-trace")), 0);
  ASSERT_EQ(run(session, Target::kWtfJson, at("x.wtf-json")), 0);
  fs::create_directory(at("full"));
  for (const std::string& input :
       {session, at("x.rtc"), at("x.bin"), at("x.wtf-trace"), at("x.wtf-json")}) {
    for (const Target target :
         {Target::kAtf, Target::kRtc, Target::kDial9, Target::kWtf, Target::kWtfJson}) {
      SCOPED_TRACE(input + " " + std::string(name_of(target)));
      const std::string output = target == Target::kAtf ? at("full") : at("full/out");
      int code = 0;
      {
        const SmallDisk disk(100);
        code = run(input, target, output);
      }
      EXPECT_EQ(code, 2);
      EXPECT_EQ(out_.str(), "");
      EXPECT_THAT(err_.str(), EndsWith("; nothing was made\n"));
      EXPECT_THAT(err_.str(), HasSubstr("File too large"));
      EXPECT_TRUE(fs::is_empty(at("full")));
      fs::remove_all(at("full"));
      fs::create_directory(at("full"));
    }
  }
}

// A view that fails for another reason than a pattern is exit code 2.
TEST_F(CarriedTest, ViewOnAFullDiskExitsWithTwo) {
  const std::string session = full_session(root_ / "s", atf::Version::kV2);
  const SmallDisk disk(10);
  EXPECT_EQ(run(session, Target::kFolded, at("x.folded")), 2);
  EXPECT_THAT(err_.str(), EndsWith("; nothing was made\n"));
}

}  // namespace
}  // namespace collect::ctl
