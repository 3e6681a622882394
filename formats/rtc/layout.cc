#include "formats/rtc/layout.h"

#include <fmt/core.h>

#include <bit>
#include <string>

#include "formats/core/encoding/leb128.h"

namespace collect::rtc {

Status check_geometry(const Geometry& geometry) {
  for (const uint64_t bytes : {geometry.unit_bytes, geometry.minor_bytes}) {
    if (!std::has_single_bit(bytes) || bytes < kMinUnitBytes || bytes > kMaxUnitBytes) {
      return Error{Code::kInvalidArgument,
                   fmt::format("a unit of {} bytes is no power of two from {} to 2^40", bytes,
                               kMinUnitBytes)};
    }
  }
  if (geometry.minor_bytes > geometry.unit_bytes) {
    return Error{Code::kInvalidArgument, "the minor unit is larger than the Unit"};
  }
  return {};
}

bool id_may_forge_marker(uint64_t id, int fixed_length) {
  // A payload of 04 and 1023 times B9, continued by a frame whose first byte is B9.
  uint8_t head[kLeb128MaxBytes];
  const size_t continued = write_uleb128(head, id << 1 | 1);
  if (continued > 1 && head[0] == kMarkerFill) return true;
  // A header that ends with 04, in front of a payload of 1024 times B9.
  if (fixed_length != static_cast<int>(kMaxPayloadBytes)) return false;
  return head[continued - 1] == kMarkerFirstByte;
}

const char* to_text(SpecialFrames special) {
  return special == SpecialFrames::kFixed ? "fixed" : "prefixed";
}

const char* to_text(Endian endian) {
  return endian == Endian::kLittle ? "le" : "be";
}

const char* to_text(Checksum checksum) {
  return checksum == Checksum::kIeee ? "ieee" : "writer";
}

}  // namespace collect::rtc
