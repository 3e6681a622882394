#include "formats/core/nearest_word.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace collect {
namespace {

std::string near(std::string_view word, const std::vector<std::string_view>& candidates) {
  return std::string(nearest_word(word, candidates.data(), candidates.size()));
}

TEST(NearestWordTest, CountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("leaf", "leaf"), 0u);
  EXPECT_EQ(edit_distance("leaf", ""), 4u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("repotr", "report"), 1u) << "two neighbours in the wrong order";
}

TEST(NearestWordTest, TakesTheNearestWithinReach) {
  const std::vector<std::string_view> known = {"COLLECT_BUFFER_MB", "COLLECT_TAG", "COLLECT_SPOOL"};
  EXPECT_EQ(near("COLLECT_BUFER_MB", known), "COLLECT_BUFFER_MB");
  EXPECT_EQ(near("COLLECT_SPOOLS", known), "COLLECT_SPOOL");
  EXPECT_EQ(near("COLLECT_NOTHING", known), "");
  EXPECT_EQ(near("x", known), "");
  const std::string longest(kMaxNearestBytes, 'x');
  EXPECT_EQ(near(longest, {longest}), longest);
  EXPECT_EQ(near(longest + "x", {longest + "x"}), "");
  EXPECT_EQ(near(longest, {longest + "x"}), "");
}

TEST(NearestWordTest, OfSeveralWithinReachTheNearestCounts) {
  EXPECT_EQ(near("abcdefghi", {"abcdefghX", "abcdefgXX"}), "abcdefghX");
  EXPECT_EQ(near("abcdefghi", {"abcdefgXX", "abcdefghX"}), "abcdefghX");
  EXPECT_EQ(near("abcdefghi", {"abcdefghX", "abcdefghY"}), "abcdefghX") << "the first of two";
}

TEST(NearestWordTest, ShortWordsAllowFewSlips) {
  EXPECT_EQ(near("leef", {"leaf"}), "leaf");
  EXPECT_EQ(near("loof", {"leaf"}), "");
  EXPECT_EQ(near("ab", {"ac"}), "");
}

}  // namespace
}  // namespace collect
