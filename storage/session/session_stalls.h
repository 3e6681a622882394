// The stalls of a session: those of the whole process are kept here, those of a thread in its
// journal. What is added also goes into the open container. Times off the processor are counted
// here, and stored by the session.
//
// Owned by a Session, used on its storage thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

  // Adds stalls, those of threads unless `failure` is an error, which is returned then. The times
  // off the processor among them that are no repeats go into `switches`, as a manifest has them.
  // kDamaged: one is of a stream that was not opened, and nothing was added. An error of a journal:
  // those before it are added; added again, they are repeats. `name` is the session's.
  Status add(std::span<const StreamStall> arrived, const std::string& name, const Status& failure,
             std::vector<Stall>& switches);
  // For switches.bin. Empty: it has so many that no more are listed.
  std::vector<uint8_t> frames_of(std::span<const Stall> switches);
  // Those that are stored: of a manifest that was found, when the journals have been read, and of
  // switches.bin.
  void adopt(std::span<const Stall> stalls);
  const StallList& of_process() const { return of_process_; }

 private:
  struct ThreadStall {
    uint32_t slot = 0;  // of a thread whose files can be read
    Stall stall;
  };
  void add(std::span<const Stall> of_process);
  Status add_to_journals(std::span<const ThreadStall> stalls, std::vector<Stall>& added);
  void publish(std::vector<Stall> added);

  LiveManifest& live_;
  SessionThreads& threads_;
  RtcRoller& roller_;
  StallList of_process_;
  uint64_t listed_ = 0;  // in switches.bin
};

}  // namespace collect::storage
