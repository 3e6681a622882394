// Each rule of FORMAT.md "What a reader checks": a file that breaks it, and what the reader says.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "formats/rtc/read/reader.h"
#include "tests/formats/rtc/frame_bytes.h"

namespace collect::rtc {
namespace {

using testing::FrameBytes;

constexpr std::string_view kMeta = R"([{"id":9,"name":"clk","clock":true,"format":"uint32"},)"
                                   R"({"id":10,"name":"text","clock":"clk","format":"utf-8"},)"
                                   R"({"id":11,"name":"fixed","length":64},12])";

struct Case {
  Rule rule;
  Severity severity;
  const char* what;  // within the sentence
  std::function<void(FrameBytes&)> make;
  ReaderOptions options{};
};

std::vector<uint8_t> index_of(std::initializer_list<IndexEntry> entries, int count = -1) {
  std::vector<uint8_t> index;
  if (count >= 0) append_index_count(index, static_cast<uint64_t>(count));
  for (const IndexEntry& entry : entries) append_index_entry(index, entry);
  return index;
}

void tick(FrameBytes& made, uint32_t value) {
  uint8_t payload[4];
  store_le(payload, value);
  made.frame(9, payload);
}

// A Marker with this Index behind it, then Meta and platform.
void head_with(FrameBytes& made, Bytes index, std::string_view meta = kMeta) {
  made.bytes.push_back(kMarkerFirstByte);
  made.bytes.insert(made.bytes.end(), kMaxPayloadBytes, kMarkerFill);
  made.frame(kIndexId, index).text(kMetaId, meta).number32(kPlatformId, kPlatformValue);
}

ReaderOptions with_repair() {
  ReaderOptions options;
  options.repair_torn_frames = true;
  return options;
}

ReaderOptions with_small_objects() {
  ReaderOptions options;
  options.max_object_bytes = 8;
  return options;
}

const std::vector<uint8_t> kBytes(1024, 'x');
const Bytes kKilobyte(kBytes);
constexpr uint64_t kFirstMinor = kMarkerBytes + 2048;  // from the Marker, in FrameBytes' geometry

const Case kCases[] = {
    {Rule::kHead, Severity::kWarning, "bytes",
     [](FrameBytes& made) {
       made.raw(kKilobyte.first(7));
       FrameBytes file;
       file.head(0, kMeta).close_unit();
       file.head(1, kMeta).crc();
       made.raw(file.bytes);
     }},
    {Rule::kTail, Severity::kWarning, "unfinished frame",
     [](FrameBytes& made) { made.head(0, kMeta).leb(10 << 1).leb(5).raw(kKilobyte.first(4)); }},
    {Rule::kFrame, Severity::kError, "payload of 1025 bytes",
     [](FrameBytes& made) { made.head(0, kMeta).leb(10 << 1).leb(1025).close_unit(); }},
    {Rule::kFrame, Severity::kError, "an id of more than 64 bits",
     [](FrameBytes& made) {
       made.head(0, kMeta).raw(std::vector<uint8_t>(11, 0xFF)).close_unit();
     }},
    {Rule::kFrame, Severity::kError, "a length of more than 64 bits",
     [](FrameBytes& made) {
       made.head(0, kMeta).leb(10 << 1).raw(std::vector<uint8_t>(11, 0xFF)).close_unit();
     }},
    {Rule::kMoreFlag, Severity::kWarning, "id 1",
     [](FrameBytes& made) {
       made.head(0, kMeta).frame(kPaddingId, kKilobyte.first(3), true).close_unit();
     }},
    {Rule::kUnknownStream, Severity::kError, "unknown stream id 77",
     [](FrameBytes& made) { made.head(0, kMeta).text(77, "?").close_unit(); }},
    {Rule::kMarkerPayload, Severity::kError, "Marker",
     [](FrameBytes& made) { made.head(0, kMeta).leb(kMarkerId << 1).raw(kKilobyte).close_unit(); }},
    {Rule::kMarkerGrid, Severity::kError, "off the grid",
     [](FrameBytes& made) {
       made.head(0, kMeta).crc();
       made.head(1, kMeta).crc();
     }},
    {Rule::kMarkerForged, Severity::kNote, "no Index follows",
     [](FrameBytes& made) {
       made.head(0, kMeta).text(77, "?").leb(kMarkerId << 1);
       made.raw(std::vector<uint8_t>(kMaxPayloadBytes, kMarkerFill));
       made.frame(kIndexId, std::vector<uint8_t>{0x80});
     }},
    {Rule::kMarkerOverrun, Severity::kError, "over the Marker at 8192",
     [](FrameBytes& made) {
       made.head(0, kMeta).close_unit();
       made.bytes.resize(8192 - 5);
       made.leb(kPaddingId << 1).leb(1000).raw(kKilobyte.first(2));
       FrameBytes next;
       next.head(1, kMeta).crc();
       made.raw(next.bytes);
     }},
    {Rule::kMinorOverrun, Severity::kWarning, "over the place of an index",
     [](FrameBytes& made) {
       made.head(0, kMeta).pad_to(kFirstMinor - 100).frame(kPaddingId, kKilobyte.first(200)).crc();
     }},
    {Rule::kMinorOverrun, Severity::kError, "over the index at 3073",
     [](FrameBytes& made) {
       made.head(0, kMeta).pad_to(kFirstMinor - 10).leb(kPaddingId << 1).leb(100);
       made.raw(kKilobyte.first(8)).minor_index().close_unit();
     },
     with_repair()},
    {Rule::kTornFrame, Severity::kWarning, "torn at 3073",
     [](FrameBytes& made) {
       made.head(0, kMeta).pad_to(kFirstMinor - 20).leb(11 << 1 | 1).raw(kKilobyte.first(19));
       made.minor_index().leb(11 << 1).raw(kKilobyte.first(45)).close_unit();
     },
     with_repair()},
    {Rule::kTornFrame, Severity::kWarning, "torn at 8187",
     [](FrameBytes& made) {
       for (uint64_t place = kFirstMinor; place < 8192; place += 2048) {
         (place == kFirstMinor ? made.head(0, kMeta) : made).pad_to(place).minor_index();
       }
       made.pad_to(8192 - 5 - 20).leb(11 << 1 | 1).raw(kKilobyte.first(19)).crc();
       FrameBytes next;
       next.head(1, kMeta).leb(11 << 1).raw(kKilobyte.first(45)).crc();
       made.raw(next.bytes);
     },
     with_repair()},
    {Rule::kMinorMissing, Severity::kWarning, "no index",
     [](FrameBytes& made) { made.head(0, kMeta).pad_to(kFirstMinor).text(10, "here").crc(); }},
    {Rule::kMinorGrid, Severity::kWarning, "off the grid",
     [](FrameBytes& made) { made.head(0, kMeta).minor_index().close_unit(); }},
    {Rule::kIndexSyntax, Severity::kError, "index: ",
     [](FrameBytes& made) {
       made.head(0, kMeta).pad_to(kFirstMinor).frame(kMinorIndexId, kKilobyte.first(3)).crc();
     }},
    {Rule::kIndexSyntax, Severity::kError, "Index: ",
     [](FrameBytes& made) {
       made.head(0, kMeta).frame(kIndexId, std::vector<uint8_t>{0x80}).crc();
     }},
    {Rule::kIndexOrder, Severity::kError, "index not in ascending order",
     [](FrameBytes& made) {
       made.head(0, kMeta).pad_to(kFirstMinor);
       made.frame(kMinorIndexId, index_of({{kIndexId, made.at() - kMarkerBytes}, {10, 0}, {9, 0}}));
       made.crc();
     }},
    {Rule::kIndexOrder, Severity::kError, "Index not in ascending order",
     [](FrameBytes& made) {
       head_with(made, index_of({{kMinorIndexId, 2048}, {kIndexId, 8192}}, 0));
     }},
    {Rule::kIndexTarget, Severity::kError, "id 10",
     [](FrameBytes& made) {
       made.head(0, kMeta).text(10, "one").pad_to(kFirstMinor);
       made.frame(kMinorIndexId, index_of({{kIndexId, made.at() - kMarkerBytes}, {10, 99}})).crc();
     }},
    {Rule::kIndexSizes, Severity::kWarning, "no size of a Unit",
     [](FrameBytes& made) {
       made.head(0, kMeta).close_unit();
       head_with(made, index_of({{kIndexId, 8191}, {kMinorIndexId, 2048}}, 1));
     }},
    {Rule::kMeta, Severity::kError, "",
     [](FrameBytes& made) { made.head(0, kMeta).text(kMetaId, "[{]").crc(); }},
    {Rule::kMetaEntry, Severity::kWarning, "",
     [](FrameBytes& made) { made.head(0, R"([{"id":3,"name":"low"},{"id":10},11])").crc(); }},
    {Rule::kMetaMissing, Severity::kError, "unknown stream id 10",
     [](FrameBytes& made) { made.head(0, "no JSON").text(10, "?").close_unit(); }},
    {Rule::kUnitsMissing, Severity::kWarning, "2 Units are missing",
     [](FrameBytes& made) {
       made.head(0, kMeta).close_unit();
       made.head(3, kMeta).crc();
     }},
    {Rule::kSession, Severity::kNote, "with Unit 0",
     [](FrameBytes& made) {
       made.head(4, kMeta).close_unit();
       made.head(0, kMeta).crc();
     }},
    {Rule::kPlatform, Severity::kWarning, "byte order",
     [](FrameBytes& made) {
       made.head(0, kMeta);
       made.bytes[made.at() - 1] = 9;
       made.crc();
     }},
    // Of three bytes it is no number, with anything behind it.
    {Rule::kPlatform, Severity::kWarning, "byte order",
     [](FrameBytes& made) {
       made.head(0, kMeta);
       made.bytes.resize(made.at() - 4);
       made.raw(std::vector<uint8_t>{3, 4, 3, 2, 1}).crc();
     }},
    {Rule::kResync, Severity::kNote, "1 bytes skipped, on to 8193",
     [](FrameBytes& made) {
       made.head(0, kMeta).close_unit().leb(60 << 1);
       made.head(1, kMeta).crc();
     }},
    {Rule::kCrc, Severity::kError, "mismatch",
     [](FrameBytes& made) {
       made.head(0, kMeta).text(10, "one").close_unit();
       made.bytes.back() ^= 1;
     }},
    {Rule::kCrcMissing, Severity::kWarning, "the Unit has no Crc",
     [](FrameBytes& made) {
       made.head(0, kMeta).close_unit();
       made.bytes.resize(8192 - 5);
       made.pad_to(8192);
       made.head(1, kMeta).crc();
     }},
    {Rule::kCrcMissing, Severity::kNote, "not finished",
     [](FrameBytes& made) { made.head(0, kMeta).text(10, "one"); }},
    {Rule::kAfterCrc, Severity::kWarning, "behind the Crc",
     [](FrameBytes& made) { made.head(0, kMeta).crc().text(10, "late"); }},
    {Rule::kResync, Severity::kNote, "bytes skipped",
     [](FrameBytes& made) { made.head(0, kMeta).text(77, "?").close_unit(); }},
    {Rule::kObjectDropped, Severity::kWarning, "text",
     [](FrameBytes& made) { made.head(0, kMeta).text(10, "begun", true); }},
    {Rule::kObjectLimit, Severity::kError, "beyond the limits",
     [](FrameBytes& made) {
       made.head(0, kMeta).text(10, "more than", true).text(10, "8 bytes").crc();
     },
     with_small_objects()},
    {Rule::kClockValue, Severity::kWarning, "",
     [](FrameBytes& made) { made.head(0, kMeta).frame(9, kKilobyte.first(3)).crc(); }},
    {Rule::kClockUnknown, Severity::kWarning, "\"gone\" that is not there",
     [](FrameBytes& made) { made.head(0, R"([{"id":10,"name":"a","clock":"gone"},11])").crc(); }},
    {Rule::kClockBackwards, Severity::kWarning, "steps back by 2000000000 ns",
     [](FrameBytes& made) {
       made.head(0, kMeta);
       tick(made, 7);
       tick(made, 5);
       made.crc();
     }},
};

Findings findings_of(Bytes file, const ReaderOptions& options) {
  auto reader = Reader::open(file, options);
  EXPECT_TRUE(reader.ok());
  if (!reader) return {};
  for (Object object; reader->next(object);) {
  }
  return reader->findings();
}

TEST(RtcRules, EachBrokenRuleIsFound) {
  for (const Case& broken : kCases) {
    FrameBytes made;
    broken.make(made);
    const Findings findings = findings_of(made.bytes, broken.options);
    std::string all;
    for (const Finding& finding : findings.list()) {
      all += std::string(rule_name(finding.rule)) + ": " + finding.sentence + "\n";
    }
    const auto is_it = [&](const Finding& finding) {
      return finding.rule == broken.rule && finding.severity == broken.severity &&
             finding.sentence.find(broken.what) != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::any_of(findings.list(), is_it))
        << rule_name(broken.rule) << " (" << broken.what << ") among:\n"
        << all;
  }
}

TEST(RtcRules, EveryRuleHasACase) {
  std::set<Rule> covered;
  for (const Case& broken : kCases) covered.insert(broken.rule);
  for (auto rule = static_cast<uint8_t>(Rule::kHead); rule_name(Rule{rule}) != "unknown"; ++rule) {
    EXPECT_TRUE(covered.contains(Rule{rule})) << rule_name(Rule{rule});
  }
}

// Entries that lead to bytes within a frame that look like one: in every Unit, not only in the
// first.
TEST(RtcRules, ExactTargetsAreFramesThatWereRead) {
  ReaderOptions exact;
  exact.exact_index_targets = true;
  for (const uint64_t within : {0u, 1u, 2u}) {
    FrameBytes made;
    for (uint64_t unit = 0; unit < 3; ++unit) {
      made.head(unit, kMeta);
      const uint64_t frame = made.at();
      made.text(10, "\x14\x14\x14").pad_to(kFirstMinor);
      const uint64_t at = made.at();
      made.frame(kMinorIndexId, index_of({{kIndexId, at - unit * 8192 - kMarkerBytes},
                                          {10, at - frame - (within == 0 ? 0 : within + 1)}}));
      made.close_unit();
    }
    const auto targets = [&](const ReaderOptions& options) {
      const Findings findings = findings_of(made.bytes, options);
      return std::ranges::count_if(findings.list(), [](const Finding& finding) {
        return finding.rule == Rule::kIndexTarget;
      });
    };
    EXPECT_EQ(targets({}), 0) << within;
    EXPECT_EQ(targets(exact), within == 0 ? 0 : 3) << within;
  }
}

// Where reading continues behind damage there is a frame again; within the damage there is none.
TEST(RtcRules, TargetMayBeWhereReadingContinues) {
  for (const bool is_skipped : {false, true}) {
    FrameBytes made;
    made.head(0, kMeta);
    const uint64_t damage = made.at();
    made.text(77, "?").pad_to(kFirstMinor);
    const uint64_t goes_on = made.at();
    made.minor_index().pad_to(kFirstMinor + 2048);
    const uint64_t at = made.at();
    const IndexEntry target =
        is_skipped ? IndexEntry{77, at - damage} : IndexEntry{kMinorIndexId, at - goes_on};
    made.frame(kMinorIndexId, index_of({{kIndexId, at - kMarkerBytes}, target})).close_unit();
    const Findings findings = findings_of(made.bytes, {});
    EXPECT_EQ(std::ranges::any_of(
                  findings.list(),
                  [](const Finding& finding) { return finding.rule == Rule::kIndexTarget; }),
              is_skipped);
  }
}

TEST(RtcRules, WholeFileBreaksNone) {
  FrameBytes made;
  made.head(0, kMeta);
  tick(made, 5);
  made.text(10, "one").frame(11, kKilobyte.first(64), false, false).close_unit();
  made.head(1, kMeta);
  tick(made, 7);
  made.crc();
  for (const ReaderOptions& options : {ReaderOptions{}, with_repair()}) {
    const Findings findings = findings_of(made.bytes, options);
    EXPECT_TRUE(findings.list().empty())
        << rule_name(findings.list()[0].rule) << findings.list()[0].sentence;
  }
}

}  // namespace
}  // namespace collect::rtc
