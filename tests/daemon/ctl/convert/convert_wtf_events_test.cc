// WTF-trace files of others into a session, event by event: what each kind becomes, what our own
// events mean there, and which zones are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "daemon/ctl/convert/convert_report.h"
#include "formats/atf/session_reader.h"
#include "storage/convert/conversions.h"
#include "storage/read/session_manifest.h"
#include "tests/daemon/ctl/convert/built_streams.h"

namespace collect::ctl {
namespace {

using atf::EventKind;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::Left;
using testing::Made;
using testing::Octets;
using ::testing::StartsWith;
using testing::WtfStream;

constexpr const char* kInstances = "instance events: ATF has calls, returns and exceptions only";
constexpr const char* kLoneLeaves = "leaves without a scope: a return needs a function";

struct ReadThread {
  uint32_t tid = 0;
  std::string name;
  std::vector<std::string> events;  // "1000 call f"
};

class WtfEvents : public testing::ConvertTest {
 protected:
  // The first thread's events of a file by itself.
  std::vector<std::string> events_of(const Octets& file) {
    atf::testing::write_file(at("x.wtf-trace"), file);
    code_ = run(at("x.wtf-trace"), exports::Target::kAtf, at("back"));
    threads_.clear();
    if (code_ == 2) return {};
    manifest_ = manifest_of(written());
    left_out_ = report_["left_out"].get<Left>();
    read(written());
    std::filesystem::remove_all(at("back"));
    return threads_.empty() ? std::vector<std::string>() : threads_[0].events;
  }
  void read(const std::string& directory) {
    const auto trace = read::open_trace(directory);
    ASSERT_TRUE(trace.ok());
    const auto manifest = read::SessionManifest::parse(*trace->manifest);
    ASSERT_TRUE(manifest.ok());
    const read::NameTable names(*manifest);
    const atf::SessionReader session(trace->files());
    for (const atf::SessionThread& thread : session.threads()) {
      ReadThread& one = threads_.emplace_back();
      one.tid = thread.index->header().thread_id;
      one.name = manifest->thread(thread.n)->name;
      thread.index->events().for_each([&](uint64_t, const atf::IndexEvent& event) {
        const char* kind = event.kind == EventKind::kCall     ? " call "
                           : event.kind == EventKind::kReturn ? " return "
                                                              : " exception ";
        one.events.push_back(std::to_string(event.timestamp_ns) + kind +
                             std::string(names.name_of(event.function_id)));
      });
    }
  }

  int code_ = 0;
  std::vector<ReadThread> threads_;
  storage::Manifest manifest_;
  Left left_out_;
};

// ---- our own events

TEST_F(WtfEvents, OurEventsAreCallsEndings) {
  WtfStream stream;
  const uint32_t exception = *stream->define_instance("collect#exception", "ascii function");
  const uint32_t returned = *stream->define_instance("collect#return", "utf8 function");
  const uint32_t unwind = *stream->define_instance("collect#unwind", "uint32 calls");
  const uint32_t f = *stream->define_scope("f"), g = *stream->define_scope("g");
  ASSERT_TRUE(stream->event(returned, 1000, {"before"}).ok());
  ASSERT_TRUE(stream->enter(f, 2000).ok());
  ASSERT_TRUE(stream->enter(g, 3000).ok());
  ASSERT_TRUE(stream->enter(g, 4000).ok());
  ASSERT_TRUE(stream->event(unwind, 5000, {1}).ok());
  ASSERT_TRUE(stream->event(unwind, 5000, {1}).ok());
  ASSERT_TRUE(stream->leave(5000).ok());
  ASSERT_TRUE(stream->event(exception, 5000, {"g"}).ok());
  ASSERT_TRUE(stream->leave(5000).ok());
  ASSERT_TRUE(stream->leave(6000).ok());
  ASSERT_TRUE(stream->leave(7000).ok());
  EXPECT_THAT(events_of(stream.take()),
              ElementsAre("1000 return before", "2000 call f", "3000 call g", "4000 call g",
                          "5000 exception g", "6000 return f"));
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(left_out_, (Left{{kLoneLeaves, 1}}));
}

TEST_F(WtfEvents, SkipsOurEventNamesWithOtherArguments) {
  const auto left_out = [&](std::string_view name, std::string_view signature,
                            const wtf::Arg& arg) {
    WtfStream stream;
    const uint32_t type = *stream->define_instance(name, signature);
    const uint32_t f = *stream->define_scope("f");
    EXPECT_TRUE(stream->enter(f, 1000).ok());
    EXPECT_TRUE(stream->event(type, 2000, {arg}).ok());
    EXPECT_TRUE(stream->leave(3000).ok());
    EXPECT_THAT(events_of(stream.take()), ElementsAre("1000 call f", "3000 return f"));
    return left_out_;
  };
  const Left one = {{kInstances, 1}};
  for (const char* name : {"collect#exception", "collect#return"}) {
    EXPECT_EQ(left_out(name, "uint32 function", 5), one);
    EXPECT_EQ(left_out(name, "ascii name", "f"), one);
    EXPECT_EQ(left_out(name, "ascii function", nullptr), one);
  }
  EXPECT_EQ(left_out("collect#unwind", "int32 calls", 1), one);
  EXPECT_EQ(left_out("collect#unwind", "uint32 count", 1), one);
  EXPECT_EQ(left_out("collect#other", "ascii function", "f"), one);
}

TEST_F(WtfEvents, MarksAreTheirNameAndTheirValue) {
  WtfStream stream;
  ASSERT_TRUE(stream->mark(1000, "both", "5").ok());
  ASSERT_TRUE(stream->mark(2000, "", "6").ok());
  ASSERT_TRUE(stream->mark(3000, "name", "null").ok());
  ASSERT_TRUE(stream->mark(4000, "absent", {}).ok());
  ASSERT_TRUE(stream->mark(5000, "\xC3\xA9", "\"\xC3\xA9\"").ok());
  ASSERT_TRUE(stream->mark(6000, "", {}).ok());
  EXPECT_THAT(events_of(stream.take()), ElementsAre());
  std::vector<std::string> texts;
  std::vector<uint64_t> times;
  for (const storage::Marker& marker : manifest_.markers) {
    texts.push_back(marker.text);
    times.push_back(marker.at_ns);
  }
  EXPECT_THAT(texts, ElementsAre("both 5", "6", "name", "absent", "\xC3\xA9 \"\xC3\xA9\"", ""));
  EXPECT_THAT(times, ElementsAre(1000, 2000, 3000, 4000, 5000, 6000));
}

// ---- scopes

TEST_F(WtfEvents, ScopesAreCallsByTheirName) {
  WtfStream stream;
  const uint32_t plain = *stream->define_scope("plain");
  const uint32_t with = *stream->define_scope("with", "uint32 n");
  ASSERT_TRUE(stream->leave(500).ok());
  ASSERT_TRUE(stream->enter(plain, 1000).ok());
  ASSERT_TRUE(stream->enter(with, 2000, {7}).ok());
  ASSERT_TRUE(stream->enter(with, 3000, {8}).ok());
  ASSERT_TRUE(stream->enter_named("plain", 4000).ok());
  ASSERT_TRUE(stream->leave(5000).ok());
  EXPECT_THAT(events_of(stream.take()),
              ElementsAre("1000 call plain", "2000 call with", "3000 call with", "4000 call plain",
                          "5000 return plain"));
  EXPECT_EQ(left_out_,
            (Left{{kLoneLeaves, 1}, {"scopes' arguments: ATF has no place for them", 2}}));
  EXPECT_EQ(manifest_.symbols.size(), 2u) << "a function is its name";
}

TEST_F(WtfEvents, DistinguishesFunctionNamesUpToALimit) {
  constexpr size_t kMost = size_t{64} << 20, kName = size_t{1} << 20;
  for (const bool one_more : {false, true}) {
    WtfStream stream;
    uint64_t ns = 0;
    for (size_t i = 0; i < kMost / kName; ++i) {
      std::string name(kName, 'a');
      name.replace(0, 2, std::to_string(10 + i));
      ASSERT_TRUE(stream->enter_named(name, ns += 1000).ok());
    }
    if (one_more) {
      ASSERT_TRUE(stream->enter_named("b", ns += 1000).ok());
      ASSERT_TRUE(stream->enter_named("c", ns += 1000).ok());
    }
    convert::SessionBuilder builder(storage::PosixFs(at("made")), atf::Version::kV2);
    convert::ConvertLog log;
    ASSERT_TRUE(convert::wtf_to_atf(stream.take(), builder, log).ok());
    EXPECT_EQ(log.left_out(),
              one_more ? (Left{{"calls of functions past the number that is distinguished", 2}})
                       : Left());
    EXPECT_EQ(builder.function_of("(all other functions)"), 65u);
    EXPECT_EQ(builder.function_of("b"), 66u) << "it has no number yet";
    std::filesystem::remove_all(at("made"));
  }
}

// ---- zones

class Zones {
 public:
  explicit Zones(const wtf::FileHeader& header = {}) : writer_(sink_, {.pair_scopes = false}) {
    EXPECT_TRUE(writer_.begin(header).ok());
  }
  explicit Zones(std::string_view header_json) : writer_(sink_, {.pair_scopes = false}) {
    EXPECT_TRUE(writer_.begin_with(header_json).ok());
  }
  void mark(const char* name, uint64_t ns) {
    const auto zone = writer_.create_zone(name, std::nullopt, std::to_string(ns));
    ASSERT_TRUE(zone.ok());
    EXPECT_TRUE(writer_.set_zone(*zone).ok());
    EXPECT_TRUE(writer_.enter_named("f", ns).ok());
  }
  wtf::Writer* operator->() { return &writer_; }
  Octets take() {
    EXPECT_TRUE(writer_.finish().ok());
    return sink_.bytes();
  }

 private:
  VectorSink sink_;
  wtf::Writer writer_;
};

TEST_F(WtfEvents, ZonesAreThreads) {
  wtf::FileHeader header;
  header.timebase_ms = 1'700'000'000'000;
  header.context->title = "";
  Zones zones(header);
  zones.mark("shop (12) / main (34)", 2000);
  zones.mark("shop (13) / other (35)", 3000);
  zones.mark("just a name", 4000);
  zones.mark("", 5000);
  ASSERT_TRUE(zones->create_zone("never set").ok());
  EXPECT_THAT(events_of(zones.take()), ElementsAre("2000 call f"));
  ASSERT_EQ(threads_.size(), 5u);
  EXPECT_EQ(threads_[0].name, "main");
  EXPECT_EQ(threads_[0].tid, 34u);
  EXPECT_EQ(threads_[1].name, "other");
  EXPECT_EQ(threads_[1].tid, 35u);
  EXPECT_EQ(threads_[2].name, "just a name");
  EXPECT_EQ(threads_[2].tid, 3u);
  EXPECT_EQ(threads_[3].name, "zone 4");
  EXPECT_EQ(threads_[3].tid, 4u);
  EXPECT_EQ(threads_[4].name, "never set");
  EXPECT_EQ(threads_[4].events.size(), 0u);
  EXPECT_EQ(manifest_.identity.process_name, "shop");
  EXPECT_EQ(manifest_.identity.pid, 12u);
  EXPECT_EQ(left_out_, (Left{{"process numbers of zones: a session has one process", 1}}));
  EXPECT_EQ(report_["remarks"].size(), 0u);
}

// The header's words come first, unless a zone names that very process.
TEST_F(WtfEvents, ProcessIsThatOfTheHeader) {
  const auto identity = [&](uint64_t pid, const std::string& title) {
    wtf::FileHeader header;
    header.context->title = title;
    header.context->uri = "/opt/app";
    header.metadata = json{{"collectord", {{"pid", pid}, {"start_ns", 70'000}}}}.dump();
    Zones zones(header);
    zones.mark("shop (12) / main (34)", 2000);
    EXPECT_THAT(events_of(zones.take()), ElementsAre("72000 call f"));
    EXPECT_EQ(manifest_.identity.executable, "/opt/app");
    EXPECT_EQ(manifest_.identity.start_ns, 70'000u);
    return std::make_pair(manifest_.identity.process_name, manifest_.identity.pid);
  };
  using Pair = std::pair<std::string, uint32_t>;
  EXPECT_EQ(identity(0, ""), Pair("shop", 12));
  EXPECT_EQ(identity(12, "title"), Pair("shop", 12));
  EXPECT_EQ(identity(13, "title"), Pair("title", 13));
  EXPECT_EQ(left_out_, (Left{{"process numbers of zones: a session has one process", 1}}));
  EXPECT_EQ(identity(13, ""), Pair("shop", 13));
  EXPECT_EQ(identity(0, "title"), Pair("shop", 12)) << "whose number is the zone's";
}

TEST_F(WtfEvents, MetadataOfOthersSaysNothing) {
  for (const char* metadata : {"{}", "[]", "null", "{\"collectord\": 5}", "{\"collectord\": []}",
                               "{\"other\": {\"pid\": 7}}"}) {
    Zones zones(R"({"type":"file_header","flags":[],"timebase":0,"metadata":)" +
                std::string(metadata) + "}");
    zones.mark("name", 2000);
    EXPECT_THAT(events_of(zones.take()), ElementsAre("2000 call f")) << metadata;
    EXPECT_EQ(manifest_.identity.pid, 0u);
    EXPECT_EQ(manifest_.identity.start_ns, 0u);
  }
}

TEST_F(WtfEvents, FileWithoutZonesIsASessionWithoutThreads) {
  Zones none;
  EXPECT_THAT(events_of(none.take()), ElementsAre());
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(threads_.size(), 0u);
  EXPECT_EQ(report_["remarks"],
            (json{"the file's timebase is no time of day; the session does not know when it was"}));
}

// ---- what there is no place for

TEST_F(WtfEvents, CountsEachKindThatASessionLacks) {
  WtfStream stream;
  const uint32_t ping = *stream->define_instance("ping");
  ASSERT_TRUE(stream->event(ping, 1000, {}).ok());
  ASSERT_TRUE(stream->append_scope_data(2000, "key", "1").ok());
  ASSERT_TRUE(stream->time_stamp(3000, "stamp", "2").ok());
  ASSERT_TRUE(stream->discontinuity(4000).ok());
  ASSERT_TRUE(stream->discontinuity(4000).ok());
  ASSERT_TRUE(stream->begin_range(5000, 3, "range").ok());
  ASSERT_TRUE(stream->end_range(6000, 3).ok());
  ASSERT_TRUE(stream->end_range(6000, 3).ok());
  ASSERT_TRUE(stream->branch_flow(7000, 4, 0, "flow").ok());
  ASSERT_TRUE(stream->extend_flow(7000, 4, "on").ok());
  ASSERT_TRUE(stream->append_flow_data(7000, 4, "data", "5").ok());
  ASSERT_TRUE(stream->terminate_flow(7000, 4).ok());
  ASSERT_TRUE(stream->start_frame(8000, 1).ok());
  ASSERT_TRUE(stream->end_frame(9000, 1).ok());
  ASSERT_TRUE(stream->add_string_resource("text").ok());
  ASSERT_TRUE(stream->add_binary_resource(Octets{1, 2}).ok());
  ASSERT_TRUE(stream->flush().ok());
  ASSERT_TRUE(stream->add_string_resource("more").ok());
  EXPECT_THAT(events_of(stream.take()), ElementsAre());
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(left_out_, (Left{{kInstances, 1},
                             {"values appended to scopes: ATF has no place for them", 1},
                             {"time stamp events: ATF has calls, returns and exceptions only", 1},
                             {"discontinuities: they do not say how much is missing", 2},
                             {"time range events: ATF has calls, returns and exceptions only", 3},
                             {"flow events: ATF has calls, returns and exceptions only", 4},
                             {"frame events: ATF has calls, returns and exceptions only", 2},
                             {"resources: ATF has no place for them", 3}}));
}

TEST_F(WtfEvents, ReportsPartsMissingFromACutFile) {
  WtfStream stream;
  const uint32_t f = *stream->define_scope("f");
  ASSERT_TRUE(stream->enter(f, 1000).ok());
  ASSERT_TRUE(stream->flush().ok());
  ASSERT_TRUE(stream->leave(2000).ok());
  Octets file = stream.take();
  file.resize(file.size() - 4);
  EXPECT_THAT(events_of(file), ElementsAre("1000 call f"));
  EXPECT_EQ(code_, 1);
  ASSERT_GE(manifest_.input_missing.size(), 1u);
  EXPECT_EQ(report_["missing"].size(), manifest_.input_missing.size());
  EXPECT_THAT(manifest_.input_missing[0].what, StartsWith("at "));
  EXPECT_EQ(manifest_.state, storage::SessionState::kRecovered);
  EXPECT_EQ(manifest_.reason, "converted from wtf");
}

TEST_F(WtfEvents, FileThatIsNoneIsRefused) {
  convert::SessionBuilder builder(storage::PosixFs(at("made")), atf::Version::kV2);
  convert::ConvertLog log;
  EXPECT_FALSE(convert::wtf_to_atf(Octets{1, 2, 3, 4}, builder, log).ok());
  EXPECT_FALSE(std::filesystem::exists(at("made")));
}

}  // namespace
}  // namespace collect::ctl
