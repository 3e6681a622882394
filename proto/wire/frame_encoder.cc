#include "proto/wire/frame_encoder.h"

#include <cstring>

namespace collect::wire {
namespace {

void finish_header(FrameHeader& header, Crc32c crc, uint8_t* out) {
  std::memcpy(out, &header, sizeof header);
  header.header_crc32c = crc(Bytes(out, offsetof(FrameHeader, header_crc32c)), 0);
  std::memcpy(out, &header, sizeof header);
}

}  // namespace

void encode_control_header(FrameType type, Bytes body, Crc32c crc,
                           uint8_t out[sizeof(FrameHeader)]) {
  FrameHeader header{};
  header.magic = kFrameMagic;
  header.type = static_cast<uint16_t>(type);
  header.body_bytes = static_cast<uint32_t>(body.size());
  header.body_crc32c = crc(body, 0);
  finish_header(header, crc, out);
}

void encode_page_prefix(const PageHeader& page, uint32_t sent_bytes, Crc32c crc,
                        uint8_t out[kPagePrefixBytes]) {
  std::memcpy(out + sizeof(FrameHeader), &page, sizeof page);
  FrameHeader header{};
  header.magic = kFrameMagic;
  header.type = static_cast<uint16_t>(FrameType::kPage);
  header.body_bytes = static_cast<uint32_t>(sizeof page) + sent_bytes;
  header.body_crc32c = crc(Bytes(out + sizeof(FrameHeader), sizeof page), 0);
  finish_header(header, crc, out);
}

}  // namespace collect::wire
