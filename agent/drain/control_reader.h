// Reads what the collector says on the control channel: clock probes, acknowledgements, commands,
// its Bye, a refusal. Drain thread only; part of DrainThread. Nothing allocates.
#pragma once

#include <cstdint>

#include "agent/drain/commands.h"
#include "agent/drain/link/control_sender.h"
#include "agent/drain/link/link.h"
#include "agent/drain/recording_state.h"
#include "agent/drain/ship/shipper.h"

namespace collect::agent {

inline constexpr uint32_t kFramesPerRound = 64;

class ControlReader {
 public:
  ControlReader(Link& link, ControlSender& sender, Shipper& shipper, RecordingState& recording,
                Commands& commands)
      : link_(link),
        sender_(sender),
        shipper_(shipper),
        recording_(recording),
        commands_(commands) {}

  // All that is there, up to kFramesPerRound reads. The link breaks on what does not belong there.
  void read(uint64_t now_ms);

 private:
  void take(uint64_t now_ms, const wire::Frame& frame);
  void take_goodbye(uint64_t now_ms, Bytes body);
  void answer_probe(uint64_t now_ms, Bytes body);
  void take_ack(uint64_t now_ms, Bytes body);
  void refuse(uint64_t now_ms, const char* reason);

  Link& link_;
  ControlSender& sender_;
  Shipper& shipper_;
  RecordingState& recording_;
  Commands& commands_;

  uint64_t arrived_ns_ = 0;  // the bytes that are looked at
  collect_wire_Ack ack_;
};

}  // namespace collect::agent
