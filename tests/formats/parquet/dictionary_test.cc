#include "formats/parquet/dictionary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace collect::parquet {
namespace {

using ::testing::ElementsAre;

ColumnBuffer buffer_of(const std::vector<uint64_t>& values) {
  ColumnBuffer buffer({"c", Type::kUint64});
  buffer.append(values, 0, values.size());
  return buffer;
}
ColumnBuffer buffer_of(const std::vector<std::string_view>& values) {
  ColumnBuffer buffer({"c", Type::kString});
  buffer.append(values, 0, values.size());
  return buffer;
}
std::vector<uint64_t> different(size_t count) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < count; ++i) values.push_back(i << 32 | 7);
  return values;
}

TEST(ParquetDictionary, EntriesAreNumberedAsTheyCome) {
  Dictionary dictionary;
  ASSERT_TRUE(dictionary.build(buffer_of(std::vector<uint64_t>{9, 9, 0, 9, 5, 0})));
  EXPECT_THAT(dictionary.indices(), ElementsAre(0, 0, 1, 0, 2, 1));
  EXPECT_THAT(dictionary.positions(), ElementsAre(0, 2, 4));
}

TEST(ParquetDictionary, StringsAreCompared) {
  Dictionary dictionary;
  ASSERT_TRUE(dictionary.build(buffer_of(std::vector<std::string_view>{"", "b", "a", "", "b"})));
  EXPECT_THAT(dictionary.indices(), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(dictionary.positions(), ElementsAre(0, 1, 2));
}

TEST(ParquetDictionary, BuildReplacesTheOneBefore) {
  Dictionary dictionary;
  ASSERT_TRUE(dictionary.build(buffer_of(different(5000))));
  ASSERT_TRUE(dictionary.build(buffer_of(std::vector<uint64_t>{3})));
  EXPECT_THAT(dictionary.indices(), ElementsAre(0));
  EXPECT_THAT(dictionary.positions(), ElementsAre(0));
}

TEST(ParquetDictionary, ValuesUpToTheLimit) {
  Dictionary dictionary;
  std::vector<uint64_t> values = different(kMaxDictionaryValues);
  values.insert(values.end(), values.begin(), values.end());  // known ones are still taken
  ASSERT_TRUE(dictionary.build(buffer_of(values)));
  ASSERT_EQ(dictionary.positions().size(), kMaxDictionaryValues);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(dictionary.indices()[i], i % kMaxDictionaryValues);
  }
  values.push_back(1);
  EXPECT_FALSE(dictionary.build(buffer_of(values)));
}

TEST(ParquetDictionary, TextUpToTheLimit) {
  Dictionary dictionary;
  const std::string half(kMaxDictionaryTextBytes / 2, 'x');
  const std::string other(kMaxDictionaryTextBytes / 2, 'y');
  EXPECT_TRUE(dictionary.build(buffer_of(std::vector<std::string_view>{half, other, half, ""})));
  EXPECT_FALSE(dictionary.build(buffer_of(std::vector<std::string_view>{half, other, "z"})));
}

// Multiples of the inverse of the hash's factor have neighbouring hashes of all but the lowest
// bits: all of them want the same slot.
TEST(ParquetDictionary, CollidingValuesAreRefusedBeforeTheyAreSlow) {
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E3779B97F4A7C15u * inverse;
  ASSERT_EQ(inverse * 0x9E3779B97F4A7C15u, 1u);
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 100; ++i) values.push_back(i * inverse);
  Dictionary dictionary;
  EXPECT_TRUE(dictionary.build(buffer_of(values)));
  for (uint64_t i = 100; i < 200; ++i) values.push_back(i * inverse);
  EXPECT_FALSE(dictionary.build(buffer_of(values)));
}

}  // namespace
}  // namespace collect::parquet
