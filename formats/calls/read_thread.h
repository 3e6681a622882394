// A whole index of a thread through ThreadCalls, with its gaps in their places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "formats/calls/thread_calls.h"

namespace collect::calls {

inline constexpr size_t kMaxAheadDepth = size_t{1} << 16;  // of calls that are followed ahead
inline constexpr size_t kMaxAheadSearch = 64;  // of these, how many a return is compared with

// How many of the open calls are known to be open behind a gap: the first return behind it whose
// call was not seen since belongs to the innermost of them. Nothing where the events first..last-1
// do not show it. `reader` has event(seq), as atf::IndexReader has. Reads each event once at most.
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

// What pairing made of a gap: so many calls were open behind it, or, in doubt, may have been.
struct GapOutcome {
  uint32_t depth = 0;
  bool is_doubt = false;
};

// How read_thread() goes over the events, and who is informed of its steps.
struct ReadSteps {
  uint64_t first_seq = 0;  // the events before were resumed
  size_t first_gap = 0;    // so were the gaps before
  uint64_t step_events = uint64_t{1} << 16;
  // Before the event `seq`, a multiple of `step_events`, is read.
  std::function<void(uint64_t seq, const OpenCalls& open)> before_step{};
  std::function<void(GapOutcome)> after_gap{};
  // The outcomes of gaps that were read before: nothing is read ahead for them. Empty, or one for
  // each.
  std::span<const GapOutcome> outcomes{};
};

template <class Reader, class Sink>
void pass_gap(const Reader& reader, uint64_t next, uint64_t following, size_t gap_number,
              const Gap& gap, ThreadCalls<Sink>& calls, const ReadSteps& steps) {
  std::optional<size_t> survivors;
  if (steps.outcomes.empty()) {
    survivors = survivors_of_gap(reader, next, following, calls.open_calls(), calls.slots());
  } else if (!steps.outcomes[gap_number].is_doubt) {
    survivors = steps.outcomes[gap_number].depth;
  }
  calls.gap(gap, survivors);
  if (!steps.after_gap) return;
  const size_t depth = survivors.value_or(calls.open_calls().timed_depth());
  steps.after_gap({static_cast<uint32_t>(depth), !survivors});
}

// What a pass over the events asks for them.
template <class Reader>
decltype(auto) pass_over(const Reader& reader) {
  if constexpr (requires { reader.blocks(); }) {
    return reader.blocks();
  } else {
    return (reader);
  }
}

// `reader` as atf::IndexReader: size(), event(seq), events(first, count).for_each(f), which
// blocks() may have too, for a pass. `gaps` in the order of before_seq; one behind the last event
// comes before the end. Calls finish().
template <class Reader, class Sink>
void read_thread(const Reader& reader, const std::vector<Gap>& gaps, ThreadCalls<Sink>& calls,
                 const ReadSteps& steps = {}) {
  const uint64_t size = reader.size();
  auto&& pass = pass_over(reader);
  uint64_t next = steps.first_seq;
  for (size_t i = steps.first_gap; next < size || i < gaps.size();) {
    const uint64_t until = i < gaps.size() ? std::clamp(gaps[i].before_seq, next, size) : size;
    // In parts, because nothing behind the window is of interest.
    while (next < until && !calls.is_behind_window()) {
      const uint64_t within = next % steps.step_events;
      if (within == 0 && steps.before_step) steps.before_step(next, calls.open_calls());
      const uint64_t count = std::min(until - next, steps.step_events - within);
      pass.events(next, count).for_each([&](uint64_t seq, const auto& event) {
        calls.event(seq, event);
      });
      next += count;
    }
    if (calls.is_behind_window()) break;
    if (i == gaps.size()) continue;
    const uint64_t following =
        i + 1 < gaps.size() ? std::clamp(gaps[i + 1].before_seq, next, size) : size;
    pass_gap(reader, next, following, i, gaps[i], calls, steps);
    ++i;
  }
  calls.finish();
}

// Puts `calls`, which has read nothing and has a window, where reading all events before `seq`
// would put it. `open`: numbers of the events of the calls that are open there, outermost first.
// `outcomes` are those of the gaps before; returns how many they are. `reader` as above.
template <class Reader, class Sink>
size_t resume_thread(const Reader& reader, uint64_t seq, std::span<const uint64_t> open,
                     const std::vector<Gap>& gaps, std::span<const GapOutcome> outcomes,
                     ThreadCalls<Sink>& calls) {
  size_t passed = 0;
  for (size_t depth = 0; depth <= open.size(); ++depth) {
    const uint64_t until = depth < open.size() ? open[depth] : seq;
    for (; passed < gaps.size() && gaps[passed].before_seq <= until; ++passed) {
      const uint64_t before = gaps[passed].before_seq;
      if (before != 0) calls.resume_at(before - 1, reader.event(before - 1));
      calls.resume_gap(outcomes[passed].depth, outcomes[passed].is_doubt);
    }
    if (depth < open.size()) calls.resume_call(until, reader.event(until));
  }
  if (seq != 0) calls.resume_at(seq - 1, reader.event(seq - 1));
  return passed;
}

}  // namespace collect::calls
