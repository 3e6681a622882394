// Bursts of clock probes on one control link: when they are sent, and what they found. ClockFit
// does the arithmetic.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/ingest/clock/clock_fit.h"
#include "daemon/ingest/link/link.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class ClockProbes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A new control link: its first burst is due at once.
  void restart(Time now);
  // There is no link.
  void stop() { in_burst_ = false; }
  bool is_due(Time now) const { return !in_burst_ && now >= next_burst_at_; }
  void begin_burst(Link& link);
  // A reply that was received at `received_ns` (boottime_ns()): sends the next probe. What the
  // burst found, when it was the last one.
  std::optional<storage::ClockSync> take(const wire::ClockReply& reply, uint64_t received_ns,
                                         Link& link);
  // Time passes: a burst whose probe is not answered ends, with what it found.
  std::optional<storage::ClockSync> sweep(Time now);

 private:
  void send_probe(Link& link);
  std::optional<storage::ClockSync> end_burst();

  ClockFit fit_;
  uint32_t burst_ = 0;
  uint32_t probe_ = 0;
  bool in_burst_ = false;
  uint64_t sent_ns_ = 0;
  Time sent_at_{};
  Time next_burst_at_{};
};

}  // namespace collect::ingest
