#include "formats/wtf/binary/reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/check.h"
#include "formats/wtf/text.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/by_hand.h"

namespace collect::wtf {
namespace {

using testing::ByHand;
using testing::file_of;
using namespace std::string_literals;

TEST(Reader, ReadsAFileMadeByHand) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 1, 0, 0, 1).define(3, 0, 40, 2, kNullOrdinal);
  events.word(2).word(100).word(0xFFFFFFFE).word(0x3F800000).word(3).text("abc\0"sv);
  events.word(3).word(250);
  const auto file = file_of("draw\0int32 n, float32 f, char[] c\0wtf.scope#leave\0"sv, events);
  Findings findings;
  auto opened = Reader::open(file, findings);
  ASSERT_TRUE(opened.ok());
  Reader& reader = **opened;
  EXPECT_EQ(reader.tool_version(), 5u);
  EXPECT_EQ(reader.header()->timebase_ms, 3.5);
  Event event;
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.type->name, "draw");
  EXPECT_TRUE(event.type->is_scope());
  EXPECT_EQ(event.time_us, 100u);
  EXPECT_EQ(load_le<uint32_t>(file.data() + event.offset), 2u);
  EXPECT_EQ(load_le<uint32_t>(file.data() + event.offset + 4), 100u);
  EXPECT_EQ(event.argument("n")->integer(), -2);
  EXPECT_EQ(event.argument("f")->real(), 1.0f);
  EXPECT_EQ(event.argument("c")->utf8(), "abc");
  EXPECT_FALSE(event.argument("d").has_value());
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.type->role, Role::kScopeLeave);
  EXPECT_FALSE(reader.next(event));
  EXPECT_FALSE(reader.next(event));
  EXPECT_EQ(reader.chunks(), 2u);
  EXPECT_EQ(reader.position(), file.size());
  EXPECT_TRUE(findings.has(Rule::kZoneMissing));
  EXPECT_EQ(findings.errors() + findings.warnings(), 0u);
}

// What is cut off within its arguments is no event, and that is said.
TEST(Reader, EventThatTheFileEndsWithinIsLeftOut) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 1, 0, 0, 1).word(2).word(100).word(3).text("abc\0"sv);
  auto file = file_of("draw\0char[] c\0"sv, events);
  for (size_t left_out = 0; left_out < 12; left_out += 4) {
    Findings findings;
    auto reader = Reader::open(file, findings);
    ASSERT_TRUE(reader.ok());
    Event event;
    EXPECT_EQ((*reader)->next(event), left_out == 0);
    const bool said = std::ranges::any_of(findings.list(), [&](const Finding& finding) {
      return finding.rule == Rule::kTruncated && finding.offset + 16 - left_out == file.size() &&
             finding.sentence.find("within an event 'draw'") != std::string::npos;
    });
    EXPECT_EQ(said, left_out != 0) << left_out;
    file.resize(file.size() - 4);
  }
}

// More zones than are kept count for the default zone; no others are there.
TEST(Reader, ZonesHaveALimit) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 0, 40, 0, 1).define(3, 0, 0, 2, 3).define(4, 0, 40, 4, 5);
  std::string table =
      "wtf.zone#create\0uint16 zoneId, ascii name, ascii type, ascii location\0"
      "mark\0\0wtf.zone#set\0uint16 zoneId\0"s;
  constexpr uint32_t kNames = 6;
  for (size_t i = 0; i <= kMaxZones; ++i) {
    table += std::to_string(i) + '\0';
    const auto id = static_cast<uint32_t>(i == kMaxZones ? 9 : i == kMaxZones - 1 ? 4 : i % 4);
    events.word(2).word(0).word(id).word(kNames + static_cast<uint32_t>(i));
    events.word(kNullOrdinal).word(kNullOrdinal);
  }
  events.word(4).word(1).word(4).word(3).word(2);
  events.word(4).word(1).word(9).word(3).word(3);
  const auto file = file_of(table, events);
  Findings findings;
  auto opened = Reader::open(file, findings);
  ASSERT_TRUE(opened.ok());
  Reader& reader = **opened;
  Event event;
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.type->name, "mark");
  EXPECT_EQ(reader.zones().size(), kMaxZones);
  EXPECT_TRUE(findings.has(Rule::kLimit));
  EXPECT_EQ(reader.zones()[event.zone].name, std::to_string(kMaxZones - 1));
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.zone, 0u);
  for (uint32_t id = 0; id < 70000; ++id) {
    EXPECT_EQ(reader.zone_of_id(id).has_value(), id < 5 || id == 9) << id;
  }
}

// By name, type and location together; a signature may be longer than its type's name.
TEST(Reader, ReportsZonesOfOneName) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  const Writer::Text none;
  for (const auto& [type, location] : {std::pair<Writer::Text, Writer::Text>{"a", "x"},
                                       {"b", "x"},
                                       {"b", "y"},
                                       {none, "y"},
                                       {"b", none}}) {
    ASSERT_TRUE(writer.create_zone("z", type, location).ok());
  }
  ASSERT_TRUE(writer.set_zone(1).ok());
  const uint32_t long_type =
      writer.define_instance("t", "uint32 " + std::string(2000, 'n')).value();
  ASSERT_TRUE(writer.event(long_type, 1000, {7}).ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  auto reader = Reader::open(sink.bytes(), findings);
  ASSERT_TRUE(reader.ok());
  Event event;
  ASSERT_TRUE((*reader)->next(event));
  EXPECT_EQ(event.argument(std::string(2000, 'n'))->integer(), 7);
  EXPECT_EQ((*reader)->zones().size(), 5u);
  EXPECT_TRUE(findings.list().empty());
}

TEST(Reader, TextsAndTheirSpecialOrdinals) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 0, 0, 0, 1);
  events.word(2).word(1).word(3).word(kNullOrdinal);
  events.word(2).word(2).word(kEmptyOrdinal).word(kEmptyOrdinal);
  events.word(2).word(3).word(2).word(99);
  const auto file = file_of("t\0ascii a, any j\0\0x"sv, events);
  Findings findings;
  auto reader = Reader::open(file, findings);
  ASSERT_TRUE(reader.ok());
  const auto states = [&] {
    Event event;
    EXPECT_TRUE((*reader)->next(event));
    return std::pair(event.argument("a")->state, event.argument("j")->state);
  };
  using State = Value::State;
  EXPECT_EQ(states(), std::pair(State::kPresent, State::kNull));
  EXPECT_EQ(states(), std::pair(State::kPresent, State::kEmptyAny));
  EXPECT_EQ(states(), std::pair(State::kEmptyEntry, State::kBadOrdinal));
}

TEST(Reader, CharactersBecomeUtf8) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 0, 0, 0, 1);
  events.word(2).word(1).word(0xE9).word(0x4E16).word(3).word(0xDE00D83D).word(0xD800);
  const auto file = file_of("t\0char c, wchar w, wchar[] s\0"sv, events);
  Findings findings;
  auto reader = Reader::open(file, findings);
  Event event;
  ASSERT_TRUE((*reader)->next(event));
  EXPECT_EQ(event.argument("c")->utf8(), "é");
  EXPECT_EQ(event.argument("w")->utf8(), "世");
  EXPECT_EQ(event.argument("s")->utf8(), "😀\xEF\xBF\xBD");
}

TEST(Reader, TextsThatAreNotUtf8AreSaid) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 0, 0, 0, 1);
  events.word(2).word(1).word(2);
  const auto file = file_of("t\0ascii a\0\xff\0"sv, events);
  const FileReport report = check_file(file);
  EXPECT_EQ(report.events, 1u);
  EXPECT_TRUE(report.findings.has(Rule::kStringText));
  EXPECT_EQ(report.findings.errors(), 0u);
}

// One step back is enough: scopes are counted by time, not as they are written.
TEST(Reader, ScopesOfAZoneThatStepsBackOnce) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 1, 0, 0, kNullOrdinal).define(3, 0, 40, 1, kNullOrdinal);
  events.word(3).word(200).word(2).word(100);
  const FileReport report = check_file(file_of("draw\0wtf.scope#leave\0"sv, events));
  ASSERT_FALSE(report.zones.empty());
  EXPECT_EQ(report.zones[0].backward_steps, 1u);
  EXPECT_EQ(report.zones[0].scopes, 1u);
  EXPECT_EQ(report.zones[0].open_scopes, 0u);
  EXPECT_EQ(report.zones[0].unmatched_leaves, 0u);
}

// Two definitions of one name: the published viewer misreads the second's events, we do not.
TEST(Reader, ReadsASecondDefinitionWithItsOwnArguments) {
  using namespace std::string_view_literals;
  ByHand events;
  events.define(2, 0, 0, 0, 1).define(3, 0, 0, 0, 2);
  events.word(3).word(7).word(3).word(41).word(2).word(8).word(9);
  const auto file = file_of("a#b\0uint32 x\0ascii y, uint32 z\0text\0"sv, events);
  Findings findings;
  auto reader = Reader::open(file, findings);
  Event event;
  ASSERT_TRUE((*reader)->next(event));
  EXPECT_EQ(event.argument("y")->text, "text");
  EXPECT_EQ(event.argument("z")->integer(), 41);
  ASSERT_TRUE((*reader)->next(event));
  EXPECT_EQ(event.argument("x")->integer(), 9);
  EXPECT_TRUE(findings.has(Rule::kRedefinition));
}

TEST(Reader, ZonesOfTheBuiltFile) {
  const auto file = testing::build_file(100);
  Findings findings;
  auto opened = Reader::open(file, findings);
  ASSERT_TRUE(opened.ok());
  Reader& reader = **opened;
  Event event;
  size_t in_worker = 0;
  bool resources = false;
  while (reader.next(event)) {
    in_worker += reader.zones()[event.zone].name == "worker" ? 1 : 0;
    for (const Part& part : reader.chunk().parts) resources = resources || part.type == 0x40001;
  }
  ASSERT_EQ(reader.zones().size(), 2u);
  EXPECT_EQ(reader.zones()[0].name, "app (7) / main (7)");
  EXPECT_EQ(reader.zones()[0].type, "script");
  EXPECT_EQ(reader.zones()[1].location, std::nullopt);
  EXPECT_EQ(in_worker, 11u);
  EXPECT_TRUE(resources);
  EXPECT_TRUE(findings.list().empty());
}

TEST(Reader, RefusesOtherVersions) {
  auto file = testing::build_file();
  for (const uint8_t version : {uint8_t{9}, uint8_t{11}}) {
    file[8] = version;
    Findings findings;
    const auto reader = Reader::open(file, findings);
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.code(), Code::kUnsupported);
    EXPECT_TRUE(findings.has(Rule::kVersion));
  }
}

// What has no bytes may stand where the bytes end.
TEST(Legacy, EmptyArgumentsAtTheEnd) {
  EventType type;
  type.arguments = parse_signature("uint8[] a, utf8 t").value();
  type.finish();
  const uint8_t bytes[] = {0, 0, 0, 0, 0, 1, 0, 0};
  Arguments walk(type, bytes, Encoding::kLegacy, nullptr);
  Value value;
  ASSERT_TRUE(walk.next(value));
  EXPECT_EQ(value.state, Value::State::kPresent);
  EXPECT_EQ(value.count, 0u);
  ASSERT_TRUE(walk.next(value));
  EXPECT_EQ(value.state, Value::State::kPresent);
  EXPECT_EQ(value.text, "");
  EXPECT_EQ(walk.consumed(), sizeof bytes);
  Arguments shorter(type, Bytes(bytes).first(4), Encoding::kLegacy, nullptr);
  ASSERT_TRUE(shorter.next(value));
  EXPECT_EQ(value.state, Value::State::kPresent);
  ASSERT_TRUE(shorter.next(value));
  EXPECT_EQ(value.state, Value::State::kCut);
}

// A legacy file put together from its description, big-endian and packed.
std::vector<uint8_t> legacy_file() {
  std::vector<uint8_t> file;
  const auto big = [&](uint64_t value, int bytes) {
    for (int i = bytes; i-- > 0;) file.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const auto ascii = [&](std::string_view text) {
    big(text.size(), 2);
    file.insert(file.end(), text.begin(), text.end());
  };
  const auto utf8 = [&](std::string_view text, size_t characters) {
    big(characters, 2);
    ascii(text);
  };
  big(0xDEADBEEF, 4);
  big(77, 4);
  big(3, 4);
  utf8(R"({"contextType":"script","uri":"http://x"})", 41);
  big(1, 4);
  big(5, 4);
  big(1, 4);
  utf8(R"({"m":1})", 7);
  big(1, 2), big(10, 4), big(2, 2), big(1, 2), big(0, 4);
  ascii("draw");
  ascii(
      "int8 a, uint16 b, int32 c, float32 f, bool g, ascii h, utf8 i, int16[] j, any k, time32 t");
  big(2, 2), big(20, 4);
  big(0xFE, 1), big(0x1234, 2), big(0xFFFFFFFF, 4);
  for (const int byte : {0x00, 0x00, 0xC0, 0x3F}) big(static_cast<uint64_t>(byte), 1);
  big(1, 1);
  ascii("caf\xE9");
  utf8("世", 1);
  big(2, 4), big(0xFFFF, 2), big(1, 2);
  big(0, 2);
  big(1500, 4);
  return file;
}

TEST(Legacy, ReadsAFileMadeByHand) {
  const std::vector<uint8_t> file = legacy_file();
  Findings findings;
  auto opened = Reader::open(file, findings);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Reader& reader = **opened;
  EXPECT_EQ(reader.tool_version(), 77u);
  EXPECT_EQ(reader.header()->flags,
            std::vector<std::string>{std::string(kFlagHighResolutionTimes)});
  EXPECT_EQ(reader.header()->timebase_ms, 4294967301.0);
  EXPECT_EQ(reader.header()->context->uri, "http://x");
  EXPECT_EQ(reader.header()->metadata, R"({"m":1})");
  Event event;
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.time_us, 20u);
  EXPECT_EQ(event.argument("a")->integer(), -2);
  EXPECT_EQ(event.argument("b")->integer(), 0x1234);
  EXPECT_EQ(event.argument("c")->integer(), -1);
  EXPECT_EQ(event.argument("f")->real(), 1.5f);
  EXPECT_EQ(event.argument("g")->integer(), 1);
  EXPECT_EQ(event.argument("h")->utf8(), "café");
  EXPECT_EQ(event.argument("i")->utf8(), "世");
  EXPECT_EQ(event.argument("j")->element(0), -1);
  EXPECT_EQ(event.argument("j")->element(1), 1);
  EXPECT_FALSE(event.argument("k")->present());
  EXPECT_EQ(event.argument("t")->integer(), 1500);
  EXPECT_FALSE(reader.next(event));
  EXPECT_EQ(findings.errors(), 0u);
}

TEST(Legacy, ReportsAnUndefinedWireId) {
  std::vector<uint8_t> file = legacy_file();
  const size_t defined_bytes = file.size();
  file.insert(file.end(), {0, 9, 0, 0, 0, 30});
  Findings findings;
  auto reader = Reader::open(file, findings);
  ASSERT_TRUE(reader.ok());
  Event event;
  ASSERT_TRUE((*reader)->next(event));
  EXPECT_FALSE((*reader)->next(event));
  ASSERT_EQ(findings.errors(), 1u);
  EXPECT_TRUE(findings.has(Rule::kWireId));
  EXPECT_EQ(findings.list().back().offset, defined_bytes);
}

TEST(Legacy, NoPrefixHasAnEvent) {
  const std::vector<uint8_t> file = legacy_file();
  for (size_t length = 12; length < file.size(); ++length) {
    const FileReport report = check_file(Bytes(file).first(length));
    EXPECT_EQ(report.events, 0u);
    // At the end of the header and of the definition it is a whole file.
    if (report.grade == Grade::kOk) {
      EXPECT_TRUE(report.findings.errors() == 0) << length;
    }
  }
}

}  // namespace
}  // namespace collect::wtf
