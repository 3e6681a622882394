// The events of one index file in time order. Sorted files are one run; where times step back, a
// new run begins, and merging the runs is the sort: memory is 8 bytes per step back, not per event.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/atf/reader.h"

namespace collect::atf {

struct TimeRange {
  uint64_t first_ns = 0;  // smallest
  uint64_t last_ns = 0;   // largest, inclusive
};

class TimeOrder {
 public:
  // Reads every timestamp once. `reader`'s bytes must outlive the calls below that take it.
  static TimeOrder of(const IndexReader& reader);

  bool sorted() const { return run_starts_.size() <= 1; }
  uint64_t backward_steps() const { return sorted() ? 0 : run_starts_.size() - 1; }
  std::optional<TimeRange> range() const { return range_; }  // absent without events

  // Run r is [begin, end) in sequence numbers; times do not fall within it.
  size_t runs() const { return run_starts_.size(); }
  uint64_t run_begin(size_t run) const { return run_starts_[run]; }
  uint64_t run_end(size_t run) const {
    return run + 1 < run_starts_.size() ? run_starts_[run + 1] : events_;
  }
  // The first sequence number of the run whose time is >= time_ns, or run_end. Binary search.
  uint64_t seek(const IndexReader& reader, size_t run, uint64_t time_ns) const;

 private:
  std::vector<uint64_t> run_starts_;
  uint64_t events_ = 0;
  std::optional<TimeRange> range_;
};

}  // namespace collect::atf
