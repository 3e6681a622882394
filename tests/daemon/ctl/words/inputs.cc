#include "tests/daemon/ctl/words/inputs.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "formats/atf/writer.h"
#include "formats/core/byte_sink.h"
#include "formats/dial9/writer.h"
#include "formats/rtc/meta/value.h"
#include "formats/rtc/writer.h"
#include "formats/wtf/binary/writer.h"
#include "storage/convert/session_builder.h"
#include "tests/formats/reference_files.h"

namespace collect::ctl::testing {
namespace {

namespace fs = std::filesystem;
using atf::EventKind;

constexpr uint64_t kModule = 7;
constexpr uint64_t kMain = kModule << 32 | 0x10, kDraw = kModule << 32 | 0x20,
                   kUnnamed = kModule << 32 | 0x40;

void expect_ok(const Status& status) {
  EXPECT_TRUE(status.ok()) << to_string(status.error());
}

Octets payload_of(uint64_t function_id, size_t stack_bytes) {
  atf::FunctionPayload payload{};
  payload.function_id = function_id;
  for (uint64_t r = 0; r < 8; ++r) payload.x_regs[r] = 0x100 + r;
  payload.lr = 0x1111;
  payload.fp = 0x2222;
  payload.sp = 0x3333;
  const Octets stack(stack_bytes, 0xAB);
  Octets bytes(atf::kFunctionPayloadBytes + stack_bytes);
  EXPECT_EQ(atf::encode_function_payload(payload, stack, bytes), bytes.size());
  return bytes;
}

void begin(convert::SessionBuilder& builder) {
  convert::BuiltProcess process;
  process.name = "app \xC3\xA9\x1B";
  process.executable = "/opt/app";
  process.pid = 42;
  process.start_ns = 1000;
  process.start_unix_ns = 1'700'000'000'000'000'000;
  process.arch = atf::Arch::kArm64;
  process.os = atf::Os::kAndroid;
  process.clock = atf::ClockType::kBoottime;
  expect_ok(builder.begin(process));
  builder.add_module({kModule, "/lib/libx.so", {1, 2, 0xAB}, 0x7000, 4096, 600, 0});
  builder.name_function({kMain, "main()"});
  builder.name_function({kDraw, "app::draw(int)"});
  builder.name_function({77, "never called"});
  EXPECT_TRUE(builder.add_thread(101, "main", 1000).ok());
  EXPECT_TRUE(builder.add_thread(102, "worker\x1B 1", 1100).ok());
  EXPECT_TRUE(builder.add_thread(103, "", 1200).ok());
}

fs::path finished(convert::SessionBuilder& builder) {
  const auto made = builder.finish(storage::SessionState::kComplete, "exit");
  EXPECT_TRUE(made.ok());
  return made.ok() ? *made : "";
}

}  // namespace

void change_manifest(const fs::path& session,
                     const std::function<void(storage::Manifest&)>& change) {
  const Octets was = reference::file_bytes(session / "manifest.json");
  auto manifest =
      storage::manifest_from_json({reinterpret_cast<const char*>(was.data()), was.size()});
  ASSERT_TRUE(manifest.ok());
  change(*manifest);
  const std::string text = storage::manifest_to_json(*manifest);
  reference::write_file(session / "manifest.json", {text.begin(), text.end()});
}

fs::path small_session(const fs::path& root, atf::Version version) {
  convert::SessionBuilder builder(storage::PosixFs(root.string()), version);
  begin(builder);
  expect_ok(builder.marker(1200, "begins"));
  const auto put = [&](uint32_t thread, uint64_t ns, uint64_t function, EventKind kind,
                       const Octets& detail = {}, uint16_t flags = 0) {
    expect_ok(builder.event(thread, ns, function, kind, detail, flags));
  };
  put(0, 1000, kMain, EventKind::kCall);
  put(0, 1500, kDraw, EventKind::kCall, payload_of(kDraw, 8), 0);
  put(0, 2500, kDraw, EventKind::kReturn, payload_of(kDraw, 0),
      atf::kDetailX0Valid << 1 | atf::kDetailFpValid);
  put(0, 3000, kUnnamed, EventKind::kCall);
  expect_ok(builder.event(0, 3400, kUnnamed, EventKind::kException, Octets{1, 2, 3}));
  builder.lost(0, Lane::kIndex, 5, kLostRingFull | kLostReentry, 4100, 4900);
  put(0, 5000, kDraw, EventKind::kCall);
  put(0, 6000, kDraw, EventKind::kReturn);
  put(0, 9000, kMain, EventKind::kReturn);
  put(1, 2000, kDraw, EventKind::kCall);
  put(1, 2200, kDraw, EventKind::kCall);
  builder.lost(1, Lane::kDetail, 3, kLostOverwritten, 2300, 2400);
  put(1, 2600, kDraw, EventKind::kReturn, payload_of(kDraw, 1), atf::kDetailX0Valid);
  put(1, 2650, kDraw, EventKind::kReturn);
  put(1, 2700, kUnnamed, EventKind::kReturn);
  put(1, 8000, kMain, EventKind::kCall);
  expect_ok(builder.marker(3700, "a \"marker\"\n"));
  fs::path session = finished(builder);
  change_manifest(session, [](storage::Manifest& manifest) {
    using storage::Stall, storage::StallKind;
    manifest.stalls = {{StallKind::kPageWait, 1600, 1800, 200, 1, 0},
                       {StallKind::kStopped, 5200, 5700, 300, 2, std::nullopt}};
    for (const Stall& stall : manifest.stalls) manifest.totals.stalls.add(stall);
    manifest.detail_windows.push_back({"armed", 1000, 9000, 900, 2, "trigger"});
    manifest.notes.push_back({1'700'000'000'000'000'005, "agent away"});
    manifest.clock_syncs.push_back(
        {1000, -500, 250, 1.5, 1'700'000'000'000'000'000, "0f0e0d0c-0000-4000-8000-000000000001"});
    manifest.identity.device_model = "Phone 1";
    manifest.identity.tag = "nightly";
  });
  return session;
}

fs::path other_session(const fs::path& root) {
  convert::SessionBuilder builder(storage::PosixFs(root.string()), atf::Version::kV2);
  begin(builder);
  const auto put = [&](uint32_t thread, uint64_t ns, uint64_t function, EventKind kind) {
    expect_ok(builder.event(thread, ns, function, kind));
  };
  put(0, 1000, kMain, EventKind::kCall);
  put(0, 2000, kDraw, EventKind::kCall);
  put(0, 6000, kDraw, EventKind::kReturn);
  put(0, 6500, 77, EventKind::kCall);
  put(0, 6600, 77, EventKind::kReturn);
  put(0, 8000, kMain, EventKind::kReturn);
  return finished(builder);
}

// ---- dial9

namespace {

void end_event(dial9::Encoder& out) {
  EXPECT_TRUE(out.end_event()) << to_text(out.refusal());
}

// A type with a field of every type.
dial9::EventType define_fields(dial9::Encoder& out) {
  using dial9::FieldType;
  return *out.define({258,
                      "Fields",
                      true,
                      {{"i64", FieldType::kI64},
                       {"f64", FieldType::kF64},
                       {"bool", FieldType::kBool},
                       {"string", FieldType::kString},
                       {"bytes", FieldType::kBytes},
                       {"pooled_stack", FieldType::kPooledStackFrames},
                       {"pooled", FieldType::kPooledString},
                       {"stack", FieldType::kStackFrames},
                       {"varint", FieldType::kVarint, true},
                       {"map", FieldType::kStringMap},
                       {"u8", FieldType::kU8},
                       {"u16", FieldType::kU16},
                       {"u32", FieldType::kU32},
                       {"list", FieldType::kDynamicList},
                       {"dynamic", FieldType::kDynamicMap}}});
}

constexpr uint64_t kTwoFrames[] = {0x10, 0xFFFF};

// Few elements and short texts, or more and longer ones than are shown.
void put_fields(dial9::Encoder& out, dial9::EventType fields, uint64_t ns, bool large) {
  std::vector<uint64_t> deep;
  for (uint64_t i = 0; i < 33; ++i) deep.push_back(i);
  std::vector<std::string> keys;
  std::vector<dial9::StringPair> pairs;
  for (int i = 0; i < (large ? 33 : 2); ++i) keys.push_back("k" + std::to_string(i));
  for (const std::string& key : keys) pairs.push_back({key, "v"});
  out.begin_event(fields, ns);
  out.put_i64(large ? std::numeric_limits<int64_t>::min() : 7);
  out.put_f64(large ? -0.1 : 2);
  out.put_bool(large);
  out.put_string(large ? std::string(201, 'x') : "a \"b\"\x1B");
  out.put_bytes(Octets(large ? 33 : 2, 0xCD));
  out.put_pooled_stack(large ? std::span<const uint64_t>(deep) : kTwoFrames);
  out.put_pooled_string(large ? "caf\xC3\xA9" : "src/main.rs:1");
  out.put_stack(large ? std::span<const uint64_t>(deep) : std::span<const uint64_t>());
  if (large) {
    out.put_varint(std::numeric_limits<uint64_t>::max());
  } else {
    out.put_absent();
  }
  out.put_string_map(pairs);
  out.put_u8(255);
  out.put_u16(65535);
  out.put_u32(4'294'967'295);
  out.begin_list();
  for (int i = 0; i < (large ? 33 : 0); ++i) out.put_varint(static_cast<uint64_t>(i));
  out.end_list();
  out.begin_map();
  for (int i = 0; i < (large ? 33 : 1); ++i) {
    out.put_string("key");
    out.put_bool(i % 2 == 0);
  }
  out.end_map();
  end_event(out);
}

// Elements of every type, and ids that no pool has.
void put_elements(dial9::Encoder& out, dial9::EventType fields,
                  const std::vector<dial9::StringPair>& entries) {
  out.begin_event(fields, 5'500'000'000);
  out.put_i64(-1);
  out.put_f64(std::numeric_limits<double>::infinity());
  out.put_bool(false);
  out.put_string("");
  out.put_bytes({});
  out.put_pooled_stack_id(9);
  out.put_pooled_string_id(8);
  out.put_stack(kTwoFrames);
  out.put_varint(0);
  out.put_string_map({});
  out.put_u8(0);
  out.put_u16(0);
  out.put_u32(0);
  out.begin_list();
  out.put_i64(-5);
  out.put_f64(0.5);
  out.put_bool(true);
  out.put_string("in a list");
  out.put_bytes(Octets{1, 2});
  out.put_pooled_stack_id(9);
  out.put_pooled_string_id(8);
  out.put_stack(kTwoFrames);
  out.put_string_map(entries);
  out.put_u8(1);
  out.begin_list();
  out.put_u8(2);
  out.end_list();
  out.begin_map();
  out.end_map();
  out.end_list();
  out.begin_map();
  out.end_map();
  end_event(out);
}

// A second sub-stream with more names than inspect lists.
void put_second_sub_stream(dial9::Encoder& out) {
  EXPECT_TRUE(out.begin_stream());
  for (uint16_t i = 0; i < 10; ++i) {
    const auto type =
        *out.define({i, "Extra" + std::to_string(i), true, {{"n", dial9::FieldType::kVarint}}});
    for (uint16_t k = 0; k <= i; ++k) {
      out.begin_event(type, 7'000'000'000 + i * 100u + k);
      out.put_varint(k);
      end_event(out);
    }
  }
}

}  // namespace

Octets dial9_of_everything() {
  using dial9::FieldType;
  dial9::Encoder out;
  const auto metadata =
      *out.define({256, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}}});
  const auto clock =
      *out.define({257, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}}});
  const auto fields = define_fields(out);
  const auto timeless = *out.define({259, "Timeless", false, {{"n", FieldType::kU8}}});
  expect_ok(out.annotate(fields, {{8, "unit", "ns"}, {3, "unit", "s"}, {12, "unit", "bytes"}}));

  const std::vector<dial9::StringPair> entries = {{"service_name", "shop"}, {"boot-id", "abcd-99"}};
  out.begin_event(metadata, 5'000'000'000);
  out.put_string_map(entries);
  end_event(out);
  out.begin_event(clock, 5'000'000'000);
  out.put_varint(1'700'000'000'123'000'000);
  end_event(out);

  put_fields(out, fields, 5'000'001'000, false);
  put_fields(out, fields, 6'000'000'000, true);
  put_elements(out, fields, entries);
  out.begin_event(timeless);
  out.put_u8(3);
  end_event(out);
  put_second_sub_stream(out);
  return out.take();
}

Octets dial9_of_workers() {
  using dial9::FieldType;
  dial9::Encoder out;
  const auto number = FieldType::kVarint;
  const auto metadata =
      *out.define({10, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}}});
  const auto clock = *out.define({11, "ClockSyncEvent", true, {{"realtime_ns", number}}});
  const auto start = *out.define(
      {0,
       "PollStartEvent",
       true,
       {{"worker_id", number}, {"task_id", number}, {"spawn_loc", FieldType::kPooledString}}});
  const auto end = *out.define({1, "PollEndEvent", true, {{"worker_id", number}}});
  const auto park =
      *out.define({2, "WorkerParkEvent", true, {{"worker_id", number}, {"tid", number}}});
  const auto unpark =
      *out.define({3, "WorkerUnparkEvent", true, {{"worker_id", number}, {"tid", number}}});
  const auto other = *out.define({4, "QueueSampleEvent", true, {{"depth", number}}});
  const auto ended = [&] { EXPECT_TRUE(out.end_event()) << to_text(out.refusal()); };
  const auto put = [&](dial9::EventType type, uint64_t ns, std::vector<uint64_t> values) {
    out.begin_event(type, ns);
    for (const uint64_t value : values) out.put_varint(value);
    ended();
  };
  const auto poll = [&](uint64_t ns, uint64_t worker, uint64_t task, std::string_view where) {
    out.begin_event(start, ns);
    out.put_varint(worker);
    out.put_varint(task);
    out.put_pooled_string(where);
    ended();
  };
  out.begin_event(metadata, 1000);
  out.put_string_map(
      std::vector<dial9::StringPair>{{"service_name", "shop"}, {"boot-id", "abcd-99"}});
  ended();
  put(clock, 1000, {1'700'000'000'000'001'000});
  put(end, 1500, {0});  // without its start
  poll(2000, 0, 7, "src/main.rs:1");
  poll(2500, 1, 8, "");
  put(end, 3000, {0});
  put(park, 3500, {0, 777});
  put(other, 3600, {4});
  put(end, 4000, {1});
  put(unpark, 5000, {0, 777});
  poll(6000, 1, 9, "src/main.rs:2");
  put(park, 7000, {1, 778});  // the poll has no end
  return out.take();
}

// ---- RTC

Octets rtc_of_everything() {
  VectorSink sink;
  rtc::WriterOptions options;
  options.geometry = {4096, 2048};
  auto writer = rtc::Writer::create(sink, options);
  EXPECT_TRUE(writer.ok());
  const auto open = [&](std::string name, std::string_view format, const auto&... change) {
    rtc::StreamInfo info;
    info.name = std::move(name);
    info.format = rtc::Format::parse(format);
    (change(info), ...);
    const auto id = writer->open_stream(std::move(info));
    EXPECT_TRUE(id.ok());
    return id.value();
  };
  const auto put = [&](uint64_t id, const Octets& bytes) { expect_ok(writer->write(id, bytes)); };
  const auto text = [&](uint64_t id, std::string_view bytes) {
    put(id, Octets(bytes.begin(), bytes.end()));
  };
  const auto on_clock = [](rtc::StreamInfo& info) { info.clock = "clk"; };
  const auto unread = open("before \x01", "utf-8");
  const uint64_t clock =
      open("clk", "timespec", [](rtc::StreamInfo& info) { info.is_clock = true; });
  const uint64_t scaled = open("temperature", "int16le", on_clock, [](rtc::StreamInfo& info) {
    info.gain = 0.5;
    info.offset = -5;
  });
  const uint64_t plain = open("count", "uint64le", on_clock);
  const uint64_t negative = open("signed", "int32be", on_clock);
  const uint64_t real = open("real", "float64le", on_clock);
  const uint64_t words = open("words", "utf-8", on_clock);
  const uint64_t document = open("document", "json", on_clock);
  const uint64_t picture = open("picture", "png", on_clock);
  const uint64_t nameless = open("", "raw");
  // Counts quarters of a second, from before zero on.
  const uint64_t quarters = open("quarters", "int16le", [](rtc::StreamInfo& info) {
    info.is_clock = true;
    info.gain = 0.25;
  });
  const uint64_t early =
      open("early", "uint8", [](rtc::StreamInfo& info) { info.clock = "quarters"; });
  const auto tick = [&](uint64_t ns) {
    std::array<uint8_t, rtc::kTimespecBytes> value;
    rtc::encode_timespec_ns(ns, value);
    expect_ok(writer->write(clock, value));
  };
  text(unread, "no clock yet");
  tick(1'500'000'000);
  put(scaled, {0x0A, 0x00});                                     // 10 * 0.5 - 5
  put(plain, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});  // all digits of it
  put(negative, {0xFF, 0xFF, 0xFF, 0xFD});                       // -3
  put(real, {0, 0, 0, 0, 0, 0, 0xF8, 0x3F});                     // 1.5
  put(real, {0, 0, 0, 0, 0, 0, 0xF8, 0x7F});                     // no number
  put(plain, {1, 2, 3});                                         // too short for its format
  tick(2'000'000'001);
  text(words, "a \"word\"\x1B");
  text(words, std::string(201, 'w'));
  text(document, "{\"a\": [1]}");
  put(picture, Octets(32, 0xAB));
  put(picture, Octets(33, 0xCD));
  put(nameless, {});
  put(quarters, {0xFB, 0xFF});
  put(early, {9});
  tick(3'250'000'000);
  for (uint8_t i = 0; i < 5; ++i) put(picture, Octets(1000, i));
  text(words, "the last one");
  expect_ok(writer->finish());
  return sink.bytes();
}

Octets rtc_without_clock() {
  VectorSink sink;
  auto writer = rtc::Writer::create(sink, {.geometry = {4096, 2048}, .endian = rtc::Endian::kBig});
  EXPECT_TRUE(writer.ok());
  rtc::StreamInfo info;
  info.name = "words";
  info.format = rtc::Format::parse("utf-8");
  const auto id = writer->open_stream(info);
  EXPECT_TRUE(id.ok());
  expect_ok(writer->write(*id, Octets{'h', 'i'}));
  expect_ok(writer->finish());
  return sink.bytes();
}

// ---- WTF-trace

Octets wtf_of_everything() {
  VectorSink sink;
  wtf::WriterOptions options;
  options.pair_scopes = false;
  wtf::Writer writer(sink, options);
  wtf::FileHeader header;
  header.timebase_ms = 1'700'000'000'123.5;
  header.context->title = "a \"title\"\x1B";
  expect_ok(writer.begin(header));
  const auto main = writer.create_zone("main", "script", "https://example.org");
  const auto other = writer.create_zone("other");
  const auto bare = writer.create_zone("", std::nullopt, std::nullopt);
  const uint32_t draw = *writer.define_scope("draw", "uint32 n, utf8 what");
  const uint32_t numbers = *writer.define_instance(
      "numbers",
      "bool b, int8 i8, uint8 u8, int16 i16, uint16 u16, int32 i32, uint32 u32, float32 f, char c, "
      "wchar w, flowId flow, time32 t");
  const uint32_t texts =
      *writer.define_instance("texts", "ascii a, utf8 u, any j, utf8 none, any null");
  const uint32_t arrays = *writer.define_instance(
      "arrays", "int8[] empty, uint16[] some, float32[] reals, char[] chars, uint8[] many");
  const uint64_t us = 1000;
  expect_ok(writer.set_zone(*main));
  expect_ok(writer.start_frame(10 * us, 1));
  expect_ok(writer.enter(draw, 1500 * us, {7, "a\x1B"}));
  expect_ok(writer.enter_named("inner", 1600 * us));
  expect_ok(writer.append_scope_data(1610 * us, "key", "[1]"));
  expect_ok(writer.set_zone(*other));
  expect_ok(writer.mark(1700 * us, "here", "{\"k\": 1}"));
  expect_ok(
      writer.event(numbers, 1701 * us,
                   {true, -8, 255, -16, 65535, -32, 4'294'967'295u, 1.5f, 'c', u'w', 5, 1500}));
  expect_ok(
      writer.event(numbers, 1702 * us,
                   {false, 0, 0, 0, 0, 0, 0, std::numeric_limits<float>::infinity(), 0, 0, 0, 0}));
  expect_ok(writer.event(texts, 1703 * us,
                         {"ascii", std::string(201, 'u'), "{\"a\": [1, null]}", nullptr, nullptr}));
  const std::vector<uint16_t> some = {1, 65535};
  const std::vector<float> reals = {0.5f, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<char> chars = {'h', 'i'};
  const std::vector<uint8_t> many(17, 3);
  expect_ok(writer.event(arrays, 1704 * us,
                         {wtf::Arg::array(std::span<const int8_t>()),
                          wtf::Arg::array(std::span(some)), wtf::Arg::array(std::span(reals)),
                          wtf::Arg::array(std::span(chars)), wtf::Arg::array(std::span(many))}));
  expect_ok(writer.leave(1710 * us));  // of nothing
  expect_ok(writer.time_stamp(1720 * us, "stamp", "2"));
  expect_ok(writer.discontinuity(1730 * us));
  expect_ok(writer.begin_range(1740 * us, 3, "range", "null"));
  expect_ok(writer.end_range(1750 * us, 3));
  expect_ok(writer.branch_flow(1760 * us, 4, 0, "flow"));
  expect_ok(writer.extend_flow(1761 * us, 4, "on"));
  expect_ok(writer.append_flow_data(1762 * us, 4, "data", "5"));
  expect_ok(writer.terminate_flow(1763 * us, 4));
  EXPECT_TRUE(writer.add_string_resource("a resource").ok());
  expect_ok(writer.set_zone(*main));
  expect_ok(writer.leave(1750 * us));
  expect_ok(writer.leave(2000 * us));
  expect_ok(writer.end_frame(2100 * us, 1));
  expect_ok(writer.enter_named("open", 2'100'000 * us));
  expect_ok(writer.set_zone(*bare));
  expect_ok(writer.finish());
  return sink.bytes();
}

Octets wtf_of_zones(size_t zones) {
  VectorSink sink;
  wtf::Writer writer(sink);
  expect_ok(writer.begin(wtf::FileHeader{}));
  for (size_t i = 0; i < zones; ++i) {
    expect_ok(writer.set_zone(*writer.create_zone("zone " + std::to_string(i))));
    expect_ok(writer.mark(1000 * (i + 1), "m"));
  }
  expect_ok(writer.finish());
  return sink.bytes();
}

}  // namespace collect::ctl::testing
