#include "formats/calls/caller_totals.h"

namespace collect::calls {

size_t CallerTotals::find_or_add(uint32_t caller, uint32_t callee) {
  uint64_t key = uint64_t{caller} << 32 | callee;
  if (const auto it = positions_.find(key); it != positions_.end()) return it->second;
  if (pairs_.size() >= kMaxPairs) {
    caller = callee = kOther;
    key = uint64_t{caller} << 32 | callee;
    if (const auto it = positions_.find(key); it != positions_.end()) return it->second;
  }
  positions_.emplace(key, pairs_.size());
  pairs_.push_back({caller, callee, {}});
  return pairs_.size() - 1;
}

void CallerTotals::add(FunctionSlots& slots, const CallerTotals& other,
                       const FunctionSlots& other_slots) {
  const auto slot_here = [&](uint32_t slot) {
    return slot >= kOther ? slot : slots.slot_of(other_slots.function_of(slot));
  };
  for (const Pair& pair : other.pairs_) {
    const uint32_t caller = slot_here(pair.caller);
    pairs_[find_or_add(caller, slot_here(pair.callee))].times.add(pair.times);
  }
}

}  // namespace collect::calls
