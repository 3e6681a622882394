#include "formats/core/nearest_word.h"

#include <gtest/gtest.h>

namespace collect {
namespace {

TEST(NearestWordTest, CountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("leaf", "leaf"), 0u);
  EXPECT_EQ(edit_distance("leaf", ""), 4u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("repotr", "report"), 1u) << "two neighbours in the wrong order";
}

TEST(NearestWordTest, TakesTheNearestWithinReach) {
  const std::vector<std::string> known = {"COLLECT_BUFFER_MB", "COLLECT_TAG", "COLLECT_SPOOL"};
  EXPECT_EQ(nearest_word("COLLECT_BUFER_MB", known), "COLLECT_BUFFER_MB");
  EXPECT_EQ(nearest_word("COLLECT_SPOOLS", known), "COLLECT_SPOOL");
  EXPECT_EQ(nearest_word("COLLECT_NOTHING", known), "");
  EXPECT_EQ(nearest_word("x", known), "");
  EXPECT_EQ(nearest_word(std::string(kMaxNearestBytes + 1, 'x'),
                         {std::string(kMaxNearestBytes + 1, 'x')}),
            "");
}

TEST(NearestWordTest, ShortWordsAllowFewSlips) {
  EXPECT_EQ(nearest_word("leef", {"leaf"}), "leaf");
  EXPECT_EQ(nearest_word("loof", {"leaf"}), "");
  EXPECT_EQ(nearest_word("ab", {"ac"}), "");
}

}  // namespace
}  // namespace collect
