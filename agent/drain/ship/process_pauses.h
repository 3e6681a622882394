// Stops and sleeps of the whole process while it is recorded: found by the drain, and reported to
// the stall log. AGENT.md "Stalls". Drain thread only; part of DrainThread.
//
// A drain thread finds them in its own readings (PauseWatch). A drain process finds sleeps of the
// machine so, and looks at the traced process for its stops.
#pragma once

#include <cstdint>

#include "agent/drain/ship/pause_watch.h"
#include "agent/drain/ship/stall_log.h"
#include "agent/drain/ship/traced_process.h"

namespace collect::agent {

inline constexpr uint64_t kStopLookMs = 10;  // at least, between two looks whether it is stopped

class ProcessPauses {
 public:
  explicit ProcessPauses(StallLog& stalls) : stalls_(stalls) {}

  // The caller is the drain process of `traced`.
  void watch(const TracedProcess& traced) { traced_ = &traced; }

  // The drain waited for the disk or for threads to be quiet, or may have: until the next look it
  // does not take its own pauses for stops of the program.
  void note_blocking() { may_have_blocked_ = true; }

  // What has passed since the last look; `may_sleep_ns` as in PauseWatch. Looks while nothing is
  // recorded report nothing.
  void look(const PauseReadings& now, uint64_t may_sleep_ns, bool is_recorded);
  // Whether the traced process is stopped. Cheap between two looks.
  void look_for_stop(uint64_t now_ms, bool is_recorded);
  // Before the recording is stopped: a stop that lasts is reported as far as it was seen.
  void recording_ends() { end_stop(); }

 private:
  void end_stop();
  void add(collect_wire_Stall_Kind kind, uint64_t first_ns, uint64_t last_ns);

  StallLog& stalls_;
  const TracedProcess* traced_ = nullptr;  // null: the drain is a thread of the program
  PauseWatch watch_;
  bool may_have_blocked_ = false;  // since the last look
  uint64_t stop_look_at_ms_ = 0;
  uint64_t stopped_first_ns_ = 0;  // the stop that is seen now; 0: none
  uint64_t stopped_last_ns_ = 0;
};

}  // namespace collect::agent
