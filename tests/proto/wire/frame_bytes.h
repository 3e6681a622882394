// Frames for the codec's tests, made by the encoder (whose bytes frame_encoder_test.cc checks).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/layout.h"

namespace collect::wire {

using ByteVector = std::vector<uint8_t>;

inline uint32_t crc(Bytes bytes, uint32_t previous) {
  return crc32c(bytes, previous);
}

inline ByteVector control_frame(FrameType type, std::string_view body) {
  ByteVector frame(sizeof(FrameHeader) + body.size());
  std::memcpy(frame.data() + sizeof(FrameHeader), body.data(), body.size());
  encode_control_header(type, Bytes(frame).subspan(sizeof(FrameHeader)), crc, frame.data());
  return frame;
}

// Sets lengths and checksum to fit `bytes`, unless `as_given` keeps what `page` says.
inline ByteVector page_frame(PageHeader page, const ByteVector& bytes, bool as_given = false) {
  if (!as_given) {
    page.raw_bytes = static_cast<uint32_t>(bytes.size());
    page.bytes_crc32c = crc(bytes, 0);
  }
  ByteVector frame(kPagePrefixBytes);
  encode_page_prefix(page, static_cast<uint32_t>(bytes.size()), crc, frame.data());
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  return frame;
}

// A header whose own checksum is right, with any other fields.
inline ByteVector raw_header(FrameHeader header) {
  ByteVector bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  header.header_crc32c = crc(Bytes(bytes).first(offsetof(FrameHeader, header_crc32c)), 0);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

inline PageHeader index_page(uint32_t records) {
  PageHeader page{};
  page.stream_id = 7;
  page.first_seq = 41;
  page.record_count = records;
  return page;
}

}  // namespace collect::wire
