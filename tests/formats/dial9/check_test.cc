// Summary, grade and findings of a whole stream.
#include "formats/dial9/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "formats/dial9/writer.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> names_of(const Report& report) {
  std::vector<std::string> names;
  for (const Finding& finding : report.findings.list()) names.emplace_back(finding.name());
  return names;
}

std::vector<uint8_t> two_sub_streams() {
  Encoder encoder;
  const EventType plain = *encoder.define({0, "Plain", true, {{"v", FieldType::kVarint}}});
  const EventType meta =
      *encoder.define({1, "SegmentMetadataEvent", true, {{"entries", FieldType::kStringMap}}});
  const EventType sync =
      *encoder.define({2, "ClockSyncEvent", true, {{"realtime_ns", FieldType::kVarint}}});
  const EventType untimed = *encoder.define({3, "Plain", false, {{"o", FieldType::kU8, true}}});
  encoder.begin_event(meta, 1'700'000'000'000'000'000);  // the wall clock, as older files have it
  encoder.put_string_map({});
  EXPECT_TRUE(encoder.end_event());
  encoder.begin_event(sync, 5000);
  encoder.put_varint(1'700'000'000'000'005'000);
  EXPECT_TRUE(encoder.end_event());
  EXPECT_TRUE(encoder.begin_stream());
  for (const uint64_t time : {4000u, 6000u, 0u}) {
    encoder.begin_event(plain, time);
    encoder.put_varint(1);
    EXPECT_TRUE(encoder.end_event());
  }
  encoder.begin_event(untimed);
  encoder.put_absent();
  EXPECT_TRUE(encoder.end_event());
  return encoder.take();
}

TEST(Check, SummaryOfAGoodStream) {
  const std::vector<uint8_t> bytes = two_sub_streams();
  const Report report = check_stream(bytes);
  EXPECT_EQ(report.grade, Grade::kOk);
  EXPECT_EQ(report.bytes, bytes.size());
  EXPECT_EQ(report.whole_bytes, bytes.size());
  EXPECT_EQ(report.sub_streams, 2u);
  EXPECT_EQ(report.schemas, 4u);
  EXPECT_EQ(report.events, 6u);
  EXPECT_EQ(report.resets, 3u);
  EXPECT_THAT(report.events_by_name, ElementsAre(Pair("ClockSyncEvent", 1), Pair("Plain", 4),
                                                 Pair("SegmentMetadataEvent", 1)));
  EXPECT_EQ(report.field_types[9], 4u);
  EXPECT_EQ(report.field_types[10], 1u);
  EXPECT_EQ(report.field_types[0x8B], 1u);
  EXPECT_EQ(report.times.first_ns, 1'700'000'000'000'000'000u);
  EXPECT_EQ(report.times.last_ns, 0u);
  EXPECT_EQ(report.times.min_ns, 0u);
  EXPECT_EQ(report.times.min_nonzero_ns, 4000u);
  EXPECT_EQ(report.times.max_ns, 1'700'000'000'000'000'000u);
  EXPECT_EQ(report.times.range_begin_ns, 4000u);
  EXPECT_EQ(report.times.range_end_ns, 6000u);
  EXPECT_EQ(report.times.events_without_time, 1u);
  EXPECT_EQ(report.times.older_as_written, 4u);
  EXPECT_EQ(report.times.older_than_earlier, 1u) << "the wall clock and 0 are no times of events";
  ASSERT_TRUE(report.times.clock_sync.has_value());
  EXPECT_EQ(report.times.clock_sync->time_ns, 5000u);
  EXPECT_EQ(report.times.clock_sync->realtime_ns, 1'700'000'000'000'005'000u);
  EXPECT_THAT(names_of(report), IsEmpty());
}

// One list within another, as deep as published decoders go and one deeper; the encoder writes
// none.
TEST(Check, NestingThatPublishedDecodersStopAtIsNoted) {
  for (const size_t depth : {kMaxWrittenNesting, kMaxWrittenNesting + 1}) {
    for (const uint8_t type : {uint8_t{14}, uint8_t{15}}) {
      std::vector<uint8_t> bytes = {'T', 'R', 'C', 0, 1,   1,    0, 0, 1, 0, 'A', 1,
                                    1,   0,   1,   0, 'v', type, 2, 0, 0, 1, 0,   0};
      for (size_t i = 1; i < depth; ++i) {
        bytes.insert(bytes.end(), {1, 0, 0, 0});
        if (type == 15) bytes.insert(bytes.end(), {11, 0});
        bytes.push_back(type);
      }
      bytes.insert(bytes.end(), {0, 0, 0, 0});
      const Report report = check_stream(bytes);
      ASSERT_EQ(report.events, 1u);
      EXPECT_EQ(report.grade, Grade::kOk);
      if (depth == kMaxWrittenNesting) {
        EXPECT_THAT(names_of(report), IsEmpty());
      } else {
        EXPECT_THAT(names_of(report), ElementsAre("deep-nesting"));
      }
    }
  }
}

TEST(Check, TruncatedTailKeepsWhatIsThere) {
  std::vector<uint8_t> bytes = two_sub_streams();
  bytes.pop_back();
  const Report report = check_stream(bytes);
  EXPECT_EQ(report.grade, Grade::kTruncated);
  EXPECT_EQ(report.events, 5u);
  EXPECT_EQ(report.findings.errors(), 0u);
  EXPECT_THAT(names_of(report), ElementsAre("truncated"));
  EXPECT_EQ(report.findings.list()[0].offset, report.whole_bytes);
}

TEST(Check, DamageSaysWhereReadingCouldBeginAgain) {
  const std::vector<uint8_t> part = two_sub_streams();
  std::vector<uint8_t> bytes = part;
  bytes.push_back(0xEE);
  bytes.insert(bytes.end(), part.begin(), part.end());
  const Report report = check_stream(bytes);
  EXPECT_EQ(report.grade, Grade::kDamaged);
  EXPECT_EQ(report.whole_bytes, part.size());
  EXPECT_THAT(names_of(report), ElementsAre("tag", "behind-problem"));
  EXPECT_NE(report.findings.list()[1].sentence.find(std::to_string(part.size() + 1)),
            std::string::npos);
}

TEST(Check, RejectsOtherFiles) {
  EXPECT_EQ(check_stream({}).grade, Grade::kRejected);
  const std::vector<uint8_t> other = {'A', 'T', 'I', '2', 1, 1};
  EXPECT_EQ(check_stream(other).grade, Grade::kRejected);
  EXPECT_EQ(check_stream(other).findings.errors(), 1u);
}

TEST(Check, UnusualThingsAreFindings) {
  const std::vector<uint8_t> bytes = {
      'T', 'R', 'C', 0, 1,                                                       // 0
      1,   0,   0,   0, 0, 1, 3, 0, 1,   0, 'v', 7, 1, 0,   'v', 6, 0, 0, 4,     // 5: v twice
      2,   0,   0,   9, 0, 0, 1, 0, 0,   0, 2,   0, 0, 0,   1,   0, 0, 0, 0xFF,  // 24: pools, text
      3,   1,   0,   0, 0, 1, 0, 0, 0,   0, 0,   0, 0,                     // 43: defines string 1
      3,   1,   0,   0, 0, 1, 0, 0, 0,   1, 0,   0, 0, 'x',                // 56: again
      6,   5,   0,   0,                                                    // 70: unknown type
      6,   0,   1,   0, 9, 0, 1, 0, 'k', 0, 0,   0, 0,                     // 74: no such field
      5,   1,   0,   0, 0, 0, 0, 0, 0,                                     // 87: back
      2,   0,   0,   1, 0, 0, 1, 0, 0,   0, 2,   0, 0, 0,   0,   0, 0, 0,  // 96: older
  };
  const Report report = check_stream(bytes);
  EXPECT_EQ(report.grade, Grade::kOk);
  EXPECT_EQ(report.findings.errors(), 0u);
  EXPECT_THAT(names_of(report), ElementsAre("equal-field-names", "pool-undefined", "pool-undefined",
                                            "text", "pool-redefined", "annotation-type",
                                            "annotation-field", "time-order", "pool-undefined"));
  std::vector<uint64_t> offsets;
  for (const Finding& finding : report.findings.list()) offsets.push_back(finding.offset);
  EXPECT_THAT(offsets, ElementsAre(5, 24, 24, 24, 56, 70, 74, 96, 96));
  EXPECT_EQ(report.annotations, 2u);
  EXPECT_EQ(report.string_pools, 2u);
  EXPECT_EQ(report.pool_strings, 2u);
  EXPECT_EQ(report.stack_pools, 0u);
  EXPECT_EQ(report.resets, 1u);
}

// The header could only begin within the frame before: reading cannot begin again there.
TEST(Check, FindsAHeaderOnlyBehindTheDamage) {
  std::vector<uint8_t> bytes = two_sub_streams();
  bytes.insert(bytes.end(), {3, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 'T', 'R', 'C', 0, 1, 'x'});
  const Report report = check_stream(bytes);
  EXPECT_EQ(report.grade, Grade::kDamaged);
  EXPECT_EQ(report.whole_bytes, bytes.size() - 5);
  EXPECT_THAT(names_of(report), ElementsAre("tag", "behind-problem"));
  const std::string& behind = report.findings.list()[1].sentence;
  EXPECT_EQ(behind.find(std::to_string(bytes.size() - 6)), std::string::npos) << behind;
}

TEST(Check, StacksThatAreDefinedAgainAreFindings) {
  std::vector<uint8_t> bytes = {'T', 'R', 'C', 0, 1};
  for (int i = 0; i < 3; ++i) {
    bytes.insert(bytes.end(), {4, 1, 0, 0, 0, static_cast<uint8_t>(i / 2), 0, 0, 0});
    bytes.insert(bytes.end(), {1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0});
  }
  const Report report = check_stream(bytes);
  EXPECT_EQ(report.grade, Grade::kOk);
  EXPECT_EQ(report.stack_pools, 3u);
  EXPECT_EQ(report.pool_stacks, 3u);
  EXPECT_THAT(names_of(report), ElementsAre("pool-redefined"));
  EXPECT_EQ(report.findings.list()[0].offset, 5u + 21);
}

// Twice within a frame, or in an earlier one.
TEST(Check, CountsTheIdsThatAreDefinedAgain) {
  const std::vector<uint8_t> stream = {
      'T', 'R', 'C', 0, 1,                                                  //
      3,   2,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,  // ids 0, 1
      3,   3,   0,   0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,  // ids 1, 2
      2,   0,   0,   0, 0, 0, 0, 0};                                        // and 2 again
  const Report report = check_stream(stream);
  ASSERT_THAT(names_of(report), ElementsAre("pool-redefined"));
  EXPECT_EQ(report.findings.list()[0].sentence,
            "2 string ids are defined again; the last definition counts from there on");
}

TEST(Check, EveryCheckAndRuleHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Check::kUncountedNames); ++i)
    names.insert(check_name(static_cast<Check>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Check::kUncountedNames) + 1);
  names.clear();
  for (int i = 0; i <= static_cast<int>(Rule::kState); ++i)
    names.insert(rule_name(static_cast<Rule>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Rule::kState) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

// Names beyond the limit are counted together, not dropped.
TEST(Check, ManyNames) {
  std::vector<uint8_t> all;
  constexpr size_t kTypes = kMaxCountedNames + 10;
  for (size_t i = 0; i < kTypes; ++i) {
    Encoder one;
    one.begin_event(*one.define({7, std::to_string(i), false, {}}));
    ASSERT_TRUE(one.end_event());
    all.insert(all.end(), one.bytes().begin(), one.bytes().end());
  }
  const Report report = check_stream(all);
  EXPECT_EQ(report.events, kTypes);
  EXPECT_EQ(report.sub_streams, kTypes);
  EXPECT_EQ(report.events_by_name.size(), kMaxCountedNames);
  EXPECT_EQ(report.events_of_other_names, 10u);
  EXPECT_THAT(names_of(report), ElementsAre("uncounted-names"));
}

}  // namespace
}  // namespace collect::dial9
