// What Index, index, Meta and repeated clocks take of each Unit and unit at most, so that a stream
// is refused while there is still room for data, and not when a frame no longer fits. All bounds
// are upper ones. A value of its Writer's; no thread rules of its own.
#pragma once

#include <cstdint>

#include "formats/core/result.h"
#include "formats/rtc/layout.h"
#include "formats/rtc/meta/stream_info.h"

namespace collect::rtc {

class UnitRoom {
 public:
  explicit UnitRoom(const Geometry& geometry);

  // A stream more, with its id, whose description takes `json_bytes` in Meta. kLimit, and nothing
  // changes: there would be no room for data in some Unit, for an index in some unit, or anywhere
  // for the largest frame that must not be split.
  Status add(const StreamInfo& info, size_t json_bytes);
  void remove(const StreamInfo& info, size_t json_bytes);
  static Error full(const StreamInfo& info, const Geometry& geometry);

  // Bytes at the head of a Unit, behind its Marker: Index, Meta and clocks.
  uint64_t head_bytes() const;
  // Bytes at the head of a unit: index and clocks.
  uint64_t section_head_bytes() const;

  // Where sections of a Unit begin that nothing was written into yet, and where the last one ends.
  struct Ahead {
    uint64_t first;
    uint64_t end;
  };
  // Whether a meta of `json_bytes` fits into `room` and the sections ahead.
  bool fits(size_t json_bytes, uint64_t room, Ahead ahead) const;

 private:
  struct Bounds {
    size_t entry_bytes = 0;
    size_t meta_bytes = 0;
    size_t clock_bytes = 0;
    size_t largest_whole_frame = 0;
  };
  bool has_room(const Bounds& bounds) const;

  const Geometry geometry_;
  Bounds bounds_;
};

}  // namespace collect::rtc
