#include "storage/select/time_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <string>

namespace collect::select {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

struct TimeUnit {
  std::string_view name;
  double ns;
};
constexpr TimeUnit kTimeUnits[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
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

// Takes "Z" or "+01:00" off the end: seconds east of UTC. Absent: the text names no zone.
std::optional<int> take_zone(std::string_view& text) {
  if (!text.empty() && (text.back() == 'Z' || text.back() == 'z')) {
    text.remove_suffix(1);
    return 0;
  }
  constexpr size_t kZone = 6;
  if (text.size() <= kZone) return std::nullopt;
  const std::string_view zone = text.substr(text.size() - kZone);
  const auto number = [zone](size_t at) {
    const bool is_one =
        zone[at] >= '0' && zone[at] <= '9' && zone[at + 1] >= '0' && zone[at + 1] <= '9';
    return is_one ? (zone[at] - '0') * 10 + (zone[at + 1] - '0') : 99;
  };
  const int hours = number(1), minutes = number(4);
  if ((zone[0] != '+' && zone[0] != '-') || zone[3] != ':' || hours > 23 || minutes > 59) {
    return std::nullopt;
  }
  text.remove_suffix(kZone);
  return (zone[0] == '-' ? -60 : 60) * (hours * 60 + minutes);
}

// Nanoseconds since the epoch. `day_ns` gives the day where the text has none.
std::optional<uint64_t> parse_time_of_day(std::string_view text, uint64_t day_ns) {
  const std::optional<int> zone_s = take_zone(text);
  const auto day = static_cast<std::time_t>(day_ns / kSecondNs) + zone_s.value_or(0);
  std::tm time{};
  if (zone_s) {
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
  const std::time_t seconds = zone_s ? timegm(&time) - *zone_s : mktime(&time);
  if (seconds < 0) return std::nullopt;
  return static_cast<uint64_t>(seconds) * kSecondNs + fraction_ns;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto refuse = [text]() -> Error {
    return {Code::kInvalidArgument,
            fmt::format("\"{}\" is no duration; write 5s, 200ms, 1.5m or 2h", text)};
  };
  double number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(number) || number < 0) return refuse();
  const std::string_view unit(parsed.ptr,
                              static_cast<size_t>(text.data() + text.size() - parsed.ptr));
  const auto known = std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                                  [unit](const TimeUnit& one) { return one.name == unit; });
  if (known == std::end(kTimeUnits)) return refuse();
  const double ns = number * known->ns;
  if (ns > kMaxDurationNs) return refuse();
  return std::chrono::nanoseconds(static_cast<int64_t>(std::llround(ns)));
}

std::string rfc3339_text(int64_t seconds, int32_t nanos) {
  constexpr int64_t kFirst = -62'135'596'800, kLast = 253'402'300'799;
  if (seconds < kFirst || seconds > kLast || nanos < 0 || nanos >= 1'000'000'000) return "";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  char text[40];
  if (gmtime_r(&time, &utc) == nullptr) return "";
  const int length =
      std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", utc.tm_year + 1900,
                    utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
  if (length < 0) return "";
  std::string result(text, static_cast<size_t>(length));
  if (nanos != 0) {
    const int digits = nanos % 1'000'000 == 0 ? 3 : nanos % 1'000 == 0 ? 6 : 9;
    std::snprintf(text, sizeof text, ".%09d", nanos);
    result.append(text, static_cast<size_t>(1 + digits));
  }
  return result + "Z";
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
    const uint64_t day_ns = session.is_time_line ? session.start_ns
                            : session.clock      ? session.clock->line_ns(session.start_ns)
                                                 : 0;
    if (const auto unix_ns = parse_time_of_day(text, day_ns); unix_ns) {
      if (session.is_time_line) return *unix_ns;
      if (session.clock) return session.clock->device_ns(*unix_ns);
      return Error{Code::kNotFound,
                   fmt::format("\"{}\": the capture does not say what time of day it was recorded; "
                               "write the time since its start, as 2.5s",
                               text)};
    }
  }
  return Error{Code::kInvalidArgument,
               fmt::format("\"{}\" is no time; write 1ms or 2.5s since the start, 14:03:05.25, "
                           "\"2026-11-25 14:03:05\", or nanoseconds as dump --json prints them",
                           text)};
}

}  // namespace collect::select
