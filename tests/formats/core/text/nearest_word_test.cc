#include "formats/core/text/nearest_word.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

// From the definition: the last letters are equal, replaced, left out on one side, or exchanged.
size_t slips(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string_view shorter_a = a.substr(0, a.size() - 1);
  const std::string_view shorter_b = b.substr(0, b.size() - 1);
  size_t least = slips(shorter_a, shorter_b) + (a.back() == b.back() ? 0 : 1);
  least = std::min({least, slips(shorter_a, b) + 1, slips(a, shorter_b) + 1});
  if (a.size() > 1 && b.size() > 1 && a.back() == shorter_b.back() &&
      b.back() == shorter_a.back()) {
    least = std::min(least, slips(a.substr(0, a.size() - 2), b.substr(0, b.size() - 2)) + 1);
  }
  return least;
}

TEST(NearestWordTest, CountsTheFewestSlips) {
  std::mt19937 random(1);
  const auto word = [&] {
    std::string text(random() % 6, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string a = word();
    const std::string b = word();
    ASSERT_EQ(edit_distance(a, b), slips(a, b)) << a << " " << b;
  }
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
  EXPECT_EQ(near(longest + "x", {longest}), "");
}

TEST(NearestWordTest, PicksTheNearestOfSeveralWords) {
  EXPECT_EQ(near("abcdefghi", {"abcdefghX", "abcdefgXX"}), "abcdefghX");
  EXPECT_EQ(near("abcdefghi", {"abcdefgXX", "abcdefghX"}), "abcdefghX");
  EXPECT_EQ(near("abcdefghi", {"abcdefghX", "abcdefghY"}), "abcdefghX") << "the first of two";
}

TEST(NearestWordTest, ShortWordsAllowFewSlips) {
  EXPECT_EQ(near("leef", {"leaf"}), "leaf");
  EXPECT_EQ(near("loof", {"leaf"}), "");
  EXPECT_EQ(near("ab", {"ac"}), "");
  EXPECT_EQ(near("abc", {"abX"}), "abX") << "one slip for each three letters";
  EXPECT_EQ(near("abcde", {"abcXX"}), "");
  EXPECT_EQ(near("abcdef", {"abcdXX"}), "abcdXX");
  EXPECT_EQ(near("abcdefgh", {"abcdeXXX"}), "");
  EXPECT_EQ(near("abcdefghi", {"abcdefXXX"}), "abcdefXXX");
  EXPECT_EQ(near("abcdefghijklmno", {"XXXdefghijklmno"}), "XXXdefghijklmno");
  EXPECT_EQ(near("abcdefghijklmno", {"XXXXefghijklmno"}), "") << "four are too many for any word";
}

}  // namespace
}  // namespace collect
