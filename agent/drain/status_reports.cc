#include "agent/drain/status_reports.h"

#include "agent/ring/counters.h"
#include "agent/text.h"

namespace collect::agent {

void StatusReports::begin_link(uint64_t now_ms) {
  heartbeat_at_ms_ = now_ms;
  forget_counter_readings();
  counters_sent_ = 0;
}

void StatusReports::send_due(uint64_t now_ms) {
  if (link_.control().step == ChannelStep::kOpen && now_ms >= heartbeat_at_ms_) {
    send_heartbeat(now_ms);
  }
  // Not behind anything that the collector has not read yet: changes add up meanwhile.
  if (link_.is_up() && link_.control().out.is_empty() && now_ms >= counters_at_ms_ &&
      counter_changes() != counters_sent_) {
    send_counters(now_ms);
  }
}

void StatusReports::send_heartbeat(uint64_t now_ms) {
  // A little early, so that the interval holds although the thread sleeps between two looks.
  heartbeat_at_ms_ = now_ms + link_.heartbeat_ms() / 2;
  const RecorderStats stats = recorder_stats();
  collect_wire_Heartbeat heartbeat = collect_wire_Heartbeat_init_zero;
  heartbeat.recorded = stats.recorded;
  heartbeat.lost = stats.lost;
  heartbeat.detail_recorded = stats.detail_recorded;
  heartbeat.detail_lost = stats.detail_lost;
  heartbeat.buffer_used = stats.buffer_used;
  heartbeat.buffer_bytes = stats.buffer_bytes;
  heartbeat.threads = stats.threads;
  heartbeat.is_recording = is_recording();
  heartbeat.detail = static_cast<collect_wire_DetailMode>(detail_mode());
  heartbeat.lost_without_stream = stats.lost_without_stream;
  heartbeat.recording = current_recording();
  heartbeat.spooled_bytes = shipper_.streams().spool().bytes();
  heartbeat.link_raw_bytes = shipper_.link_raw_bytes();
  heartbeat.link_sent_bytes = shipper_.link_sent_bytes();
  sender_.send(now_ms, wire::FrameType::kHeartbeat, collect_wire_Heartbeat_fields, &heartbeat);
}

void StatusReports::send_counters(uint64_t now_ms) {
  counters_at_ms_ = now_ms + kCountersMs;
  counters_sent_ = counter_changes();
  counters_.at_ns = now_ns();
  counters_.counters_count = 0;
  for (uint32_t index = 0; index < wire::kMaxCounters; ++index) {
    CounterReading reading;
    if (!read_counter(index, reading)) continue;
    collect_wire_Counter& counter = counters_.counters[counters_.counters_count++];
    copy_utf8(counter.name, sizeof counter.name, reading.name, sizeof reading.name);
    counter.value = reading.value;
    counter.highest = reading.highest;
  }
  if (counters_.counters_count != 0) {
    sender_.send(now_ms, wire::FrameType::kCounters, collect_wire_Counters_fields, &counters_);
  }
}

}  // namespace collect::agent
