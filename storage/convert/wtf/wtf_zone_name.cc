#include "storage/convert/wtf/wtf_zone_name.h"

#include <fmt/core.h>

#include <charconv>

namespace collect::convert {
namespace {

constexpr std::string_view kNumberMark = " [thread ";
constexpr std::string_view kBetween = " / ";

// Cuts " (34)" off the end of `text`.
std::optional<uint32_t> take_number(std::string_view& text) {
  const size_t open = text.rfind(" (");
  if (open == std::string_view::npos || text.back() != ')') return std::nullopt;
  const std::string_view digits = text.substr(open + 2, text.size() - open - 3);
  uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  text = text.substr(0, open);
  return number;
}

}  // namespace

ZoneName parse_zone_name(std::string_view text) {
  ZoneName name;
  name.thread = text;
  const size_t mark = text.rfind(kNumberMark);
  if (mark != std::string_view::npos && text.back() == ']') text = text.substr(0, mark);
  const auto tid = take_number(text);
  if (!tid) return name;
  // Either name may hold " / " itself; the process ends with the first that has a number before it.
  for (size_t at = text.find(kBetween); at != std::string_view::npos;
       at = text.find(kBetween, at + 1)) {
    std::string_view process = text.substr(0, at);
    const auto pid = take_number(process);
    if (!pid) continue;
    name.process = process;
    name.pid = pid;
    name.tid = tid;
    name.thread = text.substr(at + kBetween.size());
    return name;
  }
  return name;
}

std::string numbered_zone_name(std::string_view name, uint32_t n) {
  return fmt::format("{}{}{}]", name, kNumberMark, n);
}

}  // namespace collect::convert
