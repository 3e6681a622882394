#include "formats/core/text/figures.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>

namespace collect {
namespace {

std::string formatted(const char* format, double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value, unit);
  return text;
}

std::string scaled(double value, const char* suffix) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const std::string tail = std::string(kUnits[unit]) + suffix;
  return formatted(unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, tail.c_str());
}

}  // namespace

std::string with_thousands(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string counted(uint64_t number, std::string_view noun) {
  std::string text = with_thousands(number) + " ";
  text += noun;
  if (number != 1) text += 's';
  return text;
}

std::string short_bytes(uint64_t bytes) {
  return scaled(static_cast<double>(bytes), "B");
}

std::string short_rate(double per_second) {
  std::string text = scaled(per_second, "/s");
  if (per_second < 999.5) text.erase(text.find(' '), 1);
  return text;
}

std::string short_duration(double seconds) {
  if (seconds > 0 && seconds < 0.0009995) return formatted("%.0f %s", seconds * 1e6, "us");
  if (seconds < 0.9995) return formatted("%.0f %s", seconds * 1000, "ms");
  if (seconds < 59.95) return formatted("%.1f %s", seconds, "s");
  const auto whole = static_cast<uint64_t>(std::max(seconds, 60.0));
  char text[64];
  if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%u min %02u s", static_cast<unsigned>(whole / 60),
                  static_cast<unsigned>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%llu h %02u min",
                  static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned>(whole / 60 % 60));
  }
  return text;
}

std::string duration_text(uint64_t ns) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  auto value = static_cast<double>(ns);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const char* const format = unit == 0 || value >= 99.95 ? "%.0f %s"
                             : value >= 9.995            ? "%.1f %s"
                                                         : "%.2f %s";
  return formatted(format, value, kUnits[unit]);
}

std::string real_text(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

}  // namespace collect
