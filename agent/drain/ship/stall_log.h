// Stalls from when they are known until the collector has stored them: those of threads, taken out
// of their streams, and those of the whole process. Numbered within the recording. Drain thread
// only; static storage, touched as far as used.
//
// When it is full, the stalls of threads stay with their streams, which join them.
#pragma once

#include <cstdint>

#include "agent/drain/link/frames.h"
#include "agent/drain/link/stream_table.h"
#include "agent/ring/recorder.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

inline constexpr uint32_t kMaxUnackedStalls = 4096;
inline constexpr uint32_t kKeptForProcess = 64;  // of these, for stalls of the whole process

class StallLog {
 public:
  void begin_recording() { first_ = sent_ = end_ = 0; }
  // The collector may know nothing of what it has not acknowledged. A stream that was released was
  // stored with its stalls.
  void begin_link(StreamTable& streams);

  // After the spans that go out next were taken.
  void gather(StreamTable& streams);
  void gather(const StreamSlot& slot);
  // A thread would fill its StallRing in an idle wait of the drain: it waits for locks all the
  // time.
  bool must_gather_soon() const { return must_gather_soon_; }
  // Adds a stall of the whole process. When the log is full it becomes part of the newest of them
  // there.
  void add(collect_wire_Stall_Kind kind, uint64_t first_ns, uint64_t last_ns);
  // False: there is no room now.
  bool add_of_thread(uint32_t stream_id, collect_wire_Stall_Kind kind, const ThreadStall& times);

  bool has_room_for_threads(uint32_t stalls = 1) const {
    return size() + stalls <= kMaxUnackedStalls - kKeptForProcess;
  }

  // Puts what was not sent on this link into `out`; false when `out` had no room for all of it.
  bool send(SendBuffer& out);
  bool has_unsent() const { return sent_ != end_; }
  // From an Ack: everything below `next` is stored.
  void acknowledge(uint64_t next);

 private:
  collect_wire_Stall& at(uint64_t number) { return entries_[number % kMaxUnackedStalls]; }
  uint64_t size() const { return end_ - first_; }

  bool must_gather_soon_ = false;
  uint64_t first_ = 0;  // number of the oldest that is held
  uint64_t sent_ = 0;   // of the first that was not sent on this link
  uint64_t end_ = 0;
  collect_wire_Stall entries_[kMaxUnackedStalls];
  collect_wire_Stalls frame_;  // being filled
};

}  // namespace collect::agent
