// Text and numbers of JSON documents whose writers are not strict about which of the two they use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/text/json_cursor.h"

namespace collect {

// Of a file, to say which kind of document it is.
inline constexpr size_t kJsonSniffBytes = size_t{1} << 16;

inline std::string_view json_text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A string, or a number as it is written; of any other value nothing. False at an error.
inline bool read_json_text(JsonCursor& cursor, std::string& text) {
  text.clear();
  const JsonKind kind = cursor.peek();
  if (kind == JsonKind::kString) return cursor.string(text);
  if (kind != JsonKind::kNumber) return cursor.skip();
  std::string_view number;
  if (!cursor.number(number)) return false;
  text = number;
  return true;
}

}  // namespace collect
