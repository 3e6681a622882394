// What a report says of files made by hand: names, zones, scopes in time order, resources,
// progress.
#include "formats/wtf/check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/json/json.h"
#include "formats/wtf/zone_tally.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/by_hand.h"

namespace collect::wtf {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using testing::ByHand;
using testing::file_of;

// wtf.scope#enter with this name, at 1 us.
FileReport scope_named(std::string_view name) {
  ByHand events;
  events.define(2, 1, 32, 0, 1).word(2).word(1).word(2);
  return check_file(file_of("wtf.scope#enter\0ascii name\0"s.append(name).append("\0"sv), events));
}

// FORMAT.md "Names": what is in brackets the viewer reads as arguments, and breaks on what is
// none.
TEST(Check, FindsScopeNamesThatTheViewerBreaksOn) {
  for (const char* name : {"draw", "ns.draw", "a-b", "[1]"}) {
    const FileReport report = scope_named(name);
    EXPECT_FALSE(report.findings.has(Rule::kScopeName)) << name;
    EXPECT_FALSE(report.findings.has(Rule::kScopeNameFatal)) << name;
  }
  for (const char* name :
       {"a/b", "a(", "a)", "a()", "a(bool\tn)", "a(x", "(bool x)", "a/b(!!)", "a(!!)b"}) {
    const FileReport report = scope_named(name);
    EXPECT_TRUE(report.findings.has(Rule::kScopeName)) << name;
    EXPECT_FALSE(report.findings.has(Rule::kScopeNameFatal)) << name;
    EXPECT_TRUE(report.viewer_loads) << name;
  }
  for (const char* name : {"a(!)", "a(!!)", "a(bool)", "a(bool\tn,)"}) {
    const FileReport report = scope_named(name);
    EXPECT_TRUE(report.findings.has(Rule::kScopeNameFatal)) << name;
    EXPECT_FALSE(report.viewer_loads) << name;
  }
}

// "wtf.scope#leave" at one time, a scope at an earlier one: in time order they are a pair.
TEST(Check, ScopesArePairedByTimeWhereverTheyStand) {
  for (const auto& [enter, leave] : {std::pair<uint32_t, uint32_t>{0, 1},
                                     {100, 101},
                                     {0xFFFF, 0x10000},
                                     {0x10000, 0x20000},
                                     {0x1FFFE, 0x20001},
                                     {0x7FFFFFFF, 0x80000000},
                                     {0xFFFFFFFE, 0xFFFFFFFF}}) {
    ByHand events;
    events.define(2, 1, 0, 0, kNullOrdinal).define(3, 0, 40, 1, kNullOrdinal);
    events.word(3).word(leave).word(2).word(enter);
    const FileReport report = check_file(file_of("draw\0wtf.scope#leave\0"sv, events));
    ASSERT_EQ(report.zones.size(), 1u);
    EXPECT_EQ(report.zones[0].scopes, 1u) << enter;
    EXPECT_EQ(report.zones[0].unmatched_leaves, 0u) << enter;
    EXPECT_EQ(report.zones[0].max_scope_depth, 1u) << enter;
    EXPECT_EQ(report.first_us, enter);
    EXPECT_EQ(report.last_us, leave);
  }
}

TEST(Check, EventsOfOneTimeStayInTheirOrder) {
  ByHand events;
  events.define(2, 1, 0, 0, kNullOrdinal).define(3, 0, 40, 1, kNullOrdinal);
  // Two scopes one after the other at 5 us, then a pair that was written late.
  events.word(2).word(5).word(3).word(5).word(2).word(5).word(3).word(5);
  events.word(2).word(1).word(3).word(2);
  const FileReport report = check_file(file_of("draw\0wtf.scope#leave\0"sv, events));
  EXPECT_EQ(report.zones[0].backward_steps, 1u);
  EXPECT_EQ(report.zones[0].scopes, 3u);
  EXPECT_EQ(report.zones[0].max_scope_depth, 1u);
  EXPECT_FALSE(report.findings.has(Rule::kScopeUnbalanced));
}

// One of each must not cancel the other out.
TEST(Check, ReportsUnmatchedLeavesAndOpenScopes) {
  ByHand events;
  events.define(2, 1, 0, 0, kNullOrdinal).define(3, 0, 40, 1, kNullOrdinal);
  events.word(3).word(1).word(2).word(2);
  const FileReport report = check_file(file_of("draw\0wtf.scope#leave\0"sv, events));
  EXPECT_EQ(report.zones[0].unmatched_leaves, 1u);
  EXPECT_EQ(report.zones[0].open_scopes, 1u);
  EXPECT_TRUE(report.findings.has(Rule::kScopeUnbalanced));
}

TEST(Check, ReportCountsAllZones) {
  const FileReport report = check_file(testing::build_file());
  ASSERT_EQ(report.zones.size(), 2u);
  EXPECT_EQ(report.first_us, 1u);
  EXPECT_EQ(report.last_us, 70u);
  EXPECT_EQ(report.zones[1].first_us, 15u);
  EXPECT_EQ(report.zones[1].last_us, 50u);
  EXPECT_EQ(report.events, report.zones[0].events + report.zones[1].events);
  EXPECT_EQ(report.resources, 2u);
  EXPECT_EQ(report.zones[0].frames, 1u);
  EXPECT_EQ(report.zones[1].time_ranges, 1u);
  EXPECT_EQ(report.zones[1].marks, 1u);
  EXPECT_TRUE(report.viewer_has_events);
}

// Names by how often they occur, and by the alphabet where that is the same; five of them.
TEST(Check, MostFrequentNamesAreFive) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  for (const auto& [name, times] :
       {std::pair{"f", 1}, {"e", 2}, {"d", 2}, {"c", 1}, {"b", 3}, {"a", 1}}) {
    const uint32_t type = writer.define_instance(name).value();
    for (int i = 0; i < times; ++i) ASSERT_TRUE(writer.event(type, 1000, {}).ok());
  }
  ASSERT_TRUE(writer.finish().ok());
  const FileReport report = check_file(sink.bytes());
  EXPECT_EQ(report.zones[0].distinct_names, 6u);
  EXPECT_EQ(report.zones[0].most_frequent, (std::vector<std::pair<std::string, uint64_t>>{
                                               {"b", 3}, {"d", 2}, {"e", 2}, {"a", 1}, {"c", 1}}));
}

TEST(Check, NamesAreCountedUpToALimit) {
  std::string table = "wtf.trace#timeStamp\0ascii name, any value\0"s;
  ByHand events;
  events.define(2, 0, 32, 0, 1);
  for (size_t i = 0; i < kMaxCountedNames; ++i) {
    table += 'n' + std::to_string(i) + '\0';
    events.word(2).word(1).word(2 + static_cast<uint32_t>(i)).word(kNullOrdinal);
  }
  events.word(2).word(1).word(2).word(kNullOrdinal);
  EXPECT_FALSE(check_file(file_of(table, events)).findings.has(Rule::kLimit)) << "all are counted";
  table += "one more\0"s;
  events.word(2).word(1).word(2 + static_cast<uint32_t>(kMaxCountedNames)).word(kNullOrdinal);
  const FileReport report = check_file(file_of(table, events));
  EXPECT_EQ(report.zones[0].distinct_names, kMaxCountedNames);
  EXPECT_EQ(report.zones[0].most_frequent[0], std::pair("n0"s, uint64_t{2}));
  EXPECT_TRUE(report.findings.has(Rule::kLimit));
}

// Now and then, not with each event, and at the end all of it.
TEST(Check, SaysHowFarItIs) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  const uint32_t scope = writer.define_scope("s").value();
  for (int i = 0; i < 300'000; ++i) {
    ASSERT_TRUE(writer.enter(scope, 1000).ok());
    ASSERT_TRUE(writer.leave(1000).ok());
  }
  ASSERT_TRUE(writer.finish().ok());
  std::vector<uint64_t> reported;
  const Progress progress = [](void* context, uint64_t bytes) {
    static_cast<std::vector<uint64_t>*>(context)->push_back(bytes);
  };
  (void)check_file(sink.bytes(), progress, &reported);
  ASSERT_GE(reported.size(), 2u);
  EXPECT_LT(reported.size(), 20u);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_GT(reported.front(), sink.bytes().size() / 10);
  EXPECT_LT(reported.front(), sink.bytes().size());
  EXPECT_EQ(reported.back(), sink.bytes().size());
}

// FileReport: the viewer has no JSON events, and refuses PARTIAL mode.
TEST(Check, ReportsWhatTheViewerLoadsFromJson) {
  const auto report = [](JsonMode mode, JsonEvents events) {
    VectorSink text;
    Findings findings;
    EXPECT_TRUE(binary_to_json(testing::build_file(), {mode, events}, text, findings).ok());
    return check_file(text.bytes());
  };
  const FileReport base64 = report(JsonMode::kComplete, JsonEvents::kBase64);
  EXPECT_TRUE(base64.viewer_loads);
  EXPECT_TRUE(base64.viewer_has_events);
  EXPECT_EQ(base64.json.json_events, 0u);
  const FileReport events = report(JsonMode::kComplete, JsonEvents::kEvents);
  EXPECT_TRUE(events.viewer_loads);
  EXPECT_FALSE(events.viewer_has_events);
  EXPECT_EQ(events.json.json_events, events.json.events);
  EXPECT_EQ(events.events, base64.events);
  EXPECT_FALSE(report(JsonMode::kPartial, JsonEvents::kBase64).viewer_loads);
}

}  // namespace
}  // namespace collect::wtf
