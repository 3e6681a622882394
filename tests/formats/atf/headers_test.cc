#include "formats/atf/headers.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "formats/atf/writer.h"

namespace collect::atf {
namespace {

using Block = std::array<uint8_t, 64>;

// Bytes as the specifications' tables give them, written down by hand, field by field.
std::vector<uint8_t> from_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') digits += c;
  }
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

template <size_t N>
std::vector<uint8_t> vector_of(const std::array<uint8_t, N>& block) {
  return {block.begin(), block.end()};
}

IndexHeader sample_index_header(Version version) {
  IndexHeader header{version, Arch::kArm64, Os::kAndroid, ClockType::kBoottime};
  header.flags = kIndexFlagHasDetailFile;
  header.thread_id = 0x01020304;
  header.event_count = 10;
  header.footer_offset = 384;
  header.time_start_ns = 1000;
  header.time_end_ns = 0x1122334455667788;
  return header;
}

TEST(IndexHeader, Version1Bytes) {
  Block out;
  encode_index_header(sample_index_header(Version::kV1), out);
  EXPECT_EQ(vector_of(out), from_hex("41544932 01 01 02 02 01000000 04030201"
                                     "03 000000 00000000"
                                     "20000000 0a000000"
                                     "4000000000000000 8001000000000000"
                                     "e803000000000000 8877665544332211"));
}

TEST(IndexHeader, Version2Bytes) {
  Block out;
  encode_index_header(sample_index_header(Version::kV2), out);
  EXPECT_EQ(vector_of(out), from_hex("41544932 01 02 02 02 01000000 04030201"
                                     "03 000000 20000000"
                                     "0a00000000000000"
                                     "4000000000000000 8001000000000000"
                                     "e803000000000000 8877665544332211"));
}

TEST(IndexHeader, DecodesWhatItEncodes) {
  for (const Version version : {Version::kV1, Version::kV2}) {
    Block out;
    const IndexHeader header = sample_index_header(version);
    encode_index_header(header, out);
    auto decoded = decode_index_header(out);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->version, version);
    EXPECT_EQ(decoded->arch, header.arch);
    EXPECT_EQ(decoded->os, header.os);
    EXPECT_EQ(decoded->clock, header.clock);
    EXPECT_EQ(decoded->flags, header.flags);
    EXPECT_EQ(decoded->thread_id, header.thread_id);
    EXPECT_EQ(decoded->event_count, header.event_count);
    EXPECT_EQ(decoded->events_offset, 64u);
    EXPECT_EQ(decoded->footer_offset, header.footer_offset);
    EXPECT_EQ(decoded->time_start_ns, header.time_start_ns);
    EXPECT_EQ(decoded->time_end_ns, header.time_end_ns);
  }
}

TEST(IndexHeader, Version1CountBeyond32BitsIsTheLargest) {
  Block out;
  IndexHeader header = sample_index_header(Version::kV1);
  header.event_count = kMaxEventsV1 + 1;
  encode_index_header(header, out);
  EXPECT_EQ(decode_index_header(out)->event_count, kMaxEventsV1);
}

TEST(IndexHeader, EachRefusalNamesItsOffset) {
  Block good;
  encode_index_header(sample_index_header(Version::kV2), good);
  const auto message = [&](size_t at, uint8_t value) {
    Block bad = good;
    bad[at] = value;
    const auto result = decode_index_header(bad);
    return result.ok() ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(message(0, 'X'), "offset 0: the magic is not \"ATI2\"");
  EXPECT_EQ(message(4, 2), "offset 4: byte order 2; only 1 (little-endian) is readable");
  EXPECT_EQ(message(5, 3), "offset 5: version 3; only 1 and 2 are known");
  EXPECT_EQ(message(20, 33), "offset 20: event size 33; only 32 is known");
  EXPECT_EQ(message(12, 9), "accepted");
  // Version 1 has its event size elsewhere: a version-2 header with byte 5 changed must not pass.
  EXPECT_EQ(message(5, 1), "offset 24: event size 10; only 32 is known");
}

TEST(IndexHeader, ShorterThanAHeaderIsTruncated) {
  Block good;
  encode_index_header(sample_index_header(Version::kV2), good);
  const auto result = decode_index_header(Bytes(good).first(63));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.code(), Code::kTruncated);
}

TEST(IndexFooter, Bytes) {
  Block out;
  encode_index_footer({0xE3069283, 10, 1000, 2000, 320}, out);
  EXPECT_EQ(vector_of(out), from_hex("32495441 839206e3 0a00000000000000"
                                     "e803000000000000 d007000000000000 4001000000000000"
                                     "000000000000000000000000000000000000000000000000"));
  const auto footer = decode_index_footer(out);
  ASSERT_TRUE(footer);
  EXPECT_EQ(footer->checksum, 0xE3069283u);
  EXPECT_EQ(footer->event_count, 10u);
  EXPECT_EQ(footer->time_start_ns, 1000u);
  EXPECT_EQ(footer->time_end_ns, 2000u);
  EXPECT_EQ(footer->bytes_written, 320u);
  EXPECT_FALSE(decode_detail_footer(out)) << "the detail footer has another magic";
}

struct Marked {
  const char* hex;  // a whole block of 64 bytes, as FORMAT.md's tables give it
  bool (*is_decoded)(Bytes);
};

const Marked kMarked[] = {
    {"41544932 01 02 02 02 01000000 07000000 03000000 20000000 0100000000000000"
     "4000000000000000 6000000000000000 e803000000000000 e803000000000000",
     [](Bytes bytes) { return decode_index_header(bytes).ok(); }},
    {"32495441 00000000 0100000000000000 e803000000000000 e803000000000000"
     "2000000000000000 000000000000000000000000000000000000000000000000",
     [](Bytes bytes) { return decode_index_footer(bytes).has_value(); }},
    {"41544432 01 02 01 04 00000000 07000000 00000000 4000000000000000 0400000000000000"
     "0002000000000000 0300000000000000 0900000000000000 00000000",
     [](Bytes bytes) { return decode_detail_header(bytes).ok(); }},
    {"32445441 00000000 0400000000000000 0002000000000000 e803000000000000"
     "6c07000000000000 000000000000000000000000000000000000000000000000",
     [](Bytes bytes) { return decode_detail_footer(bytes).has_value(); }}};

TEST(Magic, EveryBitOfItsFourBytesMatters) {
  for (const Marked& each : kMarked) {
    const std::vector<uint8_t> good = from_hex(each.hex);
    ASSERT_EQ(good.size(), 64u);
    EXPECT_TRUE(each.is_decoded(good)) << each.hex;
    for (size_t bit = 0; bit < 32; ++bit) {
      std::vector<uint8_t> bad = good;
      bad[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      EXPECT_FALSE(each.is_decoded(bad)) << each.hex << " bit " << bit;
    }
  }
}

// The checksum follows at once.
TEST(Magic, ByteBehindItMayBeAnything) {
  for (const size_t footer : {1, 3}) {
    std::vector<uint8_t> bytes = from_hex(kMarked[footer].hex);
    for (int byte = 0; byte < 256; ++byte) {
      bytes[4] = static_cast<uint8_t>(byte);
      EXPECT_TRUE(kMarked[footer].is_decoded(bytes)) << byte;
    }
  }
}

TEST(Magic, PartOfABlockIsNone) {
  for (const Marked& each : kMarked) {
    const std::vector<uint8_t> good = from_hex(each.hex);
    for (size_t length = 0; length < good.size(); ++length) {
      const std::vector<uint8_t> part(good.begin(), good.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_FALSE(each.is_decoded(part)) << each.hex << " first " << length;
    }
  }
}

// The 64-bit fields of the detail header lie at 20, 28, 36, 44 and 52.
TEST(DetailHeader, BytesAtUnalignedOffsets) {
  DetailFileHeader header{Version::kV2, Arch::kX86_64, Os::kLinux};
  header.thread_id = 7;
  header.event_count = 4;
  header.bytes_length = 0x200;
  header.index_seq_start = 3;
  header.index_seq_end = 9;
  Block out;
  encode_detail_header(header, out);
  EXPECT_EQ(vector_of(out), from_hex("41544432 01 02 01 04 00000000 07000000 00000000"
                                     "4000000000000000 0400000000000000 0002000000000000"
                                     "0300000000000000 0900000000000000 00000000"));
  auto decoded = decode_detail_header(out);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->thread_id, 7u);
  EXPECT_EQ(decoded->events_offset, 64u);
  EXPECT_EQ(decoded->event_count, 4u);
  EXPECT_EQ(decoded->bytes_length, 0x200u);
  EXPECT_EQ(decoded->index_seq_start, 3u);
  EXPECT_EQ(decoded->index_seq_end, 9u);
}

// Another field order than the index footer's.
TEST(DetailFooter, Bytes) {
  Block out;
  encode_detail_footer({1, 4, 512, 1000, 1900}, out);
  EXPECT_EQ(vector_of(out), from_hex("32445441 01000000 0400000000000000 0002000000000000"
                                     "e803000000000000 6c07000000000000"
                                     "000000000000000000000000000000000000000000000000"));
  const auto footer = decode_detail_footer(out);
  ASSERT_TRUE(footer);
  EXPECT_EQ(footer->bytes_length, 512u);
  EXPECT_EQ(footer->time_end_ns, 1900u);
}

IndexEvent sample_event() {
  IndexEvent event;
  event.timestamp_ns = 1000;
  event.function_id = 0xF7F05AC500000001;
  event.detail_seq = 5;
  event.kind = EventKind::kReturn;
  event.thread_id = 7;
  event.call_depth = 3;
  return event;
}

TEST(IndexEvent, Version1Bytes) {
  std::array<uint8_t, 32> out;
  encode_index_event(Version::kV1, sample_event(), out);
  EXPECT_EQ(vector_of(out), from_hex("e803000000000000 01000000c55af0f7"
                                     "07000000 02000000 03000000 05000000"));
  const IndexEvent back = decode_index_event(Version::kV1, out.data());
  EXPECT_EQ(back.thread_id, 7u);
  EXPECT_EQ(back.call_depth, 3u);
  EXPECT_EQ(back.detail_seq, 5u);
  EXPECT_EQ(back.kind, EventKind::kReturn);
}

TEST(IndexEvent, Version2Bytes) {
  std::array<uint8_t, 32> out;
  encode_index_event(Version::kV2, sample_event(), out);
  EXPECT_EQ(vector_of(out), from_hex("e803000000000000 01000000c55af0f7"
                                     "0500000000000000 02 00000000000000"));
  const IndexEvent back = decode_index_event(Version::kV2, out.data());
  EXPECT_EQ(back.function_id, 0xF7F05AC500000001u);
  EXPECT_EQ(back.detail_seq, 5u);
  EXPECT_EQ(back.kind, EventKind::kReturn);
}

// FORMAT.md's table of the event, with another byte at each offset.
TEST(IndexEvent, DecodesEachFieldOfVersion1AtItsOffset) {
  const auto bytes = from_hex(
      "efcdab8967452301 1032547698badcfe"
      "44332211 bdac9b8a 88776655 ccbbaa99");
  const IndexEvent event = decode_index_event(Version::kV1, bytes.data());
  EXPECT_EQ(event.timestamp_ns, 0x0123456789ABCDEFu);
  EXPECT_EQ(event.function_id, 0xFEDCBA9876543210u);
  EXPECT_EQ(event.thread_id, 0x11223344u);
  EXPECT_EQ(event.kind_raw, 0x8A9BACBDu);
  EXPECT_EQ(event.kind, EventKind{});
  EXPECT_EQ(event.call_depth, 0x55667788u);
  EXPECT_EQ(event.detail_seq, 0x99AABBCCu);
}

TEST(IndexEvent, DecodesEachFieldOfVersion2AtItsOffset) {
  const auto bytes = from_hex(
      "efcdab8967452301 1032547698badcfe"
      "ffeeddccbbaa9988 01 02030405060708");
  const IndexEvent event = decode_index_event(Version::kV2, bytes.data());
  EXPECT_EQ(event.timestamp_ns, 0x0123456789ABCDEFu);
  EXPECT_EQ(event.function_id, 0xFEDCBA9876543210u);
  EXPECT_EQ(event.detail_seq, 0x8899AABBCCDDEEFFu);
  EXPECT_EQ(event.kind_raw, 1u) << "the reserved bytes are no part of it";
  EXPECT_EQ(event.kind, EventKind::kCall);
  EXPECT_EQ(event.thread_id, 0u);
  EXPECT_EQ(event.call_depth, 0u);
}

TEST(IndexEvent, KindsAreCallReturnAndException) {
  std::vector<uint8_t> bytes(32);
  const EventKind kinds[] = {EventKind{}, EventKind::kCall, EventKind::kReturn,
                             EventKind::kException};
  for (int kind = 0; kind < 256; ++kind) {
    const EventKind expected = kind < 4 ? kinds[kind] : EventKind{};
    bytes.assign(32, 0);
    bytes[20] = static_cast<uint8_t>(kind);
    EXPECT_EQ(decode_index_event(Version::kV1, bytes.data()).kind, expected) << kind;
    bytes.assign(32, 0);
    bytes[24] = static_cast<uint8_t>(kind);
    EXPECT_EQ(decode_index_event(Version::kV2, bytes.data()).kind, expected) << kind;
  }
}

// 0 is a record's number, and so is everything below the sentinel.
TEST(IndexEvent, OnlyAllOnesIsNoRecord) {
  std::vector<uint8_t> bytes(32);
  EXPECT_EQ(decode_index_event(Version::kV1, bytes.data()).detail_seq, 0u);
  EXPECT_EQ(decode_index_event(Version::kV2, bytes.data()).detail_seq, 0u);
  const auto below_v1 = from_hex(std::string(56, '0') + "feffffff");
  EXPECT_EQ(decode_index_event(Version::kV1, below_v1.data()).detail_seq, 0xFFFFFFFEu);
  const auto none_v1 = from_hex(std::string(56, '0') + "ffffffff");
  EXPECT_EQ(decode_index_event(Version::kV1, none_v1.data()).detail_seq, 0xFFFFFFFFFFFFFFFFu);
  const auto tail = std::string(16, '0');
  const auto below_v2 = from_hex(std::string(32, '0') + "ffffffff00000000" + tail);
  EXPECT_EQ(decode_index_event(Version::kV2, below_v2.data()).detail_seq, 0xFFFFFFFFu);
  const auto none_v2 = from_hex(std::string(32, '0') + "ffffffffffffffff" + tail);
  EXPECT_EQ(decode_index_event(Version::kV2, none_v2.data()).detail_seq, 0xFFFFFFFFFFFFFFFFu);
}

TEST(IndexEvent, NoDetailIsEachVersionsSentinel) {
  IndexEvent event = sample_event();
  event.detail_seq = kNoDetail;
  std::array<uint8_t, 32> out;
  encode_index_event(Version::kV1, event, out);
  EXPECT_EQ(load_le<uint32_t>(out.data() + 28), 0xFFFFFFFFu);
  EXPECT_EQ(decode_index_event(Version::kV1, out.data()).detail_seq, kNoDetail);
  encode_index_event(Version::kV2, event, out);
  EXPECT_EQ(load_le<uint64_t>(out.data() + 16), UINT64_MAX);
  // A link that 32 bits cannot hold must become none, not the link of another record.
  event.detail_seq = uint64_t{1} << 32;
  encode_index_event(Version::kV1, event, out);
  EXPECT_EQ(decode_index_event(Version::kV1, out.data()).detail_seq, kNoDetail);
}

TEST(IndexEvent, UnknownKindKeepsItsNumber) {
  std::array<uint8_t, 32> out;
  encode_index_event(Version::kV1, sample_event(), out);
  store_le<uint32_t>(out.data() + 20, 0x102);  // a byte-wide read would see a RETURN
  const IndexEvent event = decode_index_event(Version::kV1, out.data());
  EXPECT_EQ(event.kind, EventKind{});
  EXPECT_EQ(event.kind_raw, 0x102u);
}

DetailRecord sample_record(Bytes payload) {
  DetailRecord record;
  record.type = DetailType::kFunctionReturn;
  record.flags = 0x0102;
  record.index_seq = 9;
  record.thread_id = 7;
  record.timestamp_ns = 1900;
  record.payload = payload;
  return record;
}

// The worked example of FORMAT.md, byte for byte; its checksum was computed by another program.
TEST(WorkedExample, MatchesTheFormatDocument) {
  IndexHeader header{Version::kV2, Arch::kArm64, Os::kAndroid, ClockType::kBoottime};
  header.flags = kIndexFlagHasDetailFile;
  header.thread_id = 7;
  header.event_count = 1;
  header.footer_offset = 96;
  header.time_start_ns = header.time_end_ns = 1000;
  IndexEvent event;
  event.timestamp_ns = 1000;
  event.function_id = 0x100000002;
  event.detail_seq = 0;
  event.kind = EventKind::kCall;
  std::array<uint8_t, 160> file;
  encode_index_header(header, HeaderOut(file.data(), 64));
  encode_index_event(Version::kV2, event, std::span<uint8_t, 32>(file.data() + 64, 32));
  const uint32_t checksum = section_checksum(Version::kV2, Bytes(file).subspan(64, 32));
  encode_index_footer({checksum, 1, 1000, 1000, 32}, HeaderOut(file.data() + 96, 64));
  EXPECT_EQ(vector_of(file), from_hex("4154493201020202 0100000007000000"
                                      "0300000020000000 0100000000000000"
                                      "4000000000000000 6000000000000000"
                                      "e803000000000000 e803000000000000"
                                      "e803000000000000 0200000001000000"
                                      "0000000000000000 0100000000000000"
                                      "32495441f50906a8 0100000000000000"
                                      "e803000000000000 e803000000000000"
                                      "2000000000000000 0000000000000000"
                                      "0000000000000000 0000000000000000"));
}

TEST(DetailRecord, BytesOfBothVersions) {
  const std::vector<uint8_t> payload = {'a', 'b', 'c', 'd'};
  std::array<uint8_t, 28> out;
  ASSERT_EQ(encode_detail_record(Version::kV1, sample_record(payload), out), 28u);
  EXPECT_EQ(vector_of(out),
            from_hex("1c000000 0400 0201 09000000 07000000 6c07000000000000 61626364"));
  ASSERT_EQ(encode_detail_record(Version::kV2, sample_record(payload), out), 28u);
  EXPECT_EQ(vector_of(out),
            from_hex("1c000000 0400 0201 0900000000000000 6c07000000000000 61626364"));
  const auto back = decode_detail_record(Version::kV2, out);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->type, DetailType::kFunctionReturn);
  EXPECT_EQ(back->index_seq, 9u);
  EXPECT_EQ(back->timestamp_ns, 1900u);
  EXPECT_EQ(std::vector<uint8_t>(back->payload.begin(), back->payload.end()), payload);
}

TEST(DetailRecord, DoesNotFit) {
  std::array<uint8_t, 27> out;
  const std::vector<uint8_t> payload(4);
  EXPECT_EQ(encode_detail_record(Version::kV2, sample_record(payload), out), 0u);
}

TEST(DetailRecord, LengthsOutsideTheBytesAreRefused) {
  std::array<uint8_t, 28> out;
  const std::vector<uint8_t> payload(4);
  encode_detail_record(Version::kV2, sample_record(payload), out);
  EXPECT_FALSE(decode_detail_record(Version::kV2, Bytes(out).first(27)));
  for (const uint32_t length : {0u, 23u, 29u, 0xFFFFFFFFu}) {
    store_le<uint32_t>(out.data(), length);
    EXPECT_FALSE(decode_detail_record(Version::kV2, out)) << length;
  }
  store_le<uint32_t>(out.data(), 24);
  EXPECT_TRUE(decode_detail_record(Version::kV2, out)->payload.empty());
}

TEST(SectionChecksum, EachVersionHasItsPolynomial) {
  const std::string text = "123456789";
  const Bytes bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  EXPECT_EQ(section_checksum(Version::kV1, bytes), 0xCBF43926u);
  EXPECT_EQ(section_checksum(Version::kV2, bytes), 0xE3069283u);
  EXPECT_EQ(section_checksum(Version::kV2, bytes.subspan(4),
                             section_checksum(Version::kV2, bytes.first(4))),
            0xE3069283u);
}

}  // namespace
}  // namespace collect::atf
