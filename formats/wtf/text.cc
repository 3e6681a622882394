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

std::string latin1_to_utf8(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_code_point(static_cast<uint8_t>(c), out);
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
