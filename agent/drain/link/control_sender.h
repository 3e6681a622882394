// Frames to the collector on the link's control channel. Drain thread only; part of DrainThread.
#pragma once

#include <pb.h>

#include <cstdint>

#include "agent/drain/link/link.h"

namespace collect::agent {

class ControlSender {
 public:
  explicit ControlSender(Link& link) : link_(link) {}

  // Sends at once what the socket takes. Nothing happens while the channel is not open; the link of
  // a collector that leaves no room for the frame breaks.
  void send(uint64_t now_ms, wire::FrameType type, const pb_msgdesc_t* fields, const void* message);

 private:
  Link& link_;
};

}  // namespace collect::agent
