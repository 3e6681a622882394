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

// Appends one character; a lone surrogate, and what is above U+10FFFF, becomes U+FFFD.
inline void append_code_point(uint32_t code_point, std::string& out) {
  if ((code_point >= 0xD800 && code_point < 0xE000) || code_point > 0x10FFFF) code_point = 0xFFFD;
  const auto push = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) return push(code_point);
  if (code_point < 0x800) {
    push(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    push(0xE0 | code_point >> 12);
    push(0x80 | (code_point >> 6 & 0x3F));
  } else {
    push(0xF0 | code_point >> 18);
    push(0x80 | (code_point >> 12 & 0x3F));
    push(0x80 | (code_point >> 6 & 0x3F));
  }
  push(0x80 | (code_point & 0x3F));
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
