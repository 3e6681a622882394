// The encoder's bytes against the given document's tables, worked out by hand, and its promise that
// an event is in the stream whole or not at all.
#include "formats/dial9/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::joined;
using testing::kHeader;
using testing::record;
using testing::Recorder;

Schema simple(uint16_t id, std::vector<Field> fields, bool has_timestamp = true) {
  return {id, "A", has_timestamp, std::move(fields)};
}

const std::vector<uint8_t> kSimpleFrame = {1, 0, 0, 1, 0, 'A', 1, 1, 0, 1, 0, 'v', 9};

TEST(Encoder, EmptyStreamIsItsHeader) {
  Encoder encoder;
  EXPECT_THAT(encoder.bytes(), ElementsAreArray(kHeader));
  EXPECT_EQ(encoder.sub_streams(), 1u);
}

TEST(Encoder, WritesSchemaBeforeEventsAndTimeDeltas) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
  for (const uint64_t time : {10u, 17u}) {
    encoder.begin_event(type, time);
    encoder.put_varint(300);
    ASSERT_TRUE(encoder.end_event());
  }
  EXPECT_EQ(
      encoder.take(),
      joined({kHeader, kSimpleFrame, {2, 0, 0, 10, 0, 0, 0xAC, 2}, {2, 0, 0, 7, 0, 0, 0xAC, 2}}));
  EXPECT_EQ(encoder.events(), 2u);
  EXPECT_EQ(encoder.total_bytes(), 5u + 13 + 16);
}

TEST(Encoder, ResetsWhereADeltaDoesNotFit) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {}));
  const uint64_t times[] = {0xFFFFFF, 2 * 0xFFFFFFull, 3 * 0xFFFFFFull + 1, 5, UINT64_MAX, 0};
  for (const uint64_t time : times) {
    encoder.begin_event(type, time);
    ASSERT_TRUE(encoder.end_event());
  }
  const Recorder seen = record(encoder.bytes());
  // The first two fit exactly; one more does not; then it goes back, far ahead, and back again,
  // where the difference of 64-bit numbers would be 1.
  EXPECT_THAT(seen.resets, ElementsAre(3 * 0xFFFFFFull + 1, 5, UINT64_MAX, 0));
  ASSERT_EQ(seen.events.size(), std::size(times));
  for (size_t i = 0; i < seen.events.size(); ++i) EXPECT_EQ(seen.events[i].timestamp_ns, times[i]);
}

TEST(Encoder, TypeWithoutTimeKeepsTheTimeBase) {
  Encoder encoder;
  const EventType timed = *encoder.define(simple(0, {}));
  const EventType untimed = *encoder.define({1, "N", false, {{"v", FieldType::kU8}}});
  encoder.begin_event(timed, 100);
  ASSERT_TRUE(encoder.end_event());
  encoder.begin_event(untimed);
  encoder.put_u8(7);
  ASSERT_TRUE(encoder.end_event());
  encoder.begin_event(timed, 101);
  ASSERT_TRUE(encoder.end_event());
  const std::vector<uint8_t> tail = {2, 1, 0, 7, 2, 0, 0, 1, 0, 0};
  const std::vector<uint8_t> all = encoder.take();
  EXPECT_THAT(std::vector<uint8_t>(all.end() - 10, all.end()), ElementsAreArray(tail));

  encoder.begin_event(untimed, 5);
  encoder.put_u8(7);
  EXPECT_FALSE(encoder.end_event());
  EXPECT_EQ(encoder.refusal(), Refusal::kTime);
  encoder.begin_event(timed);
  EXPECT_FALSE(encoder.end_event());
  EXPECT_EQ(encoder.refusal(), Refusal::kTime);
  EXPECT_TRUE(encoder.bytes().empty());
}

TEST(Encoder, EveryTypeAsTheTablesSay) {
  Encoder encoder;
  Schema schema = simple(7, {});
  for (uint8_t type = 1; type <= 15; ++type)
    schema.fields.push_back({"", static_cast<FieldType>(type)});
  const EventType type = *encoder.define(schema);
  const size_t head = kHeader.size() + 5 + 1 + 3 + 15 * 3;
  encoder.begin_event(type, 1);
  encoder.put_i64(-2);
  encoder.put_f64(3.25);
  encoder.put_bool(true);
  encoder.put_string("hé");
  encoder.put_bytes(std::vector<uint8_t>{0xDE, 0});
  encoder.put_pooled_stack_id(3);
  encoder.put_pooled_string_id(5);
  encoder.put_stack(std::vector<uint64_t>{0x1000});
  encoder.put_varint(UINT64_MAX);
  encoder.put_string_map(std::vector<StringPair>{{"k", "v"}, {"", ""}});
  encoder.put_u8(255);
  encoder.put_u16(0x1234);
  encoder.put_u32(0x12345678);
  encoder.begin_list();
  encoder.put_varint(300);
  encoder.begin_list();
  encoder.put_bool(true);
  encoder.end_list();
  encoder.end_list();
  encoder.begin_map();
  encoder.put_string("k");
  encoder.put_u8(7);
  encoder.end_map();
  ASSERT_TRUE(encoder.end_event()) << to_text(encoder.refusal());
  const std::vector<uint8_t> all = encoder.take();
  const std::vector<uint8_t> expected =
      joined({{2, 7, 0, 1, 0, 0},
              {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
              {0, 0, 0, 0, 0, 0, 0x0A, 0x40},
              {1},
              {3, 0, 0, 0, 'h', 0xC3, 0xA9},
              {2, 0, 0, 0, 0xDE, 0},
              {3, 0, 0, 0},
              {5, 0, 0, 0},
              {1, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0},
              {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1},
              {2, 0, 0, 0, 1, 0, 0, 0, 'k', 1, 0, 0, 0, 'v', 0, 0, 0, 0, 0, 0, 0, 0},
              {255},
              {0x34, 0x12},
              {0x78, 0x56, 0x34, 0x12},
              {2, 0, 0, 0, 9, 0xAC, 2, 14, 1, 0, 0, 0, 3, 1},
              {1, 0, 0, 0, 4, 1, 0, 0, 0, 'k', 11, 7}});
  EXPECT_THAT(std::vector<uint8_t>(all.begin() + static_cast<ptrdiff_t>(head), all.end()),
              ElementsAreArray(expected));
}

TEST(Encoder, OptionalFieldsHaveAPresenceByte) {
  Encoder encoder;
  const EventType type =
      *encoder.define(simple(0, {{"a", FieldType::kVarint, true}, {"b", FieldType::kU16, true}}));
  encoder.begin_event(type, 0);
  encoder.put_absent();
  encoder.put_u16(9);
  ASSERT_TRUE(encoder.end_event());
  const std::vector<uint8_t> all = encoder.take();
  EXPECT_THAT(std::vector<uint8_t>(all.end() - 10, all.end()),
              ElementsAre(2, 0, 0, 0, 0, 0, 0, 1, 9, 0));
}

TEST(Encoder, DefinesStringsOfAnEventInOneFrame) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"a", FieldType::kPooledString},
                                                    {"b", FieldType::kPooledString},
                                                    {"c", FieldType::kPooledStackFrames}}));
  const std::vector<uint64_t> stack = {9, 8};
  for (int i = 0; i < 3; ++i) {
    encoder.begin_event(type, 1);
    encoder.put_pooled_string("left");
    encoder.put_pooled_string(i == 0 ? "right" : "left");
    encoder.put_pooled_stack(stack);
    ASSERT_TRUE(encoder.end_event());
  }
  const Recorder seen = record(encoder.bytes());
  EXPECT_THAT(seen.pool_frames, ElementsAre(2, 1));
  ASSERT_EQ(seen.events.size(), 3u);
  const auto text = [&](size_t event, size_t field) {
    return std::get<PooledText>(seen.events[event].values[field].content);
  };
  EXPECT_EQ(text(0, 0), (PooledText{0, "left"}));
  EXPECT_EQ(text(0, 1), (PooledText{1, "right"}));
  EXPECT_EQ(text(2, 1), (PooledText{0, "left"}));
  EXPECT_EQ(std::get<PooledStack>(seen.events[2].values[2].content), (PooledStack{0, stack}));
}

TEST(Encoder, NewStreamNeedsNoEarlierOne) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"a", FieldType::kPooledString}}));
  ASSERT_TRUE(encoder.annotate(type, {{0, "unit", "ns"}}).ok());
  std::vector<std::vector<uint8_t>> parts;
  for (int i = 0; i < 2; ++i) {
    if (i != 0) {
      ASSERT_TRUE(encoder.begin_stream());
    }
    encoder.begin_event(type, 5);
    encoder.put_pooled_string("x");
    ASSERT_TRUE(encoder.end_event());
    parts.push_back(encoder.take());
  }
  EXPECT_EQ(parts[0], parts[1]);
  const Recorder both = record(joined({parts[0], parts[1]}));
  EXPECT_EQ(both.rule, Rule::kNone);
  EXPECT_THAT(both.headers, ElementsAre(0, parts[0].size()));
  EXPECT_EQ(both.schemas.size(), 2u);
  EXPECT_EQ(both.annotations.size(), 2u);
  EXPECT_EQ(both.events[0], both.events[1]);
}

TEST(Encoder, AnnotationsAddedLaterFollowWithoutTheSchema) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
  ASSERT_TRUE(encoder.announce(type));
  ASSERT_TRUE(encoder.annotate(type, {{0, "kind", "x"}}).ok());
  ASSERT_TRUE(encoder.announce(type));
  ASSERT_TRUE(encoder.announce(type));
  EXPECT_EQ(
      encoder.take(),
      joined(
          {kHeader, kSimpleFrame, {6, 0, 1, 0, 0, 0, 4, 0, 'k', 'i', 'n', 'd', 1, 0, 0, 0, 'x'}}));
  EXPECT_EQ(encoder.annotate(type, {{1, "k", "v"}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(encoder.annotate({9}, {}).code(), Code::kInvalidArgument);
}

// What was announced before the event stays; what came with it is written again.
TEST(Encoder, AbortedEventRemovesItsAnnotations) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
  ASSERT_TRUE(encoder.announce(type));
  ASSERT_TRUE(encoder.annotate(type, {{0, "kind", "x"}}).ok());
  encoder.begin_event(type, 9);
  encoder.abort_event();
  encoder.begin_event(type, 9);
  encoder.put_varint(1);
  ASSERT_TRUE(encoder.end_event());
  EXPECT_EQ(encoder.take(), joined({kHeader,
                                    kSimpleFrame,
                                    {6, 0, 1, 0, 0, 0, 4, 0, 'k', 'i', 'n', 'd', 1, 0, 0, 0, 'x'},
                                    {2, 0, 0, 9, 0, 0, 1}}));
}

TEST(Encoder, RefusesSchemasThatDecodersRefuse) {
  Encoder encoder;
  const auto code = [&](const Schema& schema) { return encoder.define(schema).code(); };
  EXPECT_EQ(code({0, "\xFF", true, {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({0, std::string(65536, 'a'), true, {}}), Code::kInvalidArgument);
  EXPECT_EQ(encoder.define({0, std::string(65536, 'a'), true, {}}).error().message,
            "the type's name has 65536 bytes, the limit is 65535");
  EXPECT_EQ(code({0, "A", true, std::vector<Field>(65536)}), Code::kInvalidArgument);
  EXPECT_EQ(code({0, "A", true, {{"\xC0\x80", FieldType::kU8}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({0, "A", true, {{"v", static_cast<FieldType>(16)}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({0, "A", true, {{"v", static_cast<FieldType>(0)}}}), Code::kInvalidArgument);
  ASSERT_TRUE(encoder.define({0, std::string(65535, 'a'), true, std::vector<Field>(65535)}).ok());
  EXPECT_EQ(code({0, "B", true, {}}), Code::kAlreadyExists);
  const EventType again =
      *encoder.define({0, std::string(65535, 'a'), true, std::vector<Field>(65535)});
  EXPECT_EQ(again.index, 0u);
  EXPECT_EQ(encoder.define({65535, "", false, {}}).ok(), true);
}

// Everything that can go wrong within an event leaves no byte of it.
TEST(Encoder, RefusedEventLeavesNothing) {
  using Put = void (*)(Encoder&);
  const std::pair<Put, Refusal> cases[] = {
      {[](Encoder& e) { e.put_u8(1); }, Refusal::kWrongValue},
      {[](Encoder& e) { e.put_absent(); }, Refusal::kWrongValue},
      {[](Encoder& e) { e.put_varint(1); }, Refusal::kMissing},
      {[](Encoder& e) { e.put_varint(1), e.begin_list(); }, Refusal::kMissing},
      {[](Encoder& e) { e.put_varint(1), e.begin_list(), e.put_absent(); }, Refusal::kWrongValue},
      {[](Encoder& e) { e.put_varint(1), e.begin_list(), e.end_map(); }, Refusal::kNesting},
      {[](Encoder& e) { e.put_varint(1), e.end_list(); }, Refusal::kNesting},
      {[](Encoder& e) { e.put_varint(1), e.begin_list(), e.begin_map(), e.put_u8(1), e.end_map(); },
       Refusal::kMissing},
      {[](Encoder& e) { e.put_varint(1), e.begin_map(); }, Refusal::kWrongValue},
      {[](Encoder& e) {
         e.put_varint(1);
         for (size_t i = 0; i <= kMaxWrittenNesting; ++i) e.begin_list();
       },
       Refusal::kNesting},
      {[](Encoder& e) { e.put_varint(1), e.begin_list(), e.end_list(), e.put_u8(1); },
       Refusal::kWrongValue},
      {[](Encoder& e) { e.begin_event({0}, 9); }, Refusal::kNotOpen},
      {[](Encoder& e) { e.put_pooled_string_id(Encoder::kInvalidPoolId); }, Refusal::kTooLong},
  };
  for (const auto& [put, refusal] : cases) {
    Encoder encoder;
    const EventType type =
        *encoder.define(simple(0, {{"a", FieldType::kVarint}, {"b", FieldType::kDynamicList}}));
    encoder.begin_event(type, 1000);
    put(encoder);
    EXPECT_FALSE(encoder.end_event());
    EXPECT_EQ(encoder.refusal(), refusal) << to_text(encoder.refusal());
    EXPECT_THAT(encoder.bytes(), ElementsAreArray(kHeader)) << to_text(refusal);
    // The next one is right, with its schema and its own delta.
    encoder.begin_event(type, 7);
    encoder.put_varint(1);
    encoder.begin_list();
    encoder.end_list();
    ASSERT_TRUE(encoder.end_event());
    const Recorder seen = record(encoder.bytes());
    ASSERT_EQ(seen.events.size(), 1u);
    EXPECT_EQ(seen.rule, Rule::kNone);
    EXPECT_EQ(seen.events[0].timestamp_ns, 7u);
    EXPECT_TRUE(seen.resets.empty());
  }
}

// The first fault is the one that is reported, and a value without an event reports just that.
TEST(Encoder, KeepsTheFirstRefusal) {
  const std::vector<uint64_t> addresses = {1};
  const std::function<void(Encoder&)> puts[] = {
      [](Encoder& e) { e.put_varint(1); },
      [](Encoder& e) { e.put_i64(1); },
      [](Encoder& e) { e.put_string("x"); },
      [&](Encoder& e) { e.put_stack(addresses); },
      [](Encoder& e) { e.put_string_map({}); },
      [](Encoder& e) { e.put_absent(); },
      [](Encoder& e) { e.put_pooled_string("x"); },
      [](Encoder& e) { e.put_pooled_string_id(Encoder::kInvalidPoolId); },
      [](Encoder& e) { e.begin_list(); },
      [](Encoder& e) { e.end_list(); },
      [](Encoder& e) { e.end_map(); },
  };
  for (size_t i = 0; i < std::size(puts); ++i) {
    Encoder encoder;
    const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
    puts[i](encoder);
    EXPECT_EQ(encoder.refusal(), Refusal::kNotOpen) << i;
    encoder.begin_event(type, 1);
    encoder.put_u8(1);
    puts[i](encoder);
    EXPECT_FALSE(encoder.end_event());
    EXPECT_EQ(encoder.refusal(), Refusal::kWrongValue) << i;
  }
}

// Also where lists were open as deep as they may be.
TEST(Encoder, RefusedEventHasNoOpenLists) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kDynamicList}}));
  encoder.begin_event(type, 1);
  for (size_t i = 0; i < kMaxWrittenNesting; ++i) encoder.begin_list();
  encoder.put_absent();
  encoder.begin_list();
  EXPECT_FALSE(encoder.end_event());
  EXPECT_EQ(encoder.refusal(), Refusal::kWrongValue);
}

TEST(Encoder, EventWithoutItsLastFieldIsRefused) {
  for (uint8_t type = 1; type <= 15; ++type) {
    for (const bool optional : {false, true}) {
      Encoder encoder;
      encoder.begin_event(
          *encoder.define(simple(0, {{"v", static_cast<FieldType>(type), optional}})), 1);
      EXPECT_FALSE(encoder.end_event()) << int{type};
      EXPECT_EQ(encoder.refusal(), Refusal::kMissing) << int{type};
    }
  }
}

// An aborted event takes back the schema that came with it, and no other.
TEST(Encoder, AbortedEventsTakeBackTheirOwnSchemaOnly) {
  Encoder encoder;
  const EventType first = *encoder.define({0, "A", true, {}});
  const EventType second = *encoder.define({1, "B", true, {}});
  ASSERT_TRUE(encoder.announce(first));
  for (const EventType type : {second, first, first}) {
    encoder.begin_event(type, 1);
    encoder.abort_event();
  }
  for (const EventType type : {first, second}) {
    encoder.begin_event(type, 1);
    ASSERT_TRUE(encoder.end_event());
  }
  const Recorder seen = record(encoder.bytes());
  EXPECT_EQ(seen.rule, Rule::kNone);
  EXPECT_EQ(seen.schemas.size(), 2u);
  EXPECT_EQ(seen.events.size(), 2u);
}

TEST(Encoder, RefusalAfterEventsKeepsThoseAndTheirSchema) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
  for (const bool good : {true, false, true}) {
    encoder.begin_event(type, 50);
    good ? encoder.put_varint(1) : encoder.put_bool(true);
    EXPECT_EQ(encoder.end_event(), good);
  }
  encoder.begin_event(type, 60);
  encoder.put_varint(1);
  encoder.abort_event();
  EXPECT_FALSE(encoder.end_event());
  EXPECT_EQ(encoder.refusal(), Refusal::kNotOpen);
  const Recorder seen = record(encoder.bytes());
  EXPECT_EQ(seen.events.size(), 2u);
  EXPECT_EQ(seen.schemas.size(), 1u);
}

// Published decoders give up at more elements than these.
TEST(Encoder, RefusesMoreElementsThanPublishedDecodersTake) {
  for (const size_t count : {kMaxWrittenElements, kMaxWrittenElements + 1}) {
    const bool fits = count == kMaxWrittenElements;
    const std::vector<uint64_t> addresses(count);
    const std::vector<StringPair> pairs(count);
    const std::function<void(Encoder&)> puts[] = {[&](Encoder& e) { e.put_stack(addresses); },
                                                  [&](Encoder& e) { e.put_string_map(pairs); },
                                                  [&](Encoder& e) {
                                                    e.begin_list();
                                                    for (size_t i = 0; i < count; ++i)
                                                      e.put_bool(true);
                                                    e.end_list();
                                                  },
                                                  [&](Encoder& e) {
                                                    e.begin_map();
                                                    for (size_t i = 0; i < 2 * count; ++i)
                                                      e.put_bool(true);
                                                    e.end_map();
                                                  }};
    const FieldType types[] = {FieldType::kStackFrames, FieldType::kStringMap,
                               FieldType::kDynamicList, FieldType::kDynamicMap};
    for (size_t i = 0; i < std::size(puts); ++i) {
      Encoder encoder;
      encoder.begin_event(*encoder.define(simple(0, {{"v", types[i]}})), 0);
      puts[i](encoder);
      EXPECT_EQ(encoder.end_event(), fits) << i;
      if (!fits) {
        EXPECT_EQ(encoder.refusal(), Refusal::kTooLong) << i;
      }
    }
  }
}

// The last MiB of a frame's 2^32 - 1 bytes is for values of fixed size. A buffer that is full says
// so only of what could be written.
TEST(Encoder, EventIsNoLongerThanAFrame) {
  constexpr uint64_t kMostBytes = 0xFFFFFFFF - (1u << 20);
  constexpr uint64_t kBeforeText = 6 + 4;  // the event's head and the text's length
  for (const bool fits : {true, false}) {
    std::vector<uint8_t> buffer(100);
    Encoder encoder{MutableBytes(buffer)};
    const EventType type = *encoder.define(simple(0, {{"v", FieldType::kString}}));
    ASSERT_TRUE(encoder.announce(type));
    encoder.begin_event(type, 1);
    // No one looks at the text before there is room for it.
    encoder.put_string({"x", kMostBytes - kBeforeText + (fits ? 0 : 1)});
    EXPECT_FALSE(encoder.end_event());
    EXPECT_EQ(encoder.refusal(), fits ? Refusal::kNoRoom : Refusal::kTooLong);
  }
}

TEST(Encoder, DeepestNestingIsRead) {
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kDynamicList}}));
  encoder.begin_event(type, 0);
  for (size_t i = 0; i < kMaxWrittenNesting; ++i) encoder.begin_list();
  for (size_t i = 0; i < kMaxWrittenNesting; ++i) encoder.end_list();
  ASSERT_TRUE(encoder.end_event()) << to_text(encoder.refusal());
  EXPECT_EQ(record(encoder.bytes()).events.size(), 1u);
}

// A buffer of every size takes as many whole events as fit, never a part of one.
TEST(Encoder, FillsTheCallersBufferToTheLastByte) {
  std::vector<uint8_t> whole;
  std::vector<uint64_t> ends;
  const auto write = [](Encoder& encoder, uint64_t i) {
    const EventType type = *encoder.define(simple(0, {{"a", FieldType::kVarint},
                                                      {"b", FieldType::kPooledString},
                                                      {"c", FieldType::kString, true}}));
    encoder.begin_event(type, i * 9'000'000);
    encoder.put_varint(uint64_t{1} << (9 * i));
    encoder.put_pooled_string(i % 2 == 0 ? "even" : "odd");
    encoder.put_string("text");
    return encoder.end_event();
  };
  {
    Encoder encoder;
    for (uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(write(encoder, i));
    whole = encoder.take();
    ends = record(whole).ends;
  }
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::vector<uint8_t> buffer(size);
    Encoder encoder{MutableBytes(buffer)};
    uint64_t written = 0;
    while (written < 6 && write(encoder, written)) ++written;
    const auto fit = static_cast<uint64_t>(
        std::count_if(ends.begin(), ends.end(), [&](uint64_t end) { return end <= size; }));
    ASSERT_EQ(written, fit) << size;
    if (written < 6) {
      EXPECT_EQ(encoder.refusal(), Refusal::kNoRoom);
    }
    const Bytes bytes = encoder.bytes();
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), whole.begin())) << size;
    ASSERT_EQ(bytes.size(), written == 0 ? (size < 5 ? 0 : 5) : ends[written - 1]) << size;
  }
}

TEST(Encoder, AnnouncesKnownTypesIfThereIsRoom) {
  for (size_t size = 0; size <= 18; ++size) {
    std::vector<uint8_t> buffer(size);
    Encoder encoder{MutableBytes(buffer)};
    const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
    ASSERT_EQ(encoder.announce(type), size == 18) << size;
    if (size < 18) {
      EXPECT_EQ(encoder.refusal(), Refusal::kNoRoom);
    }
    EXPECT_EQ(encoder.bytes().size(), size < 5 ? 0u : size < 18 ? 5u : 18u) << size;
    EXPECT_EQ(encoder.announce(type), size == 18) << "again";
    EXPECT_FALSE(encoder.announce(EventType{1}));
    EXPECT_EQ(encoder.refusal(), Refusal::kUnknownType);
  }
  Encoder encoder;
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
  const EventType other = *encoder.define(simple(1, {}));
  encoder.begin_event(type, 1);
  EXPECT_FALSE(encoder.announce(other));
  EXPECT_EQ(encoder.refusal(), Refusal::kNotOpen);
  encoder.put_varint(1);
  EXPECT_TRUE(encoder.end_event());
  EXPECT_TRUE(encoder.announce(other));
  EXPECT_EQ(record(encoder.bytes()).schemas.size(), 2u);
}

TEST(Encoder, FullBufferContinuesAfterClear) {
  std::vector<uint8_t> buffer(40);
  Encoder encoder{MutableBytes(buffer)};
  const EventType type = *encoder.define(simple(0, {{"v", FieldType::kVarint}}));
  std::vector<uint8_t> all;
  for (uint64_t i = 0; i < 100; ++i) {
    while (true) {
      encoder.begin_event(type, i * 10);
      encoder.put_varint(i);
      if (encoder.end_event()) break;
      ASSERT_EQ(encoder.refusal(), Refusal::kNoRoom);
      const std::vector<uint8_t> part = encoder.take();
      ASSERT_FALSE(part.empty());
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  const std::vector<uint8_t> part = encoder.take();
  all.insert(all.end(), part.begin(), part.end());
  EXPECT_EQ(encoder.total_bytes(), all.size());
  const Recorder seen = record(all);
  ASSERT_EQ(seen.events.size(), 100u);
  EXPECT_EQ(seen.schemas.size(), 1u);
  EXPECT_EQ(seen.events[99].timestamp_ns, 990u);
}

}  // namespace
}  // namespace collect::dial9
