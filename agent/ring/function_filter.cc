#include "agent/ring/function_filter.h"

#include <string.h>

#include "agent/ring/state.h"
#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

FunctionTable* tables = nullptr;  // kFilterTables of them, untouched until used

struct alignas(kSharedPage) FilterState {
  std::atomic<uint32_t> generation{0};  // the present filter; 0: none. Released by the drain
};
constinit FilterState filter_state;

// The drain's.
uint32_t last_generation = 0;
bool is_begun = false;
bool is_less = false;  // what was begun is the present filter without what is added

FunctionTable& table_of(uint32_t generation) {
  return tables[generation % kFilterTables];
}

// Null: everything is recorded, or, with `is_gone`, the table holds a later filter already.
const FunctionTable* find_table(uint32_t generation, bool* is_gone) {
  *is_gone = false;
  if (generation == 0) return nullptr;
  const FunctionTable& table = table_of(generation);
  // Pairs with the release in make_function_filter.
  if (table.generation.load(std::memory_order_acquire) == generation) return &table;
  *is_gone = true;
  return nullptr;
}

uint32_t slot_of(uint64_t id) {
  return static_cast<uint32_t>((id * 0x9E3779B97F4A7C15ull) >> 40) & (kFilterSlots - 1);
}

uint32_t find_slot(const FunctionTable& table, uint64_t stored) {
  uint32_t at = slot_of(stored - 1);
  while (table.slots[at] != 0 && table.slots[at] != stored) at = (at + 1) & (kFilterSlots - 1);
  return at;
}

bool insert(FunctionTable& table, uint64_t stored) {
  const uint32_t at = find_slot(table, stored);
  if (table.slots[at] == stored) return true;
  if (table.count == kMaxFunctionFilter) return false;
  table.slots[at] = stored;
  ++table.count;
  return true;
}

// What a search passed over on its way to a later slot moves into the gap.
void erase(FunctionTable& table, uint64_t stored) {
  uint32_t gap = find_slot(table, stored);
  if (table.slots[gap] == 0) return;
  --table.count;
  for (uint32_t at = (gap + 1) & (kFilterSlots - 1); table.slots[at] != 0;
       at = (at + 1) & (kFilterSlots - 1)) {
    const uint32_t from_home = (at - slot_of(table.slots[at] - 1)) & (kFilterSlots - 1);
    if (from_home < ((at - gap) & (kFilterSlots - 1))) continue;
    table.slots[gap] = table.slots[at];
    gap = at;
  }
  table.slots[gap] = 0;
}

bool generation_takes(const StreamFilter& filter, uint32_t generation, uint64_t id) {
  bool is_gone = false;
  const FunctionTable* table = find_table(generation, &is_gone);
  if (is_gone) table = filter.table;
  return table == nullptr || table_takes(*table, id);
}

}  // namespace

bool function_filter_init() {
  if (!share(filter_state)) return false;
  tables = static_cast<FunctionTable*>(map_table(sizeof(FunctionTable) * kFilterTables, tables));
  filter_state.generation.store(0, std::memory_order_relaxed);
  last_generation = 0;
  is_begun = false;
  return tables != nullptr;
}

uint32_t function_filter_generation() {
  return filter_state.generation.load(std::memory_order_acquire);
}

bool function_filter_takes(uint32_t generation, uint64_t id) {
  return generation == 0 || table_takes(table_of(generation), id);
}

void refresh_filter(StreamFilter& filter, bool first) {
  const uint32_t generation = filter_state.generation.load(std::memory_order_acquire);
  if (first) filter.base = generation;
  if (generation == filter.now.generation) return;
  // Without a filter nothing was counted: what was called then is what is below all spans.
  if (filter.is_idle()) filter.base = first ? generation : 0;
  if (filter.now.open != 0) {
    if (filter.past_count == kMaxFilterSpans) {
      memmove(filter.past, filter.past + 1, sizeof filter.past - sizeof filter.past[0]);
      --filter.past_count;
    }
    filter.past[filter.past_count++] = filter.now;
  }
  filter.now = {generation, 0};
  bool is_gone = false;
  filter.table = find_table(generation, &is_gone);
}

bool filter_judges(StreamFilter& filter, uint64_t id, bool is_call) {
  if (filter.is_idle()) return true;
  if (is_call) {
    ++filter.now.open;
    return generation_takes(filter, filter.now.generation, id);
  }
  if (filter.now.open != 0) {
    --filter.now.open;
    return generation_takes(filter, filter.now.generation, id);
  }
  if (filter.past_count == 0) return generation_takes(filter, filter.base, id);
  FilterSpan& newest = filter.past[filter.past_count - 1];
  const bool taken = generation_takes(filter, newest.generation, id);
  if (--newest.open == 0) --filter.past_count;
  return taken;
}

// ---- of recorder.h

void begin_function_filter(FunctionFilterMode mode) {
  const uint32_t generation = last_generation + 1;
  FunctionTable& table = table_of(generation);
  // The filter of kFilterTables changes ago. No hook may be reading it when it is overwritten.
  if (table.generation.exchange(0, std::memory_order_seq_cst) != 0) quiesce(change_state(0, 0));
  if (table.count != 0) memset(table.slots, 0, sizeof table.slots);
  table.count = 0;
  table.mode = mode;
  is_begun = true;
  is_less = mode == FunctionFilterMode::kLess;
  if (!is_less) return;
  const uint32_t present = function_filter_generation();
  table.mode = present == 0 ? FunctionFilterMode::kAllBut : table_of(present).mode;
  if (present == 0) return;
  for (const uint64_t stored : table_of(present).slots) {
    if (stored != 0) (void)insert(table, stored);
  }
}

bool add_to_function_filter(const uint64_t* ids, uint32_t count) {
  if (!is_begun) return false;
  FunctionTable& table = table_of(last_generation + 1);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t stored = ids[i] + 1;
    if (stored == 0) return false;
    if (is_less && table.mode == FunctionFilterMode::kOnly) {
      erase(table, stored);
    } else if (!insert(table, stored)) {
      return false;
    }
  }
  return true;
}

uint32_t make_function_filter() {
  uint32_t generation = 0;
  if (is_begun) {
    FunctionTable& table = table_of(last_generation + 1);
    if (table.mode != FunctionFilterMode::kEverything) {
      generation = ++last_generation;
      table.generation.store(generation, std::memory_order_release);
    }
  }
  is_begun = false;
  return generation;
}

void set_function_filter(uint32_t generation) {
  filter_state.generation.store(generation, std::memory_order_release);
}

}  // namespace collect::agent
