#include "formats/rtc/meta/decimal.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace collect::rtc {
namespace {

__extension__ using UInt128 = unsigned __int128;

constexpr int kAttosecondExponent = 18;
constexpr Int128 kAttosecondsPerNanosecond = 1000000000;
constexpr size_t kMaxDigits = 19;  // of a mantissa that we parse; the last may be too large
constexpr int kMaxPower = 38;      // 10^38 is the last power of ten in 127 bits
constexpr Int128 kMax = static_cast<Int128>(~UInt128{0} >> 1);

UInt128 magnitude(Int128 value) {
  return value < 0 ? UInt128{0} - static_cast<UInt128>(value) : static_cast<UInt128>(value);
}

int width(UInt128 value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                   : static_cast<int>(std::bit_width(static_cast<uint64_t>(value)));
}

std::optional<Int128> multiply(Int128 a, Int128 b) {
  if (width(magnitude(a)) + width(magnitude(b)) > 126) return std::nullopt;
  return a * b;
}

std::optional<Int128> add(Int128 a, Int128 b) {
  if (b > 0 ? a > kMax - b : a < -kMax - b) return std::nullopt;
  return a + b;
}

// value / divisor, to the nearest, ties to even; divisor > 0.
Int128 divide(Int128 value, Int128 divisor) {
  Int128 quotient = value / divisor;
  const UInt128 rest = magnitude(value % divisor);
  const UInt128 other = static_cast<UInt128>(divisor) - rest;
  if (rest > other || (rest == other && (quotient & 1) != 0)) quotient += value < 0 ? -1 : 1;
  return quotient;
}

constexpr std::array<Int128, kMaxPower + 1> make_powers() {
  std::array<Int128, kMaxPower + 1> powers{};
  powers[0] = 1;
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}

constexpr auto kPowers = make_powers();

Int128 power_of_ten(int exponent) {
  return kPowers[static_cast<size_t>(exponent)];
}

// value * 10^exponent.
std::optional<Int128> scale(Int128 value, int exponent) {
  if (value == 0) return value;
  if (exponent < -kMaxPower) return Int128{0};
  if (exponent < 0) return divide(value, power_of_ten(-exponent));
  if (exponent > kMaxPower) return std::nullopt;
  return multiply(value, power_of_ten(exponent));
}

Decimal normalized(Decimal number) {
  if (number.mantissa == 0) number.exponent = 0;
  while (number.mantissa != 0 && number.mantissa % 10 == 0) {
    number.mantissa /= 10;
    ++number.exponent;
  }
  return number;
}

// number * 10^(gain.exponent + 18) * gain.mantissa * 2^shift.
std::optional<Int128> product(Int128 number, const Decimal& gain, int shift) {
  const auto scaled = multiply(number, gain.mantissa);
  if (!scaled) return std::nullopt;
  auto value = scale(*scaled, gain.exponent + kAttosecondExponent);
  if (!value || *value == 0 || shift == 0) return value;
  if (shift > 0) {
    if (width(magnitude(*value)) + shift > 126) return std::nullopt;
    return *value * (Int128{1} << shift);
  }
  return shift < -125 ? Int128{0} : divide(*value, Int128{1} << -shift);
}

}  // namespace

Decimal::Decimal(double number) {
  if (!std::isfinite(number)) return;
  char text[40];
  const auto written =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  const auto parsed = parse(std::string_view(text, static_cast<size_t>(written.ptr - text)));
  if (parsed) *this = *parsed;
}

std::optional<Decimal> Decimal::parse(std::string_view text) {
  size_t at = 0;
  const auto digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const bool negative = at < text.size() && text[at] == '-';
  if (negative) ++at;
  if (!digit()) return std::nullopt;
  Decimal number;
  size_t zeros = 0;  // pending ones, which count only when another digit follows
  size_t digits = 0;
  bool fits = true;
  const auto take = [&](bool behind_point) {
    const int value = text[at++] - '0';
    if (behind_point) --number.exponent;
    if (value == 0) {
      if (digits != 0) ++zeros;
      return;
    }
    digits += zeros + 1;
    if (digits > kMaxDigits) {
      fits = false;
      return;
    }
    for (++zeros; zeros > 0; --zeros) {
      fits = fits && !__builtin_mul_overflow(number.mantissa, 10, &number.mantissa);
    }
    fits = fits && !__builtin_add_overflow(number.mantissa, value, &number.mantissa);
  };
  const size_t first = at;
  while (digit()) take(false);
  if (text[first] == '0' && at != first + 1) return std::nullopt;  // as JSON has it
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!digit()) return std::nullopt;
    while (digit()) take(true);
  }
  number.exponent += static_cast<int>(zeros);
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && text[at] == '+') ++at;
    int exponent = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    if (read.ec != std::errc{} || std::abs(exponent) > kMaxExponent) return std::nullopt;
    at = static_cast<size_t>(read.ptr - text.data());
    number.exponent += exponent;
  }
  if (at != text.size() || !fits || std::abs(number.exponent) > kMaxExponent) return std::nullopt;
  if (negative) number.mantissa = -number.mantissa;
  return normalized(number);
}

double Decimal::to_double() const {
  const std::string digits = fmt::format("{}e{}", mantissa, exponent);
  double number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec == std::errc{}) return number;
  return exponent > 0 ? std::copysign(HUGE_VAL, static_cast<double>(mantissa)) : 0.0;
}

std::string Decimal::text() const {
  const Decimal number = normalized(*this);
  const std::string digits = std::to_string(static_cast<uint64_t>(magnitude(number.mantissa)));
  const int count = static_cast<int>(digits.size());
  std::string out = number.mantissa < 0 ? "-" : "";
  if (number.exponent >= 0 && count + number.exponent <= static_cast<int>(kMaxDigits)) {
    out += digits;
    out.append(static_cast<size_t>(number.exponent), '0');
  } else if (number.exponent < 0 && -number.exponent <= count + 3) {
    const int whole = count + number.exponent;  // digits before the point
    if (whole > 0) {
      out.append(digits, 0, static_cast<size_t>(whole));
    } else {
      out += '0';
    }
    out += '.';
    out.append(static_cast<size_t>(whole < 0 ? -whole : 0), '0');
    out.append(digits, static_cast<size_t>(whole > 0 ? whole : 0));
  } else {
    out += digits.front();
    if (count > 1) out += '.';
    out.append(digits, 1);
    out += 'e';
    out += std::to_string(number.exponent + count - 1);
  }
  return out;
}

bool Decimal::operator==(const Decimal& other) const {
  const Decimal a = normalized(*this);
  const Decimal b = normalized(other);
  return a.mantissa == b.mantissa && a.exponent == b.exponent;
}

ExactTime ExactTime::of_timespec(uint64_t seconds, uint64_t nanoseconds) {
  return {static_cast<Int128>(seconds) * 1000000000 * kAttosecondsPerNanosecond +
          static_cast<Int128>(nanoseconds) * kAttosecondsPerNanosecond};
}

std::optional<ExactTime> ExactTime::of_integer(Int128 number, const Decimal& gain,
                                               const Decimal& offset) {
  const auto scaled = product(number, gain, 0);
  const auto shifted = product(1, offset, 0);
  if (!scaled || !shifted) return std::nullopt;
  const auto sum = add(*scaled, *shifted);
  if (!sum) return std::nullopt;
  return ExactTime{*sum};
}

std::optional<ExactTime> ExactTime::of_real(double number, const Decimal& gain,
                                            const Decimal& offset) {
  if (!std::isfinite(number)) return std::nullopt;
  int shift = 0;
  // 53 bits are a whole number after this.
  auto whole = static_cast<int64_t>(std::ldexp(std::frexp(number, &shift), 53));
  shift -= 53;
  while (whole != 0 && whole % 2 == 0) {
    whole /= 2;
    ++shift;
  }
  const auto scaled = product(whole, gain, shift);
  const auto shifted = product(1, offset, 0);
  if (!scaled || !shifted) return std::nullopt;
  const auto sum = add(*scaled, *shifted);
  if (!sum) return std::nullopt;
  return ExactTime{*sum};
}

std::optional<ExactTime> ExactTime::plus(const ExactTime& other) const {
  const auto sum = add(attoseconds, other.attoseconds);
  if (!sum) return std::nullopt;
  return ExactTime{*sum};
}

std::optional<int64_t> ExactTime::nanoseconds() const {
  const Int128 rounded = divide(attoseconds, kAttosecondsPerNanosecond);
  if (rounded > INT64_MAX || rounded < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(rounded);
}

}  // namespace collect::rtc
