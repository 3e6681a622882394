// The recording, from its begin until the collector has sealed it, and the limits at which it ends
// by itself. AGENT.md "Ends of a recording". Drain thread only; part of DrainThread. A recording
// that the settings ask for begins on the thread that starts the agent, before there is a drain;
// drop() is also called there, when there is none any more.
#pragma once

#include <cstdint>

#include "agent/drain/detail_window.h"
#include "agent/drain/link/link.h"
#include "agent/drain/ship/process_pauses.h"
#include "agent/drain/ship/shipper.h"
#include "agent/ring/recorder.h"
#include "agent/settings.h"

namespace collect::agent {

class RecordingState {
 public:
  // kEnding: nothing is recorded any more, and the collector has not sealed it.
  enum class Phase : uint8_t { kIdle, kRecording, kEnding };

  // `settings` may be filled in later, before the first call.
  RecordingState(const Settings& settings, Link& link, Shipper& shipper, DetailWindow& detail,
                 ProcessPauses& pauses)
      : settings_(settings), link_(link), shipper_(shipper), detail_(detail), pauses_(pauses) {}

  Phase phase() const { return phase_; }
  bool is_running() const { return phase_ == Phase::kRecording; }

  // As the settings say, if they ask for a recording and it would not be over at once.
  void begin_by_itself();
  // Someone asks for one: begins it where none is, and reports the one that runs to the collector
  // even when it holds nothing. Not while one is ending.
  void ask();
  // Stops it. `process_end` may be null.
  void end(const char* reason, const collect_wire_ProcessEnd* process_end);
  // Stops it where the process ends, which may be after the recording had its size.
  void end_with_process(const char* reason, const collect_wire_ProcessEnd* process_end);

  // From an Ack: recording `number` is sealed, or the collector wants no more of it. True: it was
  // this one, and there is none now.
  bool collector_ended(uint64_t now_ms, uint32_t number);
  // Once the collector has seen the process, no one has to be informed of a recording without a
  // thread: one that is ending is over then.
  void end_kept(uint64_t now_ms);
  // Discards all that was recorded.
  void drop();

  // What the recorder holds by now, for the limit of bytes.
  void count(const RecorderStats& stats);
  // Ends it if it has reached a limit. The program continues, as after a StopRecording.
  void end_at_limit(uint64_t now_ms, uint64_t now_ns);
  // When it ends by itself, on the clock of events; 0: at no time.
  uint64_t until_ns() const { return until_ns_; }

 private:
  void begin(bool unasked);
  void forget(uint64_t now_ms);

  const Settings& settings_;
  Link& link_;
  Shipper& shipper_;
  DetailWindow& detail_;
  ProcessPauses& pauses_;

  Phase phase_ = Phase::kIdle;
  uint64_t until_ns_ = 0;
  uint64_t recorded_bytes_ = 0;  // of records, when last counted; of detail the least
};

}  // namespace collect::agent
