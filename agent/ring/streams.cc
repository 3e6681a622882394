// The table of streams, and the recording state that all threads share.
#include <string.h>

#include <new>

#include "agent/ring/free_list.h"
#include "agent/ring/stream.h"
#include "agent/run_records.h"

namespace collect::agent {
namespace {

// What is known of a slot beside its stream, which is made again each time the slot is taken.
struct Slot {
  std::atomic<uint32_t> published;
  std::atomic<uint32_t> free_next;
  std::atomic<uint32_t> held_by;  // Holders; the last to let go puts the slot on the free list
};

// A thread keeps its pointer to a stream of a recording that is over, and looks at it again in its
// next hook. Until then the slot is no one else's, also when the drain has done with it.
enum Holders : uint32_t { kHeldByThread = 1, kHeldByDrain = 2 };

Stream* streams = nullptr;           // kMaxStreams of them, untouched until used
Slot* slots = nullptr;               // as many
ThreadStall* held_stalls = nullptr;  // kStallsHeld for each of the first kRoomyStreams

struct alignas(kSharedPage) StreamTableState {
  std::atomic<uint32_t> slots_used{0};
  std::atomic<uint64_t> free_head{0};  // of slots, plus 1: see changed_head
  std::atomic<uint32_t> last_stream_id{0};
  std::atomic<uint64_t> without_stream{0};
};
constinit StreamTableState table;

Stream* pop_free_slot() {
  uint64_t head = table.free_head.load(std::memory_order_acquire);
  for (;;) {
    const auto slot = static_cast<uint32_t>(head);
    if (slot == 0) return nullptr;
    const uint32_t next = slots[slot - 1].free_next.load(std::memory_order_relaxed);
    if (table.free_head.compare_exchange_weak(head, changed_head(head, next),
                                              std::memory_order_acquire)) {
      return &streams[slot - 1];
    }
  }
}

void push_free(uint32_t slot) {
  uint64_t head = table.free_head.load(std::memory_order_relaxed);
  do {
    slots[slot].free_next.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
  } while (!table.free_head.compare_exchange_weak(head, changed_head(head, slot + 1),
                                                  std::memory_order_release));
}

void let_go(uint32_t slot, uint32_t holder) {
  if (slots[slot].held_by.fetch_and(~holder, std::memory_order_acq_rel) == holder) push_free(slot);
}

}  // namespace

constinit StateWord g_state_word;
__thread Stream* tls_stream COLLECT_TLS_MODEL = nullptr;

// Constant-initialised, so that a hook that fires before any constructor finds them.
constinit Stream g_registering{1};
constinit Stream g_ignored{1};
constinit Stream g_shared_by_threads{1};
constinit Stream g_without_clock{1};

uint64_t change_state(uint64_t set, uint64_t clear) {
  uint64_t state = g_state.load(std::memory_order_relaxed);
  uint64_t changed;
  do {
    const uint64_t flags = ((state & kStateFlags) & ~clear) | set;
    changed = ((state & ~kStateFlags) + kStateEpoch) | flags;
  } while (!g_state.compare_exchange_weak(state, changed, std::memory_order_seq_cst));
  return changed;
}

bool streams_init() {
  if (!share(g_state_word) || !share(table)) return false;
  streams = static_cast<Stream*>(map_table(sizeof(Stream) * kMaxStreams, streams));
  slots = static_cast<Slot*>(map_table(sizeof(Slot) * kMaxStreams, slots));
  if (streams == nullptr || slots == nullptr) return false;
  held_stalls = static_cast<ThreadStall*>(
      map_table(sizeof(ThreadStall) * kStallsHeld * kRoomyStreams, held_stalls));
  for (uint32_t i = table.slots_used.load(std::memory_order_relaxed); i > 0; --i) {
    slots[i - 1].published.store(0, std::memory_order_relaxed);
    slots[i - 1].held_by.store(0, std::memory_order_relaxed);
  }
  table.slots_used.store(0, std::memory_order_relaxed);
  table.free_head.store(0, std::memory_order_relaxed);
  table.without_stream.store(0, std::memory_order_relaxed);
  return true;
}

Stream* stream_take() {
  Stream* stream = pop_free_slot();
  if (stream == nullptr) {
    uint32_t number = table.slots_used.load(std::memory_order_relaxed);
    do {
      if (number == kMaxStreams) return nullptr;
    } while (
        !table.slots_used.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
    stream = &streams[number];
  }
  slots[stream - streams].held_by.store(kHeldByThread | kHeldByDrain, std::memory_order_relaxed);
  new (stream) Stream{};
  const uint32_t slot = stream_slot(*stream);
  StallRing& stalls = stream->stalls;
  const bool is_roomy = held_stalls != nullptr && slot < kRoomyStreams;
  stalls.entries = is_roomy ? held_stalls + size_t{slot} * kStallsHeld : stalls.few;
  stalls.held = is_roomy ? kStallsHeld : kFewStallsHeld;
  return stream;
}

void stream_publish(Stream& stream) {
  note_run_recorded();
  slots[&stream - streams].published.store(1, std::memory_order_release);  // pairs with stream_at
}

void stream_give(Stream& stream) {
  const uint32_t slot = stream_slot(stream);
  slots[slot].published.store(0, std::memory_order_relaxed);
  let_go(slot, kHeldByDrain);
  if (writers_gone()) let_go(slot, kHeldByThread);
}

void stream_leave(Stream& stream) {
  let_go(stream_slot(stream), kHeldByThread);
}

uint32_t stream_slot(const Stream& stream) {
  return static_cast<uint32_t>(&stream - streams);
}

void streams_reap(const LivingThreads& living) {
  const uint32_t used = stream_slots();
  for (uint32_t slot = 0; slot < used; ++slot) {
    if (slots[slot].held_by.load(std::memory_order_acquire) != kHeldByThread) continue;
    if (!living.contains(streams[slot].thread_id)) let_go(slot, kHeldByThread);
  }
}

uint32_t next_stream_id() {
  return table.last_stream_id.fetch_add(1, std::memory_order_relaxed) + 1;
}
void count_lost_without_stream(uint64_t events) {
  note_run_recorded();
  table.without_stream.fetch_add(events, std::memory_order_relaxed);
}
uint64_t lost_without_stream() {
  return table.without_stream.load(std::memory_order_relaxed);
}

void count_lost(LaneState& lane, uint32_t reason, uint64_t ns) {
  // With a full ring this is the way of every event: no locked operation that changes nothing.
  uint64_t none = lane.lost_first_ns.load(std::memory_order_relaxed);
  if (none == 0) {
    (void)lane.lost_first_ns.compare_exchange_strong(none, ns, std::memory_order_relaxed);
  }
  lane.lost_last_ns.store(ns, std::memory_order_relaxed);
  if ((lane.lost_reasons.load(std::memory_order_relaxed) & reason) != reason) {
    lane.lost_reasons.fetch_or(reason, std::memory_order_relaxed);
  }
  lane.lost_total.fetch_add(1, std::memory_order_release);
}

uint32_t stream_slots() {
  return table.slots_used.load(std::memory_order_acquire);
}

Stream* stream_at(uint32_t slot) {
  const bool published = slots[slot].published.load(std::memory_order_acquire) != 0;
  return published ? &streams[slot] : nullptr;
}

void ignore_this_thread() {
  tls_stream = &g_ignored;
}

}  // namespace collect::agent
