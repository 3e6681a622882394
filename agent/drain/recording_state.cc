#include "agent/drain/recording_state.h"

#include "agent/drain/link/status.h"
#include "formats/atf/layout.h"

namespace collect::agent {
namespace {

// RecordingEnd.reason: AGENT.md "Ends of a recording".
constexpr char kTimeLimit[] = "time limit";
constexpr char kSizeLimit[] = "size limit";

}  // namespace

void RecordingState::begin_by_itself() {
  const uint64_t since_ns = settings_.max_time_since_ns;
  const uint64_t now = now_ns();
  const bool is_over = settings_.max_time_ns != 0 && since_ns != 0 && now > since_ns &&
                       now - since_ns >= settings_.max_time_ns;
  if (settings_.start_recording && !is_over) begin(true);
}

void RecordingState::ask() {
  if (phase_ == Phase::kIdle) {
    shipper_.metadata_sender().set_late(0);
    begin(false);
  }
  shipper_.metadata_sender().recording_was_asked_for();
}

void RecordingState::begin(bool unasked) {
  (void)start_recording();
  phase_ = Phase::kRecording;
  recorded_bytes_ = 0;
  until_ns_ = 0;
  if (settings_.max_time_ns != 0) {
    const uint64_t since_ns = unasked ? settings_.max_time_since_ns : 0;
    until_ns_ = (since_ns != 0 ? since_ns : recording_start_ns()) + settings_.max_time_ns;
  }
  shipper_.begin_recording(unasked);
  detail_.recording_begins();
}

void RecordingState::end(const char* reason, const collect_wire_ProcessEnd* process_end) {
  pauses_.recording_ends();
  stop_recording();
  const uint64_t end_ns = now_ns();
  phase_ = Phase::kEnding;
  until_ns_ = 0;
  detail_.recording_ends(end_ns);
  shipper_.end_recording(end_ns, reason, process_end);
}

void RecordingState::end_with_process(const char* reason,
                                      const collect_wire_ProcessEnd* process_end) {
  end(size_reached() ? kSizeLimit : reason, process_end);
}

bool RecordingState::collector_ended(uint64_t now_ms, uint32_t number) {
  if (phase_ == Phase::kIdle || number != current_recording()) return false;
  if (phase_ == Phase::kRecording) log_line("the collector ended the recording");
  forget(now_ms);
  return true;
}

void RecordingState::end_kept(uint64_t now_ms) {
  if (phase_ != Phase::kEnding) return;
  if (link_.is_up() && shipper_.metadata_sender().keeps_recording(shipper_.streams())) {
    forget(now_ms);
  }
}

void RecordingState::forget(uint64_t now_ms) {
  if (is_recording()) stop_recording();
  until_ns_ = 0;
  const bool torn = shipper_.mid_frame();
  shipper_.forget_recording();
  phase_ = Phase::kIdle;
  if (torn) link_.break_link(now_ms, "the collector ended the recording in the middle of a page");
}

void RecordingState::drop() {
  if (is_recording()) stop_recording();
  shipper_.forget_recording();
  phase_ = Phase::kIdle;
}

void RecordingState::count(const RecorderStats& stats) {
  recorded_bytes_ = stats.recorded * atf::kEventBytes +
                    stats.detail_recorded * (atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes);
}

void RecordingState::end_at_limit(uint64_t now_ms, uint64_t now_ns) {
  if (phase_ != Phase::kRecording) return;
  const bool by_size =
      size_reached() || (settings_.max_bytes != 0 && recorded_bytes_ >= settings_.max_bytes);
  if (!by_size && (until_ns_ == 0 || now_ns < until_ns_)) return;
  log_line(by_size ? "the recording has the size that was asked for, and ends"
                   : "the recording has lasted as long as was asked for, and ends");
  end(by_size ? kSizeLimit : kTimeLimit, nullptr);
  end_kept(now_ms);
}

}  // namespace collect::agent
