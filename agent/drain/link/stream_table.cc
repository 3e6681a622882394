#include "agent/drain/link/stream_table.h"

namespace collect::agent {
namespace {

uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

}  // namespace

// Frees what the collector has. `limit`: what was sent, which is as far as an ack can reach.
void StreamTable::free_stored(StreamSlot& slot, const uint64_t next[2], const uint64_t limit[2]) {
  for (uint32_t lane = 0; lane < 2; ++lane) {
    const uint64_t stored = least(next[lane], limit[lane]);
    spool_.acknowledge(slot.spooled[lane], stored);
    collect::agent::acknowledge(*slot.stream, static_cast<Lane>(lane), stored);
  }
}

// The spool's pages come first: what it has once had is not sent from the rings again.
void StreamTable::rewind_ring(StreamSlot& slot, uint32_t lane, uint64_t next) {
  const uint64_t end_seq = slot.spooled[lane].end_seq;
  rewind(*slot.stream, static_cast<Lane>(lane), next > end_seq ? next : end_seq);
}

void StreamTable::refresh() {
  // Slots beyond the last size hold what an earlier use of this memory left.
  for (const uint32_t count = stream_slots(); size_ < count; ++size_)
    slots_[size_].stream = nullptr;
  for (uint32_t i = 0; i < size_; ++i) {
    StreamSlot& slot = slots_[i];
    if (slot.stream != nullptr) continue;
    Stream* const stream = stream_at(i);
    if (stream == nullptr) continue;
    StreamInfo info;
    stream_info(*stream, info);
    slot = StreamSlot{};
    slot.stream = stream;
    slot.stream_id = info.stream_id;
    slot.recording = info.recording;
    slot.thread_id = info.thread_id;
    slot.start_ns = info.start_ns;
    ++found_;
    hints_[info.stream_id % kHintSlots] = static_cast<uint16_t>(i);
  }
}

StreamSlot* StreamTable::find(uint32_t stream_id) {
  StreamSlot& guess = slots_[hints_[stream_id % kHintSlots]];
  if (guess.stream != nullptr && guess.stream_id == stream_id) return &guess;
  // An old thread whose hint a newer one has taken.
  for (uint32_t i = 0; i < size_; ++i) {
    if (slots_[i].stream != nullptr && slots_[i].stream_id == stream_id) return &slots_[i];
  }
  return nullptr;
}

StreamSlot* StreamTable::find_thread(uint32_t thread_id) {
  StreamSlot* newest = nullptr;
  for (uint32_t i = 0; i < size_; ++i) {
    StreamSlot& slot = slots_[i];
    if (slot.stream == nullptr || slot.thread_id != thread_id) continue;
    if (newest == nullptr || slot.stream_id > newest->stream_id) newest = &slot;
  }
  return newest;
}

void StreamTable::begin_handshake() {
  for (uint32_t i = 0; i < size_; ++i) {
    StreamSlot& slot = slots_[i];
    slot.opened = slot.close_sent = slot.closed_at_collector = false;
    slot.batch = 0;
    for (uint32_t lane = 0; lane < 2; ++lane) {
      slot.handed[lane] = slot.stored[lane] = slot.lost_sent[lane] = 0;
    }
  }
}

void StreamTable::resume(const collect_wire_StreamPosition& position) {
  StreamSlot* const slot = find(position.stream_id);
  if (slot == nullptr) return;
  slot->stored[0] = position.index_next;
  slot->stored[1] = position.detail_next;
  slot->closed_at_collector = position.closed;
}

void StreamTable::begin_link(bool resumed) {
  for (uint32_t i = 0; i < size_; ++i) {
    StreamSlot& slot = slots_[i];
    if (slot.stream == nullptr) continue;
    if (!resumed) {
      slot.stored[0] = slot.stored[1] = 0;
      slot.closed_at_collector = false;
    }
    // A position beyond what was ever numbered is the collector's mistake, not ours to repeat.
    const StreamCounts counts = stream_counts(*slot.stream);
    const uint64_t limit[2] = {counts.index_count, counts.detail_count};
    for (uint32_t lane = 0; lane < 2; ++lane) {
      slot.handed[lane] = slot.taken[lane] = least(slot.stored[lane], limit[lane]);
      spool_.rewind(slot.spooled[lane], slot.handed[lane]);
      rewind_ring(slot, lane, slot.handed[lane]);
    }
    free_stored(slot, slot.handed, limit);
    if (slot.closed_at_collector && stream_ended(*slot.stream)) release(slot);
  }
}

void StreamTable::acknowledge(const collect_wire_StreamPosition& position) {
  StreamSlot* const slot = find(position.stream_id);
  if (slot == nullptr) return;
  const uint64_t next[2] = {position.index_next, position.detail_next};
  for (uint32_t lane = 0; lane < 2; ++lane) {
    slot->stored[lane] = least(next[lane], slot->handed[lane]);
  }
  free_stored(*slot, next, slot->handed);
  if (!position.closed || !slot->close_sent) return;
  // Everything is stored or known to be missing: the stream has nothing left to say.
  release(*slot);
}

void StreamTable::release(StreamSlot& slot) {
  for (SpoolChain& chain : slot.spooled) spool_.release(chain);
  release_stream(*slot.stream);
  slot.stream = nullptr;
}

void StreamTable::release_all() {
  refresh();
  for (uint32_t i = 0; i < size_; ++i) {
    if (slots_[i].stream != nullptr) release(slots_[i]);
  }
}

}  // namespace collect::agent
