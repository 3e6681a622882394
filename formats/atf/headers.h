// Headers, footers and records of both layouts as version-neutral values, and their decoding.
// writer.h encodes them. FORMAT.md has the tables. Pure functions on bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/atf/finding.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::atf {

// Enumerations read from a file may hold values that no enumerator names.
struct IndexHeader {
  Version version = Version::kV2;
  Arch arch{};
  Os os{};
  ClockType clock{};
  uint32_t flags = 0;  // kIndexFlagHasDetailFile
  uint32_t thread_id = 0;
  uint64_t event_count = 0;  // version 1 stores 32 bits
  uint64_t events_offset = kEventsOffset;
  uint64_t footer_offset = 0;
  uint64_t time_start_ns = 0;  // of the first event written, not the smallest
  uint64_t time_end_ns = 0;    // of the last event written, not the largest
};

struct IndexFooter {
  uint32_t checksum = 0;  // of the events section; 0: unchecked
  uint64_t event_count = 0;
  uint64_t time_start_ns = 0;
  uint64_t time_end_ns = 0;
  uint64_t bytes_written = 0;  // of the events section
};

struct DetailFileHeader {
  Version version = Version::kV2;
  Arch arch{};
  Os os{};
  uint32_t flags = 0;
  uint32_t thread_id = 0;
  uint64_t events_offset = kEventsOffset;
  uint64_t event_count = 0;
  uint64_t bytes_length = 0;     // of the events section
  uint64_t index_seq_start = 0;  // smallest index_seq of the records
  uint64_t index_seq_end = 0;    // largest, inclusive
};

struct DetailFooter {
  uint32_t checksum = 0;
  uint64_t event_count = 0;
  uint64_t bytes_length = 0;
  uint64_t time_start_ns = 0;
  uint64_t time_end_ns = 0;
};

// An index event of either version. Its sequence number is its position in the file.
struct IndexEvent {
  uint64_t timestamp_ns = 0;
  uint64_t function_id = 0;
  uint64_t detail_seq = kNoDetail;  // version 1: 32 bits
  EventKind kind{};
  uint32_t thread_id = 0;   // version 1 only; version 2 has it in the header alone
  uint32_t call_depth = 0;  // version 1 only
  uint32_t kind_raw = 0;    // the kind field as stored; version 1 has 32 bits of it
};

// A detail record; the payload is borrowed from the file.
struct DetailRecord {
  DetailType type{};
  uint16_t flags = 0;      // DetailFlags
  uint64_t index_seq = 0;  // version 1: 32 bits
  uint32_t thread_id = 0;  // version 1 only
  uint64_t timestamp_ns = 0;
  Bytes payload;
};

inline constexpr uint64_t kMaxEventsV1 = 0xFFFFFFFFull;  // of one thread, either lane

// kTruncated: shorter than a header. kUnsupported: another magic, byte order, version or event
// size. The message begins with "offset N: ". Offsets and counts are as stored and mean nothing
// before they are compared with the file.
Result<IndexHeader> decode_index_header(Bytes file);
Result<DetailFileHeader> decode_detail_header(Bytes file);

// Decodes with the reason as a finding; `header` is filled as far as it was understood.
std::optional<Finding> refuse_index_header(Bytes file, IndexHeader& header);
std::optional<Finding> refuse_detail_header(Bytes file, DetailFileHeader& header);

// Absent when fewer than 64 bytes are there or the magic differs.
std::optional<IndexFooter> decode_index_footer(Bytes at);
std::optional<DetailFooter> decode_detail_footer(Bytes at);

// `at` points to kEventBytes bytes.
inline IndexEvent decode_index_event(Version version, const uint8_t* at) {
  IndexEvent event;
  event.timestamp_ns = load_le<uint64_t>(at);
  event.function_id = load_le<uint64_t>(at + 8);
  if (version == Version::kV1) {
    event.thread_id = load_le<uint32_t>(at + offsetof(IndexEventV1, thread_id));
    event.kind_raw = load_le<uint32_t>(at + offsetof(IndexEventV1, event_kind));
    event.call_depth = load_le<uint32_t>(at + offsetof(IndexEventV1, call_depth));
    const uint32_t seq = load_le<uint32_t>(at + offsetof(IndexEventV1, detail_seq));
    event.detail_seq = seq == kNoDetailV1 ? kNoDetail : seq;
  } else {
    event.detail_seq = load_le<uint64_t>(at + offsetof(IndexEventV2, detail_seq));
    event.kind_raw = at[offsetof(IndexEventV2, event_kind)];
  }
  event.kind = event.kind_raw <= 3 ? static_cast<EventKind>(event.kind_raw) : EventKind{};
  return event;
}

// The record at the front of `bytes`; absent when its length is below 24 or beyond the end.
std::optional<DetailRecord> decode_detail_record(Version version, Bytes bytes);

}  // namespace collect::atf
