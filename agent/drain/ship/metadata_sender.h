// Sends what a reader needs before the pages: the recording, its detail changes, modules, streams.
// Knows what was sent on this link already. Drain thread only.
#pragma once

#include <cstdint>

#include "agent/drain/link/frames.h"
#include "agent/drain/link/stream_table.h"
#include "agent/ring/recorder.h"

namespace collect::agent {

// Changes of detail recording that are sent again after a reconnect; older ones were sent before.
inline constexpr uint32_t kMaxDetailStates = 16;

class MetadataSender {
 public:
  void set_recording_settings(const Settings& settings) {
    atf_version_ = settings.atf_version;
    max_depth_ = settings.max_depth;
    max_rate_ = settings.max_rate;
    longer_than_ns_ = settings.longer_than_ns;
  }
  // Whether times off the processor are among the stalls. `problem`: why not, or why they are
  // estimated; a static sentence.
  void set_switches(const char* problem, bool are_estimated) {
    has_switches_ = problem == nullptr || are_estimated;
    no_switches_ = problem;
  }
  // So many in a second. `problem`: why none; a static sentence.
  void set_samples(uint32_t hz, const char* problem) {
    sample_hz_ = hz;
    no_samples_ = problem;
  }
  // RecordingStart.late_ns of the recording that begins next.
  void set_late(uint64_t late_ns) { late_ns_ = late_ns; }
  // A recording begins: nothing of it was sent yet. `unasked`: no one asked for it, and it is kept
  // back until a thread records something.
  void begin_recording(bool unasked);
  // Someone asked for it after all.
  void recording_was_asked_for() { unasked_ = false; }
  // Whether the recording that runs, or is ending, holds nothing that a collector has to know of.
  bool keeps_recording(StreamTable& streams);
  // A link begins: the collector may know nothing.
  void begin_link();

  void add_detail_state(uint32_t mode, const DetailChange& change, const char* reason);

  // Puts what is still unsent into `out`; false when `out` had no room for all of it.
  bool send(StreamTable& streams, SendBuffer& out);
  // Whether modules appeared or changed since they were sent.
  bool modules_changed() const { return modules_seen_ != module_changes(); }
  bool report_modules(SendBuffer& out);

 private:
  bool report_recording(SendBuffer& out);
  bool report_detail(SendBuffer& out);
  bool report_streams(StreamTable& streams, SendBuffer& out);
  bool is_unsent(uint32_t index) const;

  uint32_t atf_version_ = 0;  // of the ring's records
  uint32_t max_depth_ = 0;
  uint32_t max_rate_ = 0;
  uint64_t longer_than_ns_ = 0;
  uint64_t late_ns_ = 0;
  bool has_switches_ = false;
  const char* no_switches_ = nullptr;
  uint32_t sample_hz_ = 0;
  const char* no_samples_ = nullptr;
  bool recording_reported_ = false;
  bool unasked_ = false;
  uint32_t modules_seen_ = 0;  // module_changes() when all modules were sent
  uint32_t modules_reported_ = 0;
  uint8_t unload_reported_[kMaxModules / 8];
  uint64_t detail_count_ = 0;  // changes of this recording so far
  uint64_t detail_reported_ = 0;
  collect_wire_DetailState detail_[kMaxDetailStates];
  collect_wire_Modules modules_;  // being filled; too large for the thread's stack
};

}  // namespace collect::agent
