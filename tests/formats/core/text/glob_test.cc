#include "formats/core/text/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace collect {
namespace {

TEST(GlobTest, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("a*c", "abbbc"));
  EXPECT_TRUE(matches_glob("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches_glob("a*b*c", "aXcYb"));
  EXPECT_TRUE(matches_glob("?b", "ab"));
  EXPECT_FALSE(matches_glob("?b", "b"));
  EXPECT_TRUE(matches_glob("operator[]*", "operator[](int)"));
  EXPECT_FALSE(matches_glob("", "a"));
  // What a star has passed is not matched once more, and what stood behind it begins again.
  EXPECT_FALSE(matches_glob("ab*bX", "abX"));
  EXPECT_FALSE(matches_glob("*ab", "aXb"));
  EXPECT_TRUE(matches_glob("*ab", "aab"));
  EXPECT_TRUE(matches_glob("", ""));
}

TEST(GlobTest, PatternEndsWhereItsViewEnds) {
  for (const std::string_view longer : {"a*", "a?", "ab"}) {
    EXPECT_FALSE(matches_glob(longer.substr(0, 1), "ab")) << longer;
    EXPECT_TRUE(matches_glob(longer.substr(0, 1), "a")) << longer;
  }
  for (const std::string_view longer : {"*a*", "*a?", "*aa"}) {
    EXPECT_TRUE(matches_glob(longer.substr(0, 2), "aa")) << longer;
    EXPECT_TRUE(matches_glob(longer.substr(0, 2), "aba")) << longer;
    EXPECT_FALSE(matches_glob(longer.substr(0, 2), "aab")) << longer;
  }
}

// A pattern that would make a backtracking matcher run for ages.
TEST(GlobTest, ManyStarsAreFast) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(1000, 'a')));
}

}  // namespace
}  // namespace collect
