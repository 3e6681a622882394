// What the agent sends to the collector at intervals, unasked: heartbeats with the numbers of the
// recorder, and the program's counters when they have changed. Drain thread only; part of
// DrainThread.
#pragma once

#include <cstdint>

#include "agent/drain/link/control_sender.h"
#include "agent/drain/link/link.h"
#include "agent/drain/ship/shipper.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

inline constexpr uint64_t kCountersMs = 10;  // at least, between two frames of counters

class StatusReports {
 public:
  StatusReports(Link& link, ControlSender& sender, const Shipper& shipper)
      : link_(link), sender_(sender), shipper_(shipper) {}

  // Both channels are welcomed: the collector knows no counter, and is sent a heartbeat at once.
  void begin_link(uint64_t now_ms);
  // Sends what is due.
  void send_due(uint64_t now_ms);

 private:
  void send_heartbeat(uint64_t now_ms);
  void send_counters(uint64_t now_ms);

  Link& link_;
  ControlSender& sender_;
  const Shipper& shipper_;

  uint64_t heartbeat_at_ms_ = 0;
  uint64_t counters_at_ms_ = 0;
  uint32_t counters_sent_ = 0;  // counter_changes() when they were sent last
  collect_wire_Counters counters_;
};

}  // namespace collect::agent
