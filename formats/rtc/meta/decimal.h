// Exact decimal numbers and exact times. A gain of 1e-6 is no binary fraction, and a time since the
// epoch in nanoseconds has more digits than a double: both are kept whole, so that reading a clock
// gives the nanosecond that was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collect::rtc {

__extension__ using Int128 = __int128;

// mantissa * 10^exponent.
struct Decimal {
  int64_t mantissa = 0;
  int exponent = 0;

  constexpr Decimal() = default;
  constexpr Decimal(int64_t number) : mantissa(number) {}  // NOLINT: implicit
  constexpr Decimal(int number) : mantissa(number) {}      // NOLINT: implicit
  // The shortest decimal that reads back as this double; 0 for what is no number.
  Decimal(double number);  // NOLINT: implicit
  // "-12.5e-3". Absent when it is no JSON number, or needs a mantissa beyond int64 (18 digits
  // always fit, a time since the epoch in nanoseconds has 19) or an exponent beyond +-kMaxExponent.
  static std::optional<Decimal> parse(std::string_view text);

  double to_double() const;
  std::string text() const;  // as JSON: "0.5", "1e-6", "100"
  bool operator==(const Decimal& other) const;

  static constexpr int kMaxExponent = 400;
};

// A moment or a span in attoseconds (10^-18 s), which holds any timespec and the sum of a few.
struct ExactTime {
  Int128 attoseconds = 0;

  static ExactTime of_timespec(uint64_t seconds, uint64_t nanoseconds);
  // number * gain + offset seconds. Absent when it does not fit.
  static std::optional<ExactTime> of_integer(Int128 number, const Decimal& gain,
                                             const Decimal& offset);
  static std::optional<ExactTime> of_real(double number, const Decimal& gain,
                                          const Decimal& offset);

  std::optional<ExactTime> plus(const ExactTime& other) const;
  // Rounded to the nearest, ties to even. Absent outside of int64: about 292 years from the epoch.
  std::optional<int64_t> nanoseconds() const;
};

}  // namespace collect::rtc
