#include "formats/parquet/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "formats/core/bytes.h"

namespace collect::parquet {

namespace {

template <class T>
std::string plain(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Ordered, class Stored>
void integer_bounds(std::span<const uint64_t> words, Statistics& into) {
  if (words.empty()) return;
  auto low = static_cast<Ordered>(words[0]);
  auto high = low;
  for (const uint64_t word : words) {
    low = std::min(low, static_cast<Ordered>(word));
    high = std::max(high, static_cast<Ordered>(word));
  }
  into.min_value = plain(static_cast<Stored>(low));
  into.max_value = plain(static_cast<Stored>(high));
  into.has_bounds = true;
}

void double_bounds(std::span<const uint64_t> words, Statistics& into) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const uint64_t word : words) {
    const auto value = std::bit_cast<double>(word);
    if (std::isnan(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    into.has_bounds = true;
  }
  if (!into.has_bounds) return;
  // Zeros of both signs are equal: the bounds hold for both.
  into.min_value = plain(low == 0 ? -0.0 : low);
  into.max_value = plain(high == 0 ? 0.0 : high);
}

void text_bounds(const ColumnBuffer& buffer, Statistics& into) {
  const size_t count = buffer.value_count();
  if (count == 0) return;
  std::string_view low = buffer.text(0);
  std::string_view high = low;
  for (size_t i = 1; i < count; ++i) {
    low = std::min(low, buffer.text(i));
    high = std::max(high, buffer.text(i));
  }
  if (std::max(low.size(), high.size()) > kMaxStatisticsBytes) return;
  into.min_value = low;
  into.max_value = high;
  into.has_bounds = true;
}

}  // namespace

Statistics statistics_of(const ColumnBuffer& buffer) {
  Statistics found;
  found.null_count = buffer.rows() - buffer.value_count();
  switch (buffer.column().type) {
    case Type::kInt32:
      integer_bounds<int64_t, int32_t>(buffer.words(), found);
      break;
    case Type::kUint32:
      integer_bounds<uint64_t, uint32_t>(buffer.words(), found);
      break;
    case Type::kInt64:
      integer_bounds<int64_t, int64_t>(buffer.words(), found);
      break;
    case Type::kUint64:
      integer_bounds<uint64_t, uint64_t>(buffer.words(), found);
      break;
    case Type::kDouble:
      double_bounds(buffer.words(), found);
      break;
    case Type::kString:
      text_bounds(buffer, found);
      break;
  }
  return found;
}

void write_statistics(const Statistics& statistics, ThriftWriter& thrift) {
  thrift.begin_struct(ColumnMetaDataField::kStatistics);
  thrift.i64(StatisticsField::kNullCount, static_cast<int64_t>(statistics.null_count));
  if (statistics.has_bounds) {
    thrift.text(StatisticsField::kMaxValue, statistics.max_value);
    thrift.text(StatisticsField::kMinValue, statistics.min_value);
    thrift.boolean(StatisticsField::kIsMaxValueExact, true);
    thrift.boolean(StatisticsField::kIsMinValueExact, true);
  }
  thrift.end_struct();
}

}  // namespace collect::parquet
