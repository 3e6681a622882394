// Calls and returns of one track, made of begins, ends and calls with a duration in the order of
// time (record_store.h). A session's calls nest: a call that is open when its caller ends, ends
// with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/core/result.h"
#include "storage/convert/timeline/record_store.h"

namespace collect::convert {

inline constexpr size_t kMaxOpenTrackCalls = size_t{1} << 20;
// Calls with a duration that begin at the same time are put in order, the longest first, as long as
// no more events than these have that time.
inline constexpr size_t kMaxSameTime = size_t{1} << 16;

struct TrackCounts {
  uint64_t lone_ends = 0;      // without a begin
  uint64_t cut_calls = 0;      // whose end is behind their caller's
  uint64_t unended_calls = 0;  // without an end, in a caller that has one
  uint64_t too_deep = 0;
};

class CallSteps {
 public:
  virtual ~CallSteps() = default;
  virtual Status call(int64_t ns, uint32_t function) = 0;
  virtual Status returned(int64_t ns, uint32_t function) = 0;
};

class TrackCalls {
 public:
  TrackCalls(CallSteps& steps, TrackCounts& counts) : steps_(steps), counts_(counts) {}

  // In order.
  Status take(const TimelineRecord& record);
  // Calls without an end stay open.
  Status finish();

 private:
  struct Open {
    uint32_t function = 0;
    bool has_end = false;
    int64_t end_ns = 0;
  };

  Status take_same_time();
  Status step(const TimelineRecord& record);
  Status push(const TimelineRecord& record);
  Status end_innermost(int64_t ns);
  Status end_until(int64_t ns);
  Status close_to(size_t size, int64_t ns);

  CallSteps& steps_;
  TrackCounts& counts_;
  std::vector<TimelineRecord> same_time_;
  std::vector<Open> open_;     // outermost first
  std::vector<size_t> timed_;  // positions in open_ of those with an end, which never grows
  uint64_t deeper_ = 0;        // begins that open_ has no place for
};

}  // namespace collect::convert
