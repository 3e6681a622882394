#include "agent/drain/stream_table.h"

namespace collect::agent {
namespace {

uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Frees what the collector has. `limit`: what was sent, which is as far as an ack can reach.
void free_stored(StreamSlot& slot, const collect_wire_StreamPosition& position,
                 const uint64_t limit[2]) {
  acknowledge(*slot.stream, Lane::kIndex, least(position.index_next, limit[0]));
  acknowledge(*slot.stream, Lane::kDetail, least(position.detail_next, limit[1]));
}

}  // namespace

void StreamTable::refresh() {
  // Slots beyond the last size hold whatever an earlier life of this memory left.
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
    hints_[info.stream_id % kHintSlots] = static_cast<uint16_t>(i);
    ++used_;
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

void StreamTable::begin_handshake() {
  for (uint32_t i = 0; i < size_; ++i) {
    StreamSlot& slot = slots_[i];
    slot.opened = slot.close_sent = slot.closed_at_collector = false;
    slot.batch = 0;
    for (uint32_t lane = 0; lane < 2; ++lane) {
      slot.handed[lane] = slot.resume[lane] = slot.lost_sent[lane] = 0;
    }
  }
}

void StreamTable::resume(const collect_wire_StreamPosition& position) {
  StreamSlot* const slot = find(position.stream_id);
  if (slot == nullptr) return;
  slot->resume[0] = position.index_next;
  slot->resume[1] = position.detail_next;
  slot->closed_at_collector = position.closed;
}

void StreamTable::begin_link(bool resumed) {
  for (uint32_t i = 0; i < size_; ++i) {
    StreamSlot& slot = slots_[i];
    if (slot.stream == nullptr) continue;
    if (!resumed) {
      slot.resume[0] = slot.resume[1] = 0;
      slot.closed_at_collector = false;
    }
    // A position beyond what was ever numbered is the collector's mistake, not ours to repeat.
    const StreamCounts counts = stream_counts(*slot.stream);
    const uint64_t limit[2] = {counts.index_count, counts.detail_count};
    for (uint32_t lane = 0; lane < 2; ++lane) {
      slot.handed[lane] = least(slot.resume[lane], limit[lane]);
      rewind(*slot.stream, static_cast<Lane>(lane), slot.handed[lane]);
    }
    collect_wire_StreamPosition position = collect_wire_StreamPosition_init_zero;
    position.index_next = slot.handed[0];
    position.detail_next = slot.handed[1];
    free_stored(slot, position, limit);
    if (slot.closed_at_collector && stream_ended(*slot.stream)) release(slot);
  }
}

void StreamTable::acknowledge(const collect_wire_StreamPosition& position) {
  StreamSlot* const slot = find(position.stream_id);
  if (slot == nullptr) return;
  free_stored(*slot, position, slot->handed);
  if (!position.closed || !slot->close_sent) return;
  // Everything is stored or known to be missing: the stream has nothing left to say.
  release(*slot);
}

void StreamTable::release(StreamSlot& slot) {
  release_stream(*slot.stream);
  slot.stream = nullptr;
  --used_;
}

void StreamTable::release_all() {
  refresh();
  for (uint32_t i = 0; i < size_; ++i) {
    if (slots_[i].stream != nullptr) release(slots_[i]);
  }
}

}  // namespace collect::agent
