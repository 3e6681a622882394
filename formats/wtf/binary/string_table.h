// A chunk's string table: ordinals to strings. Borrows the bytes; keeps four bytes per string.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/wtf/layout.h"

namespace collect::wtf {

class StringTable {
 public:
  StringTable() = default;
  explicit StringTable(Bytes bytes) { assign(bytes); }

  // Indexes `bytes`; the table is in them from now on. At most kMaxStrings are indexed, and the
  // bytes behind 4 GiB are not.
  void assign(Bytes bytes);

  size_t size() const { return starts_.size(); }
  // The last string ends without its NUL.
  bool unterminated() const { return !text_.empty() && text_.back() != '\0'; }
  bool over_limit() const { return over_limit_; }

  // `ordinal` < size().
  std::string_view operator[](size_t ordinal) const {
    const size_t begin = starts_[ordinal];
    const size_t next = ordinal + 1 < starts_.size() ? starts_[ordinal + 1] : end_ + 1;
    return text_.substr(begin, next - 1 - begin);
  }
  std::optional<std::string_view> find(uint32_t ordinal) const {
    if (ordinal >= starts_.size()) return std::nullopt;
    return (*this)[ordinal];
  }

 private:
  std::string_view text_;
  std::vector<uint32_t> starts_;
  size_t end_ = 0;  // of the last indexed string, without its NUL
  bool over_limit_ = false;
};

}  // namespace collect::wtf
