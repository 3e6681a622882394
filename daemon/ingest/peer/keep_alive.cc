#include "daemon/ingest/peer/keep_alive.h"

namespace collect::ingest {

void KeepAlive::restart(SteadyTime now, uint64_t sent_frames) {
  received_at_ = sent_at_ = now;
  sent_frames_ = sent_frames;
}

KeepAlive::Due KeepAlive::sweep(SteadyTime now, uint64_t sent_frames) {
  if (now - received_at_ > dead_after()) return Due::kDead;
  if (sent_frames != sent_frames_) {
    sent_frames_ = sent_frames;
    sent_at_ = now;
  } else if (now - sent_at_ >= heartbeat_ / 2) {
    sent_at_ = now;
    return Due::kHeartbeat;
  }
  return Due::kNothing;
}

}  // namespace collect::ingest
