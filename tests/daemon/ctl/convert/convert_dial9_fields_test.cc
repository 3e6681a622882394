// What is read from a dial9 stream, field by field: which types of events are ours, what each entry
// says of the process, and how the workers of a service are distinguished.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/atf/session_reader.h"
#include "storage/convert/conversions.h"
#include "tests/daemon/ctl/convert/built_streams.h"

namespace collect::ctl {
namespace {

using dial9::FieldType;
using ::testing::ElementsAre;
using testing::Left;
using testing::Made;
using testing::Octets;
using testing::OurStream;
namespace d9 = convert::dial9_session;

constexpr FieldType kTypes[] = {
    FieldType::kVarint, FieldType::kU8,          FieldType::kU16,          FieldType::kU32,
    FieldType::kBool,   FieldType::kI64,         FieldType::kF64,          FieldType::kString,
    FieldType::kBytes,  FieldType::kStackFrames, FieldType::kPooledString, FieldType::kStringMap};

// 1 as each type has it.
void put_one(dial9::Encoder& out, FieldType type) {
  const std::vector<uint64_t> stack = {1};
  switch (type) {
    case FieldType::kU8:
      return out.put_u8(1);
    case FieldType::kU16:
      return out.put_u16(1);
    case FieldType::kU32:
      return out.put_u32(1);
    case FieldType::kBool:
      return out.put_bool(true);
    case FieldType::kI64:
      return out.put_i64(1);
    case FieldType::kF64:
      return out.put_f64(1);
    case FieldType::kString:
      return out.put_string("1");
    case FieldType::kBytes:
      return out.put_bytes(Octets{'1'});
    case FieldType::kStackFrames:
      return out.put_stack(stack);
    case FieldType::kPooledString:
      return out.put_pooled_string("1");
    case FieldType::kStringMap:
      return out.put_string_map(std::vector<dial9::StringPair>{{d9::kSessionKey, "1"}});
    default:
      return out.put_varint(1);
  }
}

bool is_number(FieldType type) {
  return type == FieldType::kVarint || type == FieldType::kU8 || type == FieldType::kU16 ||
         type == FieldType::kU32 || type == FieldType::kBool;
}

class Dial9Fields : public testing::ConvertTest {};

// ---- a session of ours

TEST_F(Dial9Fields, ReadsNumbersOfAnyUnsignedType) {
  for (const FieldType type : kTypes) {
    SCOPED_TRACE(static_cast<int>(type));
    OurStream stream;
    stream.head();
    const auto call =
        *stream.out.define({1, "Call", true, {{"function", FieldType::kVarint}, {"thread", type}}});
    stream.out.begin_event(call, 1000);
    stream.out.put_varint(5);
    put_one(stream.out, type);
    ASSERT_TRUE(stream.out.end_event());
    const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
    if (is_number(type)) {
      ASSERT_EQ(made.manifest.threads.size(), 1u);
      EXPECT_EQ(made.manifest.threads[0].thread_id, 1u);
      EXPECT_EQ(made.left_out(), Left());
    } else {
      EXPECT_EQ(made.manifest.totals.events, 0u);
      EXPECT_EQ(made.left_out(), (Left{{"Call: no part of the session in the stream", 1}}));
    }
  }
}

TEST_F(Dial9Fields, TextsAndBytesOfOursAreOfTheirTypes) {
  for (const FieldType type : kTypes) {
    SCOPED_TRACE(static_cast<int>(type));
    OurStream stream;
    stream.head();
    const auto marker = *stream.out.define({1, "Marker", true, {{"text", type}}});
    stream.out.begin_event(marker, 1000);
    put_one(stream.out, type);
    ASSERT_TRUE(stream.out.end_event());
    stream.put(stream.call, 1000, {0, 5});
    const auto number = FieldType::kVarint;
    const auto detail = *stream.out.define(
        {2,
         "Detail",
         true,
         {{"thread", number}, {"kind", number}, {"flags", number}, {"payload", type}}});
    stream.out.begin_event(detail, 1000);
    for (const uint64_t value :
         {uint64_t{0}, uint64_t(atf::DetailType::kFunctionCall), uint64_t{0}}) {
      stream.out.put_varint(value);
    }
    put_one(stream.out, type);
    ASSERT_TRUE(stream.out.end_event());
    const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
    const bool is_text = type == FieldType::kString || type == FieldType::kPooledString;
    EXPECT_EQ(made.manifest.markers.size(), is_text ? 1u : 0u);
    if (is_text) {
      EXPECT_EQ(made.manifest.markers[0].text, "1");
    }
    EXPECT_EQ(made.manifest.totals.detail_records, type == FieldType::kBytes ? 1u : 0u);
    Left expected;
    if (!is_text) expected["Marker: no part of the session in the stream"] = 1;
    if (type != FieldType::kBytes) expected["Detail: no part of the session in the stream"] = 1;
    EXPECT_EQ(made.left_out(), expected);
  }
}

TEST_F(Dial9Fields, SkipsEventsWithoutATimeOrAField) {
  OurStream stream;
  stream.head();
  const auto number = FieldType::kVarint;
  const auto timeless =
      *stream.out.define({1, "Call", false, {{"thread", number}, {"function", number}}});
  const auto partial = *stream.out.define({2, "Return", true, {{"thread", number}}});
  const auto larger = *stream.out.define(
      {3, "Exception", true, {{"more", number}, {"function", number}, {"thread", number}}});
  const auto no_head =
      *stream.out.define({4, std::string(d9::kMetadata), true, {{"entries", number}}});
  stream.out.begin_event(timeless);
  stream.out.put_varint(1);
  stream.out.put_varint(2);
  ASSERT_TRUE(stream.out.end_event());
  stream.put(partial, 1000, {1});
  stream.put(larger, 1000, {9, 8, 7});
  stream.put(no_head, 1000, {1});
  stream.out.begin_event(stream.metadata, 1000);
  stream.out.put_string_map(std::vector<dial9::StringPair>{{"service_name", "shop"}});
  ASSERT_TRUE(stream.out.end_event());
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.totals.events, 1u);
  EXPECT_EQ(made.manifest.threads[0].thread_id, 7u);
  const std::string why = ": no part of the session in the stream";
  EXPECT_EQ(made.left_out(),
            (Left{{"Call" + why, 1}, {"Return" + why, 1}, {"SegmentMetadataEvent" + why, 2}}));
}

TEST_F(Dial9Fields, EveryEntryOfTheProcess) {
  OurStream stream;
  stream.head({{"process_name", "app"},
               {"executable", "/opt/app"},
               {"pid", "42"},
               {"arch", "258"},
               {"os", "258"},
               {"clock_type", "259"},
               {"start_ns", "7000"},
               {"start_unix_ns", "1700000000000000000"},
               {"atf_version", "1"},
               {"state", "complete"},
               {"reason", "exit"}});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  const storage::SessionIdentity& is = made.manifest.identity;
  EXPECT_EQ(is.process_name, "app");
  EXPECT_EQ(is.executable, "/opt/app");
  EXPECT_EQ(is.pid, 42u);
  EXPECT_EQ(is.arch, atf::Arch::kArm64) << "of a number, the byte that a header has";
  EXPECT_EQ(is.os, atf::Os::kAndroid);
  EXPECT_EQ(is.clock, atf::ClockType::kBoottime);
  EXPECT_EQ(is.start_ns, 7000u);
  EXPECT_EQ(is.start_unix_ns, 1'700'000'000'000'000'000u);
  EXPECT_EQ(is.version, atf::Version::kV2) << "the caller's";
  EXPECT_EQ(made.manifest.state, storage::SessionState::kComplete);
  EXPECT_EQ(made.manifest.reason, "test");
  EXPECT_EQ(made.left_out(), Left());
}

TEST_F(Dial9Fields, EntriesThatASessionHasNoPlaceFor) {
  for (const char* key : {"device_id", "device_model", "boot_id", "tag", "agent_version",
                          "parent_pid", "lost_without_stream"}) {
    OurStream stream;
    stream.head({{key, "x"}});
    EXPECT_EQ(made_of(stream.out.take(), convert::dial9_to_atf).left_out(),
              (Left{{"entries of the process: " + std::string(key), 1}}));
    for (const char* nothing : {"", "0"}) {
      OurStream none;
      none.head({{key, nothing}});
      EXPECT_EQ(made_of(none.out.take(), convert::dial9_to_atf).left_out(), Left()) << key;
    }
  }
}

TEST_F(Dial9Fields, StatesOfTheSessionInTheStream) {
  using storage::SessionState;
  for (const auto& [name, state] : {std::pair{"complete", SessionState::kComplete},
                                    std::pair{"recovered", SessionState::kRecovered},
                                    std::pair{"recording", SessionState::kRecovered},
                                    std::pair{"failed", SessionState::kFailed}}) {
    OurStream stream;
    stream.head({{"state", name}});
    EXPECT_EQ(made_of(stream.out.take(), convert::dial9_to_atf).manifest.state, state) << name;
  }
}

TEST_F(Dial9Fields, ThreadsAndFunctionsAreExplainedOnce) {
  OurStream stream;
  stream.head();
  const auto function = *stream.out.define({1,
                                            "FunctionInfo",
                                            true,
                                            {{"function", FieldType::kVarint},
                                             {"name", FieldType::kString},
                                             {"is_symbol", FieldType::kBool}}});
  const auto explain = [&](uint64_t id, std::string_view name, bool is_symbol) {
    stream.out.begin_event(function, 1000);
    stream.out.put_varint(id);
    stream.out.put_string(name);
    stream.out.put_bool(is_symbol);
    ASSERT_TRUE(stream.out.end_event());
  };
  stream.put_thread(3, 30, "first");
  stream.put_thread(3, 31, "second");
  explain(5, "made from a module", false);
  explain(5, std::string(5000, 'f'), true);
  explain(5, "again", true);
  explain(6, "other", true);
  stream.put(stream.call, 1000, {3, 5});
  stream.put(stream.call, 1000, {8, 6});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  ASSERT_EQ(made.manifest.threads.size(), 2u);
  EXPECT_EQ(made.manifest.threads[0].name, "first");
  EXPECT_EQ(made.manifest.threads[0].thread_id, 30u);
  EXPECT_EQ(made.manifest.threads[1].name, "");
  EXPECT_EQ(made.manifest.threads[1].thread_id, 8u);
  EXPECT_EQ(made.manifest.threads[1].start_ns, 1000u);
  ASSERT_EQ(made.manifest.symbols.size(), 2u);
  EXPECT_EQ(made.manifest.symbols[0].name, std::string(5000, 'f')) << "demangled names are long";
  EXPECT_EQ(made.manifest.symbols[1].name, "other");
  EXPECT_EQ(made.left_out(), Left());
}

// A thread that only a loss is known of is one all the same.
TEST_F(Dial9Fields, LossesOfBothLanesAreAddedUp) {
  OurStream stream;
  stream.head();
  stream.put(stream.gap, 900, {4, 0, 0, 1, 11, 12});
  stream.put(stream.gap, 900, {4, 0, 6, 1, 13, 14});
  stream.put(stream.gap, 900, {4, 0, 2, 4, 15, 16});
  stream.put(stream.gap, 900, {4, 1, 9, 2, 17, 18});
  stream.put(stream.call, 1000, {4, 5});
  const Made made = made_of(stream.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.log.counts(), (Left{{"lost_events", 8}}));
  ASSERT_EQ(made.manifest.threads.size(), 1u);
  EXPECT_EQ(made.manifest.threads[0].lost_events, 8u);
  EXPECT_EQ(made.manifest.threads[0].lost_detail_records, 9u);
  EXPECT_EQ(made.manifest.threads[0].start_ns, 900u);
}

TEST_F(Dial9Fields, DetailRecordHasItsFlagsAndBytes) {
  OurStream stream;
  stream.head();
  const auto exception = *stream.out.define(
      {1, "Exception", true, {{"thread", FieldType::kVarint}, {"function", FieldType::kVarint}}});
  stream.put(exception, 1000, {0, 5});
  stream.put_detail(1000, 0, static_cast<uint64_t>(atf::DetailType::kFunctionReturn), 0x18001,
                    {7, 8});
  atf::testing::write_file(at("x.bin"), stream.out.take());
  ASSERT_EQ(run(at("x.bin"), exports::Target::kAtf, at("back")), 0) << err_.str();
  EXPECT_EQ(report_["left_out"], nlohmann::json::object());
  const auto trace = read::open_trace(written());
  ASSERT_TRUE(trace.ok());
  const atf::SessionReader session(trace->files());
  ASSERT_TRUE(session.threads()[0].detail);
  auto records = session.threads()[0].detail->records();
  const auto record = records.next();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->type, atf::DetailType::kFunctionReturn);
  EXPECT_EQ(record->flags, 0x8001) << "the two bytes that a record has";
  EXPECT_EQ(record->timestamp_ns, 1000u);
  EXPECT_EQ(Octets(record->payload.begin(), record->payload.end()), (Octets{7, 8}));
}

TEST_F(Dial9Fields, StreamWithoutAHeaderIsNone) {
  for (const Octets& bytes : {Octets{}, Octets{'T', 'R'}}) {
    convert::SessionBuilder builder(storage::PosixFs(at("made")), atf::Version::kV2);
    convert::ConvertLog log;
    EXPECT_EQ(convert::dial9_to_atf(bytes, builder, log).code(), Code::kTruncated);
    EXPECT_FALSE(std::filesystem::exists(at("made")));
  }
}

// ---- a service

struct Service {
  dial9::EventType type(const std::string& name, std::vector<dial9::Field> fields,
                        bool has_time = true) {
    return *out.define({next++, name, has_time, std::move(fields)});
  }
  void put(dial9::EventType of, uint64_t ns, std::initializer_list<uint64_t> values) {
    out.begin_event(of, ns);
    for (const uint64_t value : values) out.put_varint(value);
    EXPECT_TRUE(out.end_event());
  }
  void entries(uint64_t ns, std::vector<dial9::StringPair> pairs) {
    if (!metadata) metadata = type("SegmentMetadataEvent", {{"entries", FieldType::kStringMap}});
    out.begin_event(*metadata, ns);
    out.put_string_map(pairs);
    EXPECT_TRUE(out.end_event());
  }

  dial9::Encoder out;
  uint16_t next = 1;
  std::optional<dial9::EventType> metadata;
};

constexpr auto kNumber = FieldType::kVarint;

TEST_F(Dial9Fields, WorkersAreNumbersOfAnyType) {
  for (const FieldType type : kTypes) {
    SCOPED_TRACE(static_cast<int>(type));
    Service service;
    const auto park = service.type("WorkerPark", {{"worker_id", type}});
    service.out.begin_event(park, 1000);
    put_one(service.out, type);
    ASSERT_TRUE(service.out.end_event());
    const Made made = made_of(service.out.take(), convert::dial9_to_atf);
    const bool is_known = type == FieldType::kI64 || (is_number(type) && type != FieldType::kBool);
    ASSERT_EQ(made.manifest.threads.size(), is_known ? 1u : 0u);
    if (is_known) {
      EXPECT_EQ(made.manifest.threads[0].name, "worker 1");
      EXPECT_EQ(made.manifest.threads[0].thread_id, 1u) << "nothing says its tid";
    } else {
      EXPECT_EQ(made.left_out(),
                (Left{{"WorkerPark: an ATF session has calls and returns of threads", 1}}));
    }
  }
}

TEST_F(Dial9Fields, EventsWithoutAWorkerOrATimeAreCounted) {
  Service service;
  const auto optional = service.type("PollStart", {{"worker_id", kNumber, true}});
  const auto timeless = service.type("PollEnd", {{"worker_id", kNumber}}, false);
  service.out.begin_event(optional, 500);
  service.out.put_absent();
  ASSERT_TRUE(service.out.end_event());
  service.out.begin_event(timeless);
  service.out.put_varint(0);
  ASSERT_TRUE(service.out.end_event());
  service.put(optional, 1000, {2});
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.identity.start_ns, 1000u) << "of the first that has one";
  EXPECT_EQ(made.manifest.totals.events, 1u);
  EXPECT_EQ(made.left_out(),
            (Left{{"PollStart: an ATF session has calls and returns of threads", 1},
                  {"PollEnd: an ATF session has calls and returns of threads", 1}}));
}

TEST_F(Dial9Fields, PollsAreCalledAfterTheirPlaceOrTheirTask) {
  Service service;
  const auto poll = service.type("PollStartEvent", {{"worker_id", kNumber},
                                                    {"task_id", kNumber, true},
                                                    {"spawn_loc", FieldType::kString, true}});
  const auto bare = service.type("PollStart", {{"worker_id", kNumber}});
  const auto odd = service.type(
      "PollStart",
      {{"worker_id", kNumber}, {"task_id", FieldType::kString}, {"spawn_loc", kNumber}});
  const auto end = service.type("PollEnd", {{"worker_id", kNumber}});
  uint64_t ns = 1000;
  const auto polled = [&](dial9::EventType type, std::optional<uint64_t> task,
                          std::optional<std::string_view> where, int fields) {
    service.out.begin_event(type, ns);
    service.out.put_varint(0);
    if (fields > 1) task ? service.out.put_varint(*task) : service.out.put_absent();
    if (fields > 1) where ? service.out.put_string(*where) : service.out.put_absent();
    ASSERT_TRUE(service.out.end_event());
    service.put(end, ns + 10, {0});
    ns += 20;
  };
  polled(poll, 7, "src/main.rs:1", 3);
  polled(poll, 7, "", 3);
  polled(poll, 8, std::nullopt, 3);
  polled(poll, std::nullopt, std::nullopt, 3);
  polled(poll, std::nullopt, "src/main.rs:1", 3);
  polled(bare, std::nullopt, std::nullopt, 1);
  service.out.begin_event(odd, ns);
  service.out.put_varint(0);
  service.out.put_string("9");
  service.out.put_varint(9);
  ASSERT_TRUE(service.out.end_event());
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  std::vector<std::string> names;
  for (const storage::Symbol& symbol : made.manifest.symbols) names.push_back(symbol.name);
  EXPECT_THAT(names, ElementsAre("src/main.rs:1", "task 7", "task 8", "poll"));
  EXPECT_EQ(made.manifest.totals.events, 13u);
  EXPECT_EQ(made.left_out(), Left());
}

TEST_F(Dial9Fields, WorkersThreadIsTheFirstThatAnyEventSays) {
  Service service;
  const auto park = service.type("WorkerParkEvent", {{"worker_id", kNumber}, {"tid", kNumber}});
  const auto unpark = service.type("WorkerUnpark", {{"worker_id", kNumber}});
  service.put(park, 1000, {5, 0});
  service.put(unpark, 1100, {5});
  service.put(park, 1200, {5, 77});
  service.put(park, 1300, {5, 78});
  service.put(park, 1250, {6, 0});
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  ASSERT_EQ(made.manifest.threads.size(), 2u);
  EXPECT_EQ(made.manifest.threads[0].thread_id, 77u);
  EXPECT_EQ(made.manifest.threads[0].name, "worker 5");
  EXPECT_EQ(made.manifest.threads[1].thread_id, 6u);
  EXPECT_EQ(made.manifest.threads[1].start_ns, 1250u);
  EXPECT_EQ(
      made.left_out(),
      (Left{{"ends of parks that the stream does not have: ended where the next one starts", 1}}));
}

TEST_F(Dial9Fields, TakesTheWorkerNumberFromItsNamedField) {
  Service service;
  const auto park = service.type("WorkerPark", {{"spins", kNumber}, {"worker_id", kNumber}});
  const auto unpark = service.type("WorkerUnpark", {{"spins", kNumber}, {"worker_id", kNumber}});
  service.put(park, 1000, {7, 3});
  service.put(unpark, 1100, {8, 3});
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  ASSERT_EQ(made.manifest.threads.size(), 1u);
  EXPECT_EQ(made.manifest.threads[0].name, "worker 3");
}

// Ends of another thing than what is open.
TEST_F(Dial9Fields, PollsAndParksDoNotEndEachOther) {
  Service service;
  const auto poll = service.type("PollStart", {{"worker_id", kNumber}});
  const auto poll_end = service.type("PollEnd", {{"worker_id", kNumber}});
  const auto park = service.type("WorkerPark", {{"worker_id", kNumber}});
  const auto unpark = service.type("WorkerUnpark", {{"worker_id", kNumber}});
  service.put(poll, 1000, {0});
  service.put(unpark, 1100, {0});
  service.put(poll_end, 1200, {0});
  service.put(park, 1300, {0});
  service.put(poll_end, 1400, {0});
  service.put(unpark, 1500, {0});
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.totals.events, 4u);
  EXPECT_EQ(made.left_out(), (Left{{"ends of polls whose start the stream does not have", 1},
                                   {"ends of parks whose start the stream does not have", 1}}));
}

// As they stand in the stream, with older ones of another sub-stream in between.
TEST_F(Dial9Fields, EventsOfOneTimeKeepTheirOrder) {
  Service service;
  const auto poll = service.type("PollStart", {{"worker_id", kNumber}});
  const auto end = service.type("PollEnd", {{"worker_id", kNumber}});
  for (uint64_t i = 0; i < 50; ++i) {
    service.put(poll, 5000, {0});
    service.put(end, 5000, {0});
    ASSERT_TRUE(service.out.begin_stream());
    service.put(poll, 1000 + i, {1});
    service.put(end, 1000 + i, {1});
  }
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.totals.events, 200u);
  EXPECT_EQ(made.left_out(), Left());
  EXPECT_EQ(made.moved_times, 0u);
}

TEST_F(Dial9Fields, ProcessOfAService) {
  struct Case {
    std::vector<dial9::StringPair> entries;
    std::string name;
    uint32_t pid;
  };
  const std::string longest(4096, 's');
  const Case cases[] = {
      {{{"service", "one"}, {"service_name", "two"}}, "two", 0},
      {{{"service_name", "two"}, {"service", "one"}}, "two", 0},
      {{{"service", "one"}, {"boot_id", "abcd-12"}}, "one", 12},
      {{{"other", "one"}, {"boot-id", "abcd-x-13"}}, "dial9", 13},
      {{{"boot_id", "15"}}, "dial9", 0},
      {{{"other", "abcd-16"}}, "dial9", 0},
      {{{"service_name", longest}}, longest, 0},
  };
  for (const Case& one : cases) {
    Service service;
    service.entries(1000, one.entries);
    const Made made = made_of(service.out.take(), convert::dial9_to_atf);
    EXPECT_EQ(made.manifest.identity.process_name, one.name);
    EXPECT_EQ(made.manifest.identity.pid, one.pid);
  }
  Service service;
  service.entries(1000, {{"service_name", longest + "t"}});
  EXPECT_EQ(made_of(service.out.take(), convert::dial9_to_atf).manifest.identity.process_name,
            longest);
}

TEST_F(Dial9Fields, FirstComparisonOfClocksCounts) {
  Service service;
  const auto other = service.type("ClockSyncEvent", {{"offset", kNumber}});
  const auto timeless = service.type("ClockSyncEvent", {{"realtime_ns", kNumber}}, false);
  const auto sync = service.type("ClockSyncEvent", {{"realtime_ns", kNumber}});
  const auto park = service.type("WorkerPark", {{"worker_id", kNumber}});
  service.put(other, 900, {1});
  service.out.begin_event(timeless);
  service.out.put_varint(2);
  ASSERT_TRUE(service.out.end_event());
  service.put(sync, 5000, {1'700'000'000'000'005'000});
  service.put(sync, 6000, {1'800'000'000'000'000'000});
  service.put(park, 3000, {0});
  const Made made = made_of(service.out.take(), convert::dial9_to_atf);
  EXPECT_EQ(made.manifest.identity.start_ns, 3000u);
  EXPECT_EQ(made.manifest.identity.start_unix_ns, 1'700'000'000'000'003'000u);
}

}  // namespace
}  // namespace collect::ctl
