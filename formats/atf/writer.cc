#include "formats/atf/writer.h"

#include <algorithm>

#include "formats/core/crc32.h"

namespace collect::atf {

void encode_index_header(const IndexHeader& header, HeaderOut out) {
  ByteWriter to(out);
  to.bytes(kIndexMagic);
  to.u8(kLittleEndian);
  to.u8(static_cast<uint8_t>(header.version));
  to.u8(static_cast<uint8_t>(header.arch));
  to.u8(static_cast<uint8_t>(header.os));
  to.u32(header.flags);
  to.u32(header.thread_id);
  to.u8(static_cast<uint8_t>(header.clock));
  to.zeros(3);
  if (header.version == Version::kV1) {
    to.u32(0);
    to.u32(kEventBytes);
    to.u32(static_cast<uint32_t>(std::min(header.event_count, kMaxEventsV1)));
  } else {
    to.u32(kEventBytes);
    to.u64(header.event_count);
  }
  to.u64(header.events_offset);
  to.u64(header.footer_offset);
  to.u64(header.time_start_ns);
  to.u64(header.time_end_ns);
}

void encode_index_footer(const IndexFooter& footer, HeaderOut out) {
  ByteWriter to(out);
  to.bytes(kIndexFooterMagic);
  to.u32(footer.checksum);
  to.u64(footer.event_count);
  to.u64(footer.time_start_ns);
  to.u64(footer.time_end_ns);
  to.u64(footer.bytes_written);
  to.zeros(24);
}

void encode_detail_header(const DetailFileHeader& header, HeaderOut out) {
  ByteWriter to(out);
  to.bytes(kDetailMagic);
  to.u8(kLittleEndian);
  to.u8(static_cast<uint8_t>(header.version));
  to.u8(static_cast<uint8_t>(header.arch));
  to.u8(static_cast<uint8_t>(header.os));
  to.u32(header.flags);
  to.u32(header.thread_id);
  to.u32(0);
  to.u64(header.events_offset);
  to.u64(header.event_count);
  to.u64(header.bytes_length);
  to.u64(header.index_seq_start);
  to.u64(header.index_seq_end);
  to.zeros(4);
}

void encode_detail_footer(const DetailFooter& footer, HeaderOut out) {
  ByteWriter to(out);
  to.bytes(kDetailFooterMagic);
  to.u32(footer.checksum);
  to.u64(footer.event_count);
  to.u64(footer.bytes_length);
  to.u64(footer.time_start_ns);
  to.u64(footer.time_end_ns);
  to.zeros(24);
}

void encode_index_event(Version version, const IndexEvent& event,
                        std::span<uint8_t, kEventBytes> out) {
  ByteWriter to(out);
  to.u64(event.timestamp_ns);
  to.u64(event.function_id);
  if (version == Version::kV1) {
    to.u32(event.thread_id);
    to.u32(static_cast<uint32_t>(event.kind));
    to.u32(event.call_depth);
    // Anything that 32 bits cannot say becomes "none", never another record's number.
    to.u32(event.detail_seq < kNoDetailV1 ? static_cast<uint32_t>(event.detail_seq) : kNoDetailV1);
  } else {
    to.u64(event.detail_seq);
    to.u8(static_cast<uint8_t>(event.kind));
    to.zeros(7);
  }
}

size_t encode_detail_record(Version version, const DetailRecord& record, MutableBytes out) {
  const uint64_t total = uint64_t{kDetailHeaderBytes} + record.payload.size();
  if (total > UINT32_MAX || total > out.size()) return 0;
  ByteWriter to(out);
  to.u32(static_cast<uint32_t>(total));
  to.u16(static_cast<uint16_t>(record.type));
  to.u16(record.flags);
  if (version == Version::kV1) {
    to.u32(static_cast<uint32_t>(std::min(record.index_seq, kMaxEventsV1)));
    to.u32(record.thread_id);
  } else {
    to.u64(record.index_seq);
  }
  to.u64(record.timestamp_ns);
  to.bytes(record.payload);
  return to.ok() ? to.offset() : 0;
}

size_t encode_function_payload(const FunctionPayload& payload, Bytes stack, MutableBytes out) {
  if (stack.size() > kMaxStackBytes || out.size() < kFunctionPayloadBytes + stack.size()) return 0;
  ByteWriter to(out);
  to.u64(payload.function_id);
  for (uint64_t reg : payload.x_regs) to.u64(reg);
  to.u64(payload.lr);
  to.u64(payload.fp);
  to.u64(payload.sp);
  to.u16(static_cast<uint16_t>(stack.size()));
  to.u16(0);
  to.bytes(stack);
  return to.ok() ? to.offset() : 0;
}

uint32_t section_checksum(Version version, Bytes bytes, uint32_t previous) {
  return version == Version::kV1 ? crc32_ieee(bytes, previous) : crc32c(bytes, previous);
}

}  // namespace collect::atf
