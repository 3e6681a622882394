// Durations and moments as people write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/ctl/time_line.h"
#include "formats/core/result.h"

namespace collect::ctl {

// "5s", "200ms", "10us", "7ns", "1.5m", "2h"; a bare number counts seconds.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// What the moments of one session are told by.
struct SessionTimes {
  uint64_t start_ns = 0;             // of its first event, device clock
  std::optional<DeviceClock> clock;  // absent: nothing says what time of day it was
};

// A moment as a time of the device clock: "1ms", "2.5s" since the start of the session; "14:03:05",
// "14:03:05.25" on the day of its start, "2026-11-25 14:03:05" (or with a T), in the time zone of
// the reader, with a Z behind it in UTC; a bare number is one already. kInvalidArgument: none of
// these; kNotFound: a time of day, and the session has none.
Result<uint64_t> parse_moment(std::string_view text, const SessionTimes& session);

}  // namespace collect::ctl
