// Limits of conversions, each at its last value and one beyond: what is within them is kept, what
// is beyond them is counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/ctl/convert/convert_command.h"
#include "daemon/ctl/convert/convert_report.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/byte_sink.h"
#include "formats/dial9/read/decoder.h"
#include "formats/dial9/writer.h"
#include "formats/wtf/binary/writer.h"
#include "storage/convert/conversions.h"
#include "storage/convert/convert.h"
#include "storage/convert/dial9/dial9_session.h"
#include "storage/convert/dial9/dial9_session_reader.h"
#include "storage/convert/dial9/dial9_workers.h"
#include "storage/convert/event_tally.h"
#include "storage/convert/session_builder.h"
#include "storage/convert/wtf/wtf_events.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/ctl/convert/built_streams.h"
#include "tests/daemon/ctl/convert/convert_fixture.h"

namespace collect::ctl {
namespace {

using dial9::FieldType;
using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
namespace d9 = convert::dial9_session;

using testing::Left;
using testing::Made;
using testing::Octets;
using testing::OurStream;
using testing::ServiceStream;
using testing::WtfStream;

class ConvertLimits : public testing::ConvertTest {};

TEST(EventTallies, NamesAreBounded) {
  convert::EventTally tally;
  for (size_t i = 0; i < 1001; ++i) tally.add("name " + std::to_string(i));
  tally.add("name 0");
  convert::ConvertLog log;
  tally.report(log, "why");
  EXPECT_EQ(log.left_out().size(), 1001u);
  EXPECT_EQ(log.left_out().at("name 0: why"), 2u);
  EXPECT_EQ(log.left_out().at("name 999: why"), 1u);
  EXPECT_EQ(log.left_out().at("events of still other names: why"), 1u);
  convert::EventTally few;
  few.add(std::string(200, 'a') + "b");
  few.add(std::string(200, 'a') + "c");
  convert::ConvertLog other;
  few.report(other, "why");
  EXPECT_EQ(other.left_out(), (Left{{std::string(200, 'a') + ": why", 2}}));
}

TEST(ConvertWords, LimitsListsAndCountsTheRest) {
  convert::ConvertLog log;
  for (size_t i = 0; i < 102; ++i) {
    log.missing("thing " + std::to_string(i));
    log.remark("remark " + std::to_string(i));
  }
  log.missing("thing 0", 4);
  log.missing("thing 0", 3);
  log.missing("nothing", 0);
  EXPECT_EQ(log.missing().size(), 100u);
  EXPECT_EQ(log.missing()[0].count, 7u);
  EXPECT_EQ(log.missing_left_out(), 2u);
  EXPECT_EQ(log.remarks().size(), 100u);
  EXPECT_EQ(log.remarks_left_out(), 2u);
  EXPECT_FALSE(log.is_input_whole());
  log.leave_out("none", 0);
  EXPECT_TRUE(log.left_out().empty());
  log.leave_out("some");
  log.leave_out("some", 2);
  convert::ConvertLog whole;
  EXPECT_TRUE(whole.is_input_whole());
  whole.take(log);
  EXPECT_EQ(whole.missing().size(), 100u);
  EXPECT_EQ(whole.missing_left_out(), 2u);
  EXPECT_EQ(whole.remarks().size(), 100u);
  EXPECT_EQ(whole.remarks_left_out(), 2u);
  EXPECT_EQ(whole.left_out().at("some"), 3u);
  whole.missing({{"one more", 5}}, 6);
  EXPECT_EQ(whole.missing_left_out(), 9u);
  std::ostringstream err;
  print_convert_losses(exports::Target::kWtf, whole, err);
  EXPECT_THAT(err.str(), HasSubstr("collectctl: missing from the input: 7 thing 0\n"
                                   "collectctl: missing from the input: thing 1\n"));
  EXPECT_THAT(err.str(), HasSubstr("thing 99\ncollectctl: missing from the input: 9 things more\n"
                                   "collectctl: remark 0\n"));
  EXPECT_THAT(err.str(), EndsWith("collectctl: remark 99\ncollectctl: 2 more remarks\n"
                                  "collectctl: left out, wtf has no place for it: 3 some\n"));
  std::ostringstream out;
  TextOut text(out);
  print_convert_json({}, read::CaptureKind::kRtc, whole, text);
  text.flush();
  const json report = json::parse(out.str());
  EXPECT_EQ(report["missing_left_out"], 9);
  EXPECT_EQ(report["missing"][0], (json{{"what", "thing 0"}, {"count", 7}}));
  EXPECT_EQ(report["missing"][1], (json{{"what", "thing 1"}}));
  EXPECT_EQ(report["left_out"], (json{{"some", 3}}));
  EXPECT_EQ(report["remarks"].size(), 100u);
}

// ---- a service

// Gives the workers every event to see, or the last ones to add: a thread takes long to make.
class GivesWorkers : public dial9::Visitor {
 public:
  GivesWorkers(convert::Dial9Workers& workers, uint64_t add_from)
      : workers_(workers), from_(add_from) {}

  void on_event(const dial9::Event& event) {
    const convert::WorkerEventType type(event.schema());
    if (from_ == 0) {
      workers_.see(type, event);
    } else if (event.timestamp_ns() >= from_) {
      EXPECT_TRUE(workers_.add(type, event).ok());
    }
  }

 private:
  convert::Dial9Workers& workers_;
  const uint64_t from_;
};

TEST_F(ConvertLimits, WorkersOfAService) {
  ServiceStream stream;
  for (uint64_t i = 0; i <= convert::kMaxWorkers; ++i) stream.begin_poll(1000 + i, i, "x");
  const Octets file = stream.out.take();
  const Made made = made_of(
      file, [](Bytes bytes, convert::SessionBuilder& builder, convert::ConvertLog& log) -> Status {
        convert::Dial9Workers workers(builder, log);
        GivesWorkers all(workers, 0), last(workers, 1000 + convert::kMaxWorkers - 1);
        (void)dial9::Decoder().decode(bytes, all);
        EXPECT_EQ(workers.first_ns(), 1000u);
        COLLECT_TRY(builder.begin({}));
        (void)dial9::Decoder().decode(bytes, last);
        return workers.finish();
      });
  ASSERT_EQ(made.manifest.threads.size(), 1u);
  EXPECT_EQ(made.manifest.threads[0].name, "worker 4095");
  EXPECT_EQ(made.left_out(), (Left{{"PollStart: of more than 4096 workers", 1}}));
}

TEST_F(ConvertLimits, LossBehindTheLastEventNeedsNoReason) {
  convert::SessionBuilder builder(storage::PosixFs(at("built")), atf::Version::kV2);
  ASSERT_TRUE(builder.begin({}).ok());
  ASSERT_TRUE(builder.add_thread(7, "main", 900).ok());
  ASSERT_TRUE(builder.event(0, 1000, 5, atf::EventKind::kCall).ok());
  builder.lost(0, Lane::kIndex, 3, 0, 0, 0);
  builder.lost(0, Lane::kDetail, 4, 0, 0, 0);
  const auto session = builder.finish(true, "test");
  ASSERT_TRUE(session.ok());
  const storage::Manifest manifest = manifest_of(*session);
  EXPECT_EQ(manifest.threads[0].lost_events, 3u);
  EXPECT_EQ(manifest.threads[0].lost_detail_records, 4u);
}

TEST_F(ConvertLimits, FunctionsOfAService) {
  for (const size_t more : {size_t{0}, size_t{1}, size_t{2}}) {
    ServiceStream stream;
    for (uint64_t i = 0; i < convert::kMaxWorkerFunctions + more; ++i) {
      stream.begin_poll(1000 + 2 * i, 1, std::to_string(i));
      stream.end_poll(1001 + 2 * i, 1);
    }
    const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
    EXPECT_EQ(made.manifest.symbols.size(), convert::kMaxWorkerFunctions + (more == 0 ? 0 : 1));
    EXPECT_EQ(made.manifest.symbols.back().name, more == 0 ? "65535" : "other tasks");
  }
  ServiceStream stream;
  stream.begin_poll(1000, 1, std::string(4096, 'a'));
  stream.begin_poll(1001, 1, std::string(4097, 'b'));
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.symbols[0].name, std::string(4096, 'a'));
  EXPECT_EQ(made.manifest.symbols[1].name, std::string(4096, 'b'));
}

// An event that is older than those before it finds its place as long as they are in the window.
TEST_F(ConvertLimits, EventsThatAreSorted) {
  for (const size_t more : {size_t{0}, size_t{1}}) {
    ServiceStream stream;
    for (uint64_t i = 0; i < convert::kSortWindowEvents + more; ++i)
      stream.begin_poll(1000 + i, 1, "x");
    stream.begin_poll(10, 1, "late");
    EXPECT_EQ(made_of(stream.out.take(), convert::dial9_to_atf).moved_times,
              more == 0 ? 0 : 1u + 1u);
  }
}

// ---- a session in a stream

TEST_F(ConvertLimits, TextsOfAProcess) {
  OurStream stream;
  const std::string longest(4096, 'n'), longer(4097, 'e');
  stream.head({{"process_name", longest},
               {"executable", longer},
               {"pid", "42"},
               {"arch", "1"},
               {"tag", "0"},
               {"boot_id", ""},
               {"device_id", "7"},
               {"parent_pid", "5"},
               {"lost_without_stream", "0"}});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.identity.process_name, longest);
  EXPECT_EQ(made.manifest.identity.executable, std::string(4096, 'e'));
  EXPECT_EQ(made.manifest.identity.arch, atf::Arch::kX86_64);
  EXPECT_EQ(made.left_out(), (Left{{"entries of the process: device_id", 1},
                                   {"entries of the process: parent_pid", 1}}));
}

TEST_F(ConvertLimits, ModulesOfASession) {
  OurStream stream;
  stream.head();
  stream.put_module(UINT32_MAX, std::string(4096, 'p'), Octets(64, 1));
  stream.put_module(uint64_t{UINT32_MAX} + 1, "no id of ours", {});
  stream.put_module(1, "too long a build id", Octets(65, 1));
  for (uint64_t i = 2; i <= storage::kMaxModules; ++i) stream.put_module(i, "m", {});
  const Made most = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(most.manifest.modules.size(), storage::kMaxModules);
  EXPECT_EQ(most.manifest.modules[0].module_id, UINT32_MAX);
  EXPECT_EQ(most.manifest.modules[0].path, std::string(4096, 'p'));
  EXPECT_EQ(most.manifest.modules[0].build_id, Octets(64, 1));
  EXPECT_EQ(most.left_out(), (Left{{"modules that a session cannot have", 2}}));
  OurStream more;
  more.head();
  for (uint64_t i = 0; i <= storage::kMaxModules; ++i) more.put_module(i, "m", {});
  more.put_module(1, std::string(4097, 'p'), {});
  const Made cut = made_of(more.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(cut.manifest.modules.size(), storage::kMaxModules);
  EXPECT_EQ(cut.left_out(), (Left{{"modules that a session cannot have", 2}}));
}

TEST_F(ConvertLimits, TextsOfASession) {
  OurStream stream;
  stream.head();
  stream.put_thread(0, 5, std::string(4096, 't'));
  stream.put_thread(1, uint64_t{UINT32_MAX} + 1, std::string(4097, 'u'));
  for (const size_t size : {size_t{4096}, size_t{4097}}) {
    stream.out.begin_event(stream.marker, size);
    stream.out.put_string(std::string(size, 'm'));
    ASSERT_TRUE(stream.out.end_event());
  }
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  ASSERT_EQ(made.manifest.threads.size(), 2u);
  EXPECT_EQ(made.manifest.threads[0].name, std::string(4096, 't'));
  EXPECT_EQ(made.manifest.threads[1].name, std::string(4096, 'u'));
  EXPECT_EQ(made.manifest.threads[0].thread_id, 5u);
  EXPECT_EQ(made.manifest.threads[1].thread_id, 0u) << "no id of ours";
  EXPECT_EQ(made.manifest.threads[0].start_ns, 700u);
  ASSERT_EQ(made.manifest.markers.size(), 2u);
  EXPECT_EQ(made.manifest.markers[1].text, std::string(4096, 'm'));
  EXPECT_EQ(made.left_out(), (Left{{"ends of texts of more than 4096 bytes", 2}}));
}

TEST_F(ConvertLimits, DetailRecordsThatFitAndThoseThatDoNot) {
  constexpr size_t kMost = storage::kMaxPageBytes / 2;
  constexpr uint64_t kUsual = static_cast<uint64_t>(atf::DetailType::kFunctionCall);
  OurStream stream;
  stream.head();
  stream.put(stream.other, 900, {1});
  stream.put_detail(1000, 0, kUsual, 0, {1});  // behind no event
  stream.put(stream.call, 1000, {0, 5});
  stream.put_detail(1000, 0, kUsual, 3, Octets(kMost, 1));
  stream.put_detail(1000, 0, kUsual, 0, {1});  // a second one
  stream.put(stream.call, 2000, {0, 5});
  stream.put_detail(2000, 0, kUsual, 0, Octets(kMost + 1, 1));
  stream.put(stream.call, 3000, {0, 5});
  stream.put_detail(3000, 0, kUsual, 0, {});
  stream.put(stream.call, 4000, {0, 5});
  stream.put_detail(4000, 1, kUsual, 0, {1});  // of another thread
  stream.put(stream.call, 5000, {0, 5});
  stream.put_detail(5001, 0, kUsual + 1, 0, {1});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.totals.events, 5u);
  EXPECT_EQ(made.manifest.totals.detail_records, 2u);
  EXPECT_EQ(made.left_out(),
            (Left{{"Other: no part of the session in the stream", 1},
                  {"detail records that are not behind an event of their thread", 3},
                  {"detail records without a payload, or with one of more than 2097152 bytes", 2},
                  {"times of detail records that differ from their events", 1},
                  {"types of detail records that differ from their events", 1}}));
}

TEST_F(ConvertLimits, GapsThatAThreadCanHave) {
  OurStream stream;
  stream.head();
  stream.put(stream.call, 1000, {9, 5});
  stream.put(stream.gap, 1000, {9, 1, 4, UINT32_MAX, 11, 12});
  stream.put(stream.gap, 1000, {9, 2, 4, 1, 11, 12});
  stream.put(stream.gap, 1000, {9, 0, 4, uint64_t{UINT32_MAX} + 1, 11, 12});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  ASSERT_EQ(made.manifest.gaps.size(), 1u);
  EXPECT_EQ(made.manifest.gaps[0].lane, Lane::kDetail);
  EXPECT_EQ(made.manifest.gaps[0].lost, 4u);
  EXPECT_EQ(made.manifest.gaps[0].first_ns, 11u);
  EXPECT_EQ(made.manifest.gaps[0].last_ns, 12u);
  EXPECT_EQ(made.left_out(), (Left{{"gaps that no thread can have", 2}}));
  EXPECT_EQ(made.log.counts().count("lost_events"), 0u);
  EXPECT_EQ(made.manifest.threads[0].thread_id, 9u) << "nothing explained the thread";
}

TEST_F(ConvertLimits, CountsEventsOutsideTheFirstSession) {
  OurStream stream;
  stream.put(stream.call, 900, {0, 5});
  stream.put(stream.other, 900, {1});
  stream.head();
  stream.put(stream.call, 1000, {0, 5});
  stream.head();
  stream.put(stream.call, 2000, {0, 5});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.totals.events, 1u);
  const std::string second = ": of another session behind the first one; convert it by itself";
  EXPECT_EQ(made.left_out(), (Left{{"Call: no part of the session in the stream", 1},
                                   {"Other: no part of the session in the stream", 1},
                                   {"Call" + second, 1},
                                   {"SegmentMetadataEvent" + second, 1}}));
}

// ---- WTF-trace

// Those of the same time and text are one.
TEST_F(ConvertLimits, MarkersOfASession) {
  WtfStream stream;
  for (size_t i = 0; i < storage::kMaxMarkers; ++i) {
    ASSERT_TRUE(stream->mark(1000 * (i + 1), "m").ok());
  }
  ASSERT_TRUE(stream->mark(1000 * storage::kMaxMarkers, "m").ok());
  ASSERT_TRUE(stream->mark(1000 * storage::kMaxMarkers, "n").ok());
  ASSERT_TRUE(stream->mark(1000 * storage::kMaxMarkers, "o").ok());
  const Octets file = stream.take();
  const Made made = made_of(file, convert::wtf_to_atf);
  EXPECT_EQ(made.manifest.markers.size(), storage::kMaxMarkers);
  EXPECT_EQ(made.manifest.markers.back().text, "m");
  EXPECT_EQ(made.manifest.markers_left_out, 0u);
  EXPECT_EQ(made.more_markers, 2u);
  EXPECT_EQ(made.repeated_markers, 1u);
  EXPECT_EQ(made.left_out(), Left());
}

TEST_F(ConvertLimits, LossesThatAreBelieved) {
  const auto value = [](uint64_t lost, uint64_t reasons) {
    return "{\"lost_events\":" + std::to_string(lost) +
           ",\"lost_reasons\":" + std::to_string(reasons) + "}";
  };
  constexpr uint64_t kMost = uint64_t{1} << 48;
  const auto lost = [&](std::initializer_list<std::string> values) {
    WtfStream stream;
    for (const std::string& text : values) EXPECT_TRUE(stream->mark(1000, "m", text).ok());
    const Made made = made_of(stream.take(), convert::wtf_to_atf);
    EXPECT_EQ(made.manifest.totals.lost_events + made.manifest.markers.size() > 0, true);
    const auto counted = made.log.counts().find("lost_events");
    EXPECT_EQ(made.manifest.totals.lost_events,
              counted == made.log.counts().end() ? 0 : counted->second);
    return std::make_pair(made.manifest.totals.lost_events, made.manifest.markers.size());
  };
  using Pair = std::pair<uint64_t, size_t>;
  EXPECT_EQ(lost({value(kMost, 1)}), Pair(kMost, 0));
  EXPECT_EQ(lost({value(kMost + 1, 1)}), Pair(0, 1));
  EXPECT_EQ(lost({value(kMost - 5, 1), value(6, 1), value(5, 1)}), Pair(kMost, 1));
  EXPECT_EQ(lost({value(1, UINT32_MAX)}), Pair(1, 0));
  EXPECT_EQ(lost({value(1, uint64_t{UINT32_MAX} + 1)}), Pair(0, 1));
  EXPECT_EQ(lost({value(1, 0)}), Pair(0, 1));
  EXPECT_EQ(lost({value(0, 1)}), Pair(0, 1));
  EXPECT_EQ(lost({"{\"lost_events\":1}"}), Pair(0, 1));
  EXPECT_EQ(lost({"{\"lost_events\":1,\"lost_reasons\":-1}"}), Pair(0, 1));
  EXPECT_EQ(lost({"{\"lost_events\":-1,\"lost_reasons\":1}"}), Pair(0, 1));
  EXPECT_EQ(lost({"[\"lost_events\"]"}), Pair(0, 1));
  // Of 256 bytes at most.
  const std::string known = value(7, 1);
  EXPECT_EQ(lost({known + std::string(256 - known.size(), ' ')}), Pair(7, 0));
  EXPECT_EQ(lost({known + std::string(257 - known.size(), ' ')}), Pair(0, 1));
}

TEST_F(ConvertLimits, HeadersThatAreBelieved) {
  const auto process = [&](double timebase, const json& ours) {
    wtf::FileHeader header;
    header.timebase_ms = timebase;
    header.metadata = json{{std::string(convert::kMetadataKey), ours}}.dump();
    WtfStream stream(header);
    Made made = made_of(stream.take(), convert::wtf_to_atf);
    EXPECT_EQ(made.log.remarks().size(), made.manifest.identity.start_unix_ns == 0 ? 1u : 0u);
    return made.manifest.identity;
  };
  EXPECT_EQ(process(631'152'000'000, {}).start_unix_ns, 631'152'000'000'000'000u);
  EXPECT_EQ(process(631'151'999'999, {}).start_unix_ns, 0u);
  EXPECT_EQ(process(7'258'118'400'000, {}).start_unix_ns, 7'258'118'400'000'000'000u);
  EXPECT_EQ(process(7'258'118'400'001, {}).start_unix_ns, 0u);
  EXPECT_EQ(process(1'700'000'000'000.25, {}).start_unix_ns, 1'700'000'000'000'250'000u);
  constexpr uint64_t kMostStart = uint64_t{1} << 62;
  const auto most = process(
      0, {{"pid", UINT32_MAX}, {"arch", 2}, {"os", 2}, {"clock", 3}, {"start_ns", kMostStart}});
  EXPECT_EQ(most.pid, UINT32_MAX);
  EXPECT_EQ(most.arch, atf::Arch::kArm64);
  EXPECT_EQ(most.os, atf::Os::kAndroid);
  EXPECT_EQ(most.clock, atf::ClockType::kBoottime);
  EXPECT_EQ(most.start_ns, kMostStart);
  const auto beyond = process(0, {{"pid", uint64_t{UINT32_MAX} + 1},
                                  {"arch", 256},
                                  {"os", "x"},
                                  {"clock", -1},
                                  {"start_ns", kMostStart + 1}});
  EXPECT_EQ(beyond.pid, 0u);
  EXPECT_EQ(beyond.arch, atf::Arch{});
  EXPECT_EQ(beyond.os, atf::Os{});
  EXPECT_EQ(beyond.clock, atf::ClockType{});
  EXPECT_EQ(beyond.start_ns, 0u);
}

// The call that is one too many has no return: which function it was of is not known.
TEST_F(ConvertLimits, CallsThatAreOpenAtOneTime) {
  constexpr size_t kMost = size_t{1} << 22;
  WtfStream stream;
  const uint32_t type = *stream->define_scope("f");
  for (size_t i = 0; i <= kMost; ++i) ASSERT_TRUE(stream->enter(type, 1000).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream->leave(2000).ok());
  const Made made = made_of(stream.take(), convert::wtf_to_atf);
  EXPECT_EQ(made.left_out(), (Left{{"returns of calls nested too deeply to be followed", 1}}));
  EXPECT_EQ(made.manifest.totals.events, kMost + 1 + 2);
}

// ---- into a WTF-trace

TEST_F(ConvertLimits, NamesInAWtfTrace) {
  convert::SessionBuilder builder(storage::PosixFs((root_ / "names").string()), atf::Version::kV2);
  convert::BuiltProcess process;
  process.name = std::string(257, 'p');
  process.pid = 4;
  ASSERT_TRUE(builder.begin(process).ok());
  ASSERT_TRUE(builder.add_thread(7, std::string(256, 't'), 0).ok());
  ASSERT_TRUE(builder.add_thread(8, std::string(257, 'u'), 0).ok());
  ASSERT_TRUE(builder.add_thread(9, "", 0).ok());
  for (const std::string& name : {std::string(1000, 'f'), std::string(1001, 'g')}) {
    ASSERT_TRUE(builder.event(0, 1000, builder.function_of(name), atf::EventKind::kCall).ok());
  }
  const auto session = builder.finish(true, "");
  ASSERT_TRUE(session.ok());
  const auto trace = read::open_trace(*session);
  ASSERT_TRUE(trace.ok());
  convert::ConvertLog log;
  const std::string path = (root_ / "x.wtf-trace").string();
  ASSERT_TRUE(convert::atf_to_wtf(*trace, path, log).ok());
  EXPECT_EQ(log.left_out(), (Left{{"names of functions changed: too long, not UTF-8, with line "
                                   "ends, or the format's own",
                                   1}}));
  const Made back = made_of(atf::testing::file_bytes(path), convert::wtf_to_atf);
  ASSERT_EQ(back.manifest.threads.size(), 3u);
  EXPECT_EQ(back.manifest.threads[0].name, std::string(256, 't'));
  EXPECT_EQ(back.manifest.threads[1].name, std::string(256, 'u'));
  EXPECT_EQ(back.manifest.threads[2].name, "thread 2");
  EXPECT_EQ(back.manifest.symbols[0].name, std::string(1000, 'f'));
  EXPECT_EQ(back.manifest.symbols[1].name, std::string(1000, 'g'));
  EXPECT_EQ(back.manifest.identity.process_name, std::string(256, 'p'));
}

}  // namespace
}  // namespace collect::ctl
