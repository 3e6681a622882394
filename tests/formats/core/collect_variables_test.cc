#include "formats/core/collect_variables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace collect {
namespace {

TEST(CollectVariables, AreSortedAndShortEnough) {
  EXPECT_TRUE(std::is_sorted(std::begin(kCollectVariables), std::end(kCollectVariables),
                             [](const char* a, const char* b) { return std::strcmp(a, b) < 0; }));
  for (const char* name : kCollectVariables) {
    EXPECT_LE(std::strlen(name), kMaxVariableName);
    EXPECT_FALSE(is_unknown_variable((std::string(name) + "=x").c_str())) << name;
  }
}

TEST(CollectVariables, OthersWithThePrefixAreUnknown) {
  EXPECT_TRUE(is_unknown_variable("COLLECT_BUFER_MB=1"));
  EXPECT_TRUE(is_unknown_variable("COLLECT_BUFFER=1")) << "the beginning of a name is no name";
  EXPECT_TRUE(is_unknown_variable("COLLECT_BUFFER_MBS=1"));
  EXPECT_TRUE(is_unknown_variable("COLLECT_=1"));
  EXPECT_FALSE(is_unknown_variable("COLLECTOR=1"));
  EXPECT_FALSE(is_unknown_variable("PATH=COLLECT_X"));
}

TEST(CollectVariables, TheNearestNameIsFound) {
  EXPECT_STREQ(nearest_variable("COLLECT_BUFER_MB=1"), "COLLECT_BUFFER_MB");
  EXPECT_STREQ(nearest_variable("COLLECT_DETIAL=on"), "COLLECT_DETAIL");
  EXPECT_STREQ(nearest_variable("COLLECT_ATF_VERSON="), "COLLECT_ATF_VERSION");
  EXPECT_STREQ(nearest_variable("COLLECT_FULLL"), "COLLECT_FULL");
  EXPECT_EQ(nearest_variable("COLLECT_COLOUR=red"), nullptr);
  EXPECT_EQ(nearest_variable("COLLECT_=1"), nullptr);
  EXPECT_EQ(nearest_variable(("COLLECT_" + std::string(1000, 'A')).c_str()), nullptr);
}

}  // namespace
}  // namespace collect
