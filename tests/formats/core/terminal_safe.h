// What a terminal may be sent, said once more for the tests: written apart from the code that
// escapes, so that both would have to be wrong in the same way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collect::testing {

// The code point at `at`, which moves on; UINT32_MAX where there is no UTF-8.
inline uint32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at++);
  if (lead < 0x80) return lead;
  const size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || at + more > text.size()) return UINT32_MAX;
  uint32_t code = lead & (0x3Fu >> more);
  for (size_t i = 0; i < more; ++i) {
    if ((byte(at) & 0xC0) != 0x80) return UINT32_MAX;
    code = code << 6 | (byte(at++) & 0x3Fu);
  }
  return code;
}

// Empty, or which character of `text` is a control other than \n and \t, turns text around or shows
// nothing, with what is before it on its line.
inline std::string raw_character(std::string_view text) {
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t code = next_code_point(text, at);
    if (code == '\n') line = at;
    const auto within = [code](uint32_t first, uint32_t last) {
      return code >= first && code <= last;
    };
    const bool is_bad = code == UINT32_MAX || (code < 0x20 && code != '\n' && code != '\t') ||
                        within(0x7F, 0x9F) || code == 0xAD || code == 0x61C ||
                        within(0x200B, 0x200F) || within(0x2028, 0x202E) ||
                        within(0x2060, 0x206F) || code == 0xFEFF || within(0xE0000, 0xE0FFF);
    if (!is_bad) continue;
    return (code == UINT32_MAX ? "a byte that is no UTF-8"
                               : "U+" + std::to_string(code) + " (decimal)") +
           (" behind: " + std::string(text.substr(line, begin - line)));
  }
  return "";
}

}  // namespace collect::testing
