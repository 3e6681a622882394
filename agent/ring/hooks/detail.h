// Detail records: registers and stack beside an event. On: into the stream's detail lane. Armed:
// into a chain that the thread keeps to itself and overwrites from its oldest page on, until
// StartDetail asks for it as pre-roll.
#pragma once

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/stream.h"

namespace collect::agent {

struct DetailRecord {
  uint64_t function_id;
  uint64_t ns;
  uint64_t index_seq;
  atf::EventKind kind;
  const HookFrame& frame;
};

// False, with the LostReason, when the record found no room: the caller waits, or counts it as
// lost.
// `*seq` gets the record's number for the index event to link to; armed records have none yet and
// leave it as it is.
bool write_detail(Stream& stream, const DetailRecord& record, uint64_t state, uint64_t* seq,
                  uint32_t* reasons);
// Before any event. False: no memory.
bool detail_init();
// Whether the pool has a page for detail.
bool detail_may_grow();

struct PreRoll {
  uint64_t records = 0;
  uint64_t from_ns = 0;
};

// While no hook is inside: moves a stream's armed records not older than `cut_ns` into its detail
// lane, numbered, and frees the rest.
PreRoll ship_armed(Stream& stream, uint64_t cut_ns);
void drop_armed(Stream& stream);

// Detail is taken only while more than a quarter of the pool is free, so that index events find
// room; armed pages may hold a quarter of it.
inline constexpr uint64_t kDetailReserveDivisor = 4;
inline constexpr uint64_t kArmedDivisor = 4;

}  // namespace collect::agent
