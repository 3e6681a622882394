// Rows in ClickHouse's RowBinary, one value behind the other: numbers as they are, texts and lists
// with their length (LEB128) before them. Used on one thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::warehouse {

class RowBatch {
 public:
  // The columns of a row in their order, then end_row(). The type is the column's.
  template <class Number>
  void number(Number value) {
    static_assert(std::is_unsigned_v<Number>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store_le(bytes_.data() + at, value);
  }
  void text(std::string_view text) {
    length(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  // Begins a list: so many values follow.
  void length(uint64_t count) {
    for (; count >= 0x80; count >>= 7) bytes_.push_back(static_cast<uint8_t>(count | 0x80));
    bytes_.push_back(static_cast<uint8_t>(count));
  }
  void end_row() { ++rows_; }

  // Several values at once for a type that has no other fields: faster than number().
  template <class... Numbers>
  void row(Numbers... values) {
    const size_t at = bytes_.size();
    bytes_.resize(at + (sizeof values + ...));
    uint8_t* to = bytes_.data() + at;
    ((store_le(to, values), to += sizeof values), ...);
    ++rows_;
  }

  uint64_t rows() const { return rows_; }
  Bytes bytes() const { return bytes_; }
  void clear() {
    bytes_.clear();
    rows_ = 0;
  }

 private:
  std::vector<uint8_t> bytes_;
  uint64_t rows_ = 0;
};

}  // namespace collect::warehouse
