// What interrupts the calls of one thread, by its manifest: stalls, and events that were lost.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/running_time.h"
#include "storage/model/session_types.h"
#include "storage/read/session_manifest.h"

namespace collect::read {

// The stalls of thread_N and those of the whole process, in order of time.
std::vector<storage::Stall> stalls_of(const SessionManifest& manifest, uint32_t thread);

// The losses between its events, in their order.
std::vector<storage::Gap> event_gaps_of(const SessionManifest& manifest, uint32_t thread);

// Both as the pairing takes them.
std::vector<calls::Stall> call_stalls_of(const SessionManifest& manifest, uint32_t thread);
std::vector<calls::Gap> call_gaps_of(const SessionManifest& manifest, uint32_t thread);

}  // namespace collect::read
