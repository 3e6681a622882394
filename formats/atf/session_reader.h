// All threads of one session as one timeline: merge by timestamp, seek by time, links. It works on
// bytes; the caller that opens the files (collectctl: storage/read/session_files.h) keeps them
// mapped.
//
// A thread that cannot be read is kept with its findings and no reader: it never hides the others.
// Not thread-safe: time orders and detail offset tables are built on first use.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "formats/atf/finding.h"
#include "formats/atf/reader.h"
#include "formats/atf/time_order.h"

namespace collect::atf {

struct ThreadFiles {
  uint32_t n = 0;  // of thread_<n>
  Bytes index;
  std::optional<Bytes> detail;              // absent when there is no detail.atf
  const BringBytes* bring_index = nullptr;  // as for IndexReader::open()
};

struct SessionThread {
  uint32_t n = 0;
  std::optional<IndexReader> index;
  std::optional<DetailReader> detail;  // only beside an index of the same version
  Findings findings;                   // of opening; check.h finds the rest
};

struct MergedEvent {
  size_t thread = 0;  // position in SessionReader::threads()
  uint64_t seq = 0;   // position in that thread's index
  IndexEvent event;
};

class SessionReader;

// Events of all threads in time order; of equal times the earlier thread comes first, within a
// thread the earlier event. Borrows from the SessionReader.
class MergedCursor {
 public:
  bool next(MergedEvent& out);

 private:
  friend class SessionReader;
  struct Run {  // a sorted stretch of one thread, what is left of it
    uint64_t time_ns;
    uint64_t seq;
    uint64_t end;
    size_t thread;
  };
  static bool before(const Run& a, const Run& b) {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    if (a.thread != b.thread) return a.thread < b.thread;
    return a.seq < b.seq;
  }
  void sift_down(size_t at);

  const SessionReader* session_ = nullptr;
  std::vector<Run> heap_;  // smallest first
  uint64_t until_ns_ = 0;
};

class SessionReader {
 public:
  explicit SessionReader(const std::vector<ThreadFiles>& files);

  const std::vector<SessionThread>& threads() const { return threads_; }
  uint64_t events() const;  // over all readable threads
  // Smallest and largest time over all threads; computed from the events, not from headers.
  std::optional<TimeRange> time_range() const;
  // Thread `position` must have an index.
  const TimeOrder& time_order(size_t position) const;

  // From the first event at or after `from_ns` to the last at or before `until_ns`.
  MergedCursor merged(uint64_t from_ns = 0,
                      uint64_t until_ns = std::numeric_limits<uint64_t>::max()) const;

  // O(1) both ways once the thread's offset table is there. Absent where the link is absent, leads
  // nowhere, or the thread has no detail.
  std::optional<DetailRecord> detail_of(size_t position, const IndexEvent& event) const;
  std::optional<IndexEvent> event_of(size_t position, const DetailRecord& record) const;

 private:
  std::vector<SessionThread> threads_;
  mutable std::vector<std::optional<TimeOrder>> orders_;
};

}  // namespace collect::atf
