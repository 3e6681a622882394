// Decimal numbers as they are written, scaled to whole units: "1.25" microseconds are 1,250 ns.
// Without floating point, which has no room for the nanoseconds of a time since the epoch.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace collect {

namespace decimal_detail {

inline constexpr int kFarExponent = 1'000'000;

struct Digits {
  uint64_t value = 0;
  int exponent = 0;  // of ten
  bool any = false;
};

// Digits from `at` on, as many of them as 64 bits hold; the others count in the exponent.
inline void take_digits(std::string_view text, size_t& at, bool behind_point, Digits& to) {
  constexpr uint64_t kRoom = (std::numeric_limits<uint64_t>::max() - 9) / 10;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    to.any = true;
    const bool fits = to.value <= kRoom;
    if (fits) to.value = to.value * 10 + static_cast<uint64_t>(text[at] - '0');
    if (fits == behind_point && to.exponent > -kFarExponent && to.exponent < kFarExponent) {
      to.exponent += behind_point ? -1 : 1;
    }
  }
}

// "e-3" at `at`, which is moved behind it; nothing where there is none.
inline std::optional<int> take_exponent(std::string_view text, size_t& at) {
  if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return 0;
  ++at;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t first = at;
  int exponent = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (exponent < kFarExponent) exponent = exponent * 10 + (text[at] - '0');
  }
  if (at == first) return std::nullopt;
  return negative ? -exponent : exponent;
}

}  // namespace decimal_detail

// The number times ten to the power of `digits`, rounded to the nearest whole number. Nothing where
// it is no decimal number, or where 64 bits do not hold it.
inline std::optional<int64_t> scaled_decimal(std::string_view text, int digits) {
  size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++at;
  decimal_detail::Digits found;
  decimal_detail::take_digits(text, at, false, found);
  if (at < text.size() && text[at] == '.') {
    ++at;
    decimal_detail::take_digits(text, at, true, found);
  }
  const auto written = decimal_detail::take_exponent(text, at);
  if (!found.any || !written || at != text.size()) return std::nullopt;
  int exponent = found.exponent + *written + digits;
  uint64_t value = found.value;
  for (; exponent < 0 && value != 0; ++exponent) {
    value = exponent == -1 ? value / 10 + (value % 10 >= 5 ? 1 : 0) : value / 10;
  }
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  for (; exponent > 0 && value != 0; --exponent) {
    if (value > kMost / 10) return std::nullopt;
    value *= 10;
  }
  if (value > kMost) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

}  // namespace collect
