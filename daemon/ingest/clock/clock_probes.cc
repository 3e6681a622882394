#include "daemon/ingest/clock/clock_probes.h"

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

void ClockProbes::restart(Time now) {
  in_burst_ = false;
  next_burst_at_ = now;
}

void ClockProbes::begin_burst(Link& link) {
  in_burst_ = true;
  ++burst_;
  probe_ = 0;
  fit_.begin_burst();
  send_probe(link);
}

void ClockProbes::send_probe(Link& link) {
  wire::ClockProbe probe;
  probe.set_burst(burst_);
  probe.set_number(probe_);
  sent_at_ = std::chrono::steady_clock::now();
  sent_ns_ = boottime_ns();
  probe.set_t1_ns(sent_ns_);
  link.send(wire::FrameType::kClockProbe, probe);
}

std::optional<storage::ClockSync> ClockProbes::take(const wire::ClockReply& reply,
                                                    uint64_t received_ns, Link& link) {
  if (!in_burst_ || reply.burst() != burst_ || reply.number() != probe_) return std::nullopt;
  fit_.add({sent_ns_, reply.t2_ns(), reply.t3_ns(), received_ns});
  if (++probe_ >= kProbesPerBurst) return end_burst();
  send_probe(link);
  return std::nullopt;
}

std::optional<storage::ClockSync> ClockProbes::sweep(Time now) {
  if (!in_burst_ || now - sent_at_ <= kProbeDeadline) return std::nullopt;
  return end_burst();
}

std::optional<storage::ClockSync> ClockProbes::end_burst() {
  in_burst_ = false;
  next_burst_at_ = std::chrono::steady_clock::now() + kBurstInterval;
  std::optional<storage::ClockSync> sync = fit_.end_burst();
  if (!sync) return std::nullopt;
  sync->at_unix_ns = unix_ns_at(sync->at_ns);
  sync->boot_id = boot_id();
  return sync;
}

}  // namespace collect::ingest
