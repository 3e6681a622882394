// Where in the file a finding is, and what it counts, of files made by hand; and the words of a
// chunk's head that the JSON form gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/wtf/binary/reader.h"
#include "formats/wtf/binary/writer.h"
#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/text.h"
#include "tests/formats/wtf/by_hand.h"

namespace collect::wtf {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using testing::ByHand;
using testing::file_of;
using testing::octets;

constexpr size_t kDefinitionBytes = 28;

std::optional<Finding> found(const std::vector<uint8_t>& file, Rule rule) {
  const FileReport report = check_file(file);
  for (const Finding& finding : report.findings.list()) {
    if (finding.rule == rule) return finding;
  }
  return std::nullopt;
}

// A type "t" with these arguments as wire id 2, an event of it with these words, and the rest.
struct OneEvent {
  OneEvent(std::string_view arguments, const std::vector<uint32_t>& words) {
    events.define(2, 0, 0, 0, arguments.empty() ? kNullOrdinal : 1);
    for (const uint32_t word : words) events.word(word);
    const std::string table = "t\0"s.append(arguments).append("\0"sv);
    bytes = file_of(table, events);
    buffer = bytes.size() - events.bytes.size();
  }
  ByHand events;
  std::vector<uint8_t> bytes;
  size_t buffer = 0;  // where it begins
};

TEST(Places, BytesBehindTheLastEvent) {
  const OneEvent made("", {2, 1, 2, 2, 7});
  const auto finding = found(made.bytes, Rule::kEventTrailing);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->offset, made.buffer + kDefinitionBytes + 16);
  EXPECT_EQ(finding->sentence, "4 bytes behind the last event, too few for another");
}

TEST(Places, WireIdThatIsNotDefined) {
  const OneEvent made("", {2, 1, 99, 2, 7});
  const auto finding = found(made.bytes, Rule::kWireId);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->offset, made.buffer + kDefinitionBytes + 8);
  EXPECT_EQ(finding->sentence,
            "wire id 99 is not defined: the last 12 bytes of the buffer are unreadable");
}

TEST(Places, EventThatIsCutOff) {
  for (const auto& [arguments, words] :
       {std::pair<std::string_view, std::vector<uint32_t>>{"uint8[] a", {2, 1, 9, 0, 0}},
        {"uint32 n", {2, 1}},
        {"uint32 n, uint32 m", {2, 1, 5}},
        {"ascii n, uint8[] m", {2, 1, 0}}}) {
    const OneEvent made(arguments, words);
    const auto finding = found(made.bytes, Rule::kEventCut);
    ASSERT_TRUE(finding) << arguments;
    EXPECT_EQ(finding->offset, made.buffer + kDefinitionBytes) << arguments;
  }
  for (const auto& [arguments, words] :
       {std::pair<std::string_view, std::vector<uint32_t>>{"uint8[] a", {2, 1, 8, 0, 0}},
        {"uint8[] a", {2, 1, 5, 0, 0}},
        {"uint32 n", {2, 1, 5}}}) {
    EXPECT_FALSE(found(OneEvent(arguments, words).bytes, Rule::kEventCut)) << arguments;
  }
}

TEST(Places, RejectsOtherFilesAtTheirBeginning) {
  for (const ByHand& file : {ByHand().word(0xDEADBEEF).word(5), ByHand().word(1).word(5).word(10),
                             ByHand().file_header(11).word(0).word(0)}) {
    Findings findings;
    EXPECT_FALSE(Reader::open(file.bytes, findings).ok());
    ASSERT_EQ(findings.list().size(), 1u);
    EXPECT_EQ(findings.list()[0].offset, 0u);
    EXPECT_EQ(findings.list()[0].severity, Severity::kError);
  }
}

// What was looked at: the file's header, then up to each chunk, then everything.
TEST(Places, ReaderSaysHowFarItHasLooked) {
  const OneEvent made("", {2, 1, 2, 2});
  Findings findings;
  auto reader = Reader::open(made.bytes, findings);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->position(), kFileHeaderBytes);
  Event event;
  event.encoding = Encoding::kLegacy;  // left by a reader of another file
  uint64_t before = 0;
  while ((*reader)->next(event)) {
    EXPECT_EQ(event.encoding, Encoding::kWords);
    EXPECT_GE((*reader)->position(), before);
    before = (*reader)->position();
    EXPECT_LT(before, made.buffer);
    event.encoding = Encoding::kLegacy;
  }
  EXPECT_GT(before, kFileHeaderBytes);
  EXPECT_EQ((*reader)->position(), made.bytes.size());
}

// The file ends within the second event, whose first byte is known.
TEST(Places, FileThatEndsWithinAnEvent) {
  for (size_t missing = 1; missing < 12; ++missing) {
    const OneEvent made("uint32 n", {2, 1, 5, 2, 2, 6});
    std::vector<uint8_t> cut = made.bytes;
    cut.resize(cut.size() - missing);
    const FileReport report = check_file(cut);
    const size_t event = made.buffer + kDefinitionBytes + 12;
    const bool is_reported = std::any_of(
        report.findings.list().begin(), report.findings.list().end(), [&](const Finding& finding) {
          return finding.rule == Rule::kTruncated && finding.offset == event;
        });
    EXPECT_TRUE(is_reported) << missing;
    EXPECT_EQ(report.events, 1u) << missing;
  }
}

TEST(Places, ChunkThatSaysMoreThanThereIs) {
  ByHand file;
  file.file_header().chunk(1, 1, {{0x10000, octets(R"({"timebase":1})")}});
  const size_t at = file.bytes.size();
  file.chunk(7, 2, {{0x20002, ByHand().word(0).word(0).bytes}});
  const size_t length = file.bytes.size() - at;
  store_le(&file.bytes[at + 8], static_cast<uint32_t>(length + 100));
  const auto finding = found(file.bytes, Rule::kTruncated);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->offset, at);
  EXPECT_EQ(finding->sentence, "chunk 7 says " + std::to_string(length + 100) + " bytes, and " +
                                   std::to_string(length) + " are there");
}

TEST(Places, PartThatReachesOutOfItsChunk) {
  ByHand file;
  file.file_header().chunk(1, 1, {{0x10000, octets(R"({"timebase":1})")}});
  const size_t at = file.bytes.size();
  file.chunk(7, 2, {{0x30000, octets("a\0b\0"sv)}, {0x20002, {}}});
  store_le(&file.bytes[at + kChunkHeaderBytes + 12 + 4], 5u);  // of the second part
  const auto finding = found(file.bytes, Rule::kPartRange);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->offset, at + kChunkHeaderBytes + 12);
  EXPECT_EQ(finding->sentence, "part 1 reaches 1 bytes out of its chunk");
  store_le(&file.bytes[at + kChunkHeaderBytes + 12 + 4], 4u);
  EXPECT_FALSE(found(file.bytes, Rule::kPartRange));
}

// ---- values

// A value that is used for one argument after the other keeps nothing of the one before.
TEST(Places, ValueIsOfItsArgumentAlone) {
  const OneEvent made("uint8[] a, uint8[] b, ascii c, ascii d, uint8[] e",
                      {2, 1, 3, 0x030201, kNullOrdinal, 0, kNullOrdinal, 1, 4});
  Findings findings;
  auto reader = Reader::open(made.bytes, findings);
  ASSERT_TRUE(reader.ok());
  Event event;
  bool is_there = false;
  while ((*reader)->next(event)) {
    if (event.type->name != "t") continue;
    is_there = true;
    Arguments walk = event.arguments();
    Value value;
    ASSERT_TRUE(walk.next(value));
    EXPECT_TRUE(value.present());
    EXPECT_EQ(value.count, 3u);
    EXPECT_EQ(value.elements.size(), 3u);
    EXPECT_EQ(value.element(2), 3);
    ASSERT_TRUE(walk.next(value));
    EXPECT_EQ(value.state, Value::State::kNull);
    EXPECT_EQ(value.count, 0u);
    EXPECT_TRUE(value.elements.empty());
    ASSERT_TRUE(walk.next(value));
    EXPECT_EQ(value.text, "t");
    ASSERT_TRUE(walk.next(value));
    EXPECT_EQ(value.state, Value::State::kNull);
    EXPECT_TRUE(value.text.empty());
    ASSERT_TRUE(walk.next(value));
    EXPECT_TRUE(value.present());
    EXPECT_EQ(value.elements.size(), 1u);
    EXPECT_FALSE(walk.next(value));
    EXPECT_EQ(walk.consumed(), 7 * 4u);
  }
  EXPECT_TRUE(is_there);
}

// An array that says more than the buffer has is cut, and so is what comes behind it.
TEST(Places, ArrayThatIsCutHasNoElements) {
  for (const uint32_t count : {5u, 6u, 4000000000u}) {
    const OneEvent made("uint32 n, uint16[] a, uint32 m", {2, 1, 9, count, 0, 0});
    Findings findings;
    auto reader = Reader::open(made.bytes, findings);
    ASSERT_TRUE(reader.ok());
    Event event;
    bool is_there = false;
    while ((*reader)->next(event)) {
      if (event.type->name != "t") continue;
      is_there = true;
      EXPECT_TRUE(event.cut);
      Arguments walk = event.arguments();
      Value value;
      ASSERT_TRUE(walk.next(value));
      EXPECT_EQ(value.integer(), 9);
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(walk.next(value));
        EXPECT_EQ(value.state, Value::State::kCut) << count;
        EXPECT_FALSE(value.present());
      }
      EXPECT_EQ(value.elements.size(), 0u);
    }
    EXPECT_TRUE(is_there);
  }
}

// ---- JSON

std::string nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

// FORMAT.md: nesting of JSON, embedded as JSON up to 48.
TEST(Places, AnyValuesStandAsJsonUpToADepth) {
  for (const auto& [value, is_itself] : {std::pair<std::string, bool>{nested(48), true},
                                         {nested(49), false},
                                         {"[1]", true},
                                         {" [1]", false},
                                         {"[1]\n", false},
                                         {"[1", false}}) {
    ByHand events;
    events.define(2, 0, 0, 0, 1).word(2).word(1).word(2);
    const auto binary = file_of("t\0any v\0"s.append(value).append("\0"sv), events);
    VectorSink text;
    Findings findings;
    ASSERT_TRUE(binary_to_json(binary, {}, text, findings).ok());
    const std::string words(text.bytes().begin(), text.bytes().end());
    EXPECT_EQ(words.find("{\"value\":" + value + "}") != words.npos, is_itself) << value;
    VectorSink back;
    ASSERT_TRUE(json_to_binary(text.bytes(), back, findings).ok());
    EXPECT_EQ(back.bytes(), binary) << value;
  }
}

struct Head {
  std::vector<uint32_t> words;  // id, type, length, start, end; none: the chunk is left out
  Findings findings;
};
Head head_of(std::string_view members, std::string_view parts = "") {
  Head head;
  VectorSink sink;
  const std::string text = R"({"wtfVersion":1,"formatVersion":10,"chunks":[{)" +
                           std::string(members) + R"("parts":[)" + std::string(parts) + "]}]}";
  EXPECT_TRUE(json_to_binary(bytes_of(text), sink, head.findings).ok());
  for (size_t at = kFileHeaderBytes; at + 4 <= sink.bytes().size() && head.words.size() < 5;
       at += 4) {
    head.words.push_back(load_le<uint32_t>(sink.bytes().data() + at));
  }
  return head;
}

TEST(Places, NumbersOfAChunksHeadHave32Bits) {
  for (const auto& [id, word] :
       {std::pair<const char*, uint32_t>{"0", 0}, {"1", 1}, {"4294967295", 4294967295u}}) {
    const Head head = head_of(R"("id":)" + std::string(id) + R"(,"type":2,)");
    ASSERT_EQ(head.words.size(), 5u) << id;
    EXPECT_EQ(head.words[0], word);
    EXPECT_EQ(head.words[1], 2u);
    EXPECT_EQ(head.words[2], kChunkHeaderBytes);
    EXPECT_EQ(head.words[3], kNoTime);
    EXPECT_EQ(head.words[4], kNoTime);
    EXPECT_TRUE(head.findings.list().empty()) << id;
  }
  for (const char* id : {"-1", "4294967296", "1.5", "\"1\"", "null"}) {
    const Head head = head_of(R"("id":)" + std::string(id) + R"(,"type":2,)");
    ASSERT_EQ(head.words.size(), 5u) << id;
    EXPECT_EQ(head.words[0], 0u);
    EXPECT_TRUE(head.findings.has(Rule::kJsonShape)) << id;
  }
}

// Its events name the strings of the table: without one no one knows what they are.
TEST(Places, ChunkWhoseTableIsNoneIsLeftOut) {
  const std::string_view head = R"("id":1,"type":2,)";
  for (const char* value : {"", R"(,"value":7)", R"(,"value":"a")", R"(,"value":null)"}) {
    const Head read = head_of(head, R"({"type":"string_table")" + std::string(value) + "}");
    EXPECT_TRUE(read.words.empty()) << value;
    EXPECT_TRUE(read.findings.has(Rule::kJsonShape)) << value;
  }
  const Head read = head_of(head, R"({"type":"string_table","value":["a"]})");
  ASSERT_EQ(read.words.size(), 5u);
  EXPECT_EQ(read.words[2], kChunkHeaderBytes + kPartEntryBytes + 4);
  EXPECT_TRUE(read.findings.list().empty());
}

TEST(Places, ChunkTypeIsANumberOrName) {
  for (const auto& [type, word] : {std::pair<const char*, uint32_t>{"0", 0},
                                   {"4294967295", 4294967295u},
                                   {"\"file_header\"", 1},
                                   {"\"event_data\"", 2}}) {
    const Head head = head_of(R"("id":1,"type":)" + std::string(type) + ",");
    ASSERT_EQ(head.words.size(), 5u) << type;
    EXPECT_EQ(head.words[1], word);
  }
  for (const char* type : {"-1", "4294967296", "\"other\"", "null", "\"\""}) {
    const Head head = head_of(R"("id":1,"type":)" + std::string(type) + ",");
    EXPECT_TRUE(head.words.empty()) << type;
    const bool is_name = type[0] == '"';
    EXPECT_EQ(head.findings.has(Rule::kChunkUnknown), is_name) << type;
    EXPECT_EQ(head.findings.has(Rule::kJsonShape), !is_name) << type;
  }
}

// The published library writes times as signed numbers.
TEST(Places, TimesOfAChunkMayBeSigned) {
  for (const auto& [time, word] : {std::pair<const char*, uint32_t>{"0", 0},
                                   {"-1", kNoTime},
                                   {"-2147483648", 0x80000000u},
                                   {"4294967295", kNoTime},
                                   {"4294967294", 4294967294u}}) {
    const Head head =
        head_of(R"("id":1,"type":2,"startTime":)" + std::string(time) + R"(,"endTime":7,)");
    ASSERT_EQ(head.words.size(), 5u) << time;
    EXPECT_EQ(head.words[3], word) << time;
    EXPECT_EQ(head.words[4], 7u);
    EXPECT_FALSE(head.findings.has(Rule::kJsonValue)) << time;
  }
  for (const char* time : {"-2147483649", "4294967296", "\"1\"", "1.5"}) {
    const Head head =
        head_of(R"("id":1,"type":2,"startTime":7,"endTime":)" + std::string(time) + ",");
    ASSERT_EQ(head.words.size(), 5u) << time;
    EXPECT_EQ(head.words[3], 7u);
    EXPECT_EQ(head.words[4], kNoTime);
    EXPECT_TRUE(head.findings.has(Rule::kJsonValue)) << time;
  }
}

TEST(Places, ChunksThatAreNoArrayAreSaid) {
  for (const char* chunks : {"7", "{}", "null", "\"a\""}) {
    VectorSink sink;
    Findings findings;
    const std::string text =
        R"({"wtfVersion":1,"formatVersion":10,"chunks":)" + std::string(chunks) + "}";
    (void)json_to_binary(bytes_of(text), sink, findings);
    EXPECT_TRUE(findings.has(Rule::kJsonShape)) << chunks;
  }
}

// ---- types, zones and padding

TEST(Places, TypeMayBeDefinedAgainAsItWas) {
  for (const auto& [second, is_said] : {std::pair<uint32_t, bool>{1, false}, {2, true}}) {
    ByHand events;
    events.define(2, 0, 0, 0, 1).define(3, 0, 0, 0, second);
    const auto file = file_of("t\0uint32 n\0uint32 m\0"sv, events);
    EXPECT_EQ(found(file, Rule::kRedefinition).has_value(), is_said) << second;
  }
}

// Which words belong to the name and which to the type tells two zones apart.
TEST(Places, ZonesOfOtherNamesAndTypesAreOthers) {
  ByHand events;
  events.define(2, 0, 32, 0, 1).define(3, 0, 32, 2, 3).define(4, 0, 0, 4, kNullOrdinal);
  uint32_t time = 0;
  for (const auto& [id, name, type] :
       {std::tuple<uint32_t, uint32_t, uint32_t>{1, 5, 6}, {2, 7, 8}}) {
    events.word(2).word(++time).word(id).word(name).word(type).word(kNullOrdinal);
    events.word(3).word(++time).word(id);
    events.word(4).word(++time);
  }
  const auto file = file_of(
      "wtf.zone#create\0uint16 zoneId, ascii name, ascii type, ascii location\0"
      "wtf.zone#set\0uint16 zoneId\0t\0a\0b=c\0a=b\0c\0"sv,
      events);
  const FileReport report = check_file(file);
  const auto named = std::count_if(report.zones.begin(), report.zones.end(), [](const auto& zone) {
    return zone.name == "a" || zone.name == "a=b";
  });
  EXPECT_EQ(named, 2);
}

// What pads an array is 0, not what the buffer held in the chunk before.
TEST(Places, PaddingIsZero) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  const auto zone = writer.create_zone("z");
  ASSERT_TRUE(zone.ok());
  ASSERT_TRUE(writer.set_zone(*zone).ok());
  const auto type = writer.define_instance("t", "uint8[] a");
  ASSERT_TRUE(type.ok());
  const std::vector<uint8_t> many(400, 0xee), one(1, 0x11);
  ASSERT_TRUE(writer.event(*type, 0, {Arg::array(std::span<const uint8_t>(many))}).ok());
  ASSERT_TRUE(writer.flush().ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(writer.event(*type, 0, {Arg::array(std::span<const uint8_t>(one))}).ok());
  }
  ASSERT_TRUE(writer.finish().ok());
  const auto& bytes = sink.bytes();
  size_t found_ones = 0;
  for (size_t at = bytes.size() - 200; at < bytes.size(); at += 4) {
    const uint32_t word = load_le<uint32_t>(bytes.data() + at);
    if ((word & 0xff) == 0x11) {
      EXPECT_EQ(word, 0x11u) << at;
      ++found_ones;
    }
  }
  EXPECT_GT(found_ones, 8u);
}

}  // namespace
}  // namespace collect::wtf
