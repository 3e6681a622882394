// Which of the agent's records a file has: its positions in the agent's numbers, by the gaps of the
// manifest. Each numbered loss moves what comes behind it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage {

struct RecordRange {
  uint64_t first_seq = 0;  // the agent's number of its first record
  uint64_t records = 0;
  uint64_t position = 0;  // of that record in the file
  // The manifest lists every gap before it. Behind joined gaps (kMaxGapsPerThread) the numbers are
  // known to be at least these.
  bool is_exact = true;

  uint64_t end_seq() const { return first_seq + records; }
};

// Ranges of one lane of thread_N, in order; none without records. `gaps` are in the order of their
// threads, as the manifest has them.
std::vector<RecordRange> record_ranges(std::span<const Gap> gaps, uint32_t thread, Lane lane,
                                       uint64_t records);

// Positions in the file of a lane, and the agent's numbers.
class RecordNumbers {
 public:
  explicit RecordNumbers(std::vector<RecordRange> ranges) : ranges_(std::move(ranges)) {}

  uint64_t number_of(uint64_t position) const;
  // Each position is its number.
  bool is_identity() const;
  bool is_exact() const { return ranges_.empty() || ranges_.back().is_exact; }
  const std::vector<RecordRange>& ranges() const { return ranges_; }

 private:
  std::vector<RecordRange> ranges_;
};

}  // namespace collect::storage
