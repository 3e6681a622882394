#include "formats/chrome/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/core/recorded_timeline.h"

namespace collect::chrome {
namespace {

using collect::testing::bytes_of;
using collect::testing::RecordedTimeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// After the examples of the Trace Event Format's description.
constexpr std::string_view kObject = R"({
  "displayTimeUnit": "ns",
  "systemTraceEvents": "SystemTraceData",
  "otherData": {"version": "My Application v1.0"},
  "traceEvents": [
    {"name": "process_name", "ph": "M", "pid": 2343, "args": {"name": "RendererProcess"}},
    {"name": "thread_name", "ph": "M", "pid": 2343, "tid": 2347, "args": {"name": "Main"}},
    {"name": "process_labels", "ph": "M", "pid": 2343, "args": {"labels": "x"}},
    {"name": "Asub", "cat": "PERF", "ph": "B", "pid": 2343, "tid": 2347, "ts": 829},
    {"name": "Asub", "cat": "PERF", "ph": "E", "pid": 2343, "tid": 2347, "ts": 833},
    {"name": "myFunction", "cat": "foo", "ph": "X", "ts": 123.5, "dur": 234.25, "pid": 2343,
     "tid": 2347, "args": {"first": 1}},
    {"name": "OutOfMemory", "ph": "i", "ts": 1234523.3, "pid": 2343, "tid": 2347, "s": "g"},
    {"name": "Reload", "ph": "I", "ts": 7, "pid": 2343, "tid": 2347, "s": "p"},
    {"name": "Tick", "ph": "i", "ts": 8, "pid": 2343, "tid": 2347, "s": "t"},
    {"name": "ctr", "ph": "C", "ts": 0, "pid": 1, "args": {"cats": 0}},
    {"cat": "foo", "name": "async_read", "id": 100, "ph": "b", "pid": 1, "tid": 1, "ts": 1},
    {"name": "f", "ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1},
    {"name": "odd", "ph": "?", "pid": 1, "tid": 1, "ts": 1}
  ]
})";

TEST(ChromeReader, ReadsAnObject) {
  RecordedTimeline found;
  ASSERT_TRUE(looks_like_chrome(bytes_of(kObject)));
  ASSERT_TRUE(read_events(bytes_of(kObject), found).ok());
  EXPECT_THAT(found.said, ElementsAre("process 0 pid 2343", "process 0 named RendererProcess",
                                      "track 0", "track 0 of 0 tid 2347", "track 0 named Main"));
  EXPECT_THAT(found.calls, ElementsAre("begin 0 829000 Asub", "end 0 833000",
                                       "call 0 123500 234250 myFunction"));
  EXPECT_THAT(found.markers, ElementsAre("1234523300 OutOfMemory", "7000 Reload"));
  EXPECT_THAT(found.lacks, IsEmpty());
  EXPECT_THAT(found.left_out,
              UnorderedElementsAre(
                  Pair("metadata other than names", 1), Pair("arguments of events", 1),
                  Pair("instants of a thread", 1), Pair("counter events (C)", 1),
                  Pair("asynchronous events (b, e, n, S, T, p, F)", 1),
                  Pair("flow events (s, t, f)", 1), Pair("events of an unknown phase", 1)));
}

TEST(ChromeReader, ArrayMayLackItsEnd) {
  for (const char* end : {"]", "", ",\n", ",\n]", "\n"}) {
    SCOPED_TRACE(end);
    const std::string text =
        R"([{"ph":"B","ts":1,"pid":1,"tid":1,"name":"f"},{"ph":"E","ts":2,"pid":1,"tid":1})" +
        std::string(end);
    RecordedTimeline found;
    ASSERT_TRUE(looks_like_chrome(bytes_of(text)));
    ASSERT_TRUE(read_events(bytes_of(text), found).ok());
    EXPECT_THAT(found.calls, ElementsAre("begin 0 1000 f", "end 0 2000"));
    EXPECT_THAT(found.lacks, IsEmpty());
  }
}

TEST(ChromeReader, CutFileIsReadAsFarAsItGoes) {
  const std::string text = R"([{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"f"},{"ph":"E","ts)";
  RecordedTimeline found;
  ASSERT_TRUE(read_events(bytes_of(text), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("call 0 1000 1000 f"));
  EXPECT_THAT(found.lacks, ElementsAre("the file is cut off at " + std::to_string(text.size())));
}

TEST(ChromeReader, NumbersMayBeTexts) {
  RecordedTimeline found;
  ASSERT_TRUE(read_events(bytes_of(R"([{"ph":"X","ts":"1.5","dur":"0.001","pid":"browser",
    "tid":"io","name":7},{"ph":"X","ts":-2,"dur":1e3,"pid":4,"tid":5000000000,"name":"g"}])"),
                          found)
                  .ok());
  EXPECT_THAT(found.calls, ElementsAre("call 0 1500 1 7", "call 1 -2000 1000000 g"));
  EXPECT_THAT(found.said,
              ElementsAre("track 0", "process 0 pid 0", "process 0 named browser",
                          "track 0 of 0 tid 0", "track 0 named io", "track 1", "process 1 pid 4",
                          "track 1 of 1 tid 0", "track 1 named 5000000000"));
}

TEST(ChromeReader, TimesKeepTheirNanoseconds) {
  RecordedTimeline found;
  ASSERT_TRUE(read_events(bytes_of(R"([{"ph":"B","ts":1700000000123456.789,"pid":1,"tid":1,
    "name":"f"},{"ph":"E","ts":1700000000123456.7896,"pid":1,"tid":1}])"),
                          found)
                  .ok());
  EXPECT_THAT(found.calls,
              ElementsAre("begin 0 1700000000123456789 f", "end 0 1700000000123456790"));
}

TEST(ChromeReader, EventsWithoutATimeAreCounted) {
  RecordedTimeline found;
  ASSERT_TRUE(read_events(bytes_of(R"([{"ph":"B","pid":1,"tid":1,"name":"f"},
    {"ph":"X","ts":1,"pid":1,"tid":1},{"ph":"X","ts":1,"dur":-1},{"ph":"B","ts":"soon"},
    {"ph":"B","ts":1e40},{},7,null,[1]])"),
                          found)
                  .ok());
  EXPECT_THAT(found.calls, IsEmpty());
  EXPECT_THAT(found.left_out, UnorderedElementsAre(Pair("events without a time or a duration", 5),
                                                   Pair("events of an unknown phase", 1),
                                                   Pair("elements that are no events", 3)));
}

TEST(ChromeReader, OtherJsonIsNotTaken) {
  for (const char* text : {"", "[", "[]", "[1]", "{}", R"({"a":{"traceEvents":[]}})",
                           R"([{"name":"x"}])", "hello", "{\"type\":\"wtf\"}"}) {
    EXPECT_FALSE(looks_like_chrome(bytes_of(text))) << text;
  }
}

TEST(ChromeReader, DamageSaysWhere) {
  RecordedTimeline found;
  const Status none = read_events(bytes_of(R"({"traceEvents":[{"ph":x}]})"), found);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.code(), Code::kDamaged);
  EXPECT_THAT(none.error().message, HasSubstr("at 22: a value is expected"));
  ASSERT_TRUE(read_events(bytes_of(R"([{"ph":"E","ts":1},{"ph":"E","ts":1,]})"), found).ok());
  EXPECT_THAT(found.lacks, ElementsAre(HasSubstr("at 36: a string is expected")));
}

TEST(ChromeReader, LimitsEndTheReading) {
  const std::string event = R"({"ph":"E","ts":1,"args":)";
  const auto nested = [&](size_t depth) {
    return "[" + event + std::string(depth, '[') + std::string(depth, ']') + "}]";
  };
  const auto named = [&](size_t bytes) {
    return R"([{"ph":"B","ts":1,"name":")" + std::string(bytes, 'n') + "\"}]";
  };
  RecordedTimeline found;
  EXPECT_TRUE(read_events(bytes_of(nested(kMaxReadDepth - 2)), found).ok());
  EXPECT_FALSE(read_events(bytes_of(nested(kMaxReadDepth - 1)), found).ok());
  EXPECT_FALSE(read_events(bytes_of(nested(50'000)), found).ok());
  EXPECT_TRUE(read_events(bytes_of(named(kMaxReadTextBytes)), found).ok());
  EXPECT_FALSE(read_events(bytes_of(named(kMaxReadTextBytes + 1)), found).ok());
}

TEST(ChromeReader, LongIdsAreCut) {
  const std::string id(kMaxIdBytes, 'p');
  RecordedTimeline found;
  ASSERT_TRUE(read_events(bytes_of(R"([{"ph":"E","ts":1,"tid":")" + id + R"("},
    {"ph":"E","ts":1,"tid":")" + id +
                                   "q\"}]"),
                          found)
                  .ok());
  EXPECT_THAT(found.calls, ElementsAre("end 0 1000", "end 0 1000"));
}

TEST(ChromeReader, TracksPastTheLimitAreNone) {
  RecordedTimeline found(1);
  ASSERT_TRUE(
      read_events(bytes_of(R"([{"ph":"E","ts":1,"tid":1},{"ph":"E","ts":1,"tid":2}])"), found)
          .ok());
  EXPECT_THAT(found.calls, ElementsAre("end 0 1000", "end 4294967295 1000"));
}

TEST(ChromeReader, EveryPrefixIsReadOrRefused) {
  for (size_t size = 0; size <= kObject.size(); ++size) {
    RecordedTimeline found;
    const Status read = read_events(bytes_of(kObject.substr(0, size)), found);
    EXPECT_EQ(read.ok(), !found.said.empty() || found.left_out.size() + found.calls.size() != 0)
        << size;
    if (read.ok() && size < kObject.size()) EXPECT_EQ(found.lacks.size(), 1u) << size;
  }
}

TEST(ChromeReader, EveryFlippedByteIsReadOrRefused) {
  std::string text(kObject);
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char flip : {'\x01', '\x02', '\x20', '\x80'}) {
      text[at] = static_cast<char>(text[at] ^ flip);
      RecordedTimeline found;
      (void)looks_like_chrome(bytes_of(text));
      (void)read_events(bytes_of(text), found);
      EXPECT_LE(found.calls.size(), 4u);
      text[at] = static_cast<char>(text[at] ^ flip);
    }
  }
}

}  // namespace
}  // namespace collect::chrome
