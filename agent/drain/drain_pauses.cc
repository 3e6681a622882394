// What of the process's time the drain knows to be no time of the program: stops and sleeps.
#include <utility>

#include "agent/drain/drain_thread.h"

namespace collect::agent {

void DrainThread::look_for_pauses(uint64_t may_sleep_ns) {
  const Pause pause = pause_watch_.look(read_pauses(), may_sleep_ns);
  const bool may_have_blocked = std::exchange(may_have_blocked_, false);
  if (phase_ != Phase::kRecording) return;
  if (pause.suspended_ns != 0) {
    // Where the counter slept too, the time of events stands still until the clock is fitted anew.
    const uint64_t before_ns = now_ns();
    recalibrate_clock();
    const uint64_t now = now_ns();
    const bool has_jumped = now - before_ns >= pause.suspended_ns / 2;
    add_pause(collect_wire_Stall_Kind_SUSPENDED, has_jumped ? before_ns : now - pause.suspended_ns,
              now);
  }
  // What the drain process sees of itself says nothing of the program.
  if (traced_ == nullptr && !may_have_blocked && pause.stopped_ns != 0) {
    const uint64_t now = now_ns();
    add_pause(collect_wire_Stall_Kind_STOPPED, now - pause.stopped_ns, now);
  }
}

// From the drain process: what is known of a stop lies between the first look that saw it and the
// last.
void DrainThread::look_for_stop() {
  if (traced_ == nullptr || phase_ != Phase::kRecording || now_ms_ < stop_look_at_ms_) return;
  stop_look_at_ms_ = now_ms_ + kStopLookMs;
  if (!traced_->is_stopped()) {
    end_stop();
    return;
  }
  stopped_last_ns_ = now_ns();
  if (stopped_first_ns_ == 0) stopped_first_ns_ = stopped_last_ns_;
}

void DrainThread::end_stop() {
  if (stopped_first_ns_ == 0) return;
  add_pause(collect_wire_Stall_Kind_STOPPED, stopped_first_ns_, stopped_last_ns_);
  stopped_first_ns_ = 0;
}

void DrainThread::add_pause(collect_wire_Stall_Kind kind, uint64_t first_ns, uint64_t last_ns) {
  if (first_ns < recording_start_ns()) first_ns = recording_start_ns();
  if (last_ns > first_ns) shipper_.stalls().add(kind, first_ns, last_ns);
}

}  // namespace collect::agent
