// Durations and moments as people write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/core/result.h"
#include "storage/select/time_line.h"

namespace collect::select {

// "5s", "200ms", "10us", "7ns", "1.5m", "2h"; a bare number counts seconds.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// "2026-11-25T14:03:05.250Z": in UTC, with as many digits behind the point as are needed (0, 3, 6
// or 9). Empty for a time outside of the years 1 to 9999.
std::string rfc3339_text(int64_t seconds, int32_t nanos);

// What part of a capture is wanted: each as parse_moment() takes it.
struct WindowWords {
  std::string from{};   // as parse_moment; empty: from the first event on
  std::string until{};  // up to the last

  bool is_everything() const { return from.empty() && until.empty(); }
};

// The start times that the moments of one session are counted from.
struct SessionTimes {
  uint64_t start_ns = 0;             // of its first event, device clock
  std::optional<DeviceClock> clock;  // absent: nothing says what time of day it was
  bool is_time_line = false;         // of several sessions: all times are ns since the epoch
};

// A moment as a time of the device clock: "1ms", "2.5s" since the start of the session; "14:03:05",
// "14:03:05.25" on the day of its start, "2026-11-25 14:03:05" (or with a T: RFC 3339), in the time
// zone of the reader, or behind it Z for UTC or a zone as +01:00; a bare number is one already.
// kInvalidArgument: none of these; kNotFound: a time of day, and the session has none.
Result<uint64_t> parse_moment(std::string_view text, const SessionTimes& session);

}  // namespace collect::select
