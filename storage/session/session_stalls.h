// The stalls of a session: those of the whole process are kept here, those of a thread in its
// journal. What is added also goes into the open container.
//
// Owned by a Session, used on its storage thread.
#pragma once

#include <cstdint>
#include <span>

#include "formats/core/result.h"
#include "storage/container/rtc_roller.h"
#include "storage/session/live_manifest.h"
#include "storage/session/session_threads.h"
#include "storage/thread/losses.h"

namespace collect::storage {

class SessionStalls {
 public:
  SessionStalls(LiveManifest& live, SessionThreads& threads, RtcRoller& roller)
      : live_(live), threads_(threads), roller_(roller) {}

  // Adds stalls of the whole process, in order of time. Repeats are skipped.
  void add(std::span<const Stall> stalls);
  // Adds stalls of the thread in this slot, whose files can be read. An error of its journal: those
  // before it are added; added again, they are repeats.
  Status add(uint32_t slot, std::span<const Stall> stalls);
  // Those of a manifest that was found, when the journals have been read.
  void adopt();
  const StallList& of_process() const { return of_process_; }

 private:
  Status add_to_journal(uint32_t slot, std::span<const Stall> stalls, std::vector<Stall>& added);
  void publish(std::vector<Stall> added);

  LiveManifest& live_;
  SessionThreads& threads_;
  RtcRoller& roller_;
  StallList of_process_;
};

}  // namespace collect::storage
