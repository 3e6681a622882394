// Walks records of a lane and says how far they hold: the check of every page before it is stored,
// and of every file that is opened again. What it gathers on the way (counts, times, links) is all
// that sealing needs, so a file that came whole is never read again.
//
// Measured: tests/bench/BENCHMARKS.md "Where the CPU goes".
#pragma once

#include <cstdint>

#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// Record numbers and counts of a peer beyond this are nonsense, and below it sums cannot overflow.
inline constexpr uint64_t kMaxRecordNumber = 1ull << 60;

// What is known of the records of one file, from its first one on.
struct LaneSummary {
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint32_t checksum = 0;  // of the section; kept by the caller, not by the scan
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  // Links to the other lane, in the numbers of the records. Index: of the events that have a detail
  // record. Detail: all. Equal link counts and hashes of the two lanes mean that every forward link
  // meets its backward link (the hash depends on the order).
  uint64_t links = 0;
  uint64_t link_hash = 0;
  uint64_t first_link = 0;
  uint64_t next_link = 0;  // one past the last link: links grow strictly
};

// LaneSummary::links of a file whose links were not looked at: no other lane agrees with it.
inline constexpr uint64_t kLinksNotKnown = UINT64_MAX;

struct RecordFormat {
  atf::Version version = atf::Version::kV2;
  uint32_t thread_id = 0;      // version 1 has it in each record
  bool without_links = false;  // of events: neither checked nor summed up
};

// Extends `summary` by the records at the front of `bytes`, up to the first one that is damaged:
// an unknown kind, a reserved byte that is set, time or links running backwards, another thread, a
// length beyond the end. At most `max_records`.
void scan_index(const RecordFormat& format, Bytes bytes, uint64_t max_records,
                LaneSummary& summary);
void scan_detail(const RecordFormat& format, Bytes bytes, uint64_t max_records,
                 LaneSummary& summary);
inline void scan_lane(Lane lane, const RecordFormat& format, Bytes bytes, uint64_t max_records,
                      LaneSummary& summary) {
  if (lane == Lane::kIndex) {
    scan_index(format, bytes, max_records, summary);
  } else {
    scan_detail(format, bytes, max_records, summary);
  }
}

// Whether an event, or a detail record that is within `bytes`, can be one as it is alone:
// everything but the order of times and links.
bool holds_alone(const RecordFormat& format, Lane lane, Bytes bytes);

// Length of the first `records` detail records; absent lengths make it stop early.
size_t detail_bytes(Bytes bytes, uint64_t records);

// Adds the next link to a link hash: the position of an index event that has a detail record.
inline uint64_t extend_link_hash(uint64_t hash, uint64_t index_seq) {
  return hash * 0x9E3779B97F4A7C15ull + index_seq + 1;
}

}  // namespace collect::storage
