#include "formats/rtc/meta/value.h"

#include <fmt/core.h>

#include <bit>

#include "formats/core/encoding/leb128.h"
#include "formats/core/text/utf8.h"

namespace collect::rtc {
namespace {

// Any number of up to eight bytes; the caller has checked that they are there.
uint64_t load(Bytes bytes, Endian endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t place = endian == Endian::kLittle ? i : bytes.size() - 1 - i;
    value |= uint64_t{bytes[i]} << (8 * place);
  }
  return value;
}

Timespec load_timespec(Bytes bytes, Endian endian) {
  return {load(bytes.first(8), endian), static_cast<uint32_t>(load(bytes.subspan(8, 4), endian))};
}

Error size_error(const StreamInfo& stream, Bytes payload) {
  return {Code::kDamaged, fmt::format("{}: {} bytes are no {}", stream.label(), payload.size(),
                                      stream.format.text)};
}

// The number as it is in the file; absent when the format is none.
Result<std::optional<RawValue>> decode_number(const StreamInfo& stream, Bytes payload,
                                              Endian writer, bool exact) {
  const Format& format = stream.format;
  const Endian endian = format.endian.value_or(writer);
  const auto size = format.value_bytes();
  if (size && payload.size() != *size) return size_error(stream, payload);
  switch (format.kind) {
    case FormatKind::kTimespec:
      return std::optional<RawValue>(load_timespec(payload, writer));
    case FormatKind::kInteger: {
      const uint64_t value = load(payload, endian);
      if (!format.is_signed) return std::optional<RawValue>(value);
      const int unused = 64 - format.bits;
      return std::optional<RawValue>(static_cast<int64_t>(value << unused) >> unused);
    }
    case FormatKind::kReal: {
      const uint64_t bits = load(payload, endian);
      if (format.bits == 64) return std::optional<RawValue>(std::bit_cast<double>(bits));
      return std::optional<RawValue>(
          static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    }
    case FormatKind::kLeb128: {
      if (format.is_signed) {
        const auto read = read_sleb128(payload);
        if (!read || (exact && read.size != payload.size())) return size_error(stream, payload);
        return std::optional<RawValue>(read.value);
      }
      const auto read = read_uleb128(payload);
      if (!read || (exact && read.size != payload.size())) return size_error(stream, payload);
      return std::optional<RawValue>(read.value);
    }
    default:
      return std::optional<RawValue>();
  }
}

double to_double(const RawValue& raw) {
  if (const auto* number = std::get_if<uint64_t>(&raw)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<int64_t>(&raw)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&raw)) return *number;
  if (const auto* time = std::get_if<Timespec>(&raw)) {
    return static_cast<double>(time->seconds) + static_cast<double>(time->nanoseconds) * 1e-9;
  }
  return 0;
}

}  // namespace

Result<Value> decode_value(const StreamInfo& stream, Bytes payload, Endian writer) {
  Value value;
  value.raw = payload;
  if (stream.format.is_number()) {
    auto number = decode_number(stream, payload, writer, true);
    if (!number) return number.error();
    value.raw = **number;
    const double raw = to_double(value.raw);
    value.number = raw;
    if (stream.format.kind != FormatKind::kTimespec && (stream.gain || stream.offset)) {
      value.has_gain_or_offset = true;
      value.number = raw * stream.gain.value_or(Decimal(1)).to_double() +
                     stream.offset.value_or(Decimal(0)).to_double();
    }
    return value;
  }
  if (stream.format.kind == FormatKind::kUtf8 || stream.format.kind == FormatKind::kJson) {
    // One object of a continued text may end inside of a character.
    if (!stream.cont && !is_utf8(payload)) {
      return Error{Code::kDamaged, stream.label() + ": the text is no UTF-8"};
    }
    value.raw = std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size());
  } else if (stream.format.kind == FormatKind::kPlatform) {
    if (payload.size() < kPlatformPayloadBytes) return size_error(stream, payload);
    value.raw = load(payload.first(kPlatformPayloadBytes), writer);
  }
  return value;
}

Result<ExactTime> decode_clock(const StreamInfo& clock, Bytes payload, Endian writer) {
  auto number = decode_number(clock, payload, writer, false);
  if (!number) return number.error();
  if (!*number) {
    return Error{Code::kUnsupported,
                 fmt::format("{}: {} is no number", clock.label(), clock.format.text)};
  }
  const RawValue& raw = **number;
  if (const auto* time = std::get_if<Timespec>(&raw)) {
    return ExactTime::of_timespec(time->seconds, time->nanoseconds);
  }
  const Decimal gain = clock.gain.value_or(Decimal(1));
  const Decimal offset = clock.offset.value_or(Decimal(0));
  std::optional<ExactTime> time;
  if (const auto* value = std::get_if<uint64_t>(&raw)) {
    time = ExactTime::of_integer(static_cast<Int128>(*value), gain, offset);
  } else if (const auto* signed_value = std::get_if<int64_t>(&raw)) {
    time = ExactTime::of_integer(*signed_value, gain, offset);
  } else if (const auto* real = std::get_if<double>(&raw)) {
    time = ExactTime::of_real(*real, gain, offset);
  }
  if (!time) return Error{Code::kDamaged, clock.label() + ": the time is out of range"};
  return *time;
}

Result<AnnotationText> decode_annotation(Bytes payload, Endian writer) {
  if (payload.size() < kTimespecBytes) {
    return Error{Code::kDamaged, fmt::format("an annotation of {} bytes", payload.size())};
  }
  return AnnotationText{load_timespec(payload, writer), payload.subspan(kTimespecBytes)};
}

void encode_timespec(const Timespec& time, std::span<uint8_t, kTimespecBytes> out) {
  store_le(out.data(), time.seconds);
  store_le(out.data() + 8, time.nanoseconds);
}

void encode_timespec_ns(uint64_t ns, std::span<uint8_t, kTimespecBytes> out) {
  encode_timespec({ns / 1000000000, static_cast<uint32_t>(ns % 1000000000)}, out);
}

}  // namespace collect::rtc
