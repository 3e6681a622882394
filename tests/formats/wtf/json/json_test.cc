#include "formats/wtf/json/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "formats/wtf/check.h"
#include "formats/wtf/json/json_events.h"
#include "formats/wtf/text.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/by_hand.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::vector<uint8_t> to_json(const std::vector<uint8_t>& binary, const JsonOptions& options) {
  VectorSink sink;
  Findings findings;
  EXPECT_TRUE(binary_to_json(binary, options, sink, findings).ok());
  return sink.bytes();
}

TEST(Json, SamplesComeBackByteByByte) {
  const auto folders = testing::sample_folders("data/wtf");
  size_t samples = 0;
  for (const fs::path& path : testing::files_with(folders, ".wtf-trace")) {
    const auto bytes = testing::file_bytes(path);
    if (file_kind(bytes) != FileKind::kBinary) continue;
    SCOPED_TRACE(path);
    for (const JsonMode mode : {JsonMode::kComplete, JsonMode::kPartial}) {
      for (const JsonEvents events : {JsonEvents::kEvents, JsonEvents::kBase64}) {
        VectorSink binary;
        Findings findings;
        ASSERT_TRUE(json_to_binary(to_json(bytes, {mode, events}), binary, findings).ok());
        EXPECT_EQ(binary.bytes(), bytes);
        EXPECT_TRUE(findings.list().empty());
      }
    }
    ++samples;
  }
  EXPECT_GE(samples, folders.size() == 1 ? 2u : 2u + 6u);
}

// A document for any JSON tool, with the keys of the published library.
TEST(Json, CompleteModeIsOneDocument) {
  const auto text = to_json(testing::build_file(), {});
  const json document = json::parse(text, nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  EXPECT_EQ(document["wtfVersion"], kToolVersion);
  EXPECT_EQ(document["formatVersion"], 10);
  ASSERT_EQ(document["chunks"].size(), 2u);
  const json& header = document["chunks"][0]["parts"][0];
  EXPECT_EQ(header["type"], "file_header");
  EXPECT_EQ(header["timebase"], 1700000000000);
  EXPECT_FALSE(document["chunks"][0].contains("startTime"));
  const json& parts = document["chunks"][1]["parts"];
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0]["type"], "string_table");
  EXPECT_TRUE(parts[0]["value"].is_array());
  EXPECT_EQ(parts[1]["type"], "binary_resource");
  EXPECT_EQ(parts[1]["value"], "AQIDBAU=");
  EXPECT_EQ(parts[2]["value"], "resource text");
  EXPECT_EQ(parts[3]["type"], "json_event_buffer");
  bool seen = false;
  for (const json& event : parts[3]["events"]) {
    if (event["event"] != "ping") continue;
    seen = true;
    EXPECT_EQ(event["time"], 25);
    EXPECT_EQ(event["args"],
              json::parse(R"({"v":-5,"b":[1,2,3,4,5],"j":{"value":{"a":[1,null]}}})"));
  }
  EXPECT_TRUE(seen);
}

TEST(Json, PartialModeIsOneObjectPerLine) {
  const auto text = to_json(testing::build_file(), {JsonMode::kPartial, JsonEvents::kEvents});
  std::vector<json> lines;
  std::string_view rest = text_of(text);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    ASSERT_NE(end, std::string_view::npos);
    lines.push_back(json::parse(rest.substr(0, end), nullptr, false));
    ASSERT_TRUE(lines.back().is_object());
    rest.remove_prefix(end + 1);
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].size(), 2u);
  EXPECT_EQ(lines[2]["type"], "event_data");
}

std::vector<std::string> lines_from(std::string_view text, Findings& findings) {
  VectorSink binary;
  EXPECT_TRUE(json_to_binary(bytes_of(text), binary, findings).ok());
  Findings reading;
  return testing::lines_of(binary.bytes(), reading);
}

// Written by hand: no wire ids, no string table, arguments in any order, versions at the end.
TEST(Json, ReadsWhatAPersonWrites) {
  Findings findings;
  const auto lines = lines_from(R"({"chunks": [
    {"id": 1, "type": "file_header", "parts": [{"type": "file_header", "timebase": 5}]},
    {"id": 2, "type": "event_data", "parts": [{"type": "json_event_buffer", "events": [
      {"event": "wtf.event#define", "time": 0, "args":
        {"args": "int32 n, ascii s, any j, float32[] f, char c, wchar[] w", "wireId": 2,
         "eventClass": 0, "flags": 0, "name": "mine"}},
      {"time": 7, "args": [1, "x", {"value": {"a": 1}}, [1, "NaN"], "é", "世😀"], "event": "mine"},
      {"wireId": 2, "time": 8, "args":
        {"w": null, "c": "z", "f": [], "j": "[2]", "s": "", "n": -1}}]}]}],
    "format_version": 10, "wtf_version": 1})",
                                findings);
  EXPECT_TRUE(findings.list().empty()) << findings.list()[0].sentence;
  EXPECT_EQ(lines, (std::vector<std::string>{
                       " | mine | 7 | n=1 s='x' j='{\"a\": 1}' f=[f1065353216 f2143289344 ] c=233 "
                       "w=[19990 55357 56832 ]",
                       " | mine | 8 | n=-1 s='' j='[2]' f=[] c=122 w=null"}));
}

// One event of this type, and what it becomes.
std::string document_of(std::string_view args_of_type, std::string_view events) {
  std::string text = R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":2,"type":"event_data",)"
                     R"("parts":[{"type":"json_event_buffer","events":[{"wireId":1,"time":0,)"
                     R"("args":{"wireId":2,"eventClass":0,"flags":0,"name":"t","args":")";
  text.append(args_of_type).append("\"}},").append(events).append("]}]}]}");
  return text;
}

TEST(Json, CharactersOfTwoUnitsArePrintedAsText) {
  VectorSink binary;
  Findings findings;
  const std::string text =
      document_of("wchar[] w, wchar c", R"({"wireId":2,"time":7,"args":["世😀\uE000","世"]})");
  ASSERT_TRUE(json_to_binary(bytes_of(text), binary, findings).ok());
  const json document = json::parse(to_json(binary.bytes(), {}));
  const json& parts = document["chunks"][0]["parts"];
  const json& event = parts[parts.size() - 1]["events"][1];
  EXPECT_EQ(event["args"], json::parse(R"({"w":"世😀\uE000","c":"世"})")) << event.dump();
}

// One unit of a pair is no text; nor is it when it is alone.
TEST(Json, HalvesOfCharactersStandAsTheirBytes) {
  for (const int half : {0xD800, 0xDBFF, 0xDC00, 0xDFFF}) {
    VectorSink file, back;
    Writer writer(file);
    ASSERT_TRUE(writer.begin(FileHeader{}).ok());
    ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
    const uint32_t type = writer.define_instance("t", "wchar c").value();
    ASSERT_TRUE(writer.event(type, 0, {half}).ok());
    ASSERT_TRUE(writer.event(type, 0, {half - 0x0800}).ok());
    ASSERT_TRUE(writer.finish().ok());
    const auto text = to_json(file.bytes(), {});
    const json document = json::parse(text);
    const json& parts = document["chunks"][1]["parts"];
    const json& events = parts[parts.size() - 1]["events"];
    EXPECT_TRUE(events[events.size() - 2].contains("raw")) << half;
    EXPECT_EQ(events.back().contains("raw"), half - 0x0800 >= 0xD800) << half;
    Findings findings;
    ASSERT_TRUE(json_to_binary(text, back, findings).ok());
    EXPECT_EQ(back.bytes(), file.bytes()) << half;
  }
}

// A first half and the unit behind it.
TEST(Json, OnlyAWholePairIsACharacter) {
  for (const auto& [low, is_pair] : {std::pair<char16_t, bool>{0xDBFF, false},
                                     {0xDC00, true},
                                     {0xDFFF, true},
                                     {0xE000, false},
                                     {0x0041, false}}) {
    VectorSink file, back;
    Writer writer(file);
    ASSERT_TRUE(writer.begin(FileHeader{}).ok());
    ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
    const uint32_t type = writer.define_instance("t", "wchar[] w").value();
    const char16_t units[] = {0xD83D, low, 0x0042};
    ASSERT_TRUE(writer.event(type, 0, {Arg::array(std::span<const char16_t>(units))}).ok());
    ASSERT_TRUE(writer.finish().ok());
    const auto text = to_json(file.bytes(), {});
    const json document = json::parse(text);
    const json& parts = document["chunks"][1]["parts"];
    EXPECT_EQ(parts[parts.size() - 1]["events"].back().contains("raw"), !is_pair) << int{low};
    Findings findings;
    ASSERT_TRUE(json_to_binary(text, back, findings).ok());
    EXPECT_EQ(back.bytes(), file.bytes()) << int{low};
  }
}

TEST(Json, NumbersThatJsonHasNoneForAreTexts) {
  VectorSink file, back;
  Writer writer(file);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  const uint32_t type = writer.define_instance("t", "float32 up, float32 down, wchar[] w").value();
  const float infinity = std::numeric_limits<float>::infinity();
  const char16_t first_pair[] = {0xD800, 0xDC00};
  ASSERT_TRUE(
      writer
          .event(type, 0, {infinity, -infinity, Arg::array(std::span<const char16_t>(first_pair))})
          .ok());
  ASSERT_TRUE(writer.finish().ok());
  const auto text = to_json(file.bytes(), {});
  const json document = json::parse(text);
  const json& parts = document["chunks"][1]["parts"];
  EXPECT_EQ(parts[parts.size() - 1]["events"].back()["args"],
            json::parse(R"({"up":"Infinity","down":"-Infinity","w":"\ud800\udc00"})"));
  Findings findings;
  ASSERT_TRUE(json_to_binary(text, back, findings).ok());
  EXPECT_EQ(back.bytes(), file.bytes());
}

// Values of arguments with one name stand in their order.
TEST(Json, ArgumentsOfOneNameAreAList) {
  using namespace std::string_view_literals;
  testing::ByHand events;
  events.define(2, 0, 0, 0, 1).word(2).word(5).word(1).word(2);
  testing::ByHand file;
  file.file_header();
  file.chunk(2, 2,
             {{0x30000, testing::octets("t\0uint8 a, uint8 a\0"sv)}, {0x20002, events.bytes}});
  const json document = json::parse(to_json(file.bytes, {}));
  const json& parts = document["chunks"][0]["parts"];
  EXPECT_EQ(parts[parts.size() - 1]["events"].back()["args"], json::parse("[1,2]"));
}

TEST(Json, ChunksOfAnUnknownTypeAreLeftOut) {
  for (const char* type : {R"("nonsense")", "-1", "4294967296", "null", "[]"}) {
    VectorSink binary;
    Findings findings;
    const std::string text = R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":1,"type":)" +
                             std::string(type) + R"(,"parts":[]}]})";
    ASSERT_TRUE(json_to_binary(bytes_of(text), binary, findings).ok()) << type;
    EXPECT_TRUE(findings.has(Rule::kChunkUnknown) || findings.has(Rule::kJsonShape)) << type;
    EXPECT_EQ(binary.bytes().size(), kFileHeaderBytes) << type;
  }
}

TEST(Json, ChunksHaveANumberOrGet0) {
  for (const auto& [id, number, fits] : {std::tuple(R"("id":0,)", 0u, true),
                                         {R"("id":4294967295,)", 4294967295u, true},
                                         {R"("id":4294967296,)", 0u, false},
                                         {R"("id":-1,)", 0u, false},
                                         {R"("id":"2",)", 0u, false},
                                         {"", 0u, false}}) {
    VectorSink binary;
    Findings findings;
    const std::string text = R"({"wtfVersion":1,"formatVersion":10,"chunks":[{)" + std::string(id) +
                             R"("type":"event_data","parts":[]}]})";
    ASSERT_TRUE(json_to_binary(bytes_of(text), binary, findings).ok()) << id;
    EXPECT_EQ(findings.has(Rule::kJsonShape), !fits) << id;
    Findings reading;
    ChunkCursor cursor(binary.bytes(), reading);
    Chunk chunk;
    ASSERT_TRUE(cursor.next(chunk)) << id;
    EXPECT_EQ(chunk.id, number) << id;
  }
}

TEST(Json, OrdinalsHave32Bits) {
  for (const auto& [ordinal, fits] : {std::pair("4294967295", true), {"4294967296", false}}) {
    Findings findings;
    const auto lines =
        lines_from(document_of("ascii s", R"({"wireId":2,"time":7,"args":[{"ordinal":)" +
                                              std::string(ordinal) +
                                              R"(}]},{"wireId":2,"time":8,"args":["x"]})"),
                   findings);
    EXPECT_EQ(findings.has(Rule::kJsonValue), !fits) << ordinal;
    EXPECT_EQ(lines.size(), fits ? 2u : 1u) << ordinal;
  }
}

TEST(Json, MoreArgumentsThanATypeMayHaveAreRefused) {
  std::string args;
  for (size_t i = 0; i <= kMaxArguments; ++i) args += "\"x" + std::to_string(i) + "\":1,";
  Findings findings;
  const auto lines =
      lines_from(document_of("uint8 n", R"({"wireId":2,"time":7,"args":{)" + args +
                                            R"("n":1}},{"wireId":2,"time":8,"args":[3]})"),
                 findings);
  EXPECT_TRUE(findings.has(Rule::kJsonValue));
  EXPECT_EQ(lines, std::vector<std::string>{" | t | 8 | n=3"});
}

// The class is part of a definition.
TEST(Json, AnotherClassIsAnotherDefinition) {
  for (const char* event_class : {"0", "1"}) {
    Findings findings;
    (void)lines_from(
        document_of("uint8 n", R"({"wireId":1,"time":0,"args":{"wireId":2,"eventClass":)" +
                                   std::string(event_class) +
                                   R"(,"flags":0,"name":"t","args":"uint8 n"}})"),
        findings);
    EXPECT_EQ(findings.has(Rule::kRedefinition), *event_class == '1');
  }
}

TEST(Json, PartsAndChunksOfTheWrongShapeAreSaid) {
  const auto read = [](std::string_view chunks, Rule rule) {
    Findings findings;
    const auto lines = lines_from(
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[)" + std::string(chunks) +
            R"(,{"id":3,"type":"event_data","parts":[{"type":"json_event_buffer","events":[)"
            R"({"wireId":1,"time":0,"args":{"wireId":2,"eventClass":0,"flags":0,"name":"t",)"
            R"("args":""}},{"wireId":2,"time":5}]}]}]})",
        findings);
    EXPECT_EQ(lines, std::vector<std::string>{" | t | 5 |"}) << chunks;
    return findings.has(rule);
  };
  const auto chunk_of = [](const std::string& part) {
    return R"({"id":2,"type":"event_data","parts":[)" + part + "]}";
  };
  EXPECT_TRUE(read("7", Rule::kJsonShape));
  EXPECT_TRUE(read("[]", Rule::kJsonShape));
  EXPECT_TRUE(
      read(chunk_of(R"({"type":"string_table","mode":"base64","value":"?"})"), Rule::kJsonValue));
  EXPECT_TRUE(
      read(chunk_of(R"({"type":4294967296,"mode":"base64","value":""})"), Rule::kJsonShape));
  EXPECT_FALSE(
      read(chunk_of(R"({"type":4294967295,"mode":"base64","value":""})"), Rule::kJsonShape));
}

TEST(Json, FragmentsOfThePublishedLibraryAreReadToo) {
  Findings findings;
  const auto lines = lines_from(
      "{\n  \"wtfVersion\": 1436947200000,\n  \"formatVersion\": 10\n}\n"
      "{\"chunks\": [{\"id\":2,\"type\":\"event_data\",\"startTime\":0,\"endTime\":-2,\"parts\":["
      "{\"type\":\"string_table\",\"value\":[\"t\"]},"
      "{\"type\":\"binary_event_buffer\",\"mode\":\"base64\",\"byteLength\":36,"
      "\"value\":\"AQAAAAAAAAACAAAAAAAAAAAAAAAAAAAA/////wIAAAAHAAAA\"}]}]}\n",
      findings);
  EXPECT_EQ(lines, std::vector<std::string>{" | t | 7 |"});
  EXPECT_TRUE(findings.has(Rule::kJsonLossy)) << "the tool's version has 41 bits";
  EXPECT_EQ(findings.errors(), 0u);
}

TEST(Json, ReportsAndLeavesOutInvalidEvents) {
  const std::string head =
      R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":2,"type":"event_data","parts":[)"
      R"({"type":"json_event_buffer","events":[{"wireId":1,"time":0,"args":{"wireId":2,"eventClass":0,)"
      R"("flags":0,"name":"t","args":"uint8 n, ascii s"}},)";
  const std::string tail = R"(,{"wireId":2,"time":9,"args":[1,"last"]}]}]}]})";
  for (const char* bad : {"1",
                          "{}",
                          R"({"wireId":2})",
                          R"({"wireId":2,"time":1})",
                          R"({"wireId":2,"time":-1,"args":[1,"a"]})",
                          R"({"wireId":2,"time":4294967296,"args":[1,"a"]})",
                          R"({"wireId":2,"time":1,"args":[256,"a"]})",
                          R"({"wireId":2,"time":1,"args":[1.5,"a"]})",
                          R"({"wireId":2,"time":1,"args":[1]})",
                          R"({"wireId":2,"time":1,"args":[1,"a",2]})",
                          R"({"wireId":2,"time":1,"args":{"n":1}})",
                          R"({"wireId":2,"time":1,"args":{"n":1,"s":"a","x":1}})",
                          R"({"wireId":2,"time":1,"args":[1,5]})",
                          R"({"wireId":2,"time":1,"args":[1,"a\u0000b"]})",
                          R"({"wireId":2,"time":1,"args":[1,{"value":1}]})",
                          R"({"wireId":2,"time":1,"args":[1,{"ordinal":-1}]})",
                          R"({"wireId":2,"time":1,"raw":"AAA="})",
                          R"({"wireId":77,"time":1})",
                          R"({"event":"unknown","time":1})",
                          R"({"rest":"?"})"}) {
    Findings findings;
    const auto lines = lines_from(head + bad + tail, findings);
    EXPECT_TRUE(findings.has(Rule::kJsonValue)) << bad;
    EXPECT_EQ(lines, std::vector<std::string>{" | t | 9 | n=1 s='last'"}) << bad;
  }
}

// What is left of a cut file is in its document: the same events, and no half resource.
TEST(Json, CutFilesKeepTheEventsThatAreThere) {
  const auto whole = testing::build_file();
  for (size_t size = 400; size < whole.size(); size += 13) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    Findings reading, writing;
    const auto expected = testing::lines_of(cut, reading);
    VectorSink text;
    ASSERT_TRUE(binary_to_json(cut, {}, text, writing).ok()) << size;
    ASSERT_TRUE(json::accept(text_of(text.bytes()))) << size;
    Findings back;
    EXPECT_EQ(lines_from(text_of(text.bytes()), back), expected) << size;
  }
}

// A cut chunk gives the parts that are whole; one of events needs its table for them.
TEST(Json, KeepsWholePartsOfACutChunk) {
  const auto note = testing::octets("a resource");
  const std::vector<uint8_t> events(200, 7);
  for (const ChunkType type : {ChunkType::kFileHeader, ChunkType::kEventData}) {
    testing::ByHand made;
    made.file_header().chunk(1, static_cast<uint32_t>(type), {{0x40001, note}, {0x20002, events}});
    made.bytes.resize(made.bytes.size() - 100);
    VectorSink text;
    Findings findings;
    ASSERT_TRUE(binary_to_json(made.bytes, {}, text, findings).ok());
    const json document = json::parse(text.bytes(), nullptr, false);
    ASSERT_FALSE(document.is_discarded());
    const bool is_kept = type == ChunkType::kFileHeader;
    ASSERT_EQ(document["chunks"].size(), is_kept ? 1u : 0u);
    if (is_kept) {
      EXPECT_EQ(document["chunks"][0]["parts"][0]["value"], "a resource");
    }
    EXPECT_TRUE(findings.has(Rule::kTruncated));
  }
}

// More strings than are read from JSON stand in it as bytes, so that they come back.
TEST(Json, TableOfTooManyStringsStaysBytes) {
  for (const size_t count : {kMaxJsonStrings, kMaxJsonStrings + 1}) {
    testing::ByHand made;
    made.file_header().chunk(1, 2, {{0x30000, std::vector<uint8_t>(count)}});
    const auto text = to_json(made.bytes, {});
    const std::string_view words = text_of(text);
    EXPECT_EQ(words.find("\"string_table\",\"value\":[\"\",") != words.npos,
              count == kMaxJsonStrings);
    EXPECT_EQ(words.find("base64") != words.npos, count > kMaxJsonStrings);
    VectorSink binary;
    Findings findings;
    ASSERT_TRUE(json_to_binary(text, binary, findings).ok());
    EXPECT_EQ(binary.bytes(), made.bytes);
  }
  for (const size_t count : {kMaxJsonStrings, kMaxJsonStrings + 1}) {
    std::string words =
        "{\"wtfVersion\":1,\"formatVersion\":10,\"chunks\":[{\"id\":2,\"type\":\"event_data\","
        "\"parts\":[{\"type\":\"string_table\",\"value\":[\"\"";
    for (size_t i = 1; i < count; ++i) words += ",\"\"";
    VectorSink binary;
    Findings findings;
    words += "]}]}]}";
    (void)json_to_binary(testing::octets(words), binary, findings);
    EXPECT_EQ(findings.has(Rule::kLimit), count > kMaxJsonStrings);
  }
}

TEST(Json, TimesOfChunksHave32Bits) {
  for (const auto& [time, fits] : {std::pair("4294967295", true),
                                   {"4294967296", false},
                                   {"-2147483648", true},
                                   {"-2147483649", false}}) {
    Findings findings;
    (void)lines_from(R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":2,"type":"event_data",)"
                     R"("startTime":)" +
                         std::string(time) + R"(,"endTime":9,"parts":[]}]})",
                     findings);
    EXPECT_EQ(findings.has(Rule::kJsonValue), !fits) << time;
  }
}

TEST(Json, NonStringInAStringTableIsEmpty) {
  Findings findings;
  const auto lines = lines_from(
      "{\"wtfVersion\":1,\"formatVersion\":10,\"chunks\":[{\"id\":2,\"type\":\"event_data\","
      "\"parts\":["
      "{\"type\":\"string_table\",\"value\":[\"t\",[1,{\"a\":2}],\"x\"]},"
      "{\"type\":\"binary_event_buffer\",\"mode\":\"base64\",\"byteLength\":36,"
      "\"value\":\"AQAAAAAAAAACAAAAAAAAAAAAAAAAAAAA/////wIAAAAHAAAA\"}]}]}",
      findings);
  EXPECT_EQ(lines, std::vector<std::string>{" | t | 7 |"});
  EXPECT_TRUE(findings.has(Rule::kJsonValue));
}

// A char is a byte, in an array as alone.
TEST(Json, CharactersBeyondAByteAreNoChar) {
  for (const char* args : {R"(["世","a"])", R"(["a","é世"])", R"(["a","世é"])"}) {
    Findings findings;
    const auto lines = lines_from(
        R"({"wtfVersion":1,"formatVersion":10,"chunks":[{"id":2,"type":"event_data","parts":[)"
        R"({"type":"json_event_buffer","events":[{"wireId":1,"time":0,"args":{"wireId":2,)"
        R"("eventClass":0,"flags":0,"name":"t","args":"char c, char[] s"}},)"
        R"({"wireId":2,"time":1,"args":)" +
            std::string(args) + R"(},{"wireId":2,"time":2,"args":["é","aé"]}]}]}]})",
        findings);
    EXPECT_TRUE(findings.has(Rule::kJsonValue)) << args;
    EXPECT_EQ(lines, std::vector<std::string>{" | t | 2 | c=233 s=[97 233 ]"}) << args;
  }
}

TEST(Json, DamagedDocumentsGiveTheChunksBefore) {
  const auto binary = testing::build_file(200);
  const auto text = to_json(binary, {});
  const size_t middle = text.size() / 2;
  VectorSink out;
  Findings findings;
  ASSERT_TRUE(json_to_binary(Bytes(text).first(middle), out, findings).ok());
  EXPECT_TRUE(findings.has(Rule::kJsonSyntax));
  EXPECT_GT(out.bytes().size(), 200u);
  EXPECT_TRUE(std::equal(out.bytes().begin(), out.bytes().end(), binary.begin()));
  EXPECT_EQ(check_file(Bytes(text).first(middle)).viewer_loads, false);
}

TEST(Json, RefusesWhatIsNoTrace) {
  for (const auto& [text, code] : std::vector<std::pair<std::string, Code>>{
           {"{", Code::kDamaged},
           {"{}", Code::kUnsupported},
           {"[]", Code::kDamaged},
           {R"({"wtfVersion":1,"formatVersion":9})", Code::kUnsupported},
           {std::string(100000, '['), Code::kDamaged}}) {
    VectorSink sink;
    Findings findings;
    const auto result = json_to_binary(bytes_of(text), sink, findings);
    ASSERT_FALSE(result.ok()) << text.substr(0, 40);
    EXPECT_EQ(result.code(), code) << text.substr(0, 40);
    EXPECT_GE(findings.errors(), 1u);
    EXPECT_TRUE(sink.bytes().empty());
  }
}

// Words that are not as a writer of ours has them survive too: high bytes of small numbers, odd
// booleans, signalling NaNs, padding, lone surrogates, repeated and unused strings, ordinals beyond
// the table, texts that are not UTF-8, cut arguments.
TEST(Json, KeepsOddWords) {
  std::vector<uint8_t> bytes = testing::build_file();
  uint32_t random = 12345;
  const size_t start = bytes.size() - 700;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> odd = bytes;
    for (int change = 0; change < 3; ++change) {
      random = random * 1664525 + 1013904223;
      odd[start + (random >> 8) % 700] = static_cast<uint8_t>(random >> 24);
    }
    Findings structure;
    ChunkCursor cursor(odd, structure);
    for (Chunk chunk; cursor.next(chunk);) {
    }
    if (!structure.list().empty()) continue;
    VectorSink text, back;
    Findings findings;
    ASSERT_TRUE(binary_to_json(odd, {}, text, findings).ok());
    ASSERT_TRUE(json_to_binary(text.bytes(), back, findings).ok());
    ASSERT_EQ(back.bytes(), odd) << round;
  }
}

TEST(Json, TextOrdinalsFollowBothKindsOfWriters) {
  TextOrdinals ordinals;
  for (const char* text : {"a", "b", "a", "c"}) ordinals.add(text);
  const auto name = [&](std::string_view text) {
    const auto ordinal = ordinals.meant(text);
    if (ordinal) ordinals.took(*ordinal);
    return ordinal;
  };
  EXPECT_EQ(name("a"), 0u);
  EXPECT_EQ(name("b"), 1u);
  EXPECT_EQ(name("b"), 1u);
  EXPECT_EQ(name("a"), 2u) << "the next entry in order";
  EXPECT_EQ(name("a"), 0u);
  EXPECT_EQ(name("d"), std::nullopt);

  TextOrdinals undone;
  for (const char* text : {"a", "b", "a"}) undone.add(text);
  undone.took(0);
  const size_t mark = undone.mark();
  undone.took(1);
  EXPECT_EQ(undone.meant("a"), 2u);
  undone.back_to(mark);
  EXPECT_EQ(undone.meant("a"), 0u);
}

}  // namespace
}  // namespace collect::wtf
