#include "formats/wtf/text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace collect::wtf {
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

template <class Float>
void append_float(std::string& out, Float value) {
  char buffer[64];
  // Shortest form; to_chars prefers plain digits where they are not longer.
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

}  // namespace

void append_utf8(std::string& out, uint32_t code_point) {
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

std::string latin1_to_utf8(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, static_cast<uint8_t>(c));
  return out;
}

void append_number(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void append_number(std::string& out, double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15 && !std::signbit(value)) {
    return append_number(out, static_cast<int64_t>(value));
  }
  append_float(out, value);
}

void append_number(std::string& out, float value) {
  append_float(out, value);
}

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

}  // namespace collect::wtf
