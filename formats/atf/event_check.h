// The event pass behind check.h: what a range of events says, and how ranges add up. add() compares
// times and links at the seams: links are counted from the range's first one.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "formats/atf/reader.h"

namespace collect::atf {

struct EventTally {
  static constexpr size_t kKinds = 4;  // 0 counts every unknown one

  // Adds the range behind this one.
  void add(EventTally&& next, Version version);

  uint64_t events = 0;
  uint64_t kinds[kKinds] = {};  // by EventKind
  uint64_t backward_steps = 0;
  uint64_t links = 0;     // events with a detail_seq
  uint64_t reserved = 0;  // events with reserved bytes that are not zero; version 2 only
  uint32_t max_depth = 0;
  uint64_t first_seq = 0;  // and its time, and that of the last one
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint64_t min_ns = UINT64_MAX;
  uint64_t max_ns = 0;
  uint32_t checksum = 0;  // of the events, by the version's polynomial
  // Where something happened first, so that one finding names the place.
  std::optional<uint64_t> first_unknown_kind, first_step_back, first_reserved;
  std::optional<uint64_t> first_bad_link;  // not one more than the link before
  std::optional<uint64_t> first_link;      // the event
  uint64_t first_link_seq = 0;             // and the record it points to
  std::unordered_set<uint64_t> functions;  // at most kMaxCountedFunctions
  Findings findings;                       // thread ids; version 1 only
};

// Events [first, end) of the index. `functions` false: they are not counted.
EventTally tally_events(const IndexReader& index, uint64_t first, uint64_t end, bool functions);

}  // namespace collect::atf
