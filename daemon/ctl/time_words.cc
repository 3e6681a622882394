#include "daemon/ctl/time_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <iterator>
#include <string>

namespace collect::ctl {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

struct Unit {
  std::string_view name;
  double ns;
};
constexpr Unit kUnits[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                           {"ns", 1}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
constexpr double kMaxDurationNs = 9e18;  // some 285 years

// Takes ".25" off the front; at most nine digits. Nothing where there is none; false: not digits.
bool take_fraction(std::string_view& text, uint64_t& ns) {
  ns = 0;
  if (text.empty() || text.front() != '.') return true;
  uint64_t unit = kSecondNs / 10;
  size_t at = 1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (at > 9) return false;
    ns += unit * static_cast<uint64_t>(text[at] - '0');
    unit /= 10;
  }
  if (at == 1) return false;
  text.remove_prefix(at);
  return true;
}

// Nanoseconds since the epoch. `day_ns` gives the day where the text has none.
std::optional<uint64_t> parse_time_of_day(std::string_view text, uint64_t day_ns) {
  const bool is_utc = !text.empty() && (text.back() == 'Z' || text.back() == 'z');
  if (is_utc) text.remove_suffix(1);
  const auto day = static_cast<std::time_t>(day_ns / kSecondNs);
  std::tm time{};
  if (is_utc) {
    gmtime_r(&day, &time);
  } else {
    localtime_r(&day, &time);
  }
  const std::string words(text);
  const char* rest = nullptr;
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%H:%M:%S", "%H:%M"}) {
    std::tm parsed = time;
    parsed.tm_sec = 0;
    rest = strptime(words.c_str(), format, &parsed);
    if (rest == nullptr) continue;
    time = parsed;
    break;
  }
  if (rest == nullptr) return std::nullopt;
  std::string_view left(rest);
  uint64_t fraction_ns = 0;
  if (!take_fraction(left, fraction_ns) || !left.empty()) return std::nullopt;
  time.tm_isdst = -1;  // the reader's time zone knows
  const std::time_t seconds = is_utc ? timegm(&time) : mktime(&time);
  if (seconds < 0) return std::nullopt;
  return static_cast<uint64_t>(seconds) * kSecondNs + fraction_ns;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto refuse = [text]() -> Error {
    return {Code::kInvalidArgument,
            "\"" + std::string(text) + "\" is no duration; write 5s, 200ms, 1.5m or 2h"};
  };
  double number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(number) || number < 0) return refuse();
  const std::string_view unit(parsed.ptr,
                              static_cast<size_t>(text.data() + text.size() - parsed.ptr));
  const auto known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [unit](const Unit& one) { return one.name == unit; });
  if (known == std::end(kUnits)) return refuse();
  const double ns = number * known->ns;
  if (ns > kMaxDurationNs) return refuse();
  return std::chrono::nanoseconds(static_cast<int64_t>(std::llround(ns)));
}

Result<uint64_t> parse_moment(std::string_view text, const SessionTimes& session) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  if (text.find(':') == std::string_view::npos) {
    const auto since_start = parse_duration(text);
    if (since_start.ok()) {
      return session.start_ns + static_cast<uint64_t>(since_start->count());
    }
  } else {
    const uint64_t day_ns = session.clock ? session.clock->line_ns(session.start_ns) : 0;
    if (const auto unix_ns = parse_time_of_day(text, day_ns); unix_ns) {
      if (session.clock) return session.clock->device_ns(*unix_ns);
      return Error{Code::kNotFound, "\"" + std::string(text) +
                                        "\": the session does not say what time of day it was "
                                        "recorded; write the time since its start, as 2.5s"};
    }
  }
  return Error{Code::kInvalidArgument,
               "\"" + std::string(text) +
                   "\" is no time; write 1ms or 2.5s since the start, 14:03:05.25, "
                   "\"2026-11-25 14:03:05\", or nanoseconds of the device's clock"};
}

}  // namespace collect::ctl
