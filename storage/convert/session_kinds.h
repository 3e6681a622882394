// What a session has besides its calls and their losses, and which of it a format has a place for:
// the one list by which every target counts what it leaves out.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "storage/convert/convert_log.h"
#include "storage/manifest/manifest.h"

namespace collect::convert {

// Sets of these are added up.
enum SessionKind : uint32_t {
  kMarkersKind = 1 << 0,
  kDetailRecordsKind = 1 << 1,
  kDetailLossesKind = 1 << 2,  // where detail records are missing
  kStallsKind = 1 << 3,
  kSourceLinesKind = 1 << 4,  // file and line of functions
  kThreadEndsKind = 1 << 5,
  kProcessEndKind = 1 << 6,
  kClocksKind = 1 << 7,  // comparisons with the collector's
  kModulesKind = 1 << 8,
  kNotesKind = 1 << 9,
  kDetailWindowsKind = 1 << 10,
  kFiltersKind = 1 << 11,
  kStreamsKind = 1 << 12,  // of other formats
  kSwitchesKind = 1 << 13,
  kLockWaitsKind = 1 << 14,
  kSamplesKind = 1 << 15,
};

// What of the session is converted.
struct SessionPart {
  uint64_t first_ns = 0;
  uint64_t last_ns = std::numeric_limits<uint64_t>::max();
  std::function<bool(uint32_t thread)> has_thread{};  // empty: all
};

// Counts in `log` what the session has of the kinds in `lacking`. Detail records, times off the
// processor, waits for locks and samples are those that the manifest counts for its threads.
void leave_out_kinds(const storage::Manifest& manifest, uint32_t lacking, const SessionPart& part,
                     ConvertLog& log);

}  // namespace collect::convert
