// When a control channel was last used, both ways. An agent that says nothing for three heartbeats
// is gone; it is sent a heartbeat when nothing else was sent for half of one.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <cstdint>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/live_session.h"

namespace collect::ingest {

class KeepAlive {
 public:
  enum class Due : uint8_t { kNothing, kHeartbeat, kDead };

  explicit KeepAlive(milliseconds heartbeat) : heartbeat_(heartbeat) {}

  // A new channel, on which so many frames were sent.
  void restart(SteadyTime now, uint64_t sent_frames);
  void note_received(SteadyTime now) { received_at_ = now; }
  // What is to be done now. A heartbeat is taken for sent.
  Due sweep(SteadyTime now, uint64_t sent_frames);
  milliseconds dead_after() const { return heartbeat_ * kDeadAfterHeartbeats; }

 private:
  const milliseconds heartbeat_;
  SteadyTime received_at_{};
  SteadyTime sent_at_{};
  uint64_t sent_frames_ = 0;
};

}  // namespace collect::ingest
