#include "formats/dial9/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace collect::dial9 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Step {
  size_t bytes;
  bool valid;
};

// What the lead byte promises: how many bytes follow, and between which two the first of them lies.
struct Lead {
  uint8_t following;
  uint8_t low;
  uint8_t high;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0xFF, 0, 0};
}

// The character at the start of `text`, or the longest start of one.
Step next(std::string_view text) {
  const Lead lead = lead_of(static_cast<uint8_t>(text[0]));
  if (lead.following == 0) return {1, true};
  if (lead.following == 0xFF) return {1, false};
  uint8_t low = lead.low;
  uint8_t high = lead.high;
  for (size_t i = 1; i <= lead.following; ++i) {
    if (i == text.size()) return {i, false};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte < low || byte > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {size_t{1} + lead.following, true};
}

// Bytes at the start that are ASCII, eight at a time.
size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  while (text.size() - at >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
    at += 8;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const Step step = next(text);
    if (!step.valid) return false;
    text.remove_prefix(step.bytes);
  }
}

void append_utf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (const size_t ascii = ascii_prefix(text); ascii != 0) {
      out.append(text.substr(0, ascii));
      text.remove_prefix(ascii);
      continue;
    }
    const Step step = next(text);
    out.append(step.valid ? text.substr(0, step.bytes) : kReplacement);
    text.remove_prefix(step.bytes);
  }
}

}  // namespace collect::dial9
