// Meta JSON: what is read, what is refused, and that what is written comes back.
#include "formats/rtc/meta/meta.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/formats/rtc/random_container.h"

namespace collect::rtc {
namespace {

using testing::bytes_of;

Meta parsed(const std::string& json) {
  auto meta = parse_meta(bytes_of(json));
  EXPECT_TRUE(meta.ok()) << json;
  return meta.ok() ? std::move(meta).value() : Meta{};
}

TEST(RtcMeta, EveryKey) {
  const Meta meta = parsed(
      R"([{"id":9,"name":"clk","clock":true,"format":"uleb128","gain":1e-6,"offset":-10,)"
      R"("delta":"base","length":3,"cont":true},)"
      R"({"id":10,"name":"r","stream":"clk","clock":"clk","type":"annotate/utf-8","foo":{"b":[1]}},)"
      R"({"id":11,"name":null,"clock":null,"length":null,"gain":null},12])");
  ASSERT_EQ(meta.streams.size(), 3u);
  EXPECT_EQ(meta.next_id, 12u);
  EXPECT_TRUE(meta.complaints.empty());
  const StreamInfo& clk = meta.streams[0];
  EXPECT_TRUE(clk.is_clock && clk.cont);
  EXPECT_EQ(clk.clock, "");
  EXPECT_EQ(clk.format.kind, FormatKind::kLeb128);
  EXPECT_EQ(clk.gain->text(), "1e-6");
  EXPECT_EQ(clk.offset->text(), "-10");
  EXPECT_EQ(clk.delta, "base");
  EXPECT_EQ(clk.length, 3u);
  const StreamInfo& remarks = meta.streams[1];
  EXPECT_EQ(remarks.format.kind, FormatKind::kAnnotation);
  EXPECT_EQ(remarks.stream, "clk");
  EXPECT_EQ(remarks.clock, "clk");
  EXPECT_EQ(remarks.extra_json("foo"), R"({"b":[1]})");
  EXPECT_EQ(remarks.extra_json("type"), "");
  EXPECT_EQ(meta.streams[2].label(), "id 11");
  EXPECT_EQ(meta.streams[2].format.kind, FormatKind::kRaw);
}

// What a double would round to 1795880713.7003102 is as it was written, in a key of an
// application too, and goes back as it came.
TEST(RtcMeta, NumbersKeepTheirDigits) {
  const std::string text =
      R"({"id":9,"name":"clk","clock":true,"format":"uint64le","gain":1e-9,)"
      R"("offset":1795880713.700310289,"x":[1795880713.700310289,{"b":-0.10,"a":{}},[],"s"]})";
  const Meta meta = parsed("[ " + text + " , 10 ]");
  ASSERT_EQ(meta.streams.size(), 1u);
  EXPECT_TRUE(meta.complaints.empty());
  const StreamInfo& clock = meta.streams[0];
  EXPECT_EQ(clock.offset->text(), "1795880713.700310289");
  EXPECT_EQ(clock.extra_json("x"), R"([1795880713.700310289,{"b":-0.10,"a":{}},[],"s"])");
  // 123.456789123 s behind the offset.
  EXPECT_EQ(ExactTime::of_integer(123456789123, *clock.gain, *clock.offset)->nanoseconds(),
            1795880837157099412);
  const auto written = stream_json(clock);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, text);
}

TEST(RtcMeta, NumberOfMoreDigitsIsRoundedAndReported) {
  const Meta meta = parsed(R"([{"id":9,"offset":1795880713.7003102891},10])");
  ASSERT_EQ(meta.streams.size(), 1u);
  EXPECT_EQ(meta.streams[0].offset->text(), "1795880713.7003102");
  ASSERT_EQ(meta.complaints.size(), 1u);
  EXPECT_EQ(
      meta.complaints[0],
      "stream 9: \"offset\" has more digits than can be kept: 1795880713.7003102891 is read as "
      "1795880713.7003102");
}

TEST(RtcMeta, FormatWinsOverItsAlias) {
  const Meta meta = parsed(R"([{"id":9,"format":"utf-8","type":"uint8"},10])");
  EXPECT_EQ(meta.streams[0].format.kind, FormatKind::kUtf8);
  EXPECT_EQ(meta.streams[0].extra_json("type"), R"("uint8")");
}

TEST(RtcMeta, BadEntriesAreLeftOutAndBadKeysIgnored) {
  const Meta meta = parsed(
      R"([{"id":3},{"name":"x"},{"id":-1},{"id":1e3},7,{"id":4294967296},{"id":12,"length":1025},)"
      R"({"id":13,"length":-1},{"id":14,"length":"4"},)"
      R"({"id":9,"name":5,"cont":"yes","format":[],"clock":3,"gain":"1","delta":{},"stream":1},)"
      R"({"id":9},{"id":100},10])");
  ASSERT_EQ(meta.streams.size(), 3u);
  EXPECT_EQ(meta.streams[0].id, 9u);
  EXPECT_EQ(meta.streams[0].format.kind, FormatKind::kRaw);
  EXPECT_FALSE(meta.streams[0].gain);
  // Nine entries, seven keys, one id twice, one beyond the next free one.
  EXPECT_EQ(meta.complaints.size(), 9u + 7 + 2);
}

TEST(RtcMeta, RejectsInvalidMeta) {
  for (const char* json :
       {"", "{}", "[]", "[{}]", "[{\"id\":9}]", "[\"9\"]", "[9", "9", "[9]x", "[1.5]", "[-1]",
        "nul", "[{\"id\":9,}]", "[{\"id\":9} 10]", "[\"\xff\",9]"}) {
    EXPECT_EQ(parse_meta(bytes_of(json)).code(), Code::kDamaged) << json;
  }
  EXPECT_TRUE(parse_meta(bytes_of("[9]")).ok());
}

TEST(RtcMeta, LimitsPlusOne) {
  const auto nested = [](size_t depth) {
    return "[{\"id\":9,\"x\":" + std::string(depth - 2, '[') + std::string(depth - 2, ']') +
           "},10]";
  };
  EXPECT_TRUE(parse_meta(bytes_of(nested(kMaxMetaDepth))).ok());
  EXPECT_EQ(parse_meta(bytes_of(nested(kMaxMetaDepth + 1))).code(), Code::kLimit);
  EXPECT_EQ(parse_meta(bytes_of(std::string(100000, '['))).code(), Code::kLimit);
  // Brackets in strings are none.
  EXPECT_TRUE(
      parse_meta(bytes_of("[{\"id\":9,\"x\":\"" + std::string(99, '[') + "\\\"[\"},10]")).ok());
  std::string large = "[{\"id\":9,\"x\":\"" + std::string(kMaxMetaBytes, 'x') + "\"},10]";
  EXPECT_EQ(parse_meta(bytes_of(large)).code(), Code::kLimit);
  std::string many = "[";
  for (size_t i = 0; i < kMaxStreams; ++i) many += "{\"id\":" + std::to_string(9 + i) + "},";
  EXPECT_TRUE(parse_meta(bytes_of(many + "99999]")).ok());
  EXPECT_EQ(parse_meta(bytes_of(many + "{\"id\":99998},99999]")).code(), Code::kLimit);
  const Meta meta = parsed(R"([{"id":2147483647},{"id":2147483648},2147483649])");
  EXPECT_EQ(meta.streams.size(), 1u);
}

bool same(const StreamInfo& a, const StreamInfo& b) {
  return a.id == b.id && a.name == b.name && a.format.text == b.format.text &&
         a.format.kind == b.format.kind && a.length == b.length && a.cont == b.cont &&
         a.is_clock == b.is_clock && a.clock == b.clock && a.delta == b.delta &&
         a.stream == b.stream && a.gain == b.gain && a.offset == b.offset && a.extra == b.extra;
}

TEST(RtcMeta, ReadsTheMetaItWrites) {
  std::mt19937_64 random(5);
  const auto pick = [&](auto& list) { return list[random() % std::size(list)]; };
  const std::string texts[] = {"",
                               "clk",
                               "with \"quotes\" and \\",
                               "\xC3\xA4 \xF0\x9F\x98\x80",
                               "line\nbreak\x01",
                               "</script>",
                               std::string("nul\0inside", 10)};
  const std::string formats[] = {"raw", "utf-8", "uint16le", "x/\"y\"", "annotate/json"};
  const double numbers[] = {1e-6, 0.5, -10, 4.1666666666666665e-08, 1e20, 0};
  for (int i = 0; i < 2000; ++i) {
    StreamInfo info;
    info.id = 9 + random() % 1000;
    info.name = pick(texts);
    info.format = Format::parse(pick(formats));
    if (random() % 3 == 0) info.length = random() % 1025;
    info.cont = random() % 2 == 0;
    info.is_clock = random() % 4 == 0;
    if (!info.is_clock) info.clock = pick(texts);
    info.delta = pick(texts);
    info.stream = pick(texts);
    if (random() % 2 == 0) info.gain = pick(numbers);
    if (random() % 2 == 0) info.offset = pick(numbers);
    if (random() % 2 == 0) info.extra = {{"a\"b", "[1,{\"c\":null}]"}, {"note", "\"\\u0001\""}};
    const auto json = stream_json(info);
    ASSERT_TRUE(json.ok());
    const Meta meta = parsed("[" + json.value() + ",5000]");
    ASSERT_EQ(meta.streams.size(), 1u);
    EXPECT_TRUE(meta.complaints.empty());
    EXPECT_TRUE(same(meta.streams[0], info)) << json.value();
  }
}

}  // namespace
}  // namespace collect::rtc
