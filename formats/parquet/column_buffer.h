// The values of one column chunk until its row group is full, without the nulls. Used on one
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/parquet/schema.h"

namespace collect::parquet {

class ColumnBuffer {
 public:
  explicit ColumnBuffer(Column column) : column_(std::move(column)) {}

  const Column& column() const { return column_; }
  size_t rows() const { return column_.is_optional ? present_.size() : value_count(); }
  size_t value_count() const {
    return column_.type == Type::kString ? text_ends_.size() : words_.size();
  }

  // How many of the rows [from, from + count) kRowGroupTextBytes has room for.
  size_t rows_with_room(const ColumnValues& values, size_t from, size_t count) const;
  // `values` has the column's type. What is no UTF-8 in strings becomes U+FFFD.
  void append(const ColumnValues& values, size_t from, size_t count);
  void clear();

  // For optional columns: 1 or 0 for each row.
  std::span<const uint8_t> present() const { return present_; }
  // For integers and doubles: the bits of each value; 32-bit ones are extended with their sign or
  // with zeros.
  std::span<const uint64_t> words() const { return words_; }
  // For strings.
  std::string_view text(size_t value) const {
    const size_t begin = value == 0 ? 0 : text_ends_[value - 1];
    return std::string_view(text_).substr(begin, text_ends_[value] - begin);
  }

 private:
  template <class T>
  void append_value(T value);
  template <class T>
  void append_values(std::span<const T> values, std::span<const uint8_t> present);

  Column column_;
  std::vector<uint8_t> present_;
  std::vector<uint64_t> words_;
  std::string text_;
  std::vector<uint32_t> text_ends_;
};

}  // namespace collect::parquet
