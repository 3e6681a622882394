// What the columns of a file are, and the values that a caller hands over. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "formats/parquet/layout.h"

namespace collect::parquet {

// In the order of the alternatives of ColumnValues::Values.
enum class Type : uint8_t {
  kInt32,   // INT32, INTEGER(32, signed)
  kUint32,  // INT32, INTEGER(32, unsigned)
  kInt64,   // INT64, INTEGER(64, signed)
  kUint64,  // INT64, INTEGER(64, unsigned)
  kDouble,  // DOUBLE
  kString,  // BYTE_ARRAY, STRING
};

constexpr bool is_integer(Type type) {
  return type <= Type::kUint64;
}
constexpr PhysicalType physical_type(Type type) {
  switch (type) {
    case Type::kInt32:
    case Type::kUint32:
      return PhysicalType::kInt32;
    case Type::kInt64:
    case Type::kUint64:
      return PhysicalType::kInt64;
    case Type::kDouble:
      return PhysicalType::kDouble;
    case Type::kString:
      break;
  }
  return PhysicalType::kByteArray;
}

struct Column {
  std::string name;  // UTF-8, not empty, of one column only
  Type type = Type::kInt64;
  // kPlain; kDeltaBinaryPacked for integers that grow slowly; kRleDictionary for few different
  // values. A column chunk whose dictionary would be too large is written DELTA_BINARY_PACKED
  // (integers) or PLAIN (others).
  Encoding encoding = Encoding::kPlain;
  bool is_optional = false;  // may hold nulls
};

// The values of one column in a batch of rows, one for each row. Borrowed for the call.
struct ColumnValues {
  using Values = std::variant<std::span<const int32_t>, std::span<const uint32_t>,
                              std::span<const int64_t>, std::span<const uint64_t>,
                              std::span<const double>, std::span<const std::string_view>>;

  // Takes any contiguous range of these types, for example std::vector<uint64_t>.
  template <std::ranges::contiguous_range Range>
  ColumnValues(const Range& range, std::span<const uint8_t> present_rows = {})  // NOLINT: implicit
      : values(std::span<const std::ranges::range_value_t<Range>>(range)), present(present_rows) {}

  Type type() const { return static_cast<Type>(values.index()); }
  size_t rows() const {
    return std::visit([](const auto& span) { return span.size(); }, values);
  }

  Values values;
  // One for each row: 0 is null, and the value of that row is not looked at. Empty: no row is null.
  std::span<const uint8_t> present;
};

}  // namespace collect::parquet
