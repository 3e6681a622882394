#include "formats/calls/function_totals.h"

#include <algorithm>

namespace collect::calls {

void FunctionTotals::count_end(FunctionTimes& times, EndReason reason) {
  switch (reason) {
    case EndReason::kReturned:
      break;
    case EndReason::kUnwound:
      ++times.exceptions;
      break;
    case EndReason::kSkipped:
      ++times.skipped;
      break;
    case EndReason::kCutByGap:
      ++times.cut_by_gap;
      break;
    case EndReason::kOpenAtEnd:
      ++times.open_at_end;
      break;
    case EndReason::kCutByWindow:
      ++times.cut_by_window;
      break;
  }
}

void FunctionTotals::add(FunctionSlots& slots, const FunctionTotals& other,
                         const FunctionSlots& other_slots) {
  for (uint32_t slot = 0; slot < other.times_.size(); ++slot) {
    const FunctionTimes& from = other.times_[slot];
    FunctionTimes& to = at(slots.slot_of(other_slots.function_of(slot)));
    to.calls += from.calls;
    to.total_ns += from.total_ns;
    to.self_ns += from.self_ns;
    to.waited.add(from.waited);
    to.exceptions += from.exceptions;
    to.skipped += from.skipped;
    to.cut_by_gap += from.cut_by_gap;
    to.open_at_end += from.open_at_end;
    to.cut_by_window += from.cut_by_window;
    to.shortest_ns = std::min(to.shortest_ns, from.shortest_ns);
    to.longest_ns = std::max(to.longest_ns, from.longest_ns);
    to.durations.add(from.durations, octaves_left_);
  }
}

}  // namespace collect::calls
