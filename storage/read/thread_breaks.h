// What interrupts the calls of one thread, by its manifest: stalls, times off the processor, waits
// for locks, and events that were lost.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/running_time.h"
#include "storage/model/session_types.h"
#include "storage/read/session_manifest.h"

namespace collect::read {

// The times in which thread_N did not run, and those of the whole process, in order of time.
std::vector<storage::Stall> idle_times_of(const SessionManifest& manifest, uint32_t thread);
// Those of a kind that is its own: kLock and kSample lie over the others.
std::vector<storage::Stall> times_of(const SessionManifest& manifest, uint32_t thread,
                                     storage::StallKind kind);
// Of the times the stalls alone, which no measurement of a function has in it.
std::vector<storage::Stall> stalls_of(const SessionManifest& manifest, uint32_t thread);

// The losses between its events, in their order.
std::vector<storage::Gap> event_gaps_of(const SessionManifest& manifest, uint32_t thread);

// As the pairing takes them: idle_times_of(), and the gaps.
calls::Stall call_stall_of(const storage::Stall& stall);
std::vector<calls::Stall> call_stalls_of(const SessionManifest& manifest, uint32_t thread);
std::vector<calls::Gap> call_gaps_of(const SessionManifest& manifest, uint32_t thread);

}  // namespace collect::read
