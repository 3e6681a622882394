// What payloads mean: numbers, times, annotations. Pure functions on bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/rtc/layout.h"
#include "formats/rtc/meta/decimal.h"
#include "formats/rtc/meta/stream_info.h"

namespace collect::rtc {

struct Timespec {
  uint64_t seconds = 0;
  uint32_t nanoseconds = 0;
  bool operator==(const Timespec&) const = default;
};

// As it is in the file, before gain and offset.
using RawValue = std::variant<Bytes, std::string_view, uint64_t, int64_t, double, Timespec>;

struct Value {
  RawValue raw;  // Bytes: no format that we can decode; string_view: utf-8 and json
  // raw * gain + offset, for integers, reals and LEB128. For a timespec its seconds.
  std::optional<double> number;
  bool has_gain_or_offset = false;
};

// One object of a stream. kDamaged when the payload has not exactly the size of its format, or is
// no UTF-8. `writer` is the byte order of formats that name none, and of timespec.
Result<Value> decode_value(const StreamInfo& stream, Bytes payload, Endian writer);

// A clock's own value in seconds, exactly, without the clock that it is a delta on. kDamaged as
// above or when out of range, kUnsupported when the format is no number. Bytes behind a LEB128 are
// ignored, as other readers do: a torn clock is better than none.
Result<ExactTime> decode_clock(const StreamInfo& clock, Bytes payload, Endian writer);

struct AnnotationText {
  Timespec time;
  Bytes body;  // in the format that is behind "annotate/"
};
// kDamaged when shorter than a timespec.
Result<AnnotationText> decode_annotation(Bytes payload, Endian writer);

// The payload of a clock of format "timespec", in little-endian order; 12 bytes.
void encode_timespec(const Timespec& time, std::span<uint8_t, kTimespecBytes> out);
// encode_timespec() from nanoseconds since the epoch.
void encode_timespec_ns(uint64_t ns, std::span<uint8_t, kTimespecBytes> out);

}  // namespace collect::rtc
