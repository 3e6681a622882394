// Looks at every byte of a stream once: the summary that `collectctl inspect` shows and the
// findings that `verify` prints. Memory: what the decoder keeps of one sub-stream, and the names of
// the event types, which have a limit. Any thread; no state outside the call.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "formats/core/bytes.h"
#include "formats/dial9/finding.h"
#include "formats/dial9/read/decoder.h"

namespace collect::dial9 {

// Event names beyond this many distinct ones, or this many bytes of them, are counted together.
inline constexpr size_t kMaxCountedNames = size_t{1} << 16;
inline constexpr size_t kMaxCountedNameBytes = size_t{16} << 20;

enum class Grade : uint8_t {
  kOk,
  kTruncated,  // all frames hold; the last one is not whole
  kDamaged,    // readable up to some place, then the stream contradicts itself
  kRejected,   // not even a header can be read
};

std::string_view to_text(Grade grade);  // "ok", "truncated", "damaged", "rejected"

// Relates the stream's clock to the wall: wall = time + (realtime_ns - time_ns). From the first
// event named ClockSyncEvent that has a time and an integer field realtime_ns.
struct ClockSync {
  uint64_t time_ns = 0;
  uint64_t realtime_ns = 0;
};

struct TimeSummary {
  std::optional<uint64_t> first_ns, last_ns;  // as written, all timestamped events
  std::optional<uint64_t> min_ns, min_nonzero_ns, max_ns;
  uint64_t older_as_written = 0;  // older than one before it, on any clock
  // Without times of 0 (symbols) and of SegmentMetadataEvent, which in older files carries the wall
  // clock: the range that the events cover.
  std::optional<uint64_t> range_begin_ns, range_end_ns;
  // Older than the newest before it in the whole stream: normal, since sub-streams overlap.
  uint64_t older_than_earlier = 0;
  uint64_t events_without_time = 0;
  std::optional<ClockSync> clock_sync;
};

struct Report {
  Grade grade = Grade::kOk;
  uint64_t bytes = 0;        // of the whole input
  uint64_t whole_bytes = 0;  // up to here frames are whole and good
  uint64_t sub_streams = 0;
  uint64_t schemas = 0;  // frames; repetitions included
  uint64_t events = 0;
  uint64_t string_pools = 0;
  uint64_t stack_pools = 0;
  uint64_t resets = 0;
  uint64_t annotations = 0;  // frames
  uint64_t pool_strings = 0;
  uint64_t pool_stacks = 0;
  std::map<std::string, uint64_t> events_by_name;
  uint64_t events_of_other_names = 0;  // beyond the limits above
  // By the schemas' type byte, over the events: how many fields of this type were written or, with
  // the optional bit, could have been.
  std::array<uint64_t, 256> field_types{};
  TimeSummary times;
  std::optional<Problem> problem;
  Findings findings;
};

Report check_stream(Bytes stream);

}  // namespace collect::dial9
