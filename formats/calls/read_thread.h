// A whole index of a thread through ThreadCalls, with its gaps in their places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/calls/thread_calls.h"

namespace collect::calls {

inline constexpr size_t kMaxAheadDepth = size_t{1} << 16;  // of calls that are followed ahead
inline constexpr size_t kMaxAheadSearch = 64;  // of these, how many a return is compared with

// How many of the open calls are known to be open behind a gap: the first return behind it whose
// call was not seen since belongs to the innermost of them. Nothing where the events first..last-1
// do not tell. `reader` has event(seq), as atf::IndexReader has. Reads each event once at most.
template <class Reader>
std::optional<size_t> survivors_of_gap(const Reader& reader, uint64_t first, uint64_t last,
                                       const OpenCalls& open, FunctionSlots& slots) {
  if (open.timed_depth() == 0) return size_t{0};
  std::vector<uint64_t> ahead;  // functions called behind the gap
  uint64_t too_deep = 0;
  for (uint64_t seq = first; seq < last; ++seq) {
    const auto event = reader.event(seq);
    if (event.kind == atf::EventKind::kCall) {
      if (ahead.size() < kMaxAheadDepth) {
        ahead.push_back(event.function_id);
      } else {
        ++too_deep;
      }
      continue;
    }
    if (event.kind != atf::EventKind::kReturn && event.kind != atf::EventKind::kException) continue;
    if (too_deep != 0) {
      --too_deep;
      continue;
    }
    const size_t searched = std::min(ahead.size(), kMaxAheadSearch);
    const auto own = std::find(
        ahead.rbegin(), ahead.rbegin() + static_cast<std::ptrdiff_t>(searched), event.function_id);
    if (own != ahead.rbegin() + static_cast<std::ptrdiff_t>(searched)) {
      ahead.erase(own.base() - 1, ahead.end());
      continue;
    }
    const uint32_t slot = slots.slot_of(event.function_id);
    if (open.is_open(slot)) return open.innermost(slot) + 1;
    // Its call was lost in the gap.
  }
  return std::nullopt;
}

// `reader` as atf::IndexReader: size(), event(seq), events(first, count).for_each(f). `gaps` in the
// order of before_seq; one behind the last event comes before the end. Calls finish().
template <class Reader, class Sink>
void read_thread(const Reader& reader, const std::vector<Gap>& gaps, ThreadCalls<Sink>& calls) {
  const uint64_t size = reader.size();
  uint64_t next = 0;
  for (size_t i = 0; next < size || i < gaps.size();) {
    const uint64_t until = i < gaps.size() ? std::clamp(gaps[i].before_seq, next, size) : size;
    // In parts, because nothing behind the window is of interest.
    constexpr uint64_t kPartEvents = uint64_t{1} << 16;
    while (next < until && !calls.is_behind_window()) {
      const uint64_t count = std::min(until - next, kPartEvents);
      reader.events(next, count).for_each([&](uint64_t seq, const auto& event) {
        calls.event(seq, event);
      });
      next += count;
    }
    if (calls.is_behind_window()) break;
    if (i == gaps.size()) continue;
    const uint64_t following =
        i + 1 < gaps.size() ? std::clamp(gaps[i + 1].before_seq, next, size) : size;
    calls.gap(gaps[i],
              survivors_of_gap(reader, next, following, calls.open_calls(), calls.slots()));
    ++i;
  }
  calls.finish();
}

}  // namespace collect::calls
