// The clocks of a trace, and what their times are on the one that the trace is shown on: by the
// last snapshot that has the clock (FORMAT.md "Reading").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "formats/core/bytes.h"
#include "formats/perfetto/layout.h"

namespace collect::perfetto {

class ClockTimes {
 public:
  // A ClockSnapshot in a packet of this sequence. False: it has no clock that is known, or it is no
  // message.
  bool take_snapshot(uint32_t sequence, Bytes message);

  // `timestamp` as the packet has it; of an incremental clock it is a step, which is made. Nothing:
  // no snapshot has the clock.
  std::optional<int64_t> time_of(uint32_t sequence, uint32_t clock, uint64_t timestamp);

  // Whether times were taken as they are, for no snapshot has their clock.
  bool has_guessed() const { return has_guessed_; }

 private:
  struct Known {
    uint64_t clock_ns = 0;  // at the snapshot
    uint64_t trace_ns = 0;  // the same moment
    uint64_t last_ns = 0;   // of an incremental clock
    uint64_t unit_ns = 1;
    bool is_incremental = false;
  };
  using Key = std::pair<uint32_t, uint32_t>;  // sequence, or 0 of a clock of all; clock
  static Key key_of(uint32_t sequence, uint32_t clock);

  std::map<Key, Known> clocks_;
  uint32_t primary_ = kClockBoottime;
  bool has_guessed_ = false;
};

}  // namespace collect::perfetto
