// Each rule of FORMAT.md "What a reader checks": a file that breaks it, and what the reader says.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "formats/wtf/check.h"
#include "formats/wtf/text.h"
#include "formats/wtf/transcode.h"
#include "tests/formats/wtf/by_hand.h"

namespace collect::wtf {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using testing::ByHand;
using testing::octets;

using Parts = std::vector<std::pair<uint32_t, std::vector<uint8_t>>>;

constexpr uint32_t kHeaderPart = 0x10000;
constexpr uint32_t kJsonEventPart = 0x20000;
constexpr uint32_t kEventPart = 0x20002;
constexpr uint32_t kTablePart = 0x30000;
constexpr uint32_t kBuiltin = 32;

ByHand headed(std::string_view header = R"({"type":"file_header","timebase":3.5})") {
  ByHand file;
  file.file_header().chunk(1, 1, {{kHeaderPart, octets(header)}});
  return file;
}

// A sound file with these strings and events.
ByHand with_events(std::string_view table, const ByHand& events) {
  ByHand file = headed();
  file.chunk(2, 2, {{kTablePart, octets(table)}, {kEventPart, events.bytes}});
  return file;
}

// One chunk of events with these parts.
ByHand with_parts(const Parts& parts) {
  ByHand file = headed();
  file.chunk(2, 2, parts);
  return file;
}

// A type "t" with one argument, and one event of it whose value is this word.
ByHand one_text(std::string_view argument, uint32_t value, std::string_view text = "text"sv) {
  ByHand events;
  events.define(2, 0, 0, 0, 1).word(2).word(1).word(value);
  return with_events("t\0"s.append(argument).append("\0"sv).append(text).append("\0"sv), events);
}

// wtf.scope#enter as wire id 2, wtf.scope#leave as 3; the name is ordinal 3.
ByHand scopes(std::string_view name, uint32_t enters, uint32_t leaves) {
  ByHand events;
  events.define(2, 1, kBuiltin, 0, 1).define(3, 0, kBuiltin, 2, kNullOrdinal);
  for (uint32_t i = 0; i < enters; ++i) events.word(2).word(i).word(3);
  for (uint32_t i = 0; i < leaves; ++i) events.word(3).word(enters + i);
  return with_events("wtf.scope#enter\0ascii name\0wtf.scope#leave\0"s.append(name).append("\0"sv),
                     events);
}

// wtf.zone#create as wire id 2, wtf.zone#set as 3, an event without arguments as 4.
constexpr std::string_view kZoneTable =
    "wtf.zone#create\0uint16 zoneId, ascii name, ascii type, ascii location\0"
    "wtf.zone#set\0uint16 zoneId\0t\0one\0"sv;
ByHand zone_types(uint32_t flags = kBuiltin) {
  ByHand events;
  events.define(2, 0, flags, 0, 1).define(3, 0, flags, 2, 3).define(4, 0, 0, 4, kNullOrdinal);
  return events;
}

ByHand defined(std::string_view name, std::string_view arguments, uint32_t wire_id = 2) {
  ByHand events;
  events.define(wire_id, 0, 0, 0, 1);
  return with_events(std::string(name).append("\0"sv).append(arguments).append("\0"sv), events);
}

ByHand json(std::string_view chunks,
            std::string_view versions = R"("wtfVersion": 5, "formatVersion": 10)") {
  ByHand file;
  file.text("{").text(versions).text(", \"chunks\": [").text(chunks).text("]}");
  return file;
}

ByHand json_event(std::string_view argument_type, std::string_view value) {
  const std::string event =
      std::string(R"({"event": "t", "time": 1, "args": [)") + std::string(value) + "]}";
  return json(R"({"id": 2, "type": "event_data", "parts": [{"type": "json_event_buffer",
      "events": [{"event": "wtf.event#define", "time": 0, "args": {"wireId": 2, "eventClass": 0,
      "flags": 0, "name": "t", "args": ")" +
              std::string(argument_type) + R"( v"}}, )" + event + "]}]}");
}

struct Case {
  Rule rule;
  Severity severity;
  const char* what;  // within the sentence
  std::function<ByHand()> make;
};

const Case kCases[] = {
    {Rule::kFileHeader, Severity::kError, "too few for a header",
     [] { return ByHand().word(0xDEADBEEF).word(5); }},
    {Rule::kVersion, Severity::kError, "11",
     [] { return ByHand().file_header(11).word(0).word(0); }},
    {Rule::kFileLength, Severity::kError, "", [] { return defined("t", "uint32 n").text("x"); }},
    {Rule::kTrailing, Severity::kError, "8 bytes behind the last chunk",
     [] { return headed().word(7).word(7); }},
    {Rule::kTrailing, Severity::kError, "28 bytes behind the last chunk are no chunk",
     [] { return headed().raw(std::vector<uint8_t>(28)); }},
    {Rule::kTruncated, Severity::kError, "chunk 2 says",
     [] {
       ByHand file = defined("t", "uint32 n");
       file.bytes.resize(file.bytes.size() - 8);
       return file;
     }},
    {Rule::kChunkHeader, Severity::kError, "up to the next one",
     [] {
       ByHand file = headed().raw(std::vector<uint8_t>(28));
       return file.chunk(3, 1, {{kHeaderPart, octets("{}")}});
     }},
    {Rule::kChunkHeader, Severity::kError, "no multiple of 4",
     [] {
       ByHand file = headed().word(2).word(1).word(37).word(0).word(0).word(1);
       return file.word(kHeaderPart).word(0).word(1).text("x");
     }},
    {Rule::kChunkUnknown, Severity::kNote, "type 9",
     [] { return headed().chunk(2, 9, {{kTablePart, octets("x")}}); }},
    {Rule::kChunkUnknown, Severity::kError, "unknown",
     [] { return json(R"({"id": 2, "type": "other", "parts": []})"); }},
    {Rule::kPartRange, Severity::kError, "4 bytes out of its chunk",
     [] {
       ByHand file = headed().word(2).word(1).word(40).word(0).word(0).word(1);
       return file.word(kHeaderPart).word(0).word(8).word(0);
     }},
    {Rule::kPartLayout, Severity::kNote, "",
     [] {
       ByHand file = headed().word(2).word(1).word(44).word(0).word(0).word(1);
       return file.word(kHeaderPart).word(4).word(4).word(0).text("{}  ");
     }},
    {Rule::kPartPlacement, Severity::kError, "'string_table' in a chunk 'file_header'",
     [] { return headed().chunk(2, 1, {{kTablePart, octets("x")}}); }},
    {Rule::kPartPlacement, Severity::kError, "'file_header' in a chunk 'event_data'",
     [] { return with_parts({{kHeaderPart, octets("{}")}, {kTablePart, {}}, {kEventPart, {}}}); }},
    {Rule::kPartUnknown, Severity::kNote, "type 77",
     [] { return with_parts({{kTablePart, {}}, {77, octets("x")}, {kEventPart, {}}}); }},
    {Rule::kPartUnknown, Severity::kWarning, "JSON events",
     [] { return with_parts({{kTablePart, {}}, {kJsonEventPart, octets("[]")}}); }},
    {Rule::kPartUnknown, Severity::kError, "unknown",
     [] { return json(R"({"id": 2, "type": "event_data", "parts": [{"type": "other"}]})"); }},
    {Rule::kPartRepeated, Severity::kWarning, "2 event buffers and 1 string tables",
     [] { return with_parts({{kTablePart, {}}, {kEventPart, {}}, {kEventPart, {}}}); }},
    {Rule::kPartRepeated, Severity::kWarning, "1 event buffers and 2 string tables",
     [] { return with_parts({{kTablePart, {}}, {kTablePart, {}}, {kEventPart, {}}}); }},
    {Rule::kEventBuffer, Severity::kError, "without a binary event buffer",
     [] { return with_parts({{kTablePart, {}}}); }},
    {Rule::kEventBufferLength, Severity::kError, "no multiple of 4",
     [] { return with_parts({{kTablePart, {}}, {kEventPart, octets("abcde")}}); }},
    {Rule::kStringTable, Severity::kError, "without a string table",
     [] { return with_parts({{kEventPart, {}}}); }},
    {Rule::kHeaderMissing, Severity::kWarning, "",
     [] { return ByHand().file_header().chunk(2, 2, {{kTablePart, {}}, {kEventPart, {}}}); }},
    {Rule::kHeaderOrder, Severity::kNote, "the header chunk is number 2 in the file",
     [] {
       ByHand file = ByHand().file_header().chunk(2, 2, {{kTablePart, {}}, {kEventPart, {}}});
       return file.chunk(1, 1, {{kHeaderPart, octets(R"({"type":"file_header","timebase":3})")}});
     }},
    {Rule::kHeaderJson, Severity::kError, "", [] { return headed("no JSON"); }},
    {Rule::kWireId, Severity::kError, "wire id 7 is not defined: the last 12 bytes",
     [] { return with_events("x", ByHand().word(7).word(0).word(0)); }},
    {Rule::kEventCut, Severity::kError, "'t'",
     [] {
       ByHand events;
       events.define(2, 0, 0, 0, 1).word(2).word(1).word(5);
       return with_events("t\0uint32 n, uint32 m\0"sv, events);
     }},
    {Rule::kEventTrailing, Severity::kError, "4 bytes behind the last event",
     [] {
       ByHand events;
       events.define(2, 0, 0, 0, kNullOrdinal).word(2);
       return with_events("t\0"sv, events);
     }},
    {Rule::kDefinition, Severity::kError, "", [] { return defined("t", "uint99 n"); }},
    {Rule::kDefinitionName, Severity::kWarning, "repeated, or cut",
     [] { return defined("t", "uint32 n, uint32 n"); }},
    {Rule::kDefinitionName, Severity::kWarning, "repeated, or cut",
     [] { return defined("t", "uint32 n-m"); }},
    {Rule::kRedefinition, Severity::kWarning, "wire id 2 was",
     [] {
       ByHand events;
       events.define(2, 0, 0, 0, kNullOrdinal).define(2, 0, 0, 1, kNullOrdinal);
       return with_events("t\0u\0"sv, events);
     }},
    {Rule::kRedefinition, Severity::kWarning, "defined again with other arguments",
     [] {
       ByHand events;
       events.define(2, 0, 0, 0, kNullOrdinal).define(3, 0, 0, 0, 1);
       return with_events("t\0uint32 n\0"sv, events);
     }},
    {Rule::kDefineReserved, Severity::kError, "", [] { return defined("t", "uint32 n", 1); }},
    {Rule::kEventName, Severity::kWarning, "line end", [] { return defined("t\nu", "uint32 n"); }},
    {Rule::kBuiltinSignature, Severity::kWarning, "arguments that are not its own",
     [] { return defined("wtf.scope#enter", "uint32 n"); }},
    {Rule::kZoneUndefined, Severity::kError, "zone 3, which was never created",
     [] { return with_events(kZoneTable, zone_types().word(3).word(1).word(3).word(4).word(2)); }},
    {Rule::kZoneBuiltin, Severity::kWarning, "without the BUILTIN flag",
     [] { return with_events(kZoneTable, zone_types(0)); }},
    {Rule::kZoneMerged, Severity::kWarning, "zone 2 has name, type and location",
     [] {
       ByHand events = zone_types();
       for (const uint32_t id : {1u, 2u}) events.word(2).word(1).word(id).word(5).word(5).word(5);
       return with_events(kZoneTable, events);
     }},
    {Rule::kZoneMissing, Severity::kNote, "before any zone",
     [] { return with_events(kZoneTable, zone_types().word(4).word(1)); }},
    {Rule::kOrdinal, Severity::kWarning, "'v': its ordinal", [] { return one_text("ascii v", 3); }},
    {Rule::kEmptyEntry, Severity::kNote, "'v': an empty table entry",
     [] { return one_text("ascii v", 2, ""); }},
    {Rule::kStringText, Severity::kWarning, "'v': it is not UTF-8",
     [] { return one_text("utf8 v", 2, "\xFF"); }},
    {Rule::kAnyEmpty, Severity::kError, "'v': the empty string",
     [] { return one_text("any v", kEmptyOrdinal); }},
    {Rule::kAnyJson, Severity::kError, "'v': it is not JSON",
     [] { return one_text("any v", 2, "{"); }},
    {Rule::kScopeName, Severity::kWarning, "'a/b' is not kept", [] { return scopes("a/b", 1, 1); }},
    {Rule::kScopeNameFatal, Severity::kError, "'a(!!)' breaks",
     [] { return scopes("a(!!)", 1, 1); }},
    {Rule::kScopeDepth, Severity::kWarning, "nested 1024 deep",
     [] { return scopes("a", 1024, 1024); }},
    {Rule::kScopeUnbalanced, Severity::kNote, "0 leaves without an enter, 1 scopes never left",
     [] { return scopes("a", 2, 1); }},
    {Rule::kScopeUnbalanced, Severity::kNote, "1 leaves without an enter, 0 scopes never left",
     [] { return scopes("a", 1, 2); }},
    {Rule::kTimeOrder, Severity::kNote, "1 times",
     [] {
       ByHand events;
       events.define(2, 0, 0, 0, kNullOrdinal).word(2).word(7).word(2).word(6).word(2).word(6);
       return with_events("t\0"sv, events);
     }},
    {Rule::kFrameAtZero, Severity::kWarning, "starts at time 0",
     [] {
       ByHand events;
       events.define(2, 0, kBuiltin, 0, 1).word(2).word(0).word(1);
       return with_events("wtf.timing#frameStart\0uint32 number\0"sv, events);
     }},
    {Rule::kJsonSyntax, Severity::kError, "", [] { return json("{"); }},
    {Rule::kJsonShape, Severity::kError, "without a number 'id'",
     [] { return json(R"({"type": "event_data", "parts": []})"); }},
    {Rule::kJsonShape, Severity::kError, "without an array 'parts'",
     [] { return json(R"({"id": 2, "type": "event_data", "parts": {}})"); }},
    {Rule::kJsonShape, Severity::kError, "a part that is no object",
     [] { return json(R"({"id": 2, "type": "event_data", "parts": [7]})"); }},
    {Rule::kJsonValue, Severity::kError, "", [] { return json_event("uint32", "\"text\""); }},
    {Rule::kJsonLossy, Severity::kNote, "",
     [] { return json("", R"("wtfVersion": 4294967301, "formatVersion": 10)"); }},
    {Rule::kLimit, Severity::kError, "more than 16777216 strings",
     [] {
       return with_parts({{kTablePart, std::vector<uint8_t>(kMaxStrings + 1)}, {kEventPart, {}}});
     }},
    {Rule::kLimit, Severity::kError, "65537 parts",
     [] {
       ByHand file = headed().word(2).word(2).word(24 + 65537 * 12);
       file.word(0).word(0).word(65537);
       return file.raw(std::vector<uint8_t>(65537 * 12));
     }},
};

std::string listed(const Findings& findings) {
  std::string all;
  for (const Finding& finding : findings.list()) {
    all += std::string(rule_name(finding.rule)) + ": " + finding.sentence + "\n";
  }
  return all;
}

TEST(WtfRules, EachBrokenRuleIsFound) {
  for (const Case& broken : kCases) {
    const Findings findings = check_file(broken.make().bytes).findings;
    const auto is_it = [&](const Finding& finding) {
      return finding.rule == broken.rule && finding.severity == broken.severity &&
             finding.sentence.find(broken.what) != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::any_of(findings.list(), is_it))
        << rule_name(broken.rule) << " (" << broken.what << ") among:\n"
        << listed(findings);
    EXPECT_TRUE(findings.has(broken.rule));
  }
}

TEST(WtfRules, EveryRuleHasACase) {
  // A copy says what it renamed: transcode_test.cc.
  std::set<Rule> covered = {Rule::kRenamed};
  for (const Case& broken : kCases) covered.insert(broken.rule);
  for (uint8_t rule = 0; rule <= static_cast<uint8_t>(Rule::kLimit); ++rule) {
    EXPECT_TRUE(covered.contains(Rule{rule})) << rule_name(Rule{rule});
  }
}

TEST(WtfRules, NoTwoRulesHaveTheSameName) {
  std::set<std::string_view> names;
  for (uint8_t rule = 0; rule <= static_cast<uint8_t>(Rule::kLimit); ++rule) {
    EXPECT_TRUE(names.insert(rule_name(Rule{rule})).second) << rule_name(Rule{rule});
  }
}

// What is just within a rule: nothing is found.
TEST(WtfRules, SoundFilesBreakNone) {
  ByHand zoned = zone_types();
  zoned.word(2).word(1).word(1).word(5).word(5).word(5).word(3).word(1).word(1).word(4).word(2);
  for (const ByHand& file :
       {defined("t", "uint32 n"), scopes("a", 1023, 1023), with_events(kZoneTable, zoned),
        json(R"({"id": 1, "type": "file_header", "parts": [{"type": "file_header",
             "timebase": 5}]})")}) {
    Findings findings = check_file(file.bytes).findings;
    EXPECT_EQ(findings.errors() + findings.warnings(), 0u) << listed(findings);
  }
}

}  // namespace
}  // namespace collect::wtf
