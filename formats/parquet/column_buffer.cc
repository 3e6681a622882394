#include "formats/parquet/column_buffer.h"

#include <bit>
#include <type_traits>
#include <variant>

#include "formats/core/text/utf8_text.h"

namespace collect::parquet {

size_t ColumnBuffer::rows_with_room(const ColumnValues& values, size_t from, size_t count) const {
  const auto* texts = std::get_if<std::span<const std::string_view>>(&values.values);
  if (texts == nullptr) return count;
  size_t bytes = text_.size();
  for (size_t row = 0; row < count; ++row) {
    bytes += (*texts)[from + row].size();
    if (bytes > kRowGroupTextBytes) return row;
  }
  return count;
}

template <class T>
void ColumnBuffer::append_value(T value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    if (!text_ends_.empty() && text(text_ends_.size() - 1) == value) {
      text_.append(value);  // it was looked at
    } else {
      append_utf8(value, text_);
    }
    text_ends_.push_back(static_cast<uint32_t>(text_.size()));
  } else if constexpr (std::is_same_v<T, double>) {
    words_.push_back(std::bit_cast<uint64_t>(value));
  } else {
    words_.push_back(static_cast<uint64_t>(value));  // extends the sign of an int32_t
  }
}

template <class T>
void ColumnBuffer::append_values(std::span<const T> values, std::span<const uint8_t> present) {
  if (!present.empty()) {
    for (size_t row = 0; row < values.size(); ++row) {
      present_.push_back(present[row] != 0);
      if (present[row] != 0) append_value(values[row]);
    }
    return;
  }
  if (column_.is_optional) present_.insert(present_.end(), values.size(), 1);
  if constexpr (std::is_integral_v<T>) {
    words_.insert(words_.end(), values.begin(), values.end());
  } else {
    for (const T value : values) append_value(value);
  }
}

void ColumnBuffer::append(const ColumnValues& values, size_t from, size_t count) {
  const auto present =
      values.present.empty() ? values.present : values.present.subspan(from, count);
  std::visit([&](const auto& all) { append_values(all.subspan(from, count), present); },
             values.values);
}

void ColumnBuffer::clear() {
  present_.clear();
  words_.clear();
  text_.clear();
  text_ends_.clear();
}

}  // namespace collect::parquet
