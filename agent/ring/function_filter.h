// Which functions are recorded at all. A filter is a table of ids, made by the drain thread and
// read by hooks without a lock; the last few are kept, because a function may have been called
// under one filter and return under another.
//
// A return is recorded if its call was. For that a stream counts, from the first filter on, the
// calls that it has seen under each and that have not returned (FilterSpan). Calls that leave by
// longjmp stay in that count; then a return of a call from before a change may be judged by the
// filter after it.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/ring/recorder.h"

namespace collect::agent {

struct Stream;

inline constexpr uint32_t kFilterSlots = 2 * kMaxFunctionFilter;  // at most half of them used
static_assert((kFilterSlots & (kFilterSlots - 1)) == 0);
inline constexpr uint32_t kFilterTables = 4;
inline constexpr uint32_t kMaxFilterSpans = 8;  // of older filters; the oldest is given up

// Written by the drain thread while its generation is 0 and no hook is inside that saw another.
struct FunctionTable {
  std::atomic<uint32_t> generation;  // released when the table is whole
  FunctionFilterMode mode;
  uint32_t count;
  uint64_t slots[kFilterSlots];  // open addressing; id + 1, 0 is empty
};

[[gnu::always_inline]] static inline bool table_takes(const FunctionTable& table, uint64_t id) {
  uint32_t at = static_cast<uint32_t>((id * 0x9E3779B97F4A7C15ull) >> 40) & (kFilterSlots - 1);
  uint64_t slot;
  while ((slot = table.slots[at]) != 0 && slot != id + 1) at = (at + 1) & (kFilterSlots - 1);
  return (slot != 0) == (table.mode == FunctionFilterMode::kOnly);
}

// A filter under which a stream has seen calls. Generation 0: everything is recorded.
struct FilterSpan {
  uint32_t generation = 0;
  uint32_t open = 0;  // calls that have not returned yet, recorded or not
};

// A stream's view of the filter. Its thread's alone.
struct StreamFilter {
  const FunctionTable* table = nullptr;  // of `now`; null: everything is recorded
  FilterSpan now;
  FilterSpan past[kMaxFilterSpans];  // with open calls; newest last
  uint32_t past_count = 0;
  uint32_t base = 0;  // generation that judges what was called before all spans

  bool is_idle() const { return now.generation == 0 && past_count == 0; }
  bool takes_now(uint64_t id) const { return table == nullptr || table_takes(*table, id); }
};

bool function_filter_init();
// A filter by itself, of the last few: what a call is judged by. 0 takes everything. [drain], or
// under the sleds' lock.
uint32_t function_filter_generation();  // the present one
bool function_filter_takes(uint32_t generation, uint64_t id);
// The two halves of commit_function_filter(), between which sleds are patched in: what was begun
// becomes a filter, whose generation is returned; a filter becomes the present one. [drain]
uint32_t make_function_filter();
void set_function_filter(uint32_t generation);

// From a hook's general path. Takes note of the present filter.
void refresh_filter(StreamFilter& filter, bool first);
// Whether the event is recorded, which it counts.
bool filter_judges(StreamFilter& filter, uint64_t id, bool is_call);

}  // namespace collect::agent
