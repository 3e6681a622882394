#include "formats/core/text/decimal.h"

#include <gtest/gtest.h>

namespace collect {
namespace {

TEST(Decimal, IsScaledWithoutLoss) {
  EXPECT_EQ(scaled_decimal("1.25", 3), 1250);
  EXPECT_EQ(scaled_decimal("1700000000123456.789", 3), 1700000000123456789);
  EXPECT_EQ(scaled_decimal("-0.0015", 3), -2);
  EXPECT_EQ(scaled_decimal("0.0004", 3), 0);
  EXPECT_EQ(scaled_decimal("0.0005", 3), 1);
  EXPECT_EQ(scaled_decimal("12e-1", 0), 1);
  EXPECT_EQ(scaled_decimal("1.5E+2", 0), 150);
  EXPECT_EQ(scaled_decimal("7.", 0), 7);
  EXPECT_EQ(scaled_decimal(".5", 1), 5);
  EXPECT_EQ(scaled_decimal("0.12345678901234567890123456789", 9), 123456789);
  EXPECT_EQ(scaled_decimal("9223372036854775807", 0), INT64_MAX);
  EXPECT_EQ(scaled_decimal("1000000000000000000000e-21", 0), 1);
  EXPECT_EQ(scaled_decimal("0e999999999999", 0), 0);
  EXPECT_EQ(scaled_decimal("1e-999999999999", 0), 0);
}

TEST(Decimal, RefusesWhatIsNone) {
  for (const char* text : {"", "-", ".", "e5", "1e", "1e+", "1x", " 1", "1 ", "--1", "1.2.3", "nan",
                           "9223372036854775808", "1e19", "1e999999999999"}) {
    EXPECT_FALSE(scaled_decimal(text, 0).has_value()) << text;
  }
}

}  // namespace
}  // namespace collect
