#include "agent/ring/counters.h"

#include <string.h>

#include <atomic>

#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

enum SlotState : uint32_t { kFree, kNaming, kNamed };

// Zeroes only: no bytes in the file.
struct Slot {
  std::atomic<uint32_t> state{kFree};
  std::atomic<uint32_t> changes{0};
  std::atomic<int64_t> value{0};
  std::atomic<uint64_t> highest{0};  // rank_of the highest value since the last reading; 0: none
  char name[wire::kMaxCounterName + 1] = {};
};

struct alignas(kSharedPage) Counters {
  std::atomic<uint32_t> changes{0};
  Slot slots[wire::kMaxCounters];
};
constinit Counters counters;

// Unsigned numbers in the order of the values; that of INT64_MIN is 0.
uint64_t rank_of(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}

// The drain's: Slot::changes at the last reading.
uint32_t seen[wire::kMaxCounters];

// Null: there is no slot left. A slot that another thread, or an interrupted hook of this one, is
// naming is passed by: two slots may get one name, and the first is used from then on.
Slot* slot_of(const char* name, size_t bytes) {
  for (Slot& slot : counters.slots) {
    uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kFree &&
        slot.state.compare_exchange_strong(state, kNaming, std::memory_order_acquire)) {
      memcpy(slot.name, name, bytes + 1);
      slot.state.store(kNamed, std::memory_order_release);
      return &slot;
    }
    if (state == kNamed && strcmp(slot.name, name) == 0) return &slot;
  }
  return nullptr;
}

}  // namespace

bool counters_init() {
  memset(seen, 0, sizeof seen);
  return share(counters);
}

void set_counter(const char* name, int64_t value) {
  const size_t bytes = name == nullptr ? 0 : strnlen(name, wire::kMaxCounterName + 1);
  if (bytes == 0 || bytes > wire::kMaxCounterName) return;
  if (g_owner.mask.load(std::memory_order_relaxed) == 0) return;
  Slot* const slot = slot_of(name, bytes);
  if (slot == nullptr) return;
  slot->value.store(value, std::memory_order_relaxed);
  const uint64_t rank = rank_of(value);
  uint64_t highest = slot->highest.load(std::memory_order_relaxed);
  while (rank > highest &&
         !slot->highest.compare_exchange_weak(highest, rank, std::memory_order_relaxed)) {
  }
  slot->changes.fetch_add(1, std::memory_order_release);  // pairs with read_counter's acquire
  counters.changes.fetch_add(1, std::memory_order_release);
}

uint32_t counter_changes() {
  return counters.changes.load(std::memory_order_acquire);
}

bool read_counter(uint32_t index, CounterReading& reading) {
  Slot& slot = counters.slots[index];
  if (slot.state.load(std::memory_order_acquire) != kNamed) return false;
  const uint32_t changes = slot.changes.load(std::memory_order_acquire);
  if (changes == 0 || changes == seen[index]) return false;
  seen[index] = changes;
  memcpy(reading.name, slot.name, sizeof reading.name);
  const uint64_t highest = slot.highest.exchange(0, std::memory_order_relaxed);
  reading.value = slot.value.load(std::memory_order_relaxed);
  reading.highest =
      highest > rank_of(reading.value) ? static_cast<int64_t>(highest ^ rank_of(0)) : reading.value;
  return true;
}

void forget_counter_readings() {
  for (uint32_t index = 0; index < wire::kMaxCounters; ++index) {
    // Never the number of changes that a counter has.
    seen[index] = counters.slots[index].changes.load(std::memory_order_relaxed) - 1;
  }
}

}  // namespace collect::agent
