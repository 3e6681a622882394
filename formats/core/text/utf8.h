// UTF-8 (Unicode 3.9, table 3-7: no surrogates, no over-long forms, nothing above U+10FFFF), read
// one character at a time. No allocation and no exceptions, so the agent uses it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "formats/core/bytes.h"

namespace collect {

struct Utf8Step {
  size_t bytes;  // of the character; where it is none, of the longest start of one (1 to 3)
  bool is_valid;
  uint32_t code_point;  // of a valid one
};

namespace utf8_detail {

// What the first byte promises: how many bytes follow, and the bounds of the next of them.
struct Lead {
  uint8_t following;
  uint8_t low;
  uint8_t high;
};

constexpr uint8_t kNoLead = 0xFF;

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xC2 || byte > 0xF4) return {kNoLead, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte < 0xF0) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  return {3, 0x80, static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
}

}  // namespace utf8_detail

// The character that `text` begins with. `text` is not empty.
constexpr Utf8Step utf8_step(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  auto [following, low, high] = utf8_detail::lead_of(first);
  if (following == 0) return {1, true, first};
  if (following == utf8_detail::kNoLead) return {1, false, 0};
  uint32_t code_point = first & (0x3Fu >> following);
  for (size_t i = 1; i <= following; ++i) {
    if (i == text.size()) return {i, false, 0};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < low || byte > high) return {i, false, 0};
    code_point = code_point << 6 | (byte & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {size_t{1} + following, true, code_point};
}

// Bytes at the start that are ASCII, by eights.
inline size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  while (text.size() - at >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
    at += 8;
  }
  return at;
}

inline bool is_utf8(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const Utf8Step step = utf8_step(text);
    if (!step.is_valid) return false;
    text.remove_prefix(step.bytes);
  }
}

inline bool is_utf8(Bytes bytes) {
  return is_utf8(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace collect
