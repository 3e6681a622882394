// What the drain thread knows of each stream beyond what the recorder does: how far it was sent on
// this link, what the collector said, and what of it is in the spool. Drain thread only; static
// storage, touched as far as used.
#pragma once

#include <cstdint>

#include "agent/drain/link/spool.h"
#include "agent/ring/recorder.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

struct StreamSlot {
  Stream* stream;  // null: unused
  uint32_t stream_id;
  uint32_t recording;
  uint32_t thread_id;
  uint64_t start_ns;
  // State of this link:
  bool opened;            // StreamOpen is on its way
  uint32_t names_sent;    // StreamInfo::names of the last one
  bool close_sent;        // StreamClose too
  uint32_t batch;         // the last batch that carries records of this stream
  uint64_t handed[2];     // per lane: the next record number after what the kernel has taken
  uint64_t taken[2];      // the same of what was put into a batch
  uint64_t stored[2];     // where the collector wants to continue: what comes before is stored
  uint64_t lost_sent[2];  // lost_total of the last page
  // State of the stream:
  uint64_t flushed_ms[2];    // when a page in the making was last asked for
  uint64_t flush_target[2];  // a Flush command waits for these record numbers
  bool closed_at_collector;
  SpoolChain spooled[2];  // per lane: its records before those in the rings
};

class StreamTable {
 public:
  // Finds streams that appeared.
  void refresh();
  uint32_t size() const { return size_; }
  StreamSlot& at(uint32_t slot) { return slots_[slot]; }
  StreamSlot* find(uint32_t stream_id);
  // The newest of this thread.
  StreamSlot* find_thread(uint32_t thread_id);
  uint32_t found() const { return found_; }  // so many streams have appeared

  // A link begins: nothing was sent on it, and the collector has said nothing yet.
  void begin_handshake();
  // The collector's word in its handshake, before the link is up.
  void resume(const collect_wire_StreamPosition& position);
  // Both channels are welcomed: every stream continues where the collector wants it to. With
  // `resumed` false the collector has nothing, and gets all that is held.
  void begin_link(bool resumed);
  // From an Ack. Gives back what is no longer needed.
  void acknowledge(const collect_wire_StreamPosition& position);

  void release(StreamSlot& slot);
  void release_all();

  Spool& spool() { return spool_; }
  const Spool& spool() const { return spool_; }

 private:
  static constexpr uint32_t kHintSlots = 2 * kMaxStreams;

  void free_stored(StreamSlot& slot, const uint64_t next[2], const uint64_t limit[2]);
  void rewind_ring(StreamSlot& slot, uint32_t lane, uint64_t next);

  Spool spool_;
  uint32_t found_ = 0;
  uint32_t size_ = 0;  // slots that may be in use
  StreamSlot slots_[kMaxStreams];
  // Slot of stream id modulo the size; a guess that find() checks.
  uint16_t hints_[kHintSlots] = {};
};

}  // namespace collect::agent
