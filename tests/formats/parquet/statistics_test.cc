#include "formats/parquet/statistics.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::parquet {
namespace {

template <class T>
Statistics of(Type type, const std::vector<T>& values) {
  ColumnBuffer buffer({"c", type});
  buffer.append(values, 0, values.size());
  return statistics_of(buffer);
}
template <class T>
T number(const std::string& bytes) {
  EXPECT_EQ(bytes.size(), sizeof(T));
  return load_le<T>(reinterpret_cast<const uint8_t*>(bytes.data()));
}

TEST(ParquetStatistics, SignedIntegersAreComparedAsSigned) {
  const Statistics narrow = of<int32_t>(Type::kInt32, {1, -1, std::numeric_limits<int32_t>::min()});
  EXPECT_EQ(number<int32_t>(narrow.min_value), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(number<int32_t>(narrow.max_value), 1);
  const Statistics wide = of<int64_t>(Type::kInt64, {5, -7, 3});
  EXPECT_EQ(number<int64_t>(wide.min_value), -7);
  EXPECT_EQ(number<int64_t>(wide.max_value), 5);
}

TEST(ParquetStatistics, UnsignedIntegersAreComparedAsUnsigned) {
  const Statistics narrow = of<uint32_t>(Type::kUint32, {1, 0xFFFFFFFF, 2});
  EXPECT_EQ(number<uint32_t>(narrow.min_value), 1u);
  EXPECT_EQ(number<uint32_t>(narrow.max_value), 0xFFFFFFFF);
  const Statistics wide = of<uint64_t>(Type::kUint64, {1, ~uint64_t{0}, 2});
  EXPECT_EQ(number<uint64_t>(wide.min_value), 1u);
  EXPECT_EQ(number<uint64_t>(wide.max_value), ~uint64_t{0});
}

TEST(ParquetStatistics, DoublesAreComparedWithoutNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Statistics some = of<double>(Type::kDouble, {nan, 2.5, -1.5, nan});
  EXPECT_EQ(number<double>(some.min_value), -1.5);
  EXPECT_EQ(number<double>(some.max_value), 2.5);
  EXPECT_FALSE(of<double>(Type::kDouble, {nan, nan}).has_bounds);
  const double infinite = std::numeric_limits<double>::infinity();
  const Statistics one = of<double>(Type::kDouble, {infinite});
  EXPECT_EQ(number<double>(one.min_value), infinite);
  EXPECT_EQ(number<double>(one.max_value), infinite);
}

// parquet.thrift, ColumnOrder: "If the min is +0, the row group may contain -0 values as well".
TEST(ParquetStatistics, ZeroIsBothZeros) {
  const Statistics positive = of<double>(Type::kDouble, {0.0});
  EXPECT_EQ(number<uint64_t>(positive.min_value), uint64_t{1} << 63);
  EXPECT_EQ(number<uint64_t>(positive.max_value), 0u);
  const Statistics negative = of<double>(Type::kDouble, {-0.0});
  EXPECT_EQ(number<uint64_t>(negative.min_value), uint64_t{1} << 63);
  EXPECT_EQ(number<uint64_t>(negative.max_value), 0u);
}

TEST(ParquetStatistics, StringsAreComparedByTheirBytes) {
  const Statistics found = of<std::string_view>(Type::kString, {"b", "é", "", "ba"});
  EXPECT_TRUE(found.has_bounds);
  EXPECT_EQ(found.min_value, "");
  EXPECT_EQ(found.max_value, "é");
}

TEST(ParquetStatistics, LongStringsHaveNoBounds) {
  const std::string longest(kMaxStatisticsBytes, 'x');
  const std::string too_long(kMaxStatisticsBytes + 1, 'b');
  EXPECT_TRUE(of<std::string_view>(Type::kString, {"a", longest}).has_bounds);
  EXPECT_FALSE(of<std::string_view>(Type::kString, {"a", too_long}).has_bounds);
  EXPECT_FALSE(of<std::string_view>(Type::kString, {too_long, "c"}).has_bounds);
  EXPECT_TRUE(of<std::string_view>(Type::kString, {"a", too_long, "c"}).has_bounds);
}

TEST(ParquetStatistics, NullsAreCounted) {
  ColumnBuffer buffer({"c", Type::kInt64, Encoding::kPlain, true});
  const std::vector<uint8_t> present = {0, 1, 0};
  buffer.append({std::vector<int64_t>{-9, 4, 9}, present}, 0, 3);
  const Statistics found = statistics_of(buffer);
  EXPECT_EQ(found.null_count, 2u);
  EXPECT_EQ(number<int64_t>(found.min_value), 4);
  EXPECT_EQ(number<int64_t>(found.max_value), 4);
}

TEST(ParquetStatistics, WithoutValuesThereAreNoBounds) {
  ColumnBuffer buffer({"c", Type::kUint64, Encoding::kPlain, true});
  buffer.append({std::vector<uint64_t>{1, 2}, std::vector<uint8_t>{0, 0}}, 0, 2);
  EXPECT_EQ(statistics_of(buffer).null_count, 2u);
  EXPECT_FALSE(statistics_of(buffer).has_bounds);
}

TEST(ParquetStatistics, TheirThriftForm) {
  std::vector<uint8_t> out;
  ThriftWriter thrift(out);
  thrift.begin_struct();
  write_statistics({3, true, "a", "bc"}, thrift);
  write_statistics({}, thrift);
  // Field 12 twice; of each null_count, then max_value, min_value, and that both are exact.
  EXPECT_EQ(out, (std::vector<uint8_t>{0xCC, 0x36, 6, 0x28, 2, 'b', 'c', 0x18, 1, 'a', 0x11, 0x11,
                                       0x00, 0x0C, 24, 0x36, 0, 0x00}));
}

}  // namespace
}  // namespace collect::parquet
