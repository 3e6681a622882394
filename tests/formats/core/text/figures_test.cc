#include "formats/core/text/figures.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cstdint>

namespace collect {
namespace {

TEST(Figures, ThousandsAreSeparatedFromTheRight) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(99'999), "99,999");
  EXPECT_EQ(with_thousands(999'999), "999,999");
  EXPECT_EQ(with_thousands(1'000'000), "1,000,000");
  EXPECT_EQ(with_thousands(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(Figures, OnlyOneIsSingular) {
  EXPECT_EQ(counted(0, "thread"), "0 threads");
  EXPECT_EQ(counted(1, "thread"), "1 thread");
  EXPECT_EQ(counted(2, "thread"), "2 threads");
  EXPECT_EQ(counted(12'345, "thread"), "12,345 threads");
}

// The next unit begins where three digits of this one would be rounded to 1000.
TEST(Figures, BytesChangeTheirUnitWhereTheyRoundUp) {
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(999), "999 B");
  EXPECT_EQ(short_bytes(1000), "1.0 kB");
  EXPECT_EQ(short_bytes(99'949), "99.9 kB");
  EXPECT_EQ(short_bytes(99'950), "100 kB");
  EXPECT_EQ(short_bytes(999'499), "999 kB");
  EXPECT_EQ(short_bytes(999'500), "1.0 MB");
  EXPECT_EQ(short_bytes(999'499'999), "999 MB");
  EXPECT_EQ(short_bytes(999'500'000), "1.0 GB");
  EXPECT_EQ(short_bytes(999'499'000'000), "999 GB");
  EXPECT_EQ(short_bytes(999'500'000'000), "1.0 TB");
  EXPECT_EQ(short_bytes(999'499'000'000'000), "999 TB");
  EXPECT_EQ(short_bytes(999'500'000'000'000), "1.0 PB");
}

TEST(Figures, LargestUnitOfBytesHasAnyNumberOfDigits) {
  EXPECT_EQ(short_bytes(999'499'000'000'000'000), "999 PB");
  EXPECT_EQ(short_bytes(1'000'000'000'000'000'000), "1000 PB");
  EXPECT_EQ(short_bytes(UINT64_MAX), "18447 PB");
}

TEST(Figures, RateHasASpaceBeforeItsPrefix) {
  EXPECT_EQ(short_rate(0), "0/s");
  EXPECT_EQ(short_rate(1), "1/s");
  EXPECT_EQ(short_rate(999.25), "999/s");
  EXPECT_EQ(short_rate(999.5), "1.0 k/s");
  EXPECT_EQ(short_rate(99'949), "99.9 k/s");
  EXPECT_EQ(short_rate(99'950), "100 k/s");
  EXPECT_EQ(short_rate(12.3e6), "12.3 M/s");
}

TEST(Figures, SecondsChangeTheirUnitWhereTheyRoundUp) {
  EXPECT_EQ(short_duration(0), "0 ms");
  EXPECT_EQ(short_duration(1e-6), "1 us");
  EXPECT_EQ(short_duration(0.000999), "999 us");
  EXPECT_EQ(short_duration(0.0009995), "1 ms");
  EXPECT_EQ(short_duration(0.999), "999 ms");
  EXPECT_EQ(short_duration(0.9994), "999 ms");
  EXPECT_EQ(short_duration(0.9995), "1.0 s");
  EXPECT_EQ(short_duration(59.9), "59.9 s");
}

TEST(Figures, MinutesAndHoursAreCutOff) {
  EXPECT_EQ(short_duration(59.94), "59.9 s");
  EXPECT_EQ(short_duration(59.96), "1 min 00 s");
  EXPECT_EQ(short_duration(60), "1 min 00 s");
  EXPECT_EQ(short_duration(60.9), "1 min 00 s");
  EXPECT_EQ(short_duration(119), "1 min 59 s");
  EXPECT_EQ(short_duration(3599.9), "59 min 59 s");
  EXPECT_EQ(short_duration(3600), "1 h 00 min");
  EXPECT_EQ(short_duration(7199), "1 h 59 min");
  EXPECT_EQ(short_duration(7200), "2 h 00 min");
  EXPECT_EQ(short_duration(7500), "2 h 05 min");
  EXPECT_EQ(short_duration(360'000), "100 h 00 min");
}

TEST(Figures, NanosecondsAreShownInThreeDigits) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(5), "5 ns");
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1000), "1.00 us");
  EXPECT_EQ(duration_text(9994), "9.99 us");
  EXPECT_EQ(duration_text(9995), "10.0 us");
  EXPECT_EQ(duration_text(99'949), "99.9 us");
  EXPECT_EQ(duration_text(99'950), "100 us");
  EXPECT_EQ(duration_text(999'499), "999 us");
  EXPECT_EQ(duration_text(999'500), "1.00 ms");
  EXPECT_EQ(duration_text(9'994'999), "9.99 ms");
  EXPECT_EQ(duration_text(9'995'000), "10.0 ms");
  EXPECT_EQ(duration_text(999'499'999), "999 ms");
  EXPECT_EQ(duration_text(999'500'000), "1.00 s");
  EXPECT_EQ(duration_text(9'995'000'000), "10.0 s");
  EXPECT_EQ(duration_text(99'949'999'999), "99.9 s");
  EXPECT_EQ(duration_text(99'950'000'000), "100 s");
}

TEST(Figures, LargestUnitOfNanosecondsHasAnyNumberOfDigits) {
  EXPECT_EQ(duration_text(999'499'999'999), "999 s");
  EXPECT_EQ(duration_text(1'000'000'000'000), "1000 s");
  EXPECT_EQ(duration_text(UINT64_MAX), "18446744074 s");
}

TEST(Figures, RealNumbersHaveTheFewestDigits) {
  EXPECT_EQ(real_text(0), "0");
  EXPECT_EQ(real_text(100), "100");
  EXPECT_EQ(real_text(0.1), "0.1");
  EXPECT_EQ(real_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(real_text(DBL_MIN), "2.2250738585072014e-308");
  EXPECT_EQ(real_text(-DBL_MAX), "-1.7976931348623157e+308");
}

}  // namespace
}  // namespace collect
