// A page: whole records of one thread's lane, and what is known of them. Agent, wire, storage and
// containers describe it with these types alone. WIRE.md "Page frame" is normative. No allocation,
// no exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "formats/core/bytes.h"

namespace collect {

enum class Lane : uint8_t { kIndex = 0, kDetail = 1 };

enum class Codec : uint8_t {
  kRaw = 0,
  // proto/wire/page_codec.h; in a container storage/container/page_packing.h
  kColumns = 1,
  kTuples = 2,  // index lane alone
};

enum PageFlags : uint16_t {
  // Detail lane: recorded while detail was armed. The index events of these records were shipped
  // without a forward link; the collector sets it.
  kPagePreRoll = 1u << 0,
};

// Why records are missing; a set, because several may hold for one gap.
enum LostReason : uint32_t {
  kLostRingFull = 1u << 0,     // no free page at hook time, policy drop
  kLostOverwritten = 1u << 1,  // numbered, then overwritten before it was shipped
  kLostReentry = 1u << 2,      // a hook inside a hook (a signal handler, or the agent itself)
  kLostNoMemory = 1u << 3,     // no memory for a ring
  // The collector's own, not sent by an agent.
  kLostUnavailable = 1u << 4,  // numbered, but neither stored nor held by the agent any more
  kLostUnlinked = 1u << 16,    // a detail record that came whole, but whose index event was lost
  kLostDamaged = 1u << 17,     // was stored, and found unreadable after a crash
};

// In front of a page's bytes, on the wire and in a container. What a peer or a file sent may have
// any value in any field. A page with no records carries a loss alone.
struct PageHeader {            // 72 bytes, little-endian
  uint32_t stream_id = 0;      //  0  from StreamOpen
  Lane lane = Lane::kIndex;    //  4
  Codec codec = Codec::kRaw;   //  5
  uint16_t flags = 0;          //  6  PageFlags
  uint64_t first_seq = 0;      //  8  number of the first record within its stream and lane
  uint32_t record_count = 0;   // 16
  uint32_t raw_bytes = 0;      // 20  length of the records; as sent less, unless with kRaw
  uint32_t bytes_crc32c = 0;   // 24  on the wire of the bytes as sent, else of the records
  uint32_t lost_reasons = 0;   // 28  LostReason set for the loss right before this page
  uint64_t lost_total = 0;     // 32  records of this lane dropped before first_seq since the
                               //     stream's start; dropped records have no number. Cumulative,
                               //     so that a page sent twice does not count twice
  uint64_t lost_first_ns = 0;  // 40  times of the first and the last record lost right before
  uint64_t lost_last_ns = 0;   // 48  this page; 0 when none
  uint64_t first_ns = 0;       // 56  timestamps of the first and the last record; 0 when none
  uint64_t last_ns = 0;        // 64
};
static_assert(sizeof(PageHeader) == 72 && offsetof(PageHeader, last_ns) == 64);
static_assert(std::has_unique_object_representations_v<PageHeader>);

// A page in memory; the bytes are borrowed.
struct Page : PageHeader {
  Bytes bytes = {};    // the records; while `codec` says otherwise, what they were encoded to
  Bytes encoded = {};  // the same records as they came, where that was encoded; else empty
  Codec encoded_by = Codec::kRaw;

  bool pre_roll() const { return (flags & kPagePreRoll) != 0; }
};

}  // namespace collect
