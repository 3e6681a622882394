#include "formats/atf/headers.h"

#include <fmt/core.h>

#include <cstring>
#include <string>

namespace collect::atf {
namespace {

bool magic_is(Bytes bytes, const uint8_t (&magic)[4]) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), magic, 4) == 0;
}

Finding refusal(Lane lane, uint64_t offset, std::string sentence) {
  const Check check = lane == Lane::kIndex ? Check::kHeader : Check::kDetailHeader;
  return {Severity::kError, lane, check, offset, std::move(sentence)};
}

// The eight bytes that index and detail headers share.
std::optional<Finding> refuse_identity(Bytes file, Lane lane, const uint8_t (&magic)[4]) {
  if (file.size() < kHeaderBytes) {
    return refusal(
        lane, file.size(),
        fmt::format("the file ends after {} bytes, before its 64-byte header does", file.size()));
  }
  if (!magic_is(file, magic)) {
    return refusal(lane, 0, fmt::format("the magic is not \"{}\"", std::string(magic, magic + 4)));
  }
  if (file[4] != kLittleEndian) {
    return refusal(lane, 4,
                   fmt::format("byte order {}; only 1 (little-endian) is readable", file[4]));
  }
  if (file[5] != 1 && file[5] != 2) {
    return refusal(lane, 5, fmt::format("version {}; only 1 and 2 are known", file[5]));
  }
  return std::nullopt;
}

Error as_error(const Finding& finding, Bytes file) {
  const Code code = file.size() < kHeaderBytes ? Code::kTruncated : Code::kUnsupported;
  return {code, fmt::format("offset {}: {}", finding.offset, finding.sentence)};
}

}  // namespace

std::optional<Finding> refuse_index_header(Bytes file, IndexHeader& header) {
  if (auto why = refuse_identity(file, Lane::kIndex, kIndexMagic)) return why;
  ByteReader in(file.first(kHeaderBytes));
  in.skip(5);
  header.version = static_cast<Version>(in.u8());
  header.arch = static_cast<Arch>(in.u8());
  header.os = static_cast<Os>(in.u8());
  header.flags = in.u32();
  header.thread_id = in.u32();
  header.clock = static_cast<ClockType>(in.u8());
  in.skip(3);
  uint32_t event_size = 0;
  const size_t size_offset = header.version == Version::kV1 ? 24 : 20;
  if (header.version == Version::kV1) {
    in.skip(4);
    event_size = in.u32();
    header.event_count = in.u32();
  } else {
    event_size = in.u32();
    header.event_count = in.u64();
  }
  header.events_offset = in.u64();
  header.footer_offset = in.u64();
  header.time_start_ns = in.u64();
  header.time_end_ns = in.u64();
  if (event_size != kEventBytes) {
    return refusal(Lane::kIndex, size_offset,
                   fmt::format("event size {}; only 32 is known", event_size));
  }
  return std::nullopt;
}

std::optional<Finding> refuse_detail_header(Bytes file, DetailFileHeader& header) {
  if (auto why = refuse_identity(file, Lane::kDetail, kDetailMagic)) return why;
  ByteReader in(file.first(kHeaderBytes));
  in.skip(5);
  header.version = static_cast<Version>(in.u8());
  header.arch = static_cast<Arch>(in.u8());
  header.os = static_cast<Os>(in.u8());
  header.flags = in.u32();
  header.thread_id = in.u32();
  in.skip(4);
  header.events_offset = in.u64();  // from here on at offsets that are not multiples of 8
  header.event_count = in.u64();
  header.bytes_length = in.u64();
  header.index_seq_start = in.u64();
  header.index_seq_end = in.u64();
  return std::nullopt;
}

Result<IndexHeader> decode_index_header(Bytes file) {
  IndexHeader header;
  if (auto why = refuse_index_header(file, header)) return as_error(*why, file);
  return header;
}

Result<DetailFileHeader> decode_detail_header(Bytes file) {
  DetailFileHeader header;
  if (auto why = refuse_detail_header(file, header)) return as_error(*why, file);
  return header;
}

std::optional<IndexFooter> decode_index_footer(Bytes at) {
  if (at.size() < kFooterBytes || !magic_is(at, kIndexFooterMagic)) return std::nullopt;
  ByteReader in(at);
  in.skip(4);
  IndexFooter footer;
  footer.checksum = in.u32();
  footer.event_count = in.u64();
  footer.time_start_ns = in.u64();
  footer.time_end_ns = in.u64();
  footer.bytes_written = in.u64();
  return footer;
}

std::optional<DetailFooter> decode_detail_footer(Bytes at) {
  if (at.size() < kFooterBytes || !magic_is(at, kDetailFooterMagic)) return std::nullopt;
  ByteReader in(at);
  in.skip(4);
  DetailFooter footer;
  footer.checksum = in.u32();
  footer.event_count = in.u64();
  footer.bytes_length = in.u64();
  footer.time_start_ns = in.u64();
  footer.time_end_ns = in.u64();
  return footer;
}

std::optional<DetailRecord> decode_detail_record(Version version, Bytes bytes) {
  if (bytes.size() < kDetailHeaderBytes) return std::nullopt;
  const uint32_t total = load_le<uint32_t>(bytes.data());
  if (total < kDetailHeaderBytes || total > bytes.size()) return std::nullopt;
  ByteReader in(bytes.first(total));
  in.skip(4);
  DetailRecord record;
  record.type = static_cast<DetailType>(in.u16());
  record.flags = in.u16();
  if (version == Version::kV1) {
    record.index_seq = in.u32();
    record.thread_id = in.u32();
  } else {
    record.index_seq = in.u64();
  }
  record.timestamp_ns = in.u64();
  record.payload = in.bytes(in.remaining());
  return record;
}

}  // namespace collect::atf
