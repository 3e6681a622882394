// Detail recording: its mode and filter as the collector's commands set them, for a limited time or
// until the next command. Drain thread only; part of DrainThread. A recording that the settings ask
// for begins on the thread that starts the agent, before there is a drain.
//
// A limited time returns to the mode and filter before it. Further commands within that time do not
// change what it returns to.
#pragma once

#include <cstdint>

#include "agent/drain/ship/metadata_sender.h"
#include "agent/drain/ship/process_pauses.h"
#include "agent/ring/recorder.h"
#include "agent/settings.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

class DetailWindow {
 public:
  // `settings` may be filled in later, before the first call.
  DetailWindow(const Settings& settings, MetadataSender& metadata_sender, ProcessPauses& pauses)
      : settings_(settings), metadata_sender_(metadata_sender), pauses_(pauses) {}

  // Reports the detail that it begins with.
  void recording_begins();
  // Behind stop_recording(): the next recording begins as the settings say.
  void recording_ends(uint64_t end_ns);

  // As a command says, whose mode is known. `is_recorded`: a recording runs, and the change is
  // reported as a part of it.
  DetailChange change(const collect_wire_SetDetail& wanted, bool is_recorded);
  // When the limited time is over, on the clock of events; 0: none runs.
  uint64_t until_ns() const { return until_ns_; }
  // Returns to what was before the limited time, if that is over.
  void end_when_due(uint64_t now_ns, bool is_recorded);

 private:
  DetailChange apply(uint32_t mode, uint64_t pre_roll_ns, const char* reason, bool is_recorded);

  const Settings& settings_;
  MetadataSender& metadata_sender_;
  ProcessPauses& pauses_;

  uint64_t until_ns_ = 0;
  bool filtered_ = false;
  DetailFilter filter_;
  // What a limited time returns to.
  uint32_t mode_before_ = 0;
  bool filtered_before_ = false;
  DetailFilter filter_before_;
};

}  // namespace collect::agent
