// The decoder's policy, case by case, on bytes laid out by hand from the given document and from
// the facts that newer writers add. The vectors of the reference pack (samples_test.cc) have the
// same cases made by another program.
#include "formats/dial9/read/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/core/text/utf8.h"
#include "formats/core/text/utf8_text.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using ::testing::ElementsAre;
using testing::record;
using testing::Recorder;

using Raw = std::vector<uint8_t>;

Raw operator+(Raw left, const Raw& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const Raw kHead = {'T', 'R', 'C', 0, 1};

Raw schema(uint8_t type, uint8_t has_timestamp = 1) {
  return {1, 0, 0, 1, 0, 'A', has_timestamp, 1, 0, 1, 0, 'v', type};
}

Raw event(const Raw& payload, uint8_t delta = 1) {
  return Raw{2, 0, 0, delta, 0, 0} + payload;
}

TEST(Decoder, HeadersResetSchemasPoolsAndTime) {
  const Raw one = kHead + schema(7) + Raw{3, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 'x'} +
                  Raw{5, 100, 0, 0, 0, 0, 0, 0, 0} + event({4, 0, 0, 0});
  const Recorder both = record(one + kHead + schema(7) + event({4, 0, 0, 0}));
  ASSERT_EQ(both.events.size(), 2u);
  EXPECT_EQ(both.events[0].timestamp_ns, 101u);
  EXPECT_EQ(std::get<PooledText>(both.events[0].values[0].content), (PooledText{4, "x"}));
  EXPECT_EQ(both.events[1].timestamp_ns, 1u);
  EXPECT_EQ(std::get<PooledText>(both.events[1].values[0].content), (PooledText{4, std::nullopt}));
  const Recorder forgotten = record(one + kHead + event({4, 0, 0, 0}));
  EXPECT_EQ(forgotten.rule, Rule::kUnknownType);
  EXPECT_EQ(forgotten.frame_offset, one.size() + 5);
}

// Ids need not follow one another: recorders of today count from 256 on.
// Nothing shorter than these fields is possible, and nothing is behind them.
TEST(Decoder, SchemaOfTheShortestFieldsMayEndTheStream) {
  for (size_t fields = 0; fields < 6; ++fields) {
    Raw bytes = kHead + Raw{1, 0, 0, 0, 0, 1, static_cast<uint8_t>(fields), 0};
    for (size_t i = 0; i < fields; ++i) bytes = bytes + Raw{0, 0, 9};
    const Recorder seen = record(bytes);
    EXPECT_EQ(seen.rule, Rule::kNone) << fields;
    ASSERT_EQ(seen.schemas.size(), 1u) << fields;
    EXPECT_EQ(seen.schemas[0].fields.size(), fields);
    bytes.pop_back();
    EXPECT_EQ(record(bytes).rule, Rule::kTruncated) << fields;
  }
}

TEST(Decoder, TypeIdsMayHaveHoles) {
  const Raw high = {1, 0xFF, 0xFF, 1, 0, 'H', 1, 1, 0, 1, 0, 'v', 11};
  const Raw low = {1, 0, 1, 1, 0, 'L', 1, 1, 0, 1, 0, 'v', 11};
  const Recorder seen =
      record(kHead + high + low + Raw{2, 0, 1, 3, 0, 0, 5} + Raw{2, 0xFF, 0xFF, 4, 0, 0, 6});
  ASSERT_EQ(seen.rule, Rule::kNone);
  ASSERT_EQ(seen.events.size(), 2u);
  EXPECT_EQ(seen.events[0].schema.name, "L");
  EXPECT_EQ(seen.events[1].schema.name, "H");
  EXPECT_EQ(seen.events[1].timestamp_ns, 7u);
  EXPECT_EQ(record(kHead + high + Raw{2, 0, 2, 0, 0, 0, 1}).rule, Rule::kUnknownType);
}

TEST(Decoder, EventWithoutTimeTakesTheBase) {
  struct Times : Visitor {
    void on_event(const Event& event) {
      seen.emplace_back(event.has_timestamp(), event.timestamp_ns());
    }
    std::vector<std::pair<bool, uint64_t>> seen;
  };
  const Raw untimed_schema = {1, 1, 0, 1, 0, 'U', 0, 1, 0, 1, 0, 'v', 11};
  const Raw untimed = {2, 1, 0, 9};
  const Raw reset = {5, 100, 0, 0, 0, 0, 0, 0, 0};
  Raw stream = kHead + schema(11) + untimed_schema + untimed + event({1}, 20) + untimed + reset +
               untimed + event({1}, 3) + untimed;
  const std::vector<std::pair<bool, uint64_t>> expected = {{false, 0},   {true, 20},  {false, 20},
                                                           {false, 100}, {true, 103}, {false, 103}};
  // With and without bytes behind it: the fast way and the careful one.
  for (const bool more : {false, true}) {
    Times times;
    Decoder decoder;
    if (more) stream = stream + kHead + Raw(64, 0);
    (void)decoder.decode(stream, times);
    EXPECT_EQ(times.seen, expected) << more;
  }
}

TEST(Decoder, RefusesOtherVersionsAtTheStartAndInside) {
  EXPECT_EQ(record(Raw{'T', 'R', 'C', 0, 2}).rule, Rule::kVersion);
  EXPECT_EQ(record(Raw{'T', 'R', 'C', 0, 0}).rule, Rule::kVersion);
  const Recorder inside = record(kHead + schema(9) + event({1}) + Raw{'T', 'R', 'C', 0, 9});
  EXPECT_EQ(inside.rule, Rule::kVersion);
  EXPECT_EQ(inside.events.size(), 1u);
  EXPECT_EQ(to_error({Rule::kVersion, 1, 1, ""}).code, Code::kUnsupported);
}

TEST(Decoder, RejectsOtherStreams) {
  EXPECT_EQ(record({}).rule, Rule::kTruncated);
  EXPECT_EQ(record(Raw{'T', 'R'}).rule, Rule::kTruncated);
  EXPECT_EQ(record(Raw{'T', 'O', 'K'}).rule, Rule::kHeader);
  EXPECT_EQ(record(Raw{1, 0, 0}).rule, Rule::kHeader);
  EXPECT_EQ(record(Raw{2, 0, 0}).rule, Rule::kHeader);
  EXPECT_FALSE(looks_like_dial9(Raw{'T', 'R', 'C', 0}));
  EXPECT_TRUE(looks_like_dial9(Raw{'T', 'R', 'C', 0, 7}));
}

TEST(Decoder, UnknownTagsEndReadingWithAnOffset) {
  for (const uint8_t tag : {uint8_t{0}, uint8_t{7}, uint8_t{0x80}, uint8_t{0xFF}}) {
    const Recorder seen = record(kHead + schema(9) + event({1}) + Raw{tag} + event({1}));
    EXPECT_EQ(seen.rule, Rule::kTag);
    EXPECT_EQ(seen.frame_offset, 5u + 13 + 7);
    EXPECT_EQ(seen.events.size(), 1u);
  }
}

TEST(Decoder, SchemasAgain) {
  EXPECT_EQ(record(kHead + schema(9) + schema(9) + event({1})).events.size(), 1u);
  EXPECT_EQ(record(kHead + schema(9, 1) + schema(9, 77) + event({1})).rule, Rule::kNone);
  EXPECT_EQ(record(kHead + schema(9, 77) + schema(9, 1) + event({1})).rule, Rule::kNone);
  EXPECT_EQ(record(kHead + schema(9, 77) + schema(9, 78) + event({1})).rule, Rule::kNone);
  EXPECT_EQ(record(kHead + schema(9) + schema(11)).rule, Rule::kSchemaConflict);
  EXPECT_EQ(record(kHead + schema(9, 1) + schema(9, 0)).rule, Rule::kSchemaConflict);
  EXPECT_EQ(record(kHead + schema(9, 0) + schema(9, 1)).rule, Rule::kSchemaConflict);
  EXPECT_EQ(record(kHead + schema(9, 0) + schema(9, 0) + Raw{2, 0, 0, 5}).events.size(), 1u);
  EXPECT_EQ(record(kHead + schema(9) + schema(9 | kOptionalBit)).rule, Rule::kSchemaConflict);
  // Annotations are no part of the schema.
  const Raw note = {6, 0, 1, 0, 0, 0, 1, 0, 'k', 1, 0, 0, 0, 'v'};
  const Recorder again = record(kHead + schema(9) + note + schema(9) + event({1}));
  EXPECT_EQ(again.rule, Rule::kNone);
  EXPECT_EQ(again.annotations.size(), 1u);
}

TEST(Decoder, NamesMustBeUtf8) {
  EXPECT_EQ(record(kHead + Raw{1, 0, 0, 1, 0, 0xFF, 1, 0, 0}).rule, Rule::kName);
  EXPECT_EQ(record(kHead + Raw{1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0xC0, 9}).rule, Rule::kName);
}

TEST(Decoder, FieldTypesThatDoNotExist) {
  for (const int type : {0, 16, 0x7F, 0x80, 0x90, 0xFF})
    EXPECT_EQ(record(kHead + schema(static_cast<uint8_t>(type))).rule, Rule::kFieldType) << type;
}

TEST(Decoder, Varints) {
  const Raw defined = kHead + schema(9);
  const auto value = [&](const Raw& bytes) -> std::optional<uint64_t> {
    // With and without bytes behind it: the fast way and the careful one.
    const Recorder tail = record(defined + event(bytes));
    const Recorder inner =
        record(defined + event(bytes) + event(Raw{0}) + event(Raw{0}) + event(Raw{0}));
    EXPECT_EQ(inner.rule, tail.rule);
    if (tail.events.empty()) return std::nullopt;
    EXPECT_EQ(tail.events[0], inner.events[0]);
    return std::get<uint64_t>(tail.events[0].values[0].content);
  };
  EXPECT_EQ(value({0x7F}), 127u);
  EXPECT_EQ(value({0x80, 1}), 128u);
  EXPECT_EQ(value({0x81, 0}), 1u);
  EXPECT_EQ(value({0xE5, 0x8E, 0x26}), 624485u);  // the example of DWARF
  const Raw nine(9, 0xFF);
  EXPECT_EQ(value(Raw(8, 0xFF) + Raw{0x7F}), (uint64_t{1} << 63) - 1);
  EXPECT_EQ(value(nine + Raw{1}), UINT64_MAX);
  EXPECT_EQ(value(Raw{0x81} + Raw(8, 0x80) + Raw{0}), 1u);
  EXPECT_EQ(value(nine + Raw{2}), std::nullopt);
  EXPECT_EQ(record(defined + event(nine + Raw{2})).rule, Rule::kVarint);
  EXPECT_EQ(record(defined + event(Raw(10, 0x80) + Raw{0})).rule, Rule::kVarint);
  for (size_t bytes = 1; bytes <= 10; ++bytes) {
    Raw padded(bytes, 0x80);
    padded.back() = 0;
    EXPECT_EQ(value(padded), 0u) << bytes;
    Raw full(bytes, 0xFF);
    full.back() = bytes == 10 ? 1 : 0x7F;
    EXPECT_EQ(value(full), bytes == 10 ? UINT64_MAX : (uint64_t{1} << (7 * bytes)) - 1) << bytes;
  }
}

TEST(Decoder, AnyNonZeroByteIsTrueOrPresent) {
  EXPECT_EQ(std::get<uint64_t>(record(kHead + schema(3) + event({2})).events[0].values[0].content),
            1u);
  const Recorder optional = record(kHead + schema(0x89) + event({0xFF, 6}) + event({0}));
  ASSERT_EQ(optional.events.size(), 2u);
  EXPECT_EQ(std::get<uint64_t>(optional.events[0].values[0].content), 6u);
  EXPECT_FALSE(optional.events[1].values[0].present());
}

TEST(Decoder, TimesBeyond64Bits) {
  const Raw top = {5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  EXPECT_EQ(record(kHead + schema(9) + top + event({1}, 0)).events[0].timestamp_ns, UINT64_MAX);
  for (const Raw& behind : {Raw{}, event({1}, 0) + event({1}, 0) + event({1}, 0)}) {
    const Recorder seen = record(kHead + schema(9) + top + event({1}, 1) + behind);
    EXPECT_EQ(seen.rule, Rule::kTime);
    EXPECT_TRUE(seen.events.empty());
  }
}

TEST(Decoder, EventsWithoutTimeDoNotMoveTheBase) {
  const Raw untimed = {1, 1, 0, 0, 0, 0, 0, 0};
  const Recorder seen =
      record(kHead + schema(9) + untimed + event({1}, 5) + Raw{2, 1, 0} + event({1}, 5));
  ASSERT_EQ(seen.events.size(), 3u);
  EXPECT_EQ(seen.events[1].timestamp_ns, std::nullopt);
  EXPECT_EQ(seen.events[2].timestamp_ns, 10u);
}

TEST(Decoder, ElementsOfListsAndMaps) {
  const Raw list = kHead + schema(14);
  const auto rule = [&](const Raw& payload) { return record(list + event(payload)).rule; };
  EXPECT_EQ(rule({1, 0, 0, 0, 9, 5}), Rule::kNone);
  EXPECT_EQ(rule({1, 0, 0, 0, 0x89, 1, 5}), Rule::kElementType);
  EXPECT_EQ(rule({1, 0, 0, 0, 0, 0}), Rule::kElementType);
  EXPECT_EQ(rule({1, 0, 0, 0, 16, 0}), Rule::kElementType);
  EXPECT_EQ(rule({2, 0, 0, 0, 9, 5}), Rule::kTruncated);
  EXPECT_EQ(rule({0xFF, 0xFF, 0xFF, 0xFF, 9, 5}), Rule::kFrameSize);
  const Recorder map = record(kHead + schema(15) + event({1, 0, 0, 0, 4, 0, 0, 0, 0, 11, 7}));
  ASSERT_EQ(map.events.size(), 1u);
  EXPECT_EQ(std::get<std::vector<OwnedValue>>(map.events[0].values[0].content).size(), 2u);
  EXPECT_EQ(record(kHead + schema(15) + event({1, 0, 0, 0, 4, 0, 0, 0, 0})).rule, Rule::kTruncated);
}

TEST(Decoder, PoolsAreResolvedAsOfReading) {
  const auto define = [](char text) {
    return Raw{3, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, uint8_t(text)};
  };
  const Raw use = event({1, 0, 0, 0});
  const Recorder seen = record(kHead + schema(7) + use + define('a') + use + define('b') + use);
  const auto text = [&](size_t i) {
    return std::get<PooledText>(seen.events[i].values[0].content).text;
  };
  EXPECT_EQ(text(0), std::nullopt);
  EXPECT_EQ(text(1), "a");
  EXPECT_EQ(text(2), "b");
}

// Pool ids far apart, in any order: the array and the hash table give the same.
TEST(Decoder, SparsePoolIds) {
  PoolTable table;
  const uint8_t bytes[300] = {};
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 100; ++i) {
      const uint32_t id = i * i * i * 4001 + round;
      EXPECT_EQ(table.find(id), nullptr);
      table.define(id, {bytes + i, i});
      table.define(id, {bytes + i + 1, i + 1});
    }
  }
  EXPECT_EQ(table.ids(), 300u);
  EXPECT_EQ(table.definitions(), 600u);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_NE(table.find(i * i * i * 4001), nullptr);
    EXPECT_EQ(table.find(i * i * i * 4001)->data, bytes + i + 1);
  }
  table.clear();
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.ids(), 0u);
}

// Ids below 64 + 2 x definitions take a place of the array, all others an entry of their own.
TEST(Decoder, FarPoolIdTakesNoLargeArray) {
  const uint8_t byte = 0;
  const auto state_with = [&](std::initializer_list<uint32_t> ids) {
    PoolTable table;
    for (const uint32_t id : ids) table.define(id, {&byte, 1});
    return table.state_bytes();
  };
  EXPECT_EQ(state_with({63}), 64 * sizeof(PoolTable::Entry));
  EXPECT_LT(state_with({64}), 100u);
  EXPECT_EQ(state_with({0, 65}), 66 * sizeof(PoolTable::Entry));
  EXPECT_LT(state_with({0, 66}), 100u);
  EXPECT_LT(state_with({UINT32_MAX}), 100u);
}

TEST(Decoder, AnnotationsOfUnknownTypesAreShownAndLeftOut) {
  const Raw entry = {1, 0, 0, 0, 1, 0, 'k', 1, 0, 0, 0, 'v'};
  for (const Raw& id : {Raw{7}, Raw{0x80, 0x80, 4}}) {  // 7, 65536
    const Raw stream = kHead + schema(9) + Raw{6} + id + entry;
    Decoder decoder;
    Recorder seen;
    EXPECT_EQ(decoder.decode(stream, seen).state, DecodeState::kEnd);
    EXPECT_EQ(seen.annotations.size(), 1u);
    EXPECT_FALSE(decoder.schemas().find(0)->has_annotations());
  }
  const Raw known = kHead + schema(9) + Raw{6, 0} + entry + Raw{6, 0x80, 0} + entry;
  Decoder decoder;
  Visitor ignored;
  EXPECT_EQ(decoder.decode(known, ignored).state, DecodeState::kEnd);
  EXPECT_THAT(decoder.schemas().find(0)->annotations(),
              ElementsAre(Annotation{0, "k", "v"}, Annotation{0, "k", "v"}));
}

// `need` is what the frame has at least: what its counts and lengths say, and no more.
TEST(Decoder, UnfinishedFrameSaysHowManyBytesItHas) {
  struct Known {
    size_t bytes;   // from so many on
    uint64_t need;  // the frame has at least these
  };
  // The second entry of each is as short as can be; the whole is the last number.
  const std::pair<Raw, std::vector<Known>> frames[] = {
      {{1, 0, 0, 1, 0, 'A', 1, 2, 0, 1, 0, 'v', 9, 0, 0, 9}, {{1, 8}, {5, 9}, {9, 15}, {11, 16}}},
      {{3, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 'x', 5, 0, 0, 0, 0, 0, 0, 0},
       {{1, 5}, {5, 21}, {13, 22}}},
      {{4, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 0, 0, 0, 0, 0, 0, 0},
       {{1, 5}, {5, 21}, {13, 29}}},
      {{5, 1, 2, 3, 4, 5, 6, 7, 8}, {{1, 9}}},
      {{6, 0, 2, 0, 0, 0, 1, 0, 'k', 1, 0, 0, 0, 'v', 0, 0, 0, 0, 0, 0, 0, 0},
       {{1, 4}, {4, 20}, {8, 21}, {13, 22}}},
      {{6, 0x80, 0, 0, 0}, {{1, 4}, {2, 5}}},
      {{'T', 'R', 'C', 0, 1}, {{1, 5}}},
  };
  for (const auto& [frame, known] : frames) {
    EXPECT_EQ(frame.size(), known.back().need) << int{frame[0]};
    for (size_t bytes = 1; bytes < frame.size(); ++bytes) {
      Decoder decoder;
      Visitor ignored;
      const Decoded decoded =
          decoder.decode(kHead + Raw(frame.begin(), frame.begin() + ptrdiff_t(bytes)), ignored);
      ASSERT_EQ(decoded.state, DecodeState::kNeedMore) << int{frame[0]} << " " << bytes;
      EXPECT_EQ(decoded.bytes, kHead.size());
      uint64_t need = 0;
      for (const Known& one : known) {
        if (one.bytes <= bytes) need = one.need;
      }
      EXPECT_EQ(decoded.need, need) << int{frame[0]} << " " << bytes;
    }
  }
}

// An optional field has its presence byte at least.
TEST(Decoder, UnfinishedEventSaysHowManyBytesItHas) {
  const Raw types = {1, 0, 0, 0, 0, 1, 4, 0, 0, 0, 11, 0, 0, 1, 0, 0, 0x81, 0, 0, 7};
  const Raw whole = {2, 0, 0, 1, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0, 0, 0};
  for (size_t bytes = 1; bytes < whole.size(); ++bytes) {
    Decoder decoder;
    Visitor ignored;
    const Decoded decoded = decoder.decode(
        kHead + types + Raw(whole.begin(), whole.begin() + ptrdiff_t(bytes)), ignored);
    ASSERT_EQ(decoded.state, DecodeState::kNeedMore) << bytes;
    EXPECT_EQ(decoded.need, bytes < 3 ? 3u : bytes < 6 ? 6u : 20u) << bytes;
  }
}

// FORMAT.md "Limits": of one sub-stream; annotations count as the schema does, each once.
TEST(Decoder, SchemasAndAnnotationsTakeNoMoreThanIsGiven) {
  constexpr uint8_t kLow = 60'000 & 0xFF;
  constexpr uint8_t kHigh = 60'000 >> 8;
  const Raw named = Raw{1, 0, 0, kLow, kHigh} + Raw(60'000, 'A') + Raw{1, 0, 0};
  const Raw note = Raw{6, 0, 1, 0, 0, 0, 0, 0, kLow, kHigh, 0, 0} + Raw(60'000, 'v');
  const auto rule = [](const Raw& stream, uint64_t given) {
    DecoderOptions options;
    options.max_state_bytes = given;
    return record(stream, options).rule;
  };
  EXPECT_EQ(rule(kHead + named, 60'000), Rule::kState);
  EXPECT_EQ(rule(kHead + named, 61'000), Rule::kNone);
  EXPECT_EQ(rule(kHead + named + kHead + named, 61'000), Rule::kNone) << "one at a time";
  EXPECT_EQ(rule(kHead + schema(9) + note, 60'000), Rule::kState);
  EXPECT_EQ(rule(kHead + named + note, 120'000), Rule::kState);
  EXPECT_EQ(rule(kHead + named + note, 122'000), Rule::kNone);
}

// value.h: no type's content is another's, and an address is no number.
TEST(Decoder, OtherTypesOfAValueAreNothing) {
  const uint8_t bytes[16] = {1};
  for (const FieldType type :
       {FieldType::kString, FieldType::kBytes, FieldType::kStackFrames, FieldType::kStringMap,
        FieldType::kDynamicList, FieldType::kDynamicMap}) {
    const Value value = Value::borrowed(type, bytes, 1);
    EXPECT_EQ(value.u64(), 0u) << to_text(type);
    EXPECT_EQ(value.i64(), 0);
    EXPECT_EQ(value.f64(), 0.0);
    EXPECT_EQ(value.pool_id(), 0u);
    EXPECT_FALSE(value.boolean());
  }
  const Value number = Value::number(FieldType::kVarint, 5);
  EXPECT_EQ(number.u64(), 5u);
  EXPECT_TRUE(number.bytes().empty());
  EXPECT_TRUE(number.text().empty());
  EXPECT_EQ(number.stack().size(), 0u);
  EXPECT_EQ(number.string_map().left(), 0u);
  EXPECT_EQ(number.dynamic().left(), 0u);
  EXPECT_EQ(number.nesting(), 0u);
}

struct StopAtFirst : Visitor {
  void on_event(const Event&) { ++events; }
  bool wants_more() const { return events == 0; }
  int events = 0;
};

TEST(Decoder, VisitorMayStopAndGoOn) {
  const Raw stream = kHead + schema(9) + event({1}) + event({2});
  Decoder decoder;
  StopAtFirst once;
  const Decoded first = decoder.decode(stream, once);
  EXPECT_EQ(first.state, DecodeState::kStopped);
  EXPECT_EQ(first.bytes, stream.size() - 7);
  EXPECT_EQ(first.need, 0u);
  Recorder rest;
  EXPECT_EQ(decoder.decode(Bytes(stream).subspan(first.bytes), rest).state, DecodeState::kEnd);
  EXPECT_EQ(rest.events.size(), 1u);
  EXPECT_EQ(rest.events[0].timestamp_ns, 2u);
}

TEST(Decoder, ContinuesAfterDamageAtTheNextHeader) {
  const Raw part = kHead + schema(9) + event({1});
  const Raw stream = part + Raw{0xEE, 0xEE} + part;
  Decoder decoder;
  Recorder seen;
  const Decoded first = decoder.decode(stream, seen);
  EXPECT_EQ(first.state, DecodeState::kFailed);
  // Before that it takes nothing more.
  const Decoded again = decoder.decode(part, seen);
  EXPECT_EQ(again.state, DecodeState::kFailed);
  EXPECT_EQ(again.bytes, 0u);
  EXPECT_EQ(again.need, 0u);
  const auto next = find_header(stream, first.bytes);
  ASSERT_EQ(next, part.size() + 2);
  decoder.resume_at(*next);
  EXPECT_EQ(decoder.decode(Bytes(stream).subspan(*next), seen).state, DecodeState::kEnd);
  EXPECT_EQ(seen.events.size(), 2u);
  EXPECT_EQ(decoder.offset(), stream.size());
  EXPECT_EQ(decoder.sub_streams(), 2u);
  EXPECT_EQ(find_header(stream, *next + 1), std::nullopt);
}

TEST(Decoder, FieldsByName) {
  struct ByName : Visitor {
    void on_event(const Event& event) {
      EXPECT_EQ(event.find("v")->u64(), 5u);
      EXPECT_EQ(event.find("w"), nullptr);
      EXPECT_EQ(event.text(0), std::nullopt);
      seen = true;
    }
    bool seen = false;
  } visitor;
  Decoder decoder;
  decoder.decode(kHead + schema(9) + event({5}), visitor);
  EXPECT_TRUE(visitor.seen);
}

TEST(Decoder, TextsAndStacksOfFieldsWithoutAndWithPools) {
  struct Asker : Visitor {
    void on_event(const Event& event) {
      for (size_t field = 0; field < event.size(); ++field) {
        texts.emplace_back(event.text(field).value_or("none"));
        const auto stack = event.stack(field);
        leaves.push_back(!stack ? -1 : stack->size() == 0 ? 0 : static_cast<int>((*stack)[0]));
      }
    }
    std::vector<std::string> texts;
    std::vector<int> leaves;
  };
  // A String, two PooledStrings, a StackFrames, two PooledStackFrames, and one that is absent.
  const Raw types = {1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 7,   0,
                     0, 7, 0, 0, 8, 0, 0, 6, 0, 0, 6, 0, 0, 0x88};
  const Raw pools = Raw{3, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 'p'} +
                    Raw{4, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0};
  const Raw values = Raw{2, 0, 0, 1, 0, 0, 0, 's', 5, 0, 0, 0, 6, 0, 0, 0} +
                     Raw{1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0};
  Asker asker;
  Decoder decoder;
  ASSERT_EQ(decoder.decode(kHead + types + pools + values, asker).state, DecodeState::kEnd);
  EXPECT_THAT(asker.texts, ElementsAre("s", "p", "none", "none", "none", "none", "none"));
  EXPECT_THAT(asker.leaves, ElementsAre(-1, -1, -1, 7, 42, -1, -1));
}

// A view of bytes that no decoder has checked shows what is right in them.
TEST(Decoder, ViewOfBrokenBytesEnds) {
  const auto values = [](const Raw& bytes, bool is_map) {
    DynamicView view(bytes, is_map);
    size_t count = 0;
    for (Value value; view.next(value);) ++count;
    Value value;
    EXPECT_FALSE(view.next(value));
    return count;
  };
  EXPECT_EQ(DynamicView(Raw{3, 0, 0, 0}, true).left(), 6u) << "keys and values";
  EXPECT_EQ(DynamicView(Raw{3, 0, 0, 0}, false).left(), 3u);
  EXPECT_EQ(values({}, false), 0u);
  EXPECT_EQ(values({1, 0, 0}, false), 0u);
  EXPECT_EQ(values({2, 0, 0, 0, 9, 1, 9, 2}, false), 2u);
  EXPECT_EQ(values({1, 0, 0, 0, 9, 1, 9, 2}, true), 2u);
  EXPECT_EQ(values({1, 0, 0, 0, 9, 1, 9, 2}, false), 1u);
  EXPECT_EQ(values({2, 0, 0, 0, 9, 1}, false), 1u);
  EXPECT_EQ(values({2, 0, 0, 0, 9, 1, 16, 2}, false), 1u);
  EXPECT_EQ(values({3, 0, 0, 0, 9, 1, 13, 2, 0, 9}, false), 1u);
}

TEST(Utf8, ValidAndNot) {
  for (const char* good : {"", "abcdefghijk", "é中😀", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good)) << good;
  // Unicode 15, table 3-8 and the text around it.
  const std::pair<std::string, std::string> bad[] = {
      {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
       "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB"},
      {"12345678\xE4\xB8", "12345678\uFFFD"}};
  for (const auto& [bytes, shown] : bad) {
    EXPECT_FALSE(is_utf8(bytes));
    std::string out;
    append_utf8(bytes, out);
    EXPECT_EQ(out, shown);
  }
}

}  // namespace
}  // namespace collect::dial9
