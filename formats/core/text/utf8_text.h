// Text that may be anything, as UTF-8, for formats that demand it. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "formats/core/text/utf8.h"

namespace collect {

// Appends the text; each maximal part of an invalid sequence becomes one U+FFFD.
inline void append_utf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (const size_t ascii = ascii_prefix(text); ascii != 0) {
      out.append(text.substr(0, ascii));
      text.remove_prefix(ascii);
      continue;
    }
    const Utf8Step step = utf8_step(text);
    out.append(step.is_valid ? text.substr(0, step.bytes) : std::string_view("\xEF\xBF\xBD"));
    text.remove_prefix(step.bytes);
  }
}

// The text without the part of a character, and what is beyond it, that does not fit into
// `max_bytes`.
inline std::string_view utf8_prefix(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 4 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace collect
