#include "proto/wire/frame_decoder.h"

#include <algorithm>

#include "proto/wire/codec_rules.h"

namespace collect::wire {
namespace {

constexpr uint32_t kIndexRecordBytes = 32;
constexpr uint32_t kMinDetailRecordBytes = 24;

Decoded bad(FrameError error) {
  return {DecodeStatus::kBad, error, 0};
}
Decoded need(uint32_t bytes) {
  return {DecodeStatus::kNeedMore, FrameError::kNone, bytes};
}

// Whether lane, codec, counts and lengths can belong to one page.
bool page_header_holds(const PageHeader& page, uint32_t sent_bytes) {
  if (page.lane > Lane::kDetail) return false;
  if (page.raw_bytes > kMaxPageBytes) return false;
  if (!encodes(page.codec, page.lane)) return false;
  const bool is_raw = page.codec == Codec::kRaw;
  if (is_raw ? page.raw_bytes != sent_bytes : page.raw_bytes <= sent_bytes) return false;
  if (page.first_seq > UINT64_MAX - page.record_count) return false;
  if (page.lane == Lane::kIndex) {
    return uint64_t{page.record_count} * kIndexRecordBytes == page.raw_bytes;
  }
  return uint64_t{page.record_count} * kMinDetailRecordBytes <= page.raw_bytes &&
         (page.record_count != 0 || page.raw_bytes == 0);
}

// The page header's own checksum comes first: it says what the rest means.
Decoded decode_page(const FrameHeader& header, Bytes body, Crc32c crc, Frame& frame) {
  const Bytes fixed = body.first(sizeof(PageHeader));
  if (crc(fixed, 0) != header.body_crc32c) return bad(FrameError::kBodyChecksum);
  frame.page = load_le<PageHeader>(fixed.data());
  frame.page_bytes = body.subspan(sizeof(PageHeader));
  if (!page_header_holds(frame.page, static_cast<uint32_t>(frame.page_bytes.size()))) {
    return bad(FrameError::kPageHeader);
  }
  if (crc(frame.page_bytes, 0) != frame.page.bytes_crc32c) return bad(FrameError::kPageChecksum);
  return {DecodeStatus::kFrame, FrameError::kNone, 0};
}

}  // namespace

const char* frame_error_text(FrameError error) {
  switch (error) {
    case FrameError::kNone:
      return "no error";
    case FrameError::kMagic:
      return "not the collect agent protocol (bad frame magic)";
    case FrameError::kHeaderChecksum:
      return "frame header checksum is wrong";
    case FrameError::kTooLong:
      return "frame is longer than the protocol allows";
    case FrameError::kTooShort:
      return "page frame is shorter than its page header";
    case FrameError::kBodyChecksum:
      return "frame body checksum is wrong";
    case FrameError::kPageChecksum:
      return "page checksum is wrong";
    case FrameError::kPageHeader:
      return "page header contradicts itself";
  }
  return "unknown frame error";
}

Decoded decode_frame(Bytes buffer, Crc32c crc, Frame& frame) {
  // The magic is judged as soon as it is there, so that a peer that speaks another protocol is
  // refused after four bytes.
  if (buffer.size() >= sizeof(uint32_t) && load_le<uint32_t>(buffer.data()) != kFrameMagic) {
    return bad(FrameError::kMagic);
  }
  if (buffer.size() < sizeof(FrameHeader)) return need(sizeof(FrameHeader));
  const auto header = load_le<FrameHeader>(buffer.data());
  if (crc(buffer.first(offsetof(FrameHeader, header_crc32c)), 0) != header.header_crc32c) {
    return bad(FrameError::kHeaderChecksum);
  }
  const auto type = static_cast<FrameType>(header.type);
  const bool is_page = type == FrameType::kPage;
  if (header.body_bytes > (is_page ? kMaxPageBody : kMaxControlBody)) {
    return bad(FrameError::kTooLong);
  }
  if (is_page && header.body_bytes < sizeof(PageHeader)) return bad(FrameError::kTooShort);
  const auto whole = static_cast<uint32_t>(sizeof(FrameHeader)) + header.body_bytes;
  if (buffer.size() < whole) return need(whole);

  frame = Frame{};
  frame.type = type;
  frame.frame_bytes = whole;
  const Bytes body = buffer.subspan(sizeof(FrameHeader), header.body_bytes);
  if (is_page) return decode_page(header, body, crc, frame);
  if (crc(body, 0) != header.body_crc32c) return bad(FrameError::kBodyChecksum);
  frame.body = body;
  return {DecodeStatus::kFrame, FrameError::kNone, 0};
}

}  // namespace collect::wire
