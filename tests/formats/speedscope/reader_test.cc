#include "formats/speedscope/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/core/recorded_timeline.h"

namespace collect::speedscope {
namespace {

using collect::testing::bytes_of;
using collect::testing::RecordedTimeline;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// After the examples of the format's description.
constexpr std::string_view kEvented = R"({
  "version":"0.0.1",
  "$schema": "https://www.speedscope.app/file-format-schema.json",
  "name": "app",
  "shared": {"frames": [{"name":"a"},{"name":"b","file":"b.cc","line":7,"col":1},{"name":"c"}]},
  "profiles": [{"type":"evented","name":"simple.txt","unit":"milliseconds","startValue":0,
    "endValue":14,"events":[
      {"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":0},
      {"type":"O","frame":2,"at":0.5},{"type":"C","frame":2,"at":2},
      {"type":"C","frame":1,"at":14},{"type":"C","frame":0,"at":14}]}]
})";
constexpr std::string_view kSampled = R"({"exporter":"x","activeProfileIndex":0,
  "profiles":[{"type":"sampled","name":"","unit":"none","startValue":5,"endValue":9,
    "samples":[[0,1],[0,1,2],[],[0]],"weights":[1,1,3,1]}],
  "shared":{"frames":[{"name":"a"},{"name":"b"},{"name":"c"}]},
  "$schema":"https://www.speedscope.app/file-format-schema.json"})";

TEST(SpeedscopeReader, ReadsAnEventedProfile) {
  RecordedTimeline found;
  ASSERT_TRUE(looks_like_speedscope(bytes_of(kEvented)));
  ASSERT_TRUE(read_profiles(bytes_of(kEvented), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 0 a", "begin 0 0 b (b.cc:7)", "begin 0 500000 c",
                                       "end 0 2000000", "end 0 14000000", "end 0 14000000"));
  EXPECT_THAT(found.said, ElementsAre("process 0 pid 0", "process 0 named app", "track 0",
                                      "track 0 of 0 tid 0", "track 0 named simple.txt"));
  EXPECT_THAT(found.left_out, IsEmpty());
  EXPECT_THAT(found.remarks, IsEmpty());
}

TEST(SpeedscopeReader, ReadsASampledProfile) {
  RecordedTimeline found;
  ASSERT_TRUE(looks_like_speedscope(bytes_of(kSampled)));
  ASSERT_TRUE(read_profiles(bytes_of(kSampled), found).ok());
  EXPECT_THAT(found.calls, ElementsAre("begin 0 5 a", "begin 0 5 b", "begin 0 6 c", "end 0 7",
                                       "end 0 7", "end 0 7", "begin 0 10 a", "end 0 11"));
  EXPECT_THAT(found.remarks, ElementsAre(HasSubstr("has the unit \"none\", which is no time")));
}

TEST(SpeedscopeReader, UnitsAreScaled) {
  for (const auto& [unit, ns] : {std::pair{"nanoseconds", "2"},
                                 {"microseconds", "1500"},
                                 {"milliseconds", "1500000"},
                                 {"seconds", "1500000000"}}) {
    RecordedTimeline found;
    const std::string text =
        R"({"shared":{"frames":[{"name":"a"}]},"profiles":[{"events":[{"type":"O","frame":0,"at":1.5}],
        "type":"evented","unit":")" +
        std::string(unit) + "\"}]}";
    ASSERT_TRUE(looks_like_speedscope(bytes_of(text)));
    ASSERT_TRUE(read_profiles(bytes_of(text), found).ok());
    EXPECT_THAT(found.calls, ElementsAre("begin 0 " + std::string(ns) + " a"));
  }
}

TEST(SpeedscopeReader, BadEventsAreCounted) {
  RecordedTimeline found;
  ASSERT_TRUE(read_profiles(bytes_of(R"({"shared":{"frames":[{"name":"a"}]},"profiles":[
    {"type":"evented","unit":"seconds","events":[{"type":"O","frame":1,"at":1},
      {"type":"O","frame":0},{"type":"x","frame":0,"at":1},{}]},
    {"type":"sampled","unit":"seconds","samples":[[3],[0]],"weights":[1]},
    {"type":"other"}]})"),
                            found)
                  .ok());
  EXPECT_THAT(found.calls, IsEmpty());
  EXPECT_THAT(found.left_out,
              UnorderedElementsAre(Pair("events of frames that the file does not have", 3),
                                   Pair("events without a time, samples without a weight", 2),
                                   Pair("events that neither open nor close a frame", 1),
                                   Pair("profiles that are neither evented nor sampled", 1)));
}

TEST(SpeedscopeReader, DamageSaysWhere) {
  RecordedTimeline found;
  const Status read = read_profiles(bytes_of(R"({"shared":{"frames":[{"name":}]}})"), found);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("at 29: a value is expected"));
  EXPECT_EQ(read_profiles(bytes_of("{}"), found).code(), Code::kDamaged);
  EXPECT_EQ(read_profiles(bytes_of(R"({"profiles":[]})"), found).code(), Code::kDamaged);
}

TEST(SpeedscopeReader, EveryPrefixIsReadOrRefused) {
  for (const std::string_view whole : {kEvented, kSampled}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      RecordedTimeline found;
      const Status read = read_profiles(bytes_of(whole.substr(0, size)), found);
      EXPECT_EQ(read.ok(), !found.lacks.empty()) << size;
      if (!read.ok()) EXPECT_EQ(read.code(), Code::kTruncated) << size;
    }
  }
}

TEST(SpeedscopeReader, EveryFlippedByteIsReadOrRefused) {
  for (const std::string_view whole : {kEvented, kSampled}) {
    std::string text(whole);
    for (size_t at = 0; at < text.size(); ++at) {
      for (const char flip : {'\x01', '\x02', '\x20', '\x80'}) {
        text[at] = static_cast<char>(text[at] ^ flip);
        RecordedTimeline found;
        (void)looks_like_speedscope(bytes_of(text));
        (void)read_profiles(bytes_of(text), found);
        EXPECT_LE(found.calls.size(), 14u);
        text[at] = static_cast<char>(text[at] ^ flip);
      }
    }
  }
}

TEST(SpeedscopeReader, StacksHaveALimit) {
  std::string frames;
  for (size_t i = 0; i < kMaxStackFrames + 1; ++i) frames += i == 0 ? "0" : ",0";
  RecordedTimeline found;
  ASSERT_TRUE(read_profiles(bytes_of(R"({"shared":{"frames":[{"name":"a"}]},"profiles":[
    {"type":"sampled","unit":"seconds","weights":[1],"samples":[[)" +
                                     frames + "]]}]}"),
                            found)
                  .ok());
  EXPECT_EQ(found.calls.size(), 2 * kMaxStackFrames);
  EXPECT_THAT(found.left_out, ElementsAre(Pair("frames of stacks deeper than is followed", 1)));
}

TEST(SpeedscopeReader, OtherJsonIsNotTaken) {
  for (const char* text : {"", "{}", "[]", R"({"$schema":"x"})", R"({"shared":1})",
                           R"({"profiles":[{"type":"cpu"}]})", R"({"traceEvents":[]})"}) {
    EXPECT_FALSE(looks_like_speedscope(bytes_of(text))) << text;
  }
}

}  // namespace
}  // namespace collect::speedscope
