#include "formats/wtf/text.h"

#include <charconv>
#include <cmath>

namespace collect::wtf {
namespace {

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

}  // namespace collect::wtf
