// Files put together frame by frame, for what no writer of ours would write.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/crc32.h"
#include "formats/core/encoding/leb128.h"
#include "formats/rtc/checksum.h"
#include "formats/rtc/index_entries.h"
#include "formats/rtc/layout.h"

namespace collect::rtc::testing {

class FrameBytes {
 public:
  std::vector<uint8_t> bytes;
  SpecialFrames special = SpecialFrames::kFixed;
  Endian endian = Endian::kLittle;
  Geometry geometry{8192, 2048};

  uint64_t at() const { return bytes.size(); }

  FrameBytes& leb(uint64_t value) {
    uint8_t out[kLeb128MaxBytes];
    bytes.insert(bytes.end(), out, out + write_uleb128(out, value));
    return *this;
  }
  FrameBytes& raw(Bytes payload) {
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return *this;
  }
  FrameBytes& frame(uint64_t id, Bytes payload, bool more = false, bool with_length = true) {
    leb(id << 1 | (more ? 1 : 0));
    if (with_length) leb(payload.size());
    return raw(payload);
  }
  FrameBytes& text(uint64_t id, std::string_view text_of_frame, bool more = false) {
    return frame(
        id, Bytes(reinterpret_cast<const uint8_t*>(text_of_frame.data()), text_of_frame.size()),
        more);
  }
  FrameBytes& number32(uint64_t id, uint32_t value) {
    uint8_t out[4];
    store_le(out, endian == Endian::kLittle ? value : __builtin_bswap32(value));
    return frame(id, out, false, special == SpecialFrames::kPrefixed);
  }

  // Marker, Index, Meta and platform.
  FrameBytes& head(uint64_t count, std::string_view meta) {
    marker_at_ = at();
    bytes.push_back(kMarkerFirstByte);
    bytes.insert(bytes.end(), kMaxPayloadBytes, kMarkerFill);
    std::vector<uint8_t> index;
    append_index_count(index, count);
    append_index_entry(index, {kIndexId, geometry.unit_bytes});
    append_index_entry(index, {kMinorIndexId, geometry.minor_bytes});
    frame(kIndexId, index);
    text(kMetaId, meta);
    return number32(kPlatformId, kPlatformValue);
  }
  FrameBytes& minor_index() {
    std::vector<uint8_t> index;
    append_index_entry(index, {kIndexId, at() - marker_at_ - kMarkerBytes});
    return frame(kMinorIndexId, index);
  }
  FrameBytes& crc() {
    return number32(kCrcId, crc32_ieee(Bytes(bytes).subspan(marker_at_ + kMarkerBytes)));
  }
  // Padding up to `end` bytes from the last Marker; at least two bytes of it, or none.
  FrameBytes& pad_to(uint64_t end) {
    static constexpr uint8_t kZeros[kMaxPayloadBytes] = {};
    while (at() - marker_at_ < end) {
      const uint64_t left = end - (at() - marker_at_);
      if (left == 1) {
        bytes.push_back(0);
        break;
      }
      uint64_t payload = left - 2 <= 127 ? left - 2 : left - 3;
      if (left > 1027) payload = left - 1027 < 2 ? 1000 : 1024;
      frame(kPaddingId, Bytes(kZeros, payload));
    }
    return *this;
  }
  // To the end of the Unit, with its indices, and the Crc.
  FrameBytes& close_unit() {
    const uint64_t crc_bytes = special == SpecialFrames::kFixed ? 5 : 6;
    for (uint64_t place = kMarkerBytes + geometry.minor_bytes; place < geometry.unit_bytes;
         place += geometry.minor_bytes) {
      if (at() - marker_at_ > place) continue;
      pad_to(place).minor_index();
    }
    return pad_to(geometry.unit_bytes - crc_bytes).crc();
  }

 private:
  uint64_t marker_at_ = 0;
};

}  // namespace collect::rtc::testing
