#include "formats/core/json_shape.h"

#include <gtest/gtest.h>

#include <string>

namespace collect {
namespace {

constexpr JsonLimits kLimits{4, 10};

bool fits(std::string_view text) {
  const Status status = check_json_shape(text, kLimits);
  EXPECT_TRUE(status.ok() || status.code() == Code::kLimit);
  return status.ok();
}

TEST(JsonShape, BoundsTheDepth) {
  EXPECT_TRUE(fits("[[[[]]]]"));
  EXPECT_FALSE(fits("[[[[[]]]]]"));
  EXPECT_TRUE(fits("[[]],{{}},[[]]"));  // what is closed counts no more
  EXPECT_FALSE(fits("{\"a\":[{\"b\":[{"));
  EXPECT_TRUE(fits("[[]]]]]]][[]]"));  // no JSON, and not deep
}

TEST(JsonShape, LooksAtNothingBehindTheText) {
  EXPECT_TRUE(fits(std::string_view("[[[[[").substr(0, 4)));
  EXPECT_TRUE(fits(std::string_view("[0,1,2,3,4,5,6,7,8,9,").substr(0, 20)));
}

TEST(JsonShape, BoundsTheValues) {
  EXPECT_TRUE(fits("[0,1,2,3,4,5,6,7,8]"));
  EXPECT_TRUE(fits("[0,1,2,3,4,5,6,7,8,9]"));
  EXPECT_FALSE(fits("[0,1,2,3,4,5,6,7,8,9,10]"));
  EXPECT_FALSE(fits("[{},{},{},{},{},{}]"));
}

TEST(JsonShape, StringsAreNoStructure) {
  EXPECT_TRUE(fits("[\"[[[[[[[[,,,,,,,,,,,,,,\"]"));
  EXPECT_TRUE(fits("[\"\\\"[[[[[[[[,,,,,,,,,,,,,,\"]"));
  EXPECT_FALSE(fits("[\"\\\\\"[[[[[[[["));
  EXPECT_TRUE(fits("\"\\"));  // ends within an escape
  EXPECT_TRUE(fits(""));
}

}  // namespace
}  // namespace collect
