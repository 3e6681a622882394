#include "formats/folded/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/core/recorded_timeline.h"

namespace collect::folded {
namespace {

using collect::testing::bytes_of;
using collect::testing::RecordedTimeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(FoldedReader, LaysStacksOutInTheirOrder) {
  // As stackcollapse-perf.pl writes them.
  constexpr std::string_view kText =
      "java;start_thread;[libjvm.so] 10\n"
      "java;start_thread 5\r\n"
      "\n"
      "java;write (bytes) 2.6\n"
      "other 1";
  RecordedTimeline found;
  ASSERT_TRUE(looks_like_folded(bytes_of(kText)));
  ASSERT_TRUE(read_stacks(bytes_of(kText), found).ok());
  EXPECT_THAT(found.calls,
              ElementsAre("begin 0 0 java", "begin 0 0 start_thread", "begin 0 0 [libjvm.so]",
                          "end 0 10", "end 0 15", "begin 0 15 write (bytes)", "end 0 18",
                          "end 0 18", "begin 0 18 other", "end 0 19"));
  EXPECT_THAT(found.left_out, ElementsAre(Pair("lines that are no stack with a weight", 1)));
  EXPECT_THAT(found.remarks, ElementsAre(HasSubstr("folded stacks have no times")));
}

TEST(FoldedReader, OtherTextIsNotTaken) {
  for (const char* text : {"", "\n", "hello", "hello ", " 5", "a b", "a;b 5\nc", "a;b -5",
                           "a\x01 5", "{\"a\": 5", "a 5x"}) {
    EXPECT_FALSE(looks_like_folded(bytes_of(text))) << text;
  }
  EXPECT_TRUE(looks_like_folded(bytes_of("a b 5")));
}

TEST(FoldedReader, LongFilesAreSniffedByWholeLines) {
  std::string text;
  while (text.size() < kSniffBytes) text += "a;b 1\n";
  EXPECT_TRUE(looks_like_folded(bytes_of(text + "no stack")));
  EXPECT_FALSE(looks_like_folded(bytes_of(std::string(kSniffBytes + 1, 'x'))));
}

TEST(FoldedReader, NoStackIsAnError) {
  RecordedTimeline found;
  EXPECT_EQ(read_stacks(bytes_of("hello\nworld\n"), found).code(), Code::kDamaged);
}

TEST(FoldedReader, WeightsEndAtTheLastTime) {
  RecordedTimeline found;
  ASSERT_TRUE(read_stacks(bytes_of("a 9223372036854775807\nb 9223372036854775807\n"), found).ok());
  EXPECT_THAT(found.calls,
              ElementsAre("begin 0 0 a", "end 0 9223372036854775807",
                          "begin 0 9223372036854775807 b", "end 0 9223372036854775807"));
}

TEST(FoldedReader, StacksHaveALimit) {
  std::string line;
  for (size_t i = 0; i < kMaxStackFrames + 2; ++i) line += "f;";
  RecordedTimeline found;
  ASSERT_TRUE(read_stacks(bytes_of(line + " 1"), found).ok());
  EXPECT_EQ(found.calls.size(), 2 * kMaxStackFrames);
  EXPECT_THAT(found.left_out, ElementsAre(Pair("frames of stacks deeper than is followed", 2)));
}

TEST(FoldedReader, EveryPrefixAndFlippedByteIsReadOrRefused) {
  const std::string whole = "main;parse 12\nmain;read;wait 3\n";
  for (size_t at = 0; at < whole.size(); ++at) {
    RecordedTimeline found;
    (void)read_stacks(bytes_of(whole.substr(0, at)), found);
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      RecordedTimeline flipped;
      (void)looks_like_folded(bytes_of(text));
      (void)read_stacks(bytes_of(text), flipped);
      EXPECT_LE(flipped.calls.size(), 12u);
    }
  }
}

}  // namespace
}  // namespace collect::folded
