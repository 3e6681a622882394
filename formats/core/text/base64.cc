#include "formats/core/text/base64.h"

#include <algorithm>
#include <array>

namespace collect {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> base64_values() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<uint8_t>(kBase64[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kBase64Values = base64_values();

}  // namespace

void append_base64(std::string& out, Bytes bytes) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t here = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = uint32_t{bytes[i]} << 16;
    if (here > 1) group |= uint32_t{bytes[i + 1]} << 8;
    if (here > 2) group |= bytes[i + 2];
    for (size_t digit = 0; digit < 4; ++digit) {
      out += digit > here ? '=' : kBase64[group >> (18 - 6 * digit) & 63];
    }
  }
}

std::optional<std::vector<uint8_t>> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && text.substr(0, text.size() - padding).ends_with('=')) ++padding;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t missing = i + 4 == text.size() ? padding : 0;
    uint32_t group = 0;
    for (size_t digit = 0; digit < 4; ++digit) {
      const int8_t value =
          digit >= 4 - missing ? int8_t{0} : kBase64Values[static_cast<uint8_t>(text[i + digit])];
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    if (missing != 0 && (group & (missing == 1 ? 0xFFu : 0xFFFFu)) != 0) return std::nullopt;
    for (size_t byte = 0; byte < 3 - missing; ++byte) {
      bytes.push_back(static_cast<uint8_t>(group >> (16 - 8 * byte)));
    }
  }
  return bytes;
}

}  // namespace collect
