#include "agent/drain/ship/process_pauses.h"

#include <utility>

#include "agent/ring/recorder.h"

namespace collect::agent {

void ProcessPauses::look(const PauseReadings& now, uint64_t may_sleep_ns, bool is_recorded) {
  const Pause pause = watch_.look(now, may_sleep_ns);
  const bool may_have_blocked = std::exchange(may_have_blocked_, false);
  if (!is_recorded) return;
  if (pause.suspended_ns != 0) {
    // Where the counter slept too, the time of events stops until the clock is fitted again.
    const uint64_t before_ns = now_ns();
    recalibrate_clock();
    const uint64_t after_ns = now_ns();
    const bool has_jumped = after_ns - before_ns >= pause.suspended_ns / 2;
    add(collect_wire_Stall_Kind_SUSPENDED, has_jumped ? before_ns : after_ns - pause.suspended_ns,
        after_ns);
  }
  // What the drain process sees of itself says nothing of the program.
  if (traced_ == nullptr && !may_have_blocked && pause.stopped_ns != 0) {
    const uint64_t end_ns = now_ns();
    add(collect_wire_Stall_Kind_STOPPED, end_ns - pause.stopped_ns, end_ns);
  }
}

// What is known of a stop is between the first look that saw it and the last.
void ProcessPauses::look_for_stop(uint64_t now_ms, bool is_recorded) {
  if (traced_ == nullptr || !is_recorded || now_ms < stop_look_at_ms_) return;
  stop_look_at_ms_ = now_ms + kStopLookMs;
  if (!traced_->is_stopped()) {
    end_stop();
    return;
  }
  stopped_last_ns_ = now_ns();
  if (stopped_first_ns_ == 0) stopped_first_ns_ = stopped_last_ns_;
}

void ProcessPauses::end_stop() {
  if (stopped_first_ns_ == 0) return;
  add(collect_wire_Stall_Kind_STOPPED, stopped_first_ns_, stopped_last_ns_);
  stopped_first_ns_ = 0;
}

void ProcessPauses::add(collect_wire_Stall_Kind kind, uint64_t first_ns, uint64_t last_ns) {
  if (first_ns < recording_start_ns()) first_ns = recording_start_ns();
  if (last_ns > first_ns) stalls_.add(kind, first_ns, last_ns);
}

}  // namespace collect::agent
