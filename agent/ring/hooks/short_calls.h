// Calls that are left out because they returned too soon (Settings::longer_than_ns).
//
// Whether a call is recorded is known when it has ended, and its record has to be before those
// of the calls inside it. So the record of a call is *tentative* at first: written, not committed.
// Tentative records are the last ones of the open page, oldest first, and all of them are of open
// calls. The record of a call that has been open for longer than the limit always stays: it is
// committed by the thread's next event, with all before it. The return of the newest one that comes
// sooner takes its record back.
//
// So is the record of the call of a library function that is left out if it is brief
// (shims/library_calls.h), where calls of any length are recorded: the newest one alone, and none
// after it can be taken back.
//
// A thread that stays in a call has no next event, so the drain commits its tentative records when
// all of them are older than the limit. Both sides decide by the same clock, which is why they
// can't disagree: see show_long_calls.
#pragma once

#include "agent/ring/stream.h"
#include "formats/atf/layout.h"

namespace collect::agent {

// How much older than the limit tentative calls are before the drain commits them. More than two
// lines of the clock differ by: clock.h.
inline constexpr uint64_t kShowLateNs = 10'000'000;
// A call of a library function that was as short did not leave the processor: two switches take
// longer.
inline constexpr uint64_t kBriefNs = 3000;

// `pos` is where a record of the open page ends. Pages are aligned to their size.
[[gnu::always_inline]] static inline uint32_t end_in_page(const uint8_t* pos) {
  const auto begin = reinterpret_cast<uintptr_t>(pos) - atf::kEventBytes;
  return static_cast<uint32_t>((begin & (kPageBytes - 1)) + atf::kEventBytes);
}

[[gnu::always_inline]] static inline bool has_tentative(const Stream& stream) {
  return stream.tentative_end.load(std::memory_order_relaxed) != 0;
}

// Commits the tentative records before `pos`.
[[gnu::always_inline]] static inline void keep_until(Stream& stream, uint8_t* pos) {
  stream.committed->store(end_in_page(pos), std::memory_order_release);
  stream.kept = pos;
  if (pos == stream.pos) stream.tentative_end.store(0, std::memory_order_release);
}

[[gnu::always_inline]] static inline void keep_tentative(Stream& stream) {
  if (has_tentative(stream)) keep_until(stream, stream.pos);
}

// What comes before the record of an event at `ns`. True: the event is the return of a call that is
// left out; its record is taken back, and the return has none.
[[gnu::always_inline]] static inline bool take_back(Stream& stream, uint64_t ns, uint64_t id,
                                                    atf::EventKind kind) {
  if (!has_tentative(stream)) return false;
  const auto word = [](const uint8_t* record, uint32_t at) {
    return reinterpret_cast<const uint64_t*>(record)[at];  // time, id: the same in both versions
  };
  uint8_t* kept = stream.kept;
  while (kept < stream.pos && ns - word(kept, 0) >= stream.longer_than_ns) {
    kept += atf::kEventBytes;
  }
  if (kept != stream.kept) keep_until(stream, kept);
  if (kind == atf::EventKind::kCall || kept == stream.pos) return false;
  uint8_t* newest = stream.pos - atf::kEventBytes;
  // The end of another call, whose own end was not seen; or an exception, which is worth a record.
  if (kind == atf::EventKind::kException || word(newest, 1) != id) {
    keep_until(stream, stream.pos);
    return false;
  }
  stream.pos = newest;
  stream.last_ns = ns;
  stream.tentative_end.store(newest == kept ? 0 : end_in_page(newest), std::memory_order_release);
  count_left_out(stream);
  return true;
}

// Whether the event is the return of a library function that was brief: its call is taken back.
inline bool take_brief_back(Stream& stream, uint64_t ns, uint64_t id) {
  if (!has_tentative(stream)) return false;
  uint8_t* newest = stream.pos - atf::kEventBytes;
  const auto* words = reinterpret_cast<const uint64_t*>(newest);
  if (stream.kept != newest || words[1] != id || ns - words[0] >= kBriefNs ||
      stream.committed->load(std::memory_order_relaxed) == end_in_page(stream.pos)) {
    return false;
  }
  stream.pos = newest;
  stream.tentative_end.store(0, std::memory_order_release);
  return true;
}

// The record that ends at `pos` is tentative.
[[gnu::always_inline]] static inline void add_tentative(Stream& stream, uint64_t ns) {
  if (!has_tentative(stream)) stream.kept = stream.pos - atf::kEventBytes;
  stream.tentative_ns.store(ns, std::memory_order_relaxed);
  stream.tentative_end.store(end_in_page(stream.pos), std::memory_order_release);
}

// For a stream whose thread is in no hook and comes back to none, or whose hook was abandoned:
// keeps the tentative records. Their calls are open.
void settle_tentative(Stream& stream);
// Commits the tentative records of threads that have been in their calls for too long to take any
// of them back. [drain]
void show_long_calls();

}  // namespace collect::agent
