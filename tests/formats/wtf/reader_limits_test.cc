// Where a chunk, a table and a zone end for a reader: at the last place that still counts, and one
// beyond.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/binary/reader.h"
#include "formats/wtf/binary/string_table.h"
#include "formats/wtf/check.h"
#include "formats/wtf/text.h"
#include "formats/wtf/transcode.h"
#include "tests/formats/wtf/by_hand.h"

namespace collect::wtf {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using testing::ByHand;
using testing::file_of;
using testing::octets;

std::vector<std::string> sentences(const Findings& findings, Rule rule) {
  std::vector<std::string> found;
  for (const Finding& finding : findings.list()) {
    if (finding.rule == rule) found.push_back(finding.sentence);
  }
  return found;
}

// The rest of the second chunk is behind the file's end, where no one may look.
TEST(ReaderLimits, ChunkBeginsWithAWholeHeader) {
  ByHand file;
  file.file_header().chunk(1, 1, {{0x10000, octets(R"({"timebase":1})")}});
  const size_t first = file.bytes.size();
  file.chunk(2, 1, {{0x10000, octets(R"({"timebase":2})")}});
  for (size_t more = 1; more <= kChunkHeaderBytes; ++more) {
    Findings findings;
    ChunkCursor cursor(Bytes(file.bytes).first(first + more), findings);
    Chunk chunk;
    ASSERT_TRUE(cursor.next(chunk));
    EXPECT_EQ(cursor.next(chunk), more == kChunkHeaderBytes) << more;
    const auto trailing = sentences(findings, Rule::kTrailing);
    if (more == kChunkHeaderBytes) {
      EXPECT_TRUE(trailing.empty());
      EXPECT_TRUE(findings.has(Rule::kTruncated));
    } else {
      EXPECT_EQ(trailing, std::vector{std::to_string(more) + " bytes behind the last chunk"});
      EXPECT_FALSE(findings.has(Rule::kTruncated)) << more;
    }
  }
}

// Whether a chunk of these words is found behind bytes that are none.
bool is_found(const std::vector<uint32_t>& words) {
  ByHand file;
  file.file_header().raw(std::vector<uint8_t>(kChunkHeaderBytes));
  for (const uint32_t word : words) file.word(word);
  Findings findings;
  ChunkCursor cursor(file.bytes, findings);
  Chunk chunk;
  const bool found = cursor.next(chunk);
  EXPECT_EQ(findings.has(Rule::kTrailing), !found);
  if (found) {
    EXPECT_EQ(chunk.id, 7u);
    EXPECT_EQ(chunk.offset, kFileHeaderBytes + kChunkHeaderBytes);
  }
  return found;
}

TEST(ReaderLimits, OnlyASoundChunkIsFoundBehindDamage) {
  // id type length start end parts, the part's type offset length, its bytes
  const std::vector<uint32_t> sound = {7, 1, 40, 0, 0, 1, 0x10000, 0, 4, 0x20207D7B};
  EXPECT_TRUE(is_found(sound));
  for (const auto& [at, value, is_sound] : {std::tuple{size_t{1}, 2u, true},
                                            {1, 3u, false},
                                            {2, 36u, false},
                                            {2, 39u, false},
                                            {2, 41u, false},
                                            {2, 44u, false},
                                            {5, 0u, false},
                                            {5, 2u, false},
                                            {6, 0x10001u, false},
                                            {7, 1u, false},
                                            {8, 3u, true},
                                            {8, 0u, true},
                                            {8, 5u, false},
                                            {8, ~0u, false}}) {
    auto words = sound;
    words[at] = value;
    EXPECT_EQ(is_found(words), is_sound) << at << " " << value;
  }
  EXPECT_TRUE(is_found({7, 1, 36, 0, 0, 1, 0x10000, 0, 0})) << "the least that a chunk can be";
}

// Real ones have a handful.
TEST(ReaderLimits, SkipsAChunkOfTooManyPartsAfterDamage) {
  for (const uint32_t parts : {256u, 257u}) {
    std::vector<uint32_t> words = {7, 2, 24 + 12 * parts, 0, 0, parts};
    for (uint32_t i = 0; i < parts; ++i) words.insert(words.end(), {0x40000, 0, 0});
    EXPECT_EQ(is_found(words), parts == 256);
  }
}

TEST(ReaderLimits, FileHas48BytesAtLeast) {
  for (const auto& [parts, is_long_enough] : {std::pair(1u, true), {0u, false}}) {
    ByHand file;
    file.file_header().chunk(
        1, 1, std::vector(parts, std::pair(uint32_t{0x10000}, std::vector<uint8_t>())));
    ASSERT_EQ(file.bytes.size(), parts == 1 ? 48u : 36u);
    EXPECT_EQ(!check_file(file.bytes).findings.has(Rule::kFileLength), is_long_enough);
  }
}

// Only what is in the wrong place is said to be there.
TEST(ReaderLimits, SecondHeaderDoesNotMakeTheFirstLate) {
  ByHand file;
  file.file_header();
  for (const uint32_t id : {1u, 2u}) {
    file.chunk(id, 1, {{0x10000, octets(R"({"type":"file_header","timebase":1})")}});
  }
  const Findings findings = check_file(file.bytes).findings;
  EXPECT_FALSE(findings.has(Rule::kHeaderOrder));
  EXPECT_FALSE(findings.has(Rule::kHeaderMissing));
}

TEST(ReaderLimits, HeaderWithinAChunkOfEventsIsNone) {
  ByHand file;
  file.file_header().chunk(
      2, 2,
      {{0x10000, octets(R"({"type":"file_header","timebase":1})")}, {0x30000, {}}, {0x20002, {}}});
  const FileReport report = check_file(file.bytes);
  EXPECT_TRUE(report.findings.has(Rule::kHeaderMissing));
  EXPECT_FALSE(report.header.has_value());
}

TEST(ReaderLimits, EventsWhoseTableIsCutOffAreLeftOut) {
  ByHand events;
  events.define(2, 0, 0, 0, kNullOrdinal).word(2).word(1);
  ByHand file;
  file.file_header().chunk(2, 2, {{0x20002, events.bytes}, {0x30000, octets("long name\0\0\0"sv)}});
  for (const size_t missing : {size_t{0}, size_t{4}, size_t{12}}) {
    Findings findings;
    auto reader = Reader::open(Bytes(file.bytes).first(file.bytes.size() - missing), findings);
    ASSERT_TRUE(reader.ok());
    Event event;
    EXPECT_EQ((*reader)->next(event), missing == 0) << missing;
    const auto truncated = sentences(findings, Rule::kTruncated);
    EXPECT_EQ(std::ranges::count(truncated,
                                 "36 bytes of events are left out: their string table is cut off"),
              missing == 0 ? 0 : 1)
        << missing;
  }
}

// FORMAT.md: 2^24 strings.
TEST(ReaderLimits, TableHas16777216Strings) {
  for (const size_t more : {size_t{0}, size_t{1}}) {
    std::string text((size_t{1} << 24) - 1, '\0');
    text += "last\0"s;
    if (more != 0) text += "more\0"s;
    const StringTable table(bytes_of(text));
    EXPECT_EQ(table.size(), size_t{1} << 24);
    EXPECT_EQ(table.over_limit(), more != 0);
    EXPECT_EQ(table.find((1 << 24) - 1), "last");
    EXPECT_EQ(table.find(1 << 24), std::nullopt);
  }
}

// Each zone's name, type and location of together 1 MiB is kept twice, of 64 MiB. The first zone is
// the default one, which is there in any case.
TEST(ReaderLimits, NamesOfZonesHaveALimit) {
  constexpr uint32_t kKept = 1 + 32;
  std::string table =
      "wtf.zone#create\0uint16 zoneId, ascii name, ascii type, ascii location\0"
      "wtf.zone#set\0uint16 zoneId\0t\0"s;
  table += std::string((size_t{1} << 20) - 2, 'x') + '\0';
  ByHand events;
  events.define(2, 0, 40, 0, 1).define(3, 0, 40, 2, 3).define(4, 0, 0, 4, kNullOrdinal);
  for (uint32_t id = 0; id <= kKept; ++id) {
    table += std::to_string(10 + id) + '\0';
    events.word(2).word(0).word(id).word(6 + id).word(5).word(kNullOrdinal);
    events.word(3).word(1).word(id).word(4).word(1);
  }
  const auto file = file_of(table, events);
  Findings findings;
  auto reader = Reader::open(file, findings);
  ASSERT_TRUE(reader.ok());
  Event event;
  for (uint32_t id = 0; id < kKept; ++id) {
    ASSERT_TRUE((*reader)->next(event));
    EXPECT_EQ(event.zone, id);
  }
  EXPECT_FALSE(findings.has(Rule::kLimit));
  ASSERT_TRUE((*reader)->next(event));
  EXPECT_EQ(event.zone, 0u);
  EXPECT_TRUE(findings.has(Rule::kLimit));
  EXPECT_EQ((*reader)->zones().size(), kKept);
}

// A pair of units is one character; every other surrogate is none.
TEST(ReaderLimits, DistinguishesPairsOfUnitsFromHalves) {
  for (const auto& [units, text] : {std::pair(0xDC00D800u, "\U00010000"),
                                    {0xDFFFDBFFu, "\U0010FFFF"},
                                    {0xDBFFD800u, "\uFFFD\uFFFD"},
                                    {0xE000D800u, "\uFFFD\uE000"},
                                    {0xDC00DC00u, "\uFFFD\uFFFD"},
                                    {0xD800D7FFu, "\uD7FF\uFFFD"}}) {
    ByHand events;
    events.define(2, 0, 0, 0, 1).word(2).word(1).word(2).word(units);
    const auto file = file_of("t\0wchar[] s\0"sv, events);
    Findings findings;
    auto reader = Reader::open(file, findings);
    Event event;
    ASSERT_TRUE((*reader)->next(event));
    EXPECT_EQ(event.argument("s")->utf8(), text) << units;
  }
}

TEST(ReaderLimits, LegacyHeaderHasTwoFlags) {
  for (const uint8_t flags : {uint8_t{0}, uint8_t{1}, uint8_t{2}, uint8_t{3}}) {
    // magic, tool version, 3; no context; flags, timebase; no metadata
    const std::vector<uint8_t> file = {0xDE, 0xAD, 0xBE, 0xEF,  0, 0, 0, 1, 0, 0, 0, 3, 0, 0,
                                       0,    0,    0,    flags, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0};
    std::vector<std::string> expected;
    if ((flags & 1) != 0) expected.emplace_back(kFlagHighResolutionTimes);
    if ((flags & 2) != 0) expected.emplace_back(kFlagTimesAsCount);
    Findings findings;
    const auto reader = Reader::open(file, findings);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ((*reader)->header()->flags, expected);
    EXPECT_EQ((*reader)->header()->timebase_ms, 5);
  }
}

// One wire id that is defined again and again: a copy gives each definition its own.
TEST(ReaderLimits, CopyHasATypeForEachWireId) {
  for (const uint32_t count : {kMaxWireId - 1, kMaxWireId}) {
    std::string table;
    ByHand events;
    for (uint32_t i = 0; i < count; ++i) {
      table += 'n' + std::to_string(i) + '\0';
      events.define(2, 0, 0, i, kNullOrdinal);
    }
    const auto file = file_of(table, events);
    Findings findings;
    auto reader = Reader::open(file, findings);
    ASSERT_TRUE(reader.ok());
    VectorSink copy;
    Writer writer(copy, kFaithfulCopy);
    ASSERT_TRUE(transcode(**reader, writer, findings).ok());
    EXPECT_EQ(findings.has(Rule::kLimit), count == kMaxWireId);
    EXPECT_EQ(check_file(copy.bytes()).event_types, size_t{kMaxWireId});
  }
}

}  // namespace
}  // namespace collect::wtf
