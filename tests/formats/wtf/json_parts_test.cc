// The parts of a chunk in the JSON form: which stand as JSON, which as bytes, and that all of them
// come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/wtf/json/json.h"
#include "formats/wtf/json/json_events.h"
#include "formats/wtf/text.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/by_hand.h"

namespace collect::wtf {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using nlohmann::json;
using testing::ByHand;
using testing::octets;

std::vector<uint8_t> there(const std::vector<uint8_t>& binary, const JsonOptions& options = {}) {
  VectorSink sink;
  Findings findings;
  EXPECT_TRUE(binary_to_json(binary, options, sink, findings).ok());
  return sink.bytes();
}

std::vector<uint8_t> back(const std::vector<uint8_t>& text) {
  VectorSink sink;
  Findings findings;
  EXPECT_TRUE(json_to_binary(text, sink, findings).ok());
  EXPECT_TRUE(findings.list().empty()) << findings.list()[0].sentence;
  return sink.bytes();
}

std::string nested(size_t depth) {
  std::string text = R"({"type":"file_header","timebase":1,"deep":)";
  return text.append(depth - 1, '[').append(depth - 1, ']') + "}";
}

// FORMAT.md: nesting of JSON, embedded as JSON up to 48.
TEST(JsonParts, KeepsTheHeaderTextIfPossible) {
  const std::pair<std::string, bool> cases[] = {
      {R"({"type":"file_header","timebase":1})", true},
      {R"({"timebase":1,"type":"file_header","note":"other"})", true},
      {R"({"type" : "file_header", "timebase" : [ 1 ] })", true},
      {nested(48), true},
      {nested(49), false},
      {R"({"type":"file_header","mode":"base64"})", false},
      {R"({"type":"string_table"})", false},
      {R"({"type":["file_header"]})", false},
      {R"({"timebase":1})", false},
      {R"( {"type":"file_header"})", false},
      {R"({"type":"file_header"} )", false},
      {R"(["type","file_header"])", false},
      {R"({"type":"file_header")", false},
      {"\"}", false},
      {"{", false},
      {"", false},
  };
  for (const auto& [header, is_itself] : cases) {
    ByHand file;
    file.file_header().chunk(1, 1, {{0x10000, octets(header)}});
    const auto text = there(file.bytes);
    const json document = json::parse(text, nullptr, false);
    ASSERT_FALSE(document.is_discarded()) << header;
    const json& part = document["chunks"][0]["parts"][0];
    EXPECT_EQ(part.value("mode", "") != "base64" && part == json::parse(header, nullptr, false),
              is_itself)
        << header;
    EXPECT_EQ(back(text), file.bytes) << header;
  }
}

TEST(JsonParts, CutChunkWithoutAWholePartIsLeftOut) {
  ByHand file;
  file.file_header().chunk(1, 1, {{0x10000, octets(R"({"type":"file_header"})")}});
  const size_t first = file.bytes.size();
  file.chunk(2, 1, {{0x10000, octets(R"({"type":"file_header"})")}});
  constexpr size_t kPadding = 2;  // behind the 22 bytes of the part
  for (size_t size = first + kChunkHeaderBytes; size < file.bytes.size() - kPadding; ++size) {
    const std::vector<uint8_t> cut(file.bytes.begin(),
                                   file.bytes.begin() + static_cast<ptrdiff_t>(size));
    VectorSink text;
    Findings findings;
    ASSERT_TRUE(binary_to_json(cut, {}, text, findings).ok());
    const json document = json::parse(text.bytes(), nullptr, false);
    ASSERT_FALSE(document.is_discarded()) << size;
    ASSERT_LE(document["chunks"].size(), 2u);
    // Of a part that is there in part nothing is shown.
    const size_t parts = document["chunks"].size() == 2 ? document["chunks"][1]["parts"].size() : 0;
    EXPECT_EQ(parts, 0u) << size;
    EXPECT_EQ(document["chunks"].size() == 2, size > first + kChunkHeaderBytes + kPartEntryBytes)
        << size << ": the cut part at least is known to have been there";
    EXPECT_TRUE(findings.has(Rule::kTruncated)) << size;
  }
}

TEST(JsonParts, TimesOfAChunkStandWhereItHasThem) {
  ByHand file;
  file.file_header().chunk(7, 2, {{0x30000, {}}, {0x20002, {}}});
  json chunk = json::parse(there(file.bytes))["chunks"][0];
  EXPECT_EQ(chunk["id"], 7);
  EXPECT_EQ(chunk["startTime"], 0);
  EXPECT_EQ(chunk["endTime"], 9);
  store_le(&file.bytes[kFileHeaderBytes + 12], kNoTime);
  chunk = json::parse(there(file.bytes))["chunks"][0];
  EXPECT_FALSE(chunk.contains("startTime"));
  EXPECT_EQ(chunk["endTime"], 9);
  store_le(&file.bytes[kFileHeaderBytes + 16], kNoTime);
  const auto text = there(file.bytes);
  EXPECT_FALSE(json::parse(text)["chunks"][0].contains("endTime"));
  EXPECT_EQ(back(text), file.bytes);
}

// What a table or a text has that JSON has not.
TEST(JsonParts, WritesInvalidTextAsBytes) {
  for (const auto& [type, bytes, is_text] : {std::tuple{0x30000u, "a\0b\0"sv, true},
                                             {0x30000u, "a\0b"sv, false},
                                             {0x30000u, "a\0\xFF\0"sv, false},
                                             {0x30000u, "\xFF\0a\0"sv, false},
                                             {0x30000u, ""sv, true},
                                             {0x40001u, "text"sv, true},
                                             {0x40001u, "\xFF"sv, false},
                                             {0x40000u, "text"sv, false}}) {
    ByHand file;
    file.file_header().chunk(1, 2, {{type, octets(bytes)}, {0x20002, {}}});
    const auto text = there(file.bytes);
    const json part = json::parse(text)["chunks"][0]["parts"][0];
    EXPECT_EQ(part.contains("mode"), !is_text) << bytes;
    EXPECT_EQ(back(text), file.bytes) << bytes;
  }
}

// White space around a value belongs to its text.
TEST(JsonParts, ValuesKeepTheirWhiteSpace) {
  for (const char* value : {"1", " 1", "1 ", "\t1", "1\n", "\r\n1", "{ \"a\" : 1 }", " "}) {
    ByHand events;
    events.define(2, 0, 0, 0, 1).word(2).word(5).word(2);
    ByHand file;
    file.file_header().chunk(
        2, 2,
        {{0x30000, octets("t\0any j\0"s.append(value).append("\0"sv))}, {0x20002, events.bytes}});
    EXPECT_EQ(back(there(file.bytes)), file.bytes) << value;
  }
}

// Zeros between arguments are what parsing gives back; other bytes there stand as they are.
TEST(JsonParts, PaddingThatIsNotZeroComesBack) {
  for (const uint32_t elements : {0x00000041u, 0x00000141u, 0x41000041u, 0x00414141u}) {
    for (const uint32_t count : {1u, 2u, 3u, 4u}) {
      ByHand events;
      events.define(2, 0, 0, 0, 1);
      events.word(2).word(5).word(count).word(elements).word(count).word(elements);
      ByHand file;
      file.file_header().chunk(
          2, 2, {{0x30000, octets("t\0uint8[] a, uint8[] b\0"sv)}, {0x20002, events.bytes}});
      EXPECT_EQ(back(there(file.bytes)), file.bytes) << elements << " " << count;
    }
  }
}

// A table too large for JSON keeps its events as bytes; what they define holds all the same.
TEST(JsonParts, DefinitionsThatStayBytesHoldForLaterChunks) {
  ByHand definitions;
  definitions.define(2, 0, 0, 0, 1);
  std::vector<uint8_t> table = octets("t\0uint8 n\0"sv);
  table.resize(table.size() + kMaxJsonStrings);
  ByHand events;
  events.word(2).word(5).word(7);
  ByHand file;
  file.file_header()
      .chunk(1, 2, {{0x30000, table}, {0x20002, definitions.bytes}})
      .chunk(2, 2, {{0x30000, {}}, {0x20002, events.bytes}});
  VectorSink text;
  Findings findings;
  const auto totals = binary_to_json(file.bytes, {}, text, findings);
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(totals->events, 2u);
  EXPECT_EQ(totals->chunks, 2u);
  const json event = json::parse(text.bytes())["chunks"][1]["parts"][1]["events"][0];
  EXPECT_EQ(event["event"], "t");
  EXPECT_EQ(event["args"]["n"], 7);
  EXPECT_EQ(back(text.bytes()), file.bytes);
}

TEST(JsonParts, TotalsCountEventsInBothForms) {
  for (const JsonMode mode : {JsonMode::kComplete, JsonMode::kPartial}) {
    for (const JsonEvents events : {JsonEvents::kEvents, JsonEvents::kBase64}) {
      const auto file = testing::build_file(200);
      VectorSink text, binary;
      Findings findings;
      ASSERT_TRUE(binary_to_json(file, {mode, events}, text, findings).ok());
      const auto totals = json_to_binary(text.bytes(), binary, findings);
      ASSERT_TRUE(totals.ok());
      Findings reading;
      auto reader = Reader::open(file, reading);
      uint64_t count = 0;
      for (Event event; (*reader)->next_any(event);) ++count;
      EXPECT_EQ(totals->events, count);
      EXPECT_EQ(totals->json_events, events == JsonEvents::kEvents ? count : 0);
      EXPECT_EQ(totals->chunks, (*reader)->chunks());
      EXPECT_EQ(totals->mode, mode);
    }
  }
}

// JSON events may name texts that a full table in base64 has no room for.
TEST(JsonParts, FullTableTakesNoMoreTexts) {
  for (const size_t count : {kMaxJsonStrings - 1, kMaxJsonStrings, kMaxJsonStrings + 5}) {
    std::string table = "mine"s + '\0';
    table.append(count - 1, '\0');
    std::string text =
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":1,"type":"event_data","parts":[)"
        R"({"type":"string_table","mode":"base64","value":")";
    append_base64(text, bytes_of(table));
    text += R"("},{"type":"json_event_buffer","events":[{"wireId":1,"time":0,"args":{"wireId":2,)"
            R"("eventClass":0,"flags":0,"name":"mine","args":null}},)"
            R"({"wireId":1,"time":0,"args":{"wireId":3,"eventClass":0,"flags":0,"name":"new",)"
            R"("args":null}}]}]}]})";
    VectorSink binary;
    Findings findings;
    ASSERT_TRUE(json_to_binary(octets(text), binary, findings).ok());
    EXPECT_EQ(findings.has(Rule::kLimit), count >= kMaxJsonStrings) << count;
  }
}

// Numbers of any spelling, as long as they are whole.
TEST(JsonParts, WholeNumbersHaveManySpellings) {
  for (const auto& [id, number] : {std::pair("2.0", 2u),
                                   {"2e1", 20u},
                                   {"40E-1", 4u},
                                   {"2.5", 0u},
                                   {"1e400", 0u},
                                   {"-0", 0u},
                                   {"4294967295.0", 4294967295u}}) {
    VectorSink binary;
    Findings findings;
    const std::string text = R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":)" +
                             std::string(id) + R"(,"type":"event_data","parts":[]}]})";
    ASSERT_TRUE(json_to_binary(octets(text), binary, findings).ok()) << id;
    Findings reading;
    ChunkCursor cursor(binary.bytes(), reading);
    Chunk chunk;
    ASSERT_TRUE(cursor.next(chunk)) << id;
    EXPECT_EQ(chunk.id, number) << id;
  }
  // 2^53 is the last below which every whole number is a double.
  for (const auto& [version, is_number] :
       {std::pair("9007199254740992.0", true), {"9007199254740994.0", false}, {"true", false}}) {
    VectorSink binary;
    Findings findings;
    const std::string text =
        R"({"wtfVersion":)" + std::string(version) + R"(,"formatVersion":10,"chunks":[]})";
    ASSERT_TRUE(json_to_binary(octets(text), binary, findings).ok()) << version;
    EXPECT_EQ(findings.has(Rule::kJsonLossy), is_number) << version;
    EXPECT_EQ(findings.has(Rule::kJsonValue), !is_number) << version;
  }
}

// Numbers of the tool's version: 32 bits of them are kept.
TEST(JsonParts, ToolsVersionIsSaidWhereItIsCut) {
  for (const auto& [version, is_cut] :
       {std::pair("0", false), {"4294967295", false}, {"4294967296", true}, {"-1", true}}) {
    VectorSink binary;
    Findings findings;
    const std::string text =
        R"({"wtfVersion":)" + std::string(version) + R"(,"formatVersion":10,"chunks":[]})";
    ASSERT_TRUE(json_to_binary(octets(text), binary, findings).ok()) << version;
    EXPECT_EQ(findings.has(Rule::kJsonLossy), is_cut) << version;
  }
}

TEST(JsonParts, ByteLengthThatIsWrongIsSaid) {
  for (const auto& [length, is_right] : {std::pair("3", true), {"2", false}, {"4", false}}) {
    VectorSink binary;
    Findings findings;
    const std::string text =
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":1,"type":"event_data","parts":[)"
        R"({"type":"binary_resource","mode":"base64","byteLength":)" +
        std::string(length) + R"(,"value":"AQID"}]}]})";
    ASSERT_TRUE(json_to_binary(octets(text), binary, findings).ok());
    EXPECT_EQ(findings.has(Rule::kJsonValue), !is_right) << length;
    Findings reading;
    ChunkCursor cursor(binary.bytes(), reading);
    Chunk chunk;
    ASSERT_TRUE(cursor.next(chunk));
    ASSERT_EQ(chunk.parts.size(), 1u);
    EXPECT_EQ(chunk.parts[0].bytes.size(), 3u);
  }
}

// Of two parts the second is there in part; it is left out, and that is said where it begins.
TEST(JsonParts, PartThatIsCutOffIsSaid) {
  ByHand file;
  file.file_header().chunk(1, 1, {{0x40001, octets("note")}, {0x40000, octets("12345678")}});
  file.bytes.resize(file.bytes.size() - 4);
  VectorSink text;
  Findings findings;
  ASSERT_TRUE(binary_to_json(file.bytes, {}, text, findings).ok());
  const json parts = json::parse(text.bytes())["chunks"][0]["parts"];
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0]["value"], "note");
  EXPECT_TRUE(std::ranges::any_of(findings.list(), [&](const Finding& finding) {
    return finding.rule == Rule::kTruncated && finding.sentence == "a cut part is left out" &&
           finding.offset == file.bytes.size() - 4;
  }));
}

TEST(JsonParts, EventsAreAnArrayOrNone) {
  for (const auto& [events, is_sound] : {std::pair("", true),
                                         {R"(,"events":null)", true},
                                         {R"(,"events":[])", true},
                                         {R"(,"events":7)", false},
                                         {R"(,"events":{})", false},
                                         {R"(,"events":"")", false}}) {
    VectorSink binary;
    Findings findings;
    const std::string text =
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":1,"type":"event_data","parts":[)"
        R"({"type":"json_event_buffer")" +
        std::string(events) + "}]}]}";
    ASSERT_TRUE(json_to_binary(octets(text), binary, findings).ok());
    EXPECT_EQ(findings.list().empty(), is_sound) << events;
    EXPECT_EQ(findings.has(Rule::kJsonValue), !is_sound) << events;
  }
}

// Parts beyond what a chunk may have.
// Not even as a chunk without parts.
TEST(JsonParts, ChunkWithoutAListOfPartsIsLeftOut) {
  for (const char* members : {"", R"(,"parts":5)", R"(,"parts":{})", R"(,"parts":null)"}) {
    VectorSink binary;
    Findings findings;
    const std::string text =
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":1,"type":"event_data")" +
        std::string(members) + "}]}";
    const auto totals = json_to_binary(octets(text), binary, findings);
    ASSERT_TRUE(totals.ok());
    EXPECT_EQ(totals->chunks, 0u);
    EXPECT_EQ(binary.bytes().size(), kFileHeaderBytes);
    EXPECT_TRUE(findings.has(Rule::kJsonShape)) << members;
  }
}

TEST(JsonParts, PartsHaveALimit) {
  for (const size_t count : {kMaxParts, kMaxParts + 1}) {
    std::string text =
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":1,"type":"event_data","parts":[)";
    for (size_t i = 0; i < count; ++i) {
      text += i == 0 ? R"({"type":7,"mode":"base64","value":""})"
                     : R"(,{"type":7,"mode":"base64","value":""})";
    }
    VectorSink binary;
    Findings findings;
    ASSERT_TRUE(json_to_binary(octets(text + "]}]}"), binary, findings).ok());
    EXPECT_EQ(findings.has(Rule::kLimit), count > kMaxParts);
    EXPECT_EQ(binary.bytes().size() == kFileHeaderBytes, count > kMaxParts);
  }
}

}  // namespace
}  // namespace collect::wtf
