// The short path of a hook, inlined into each shim so that a call costs no second call. See
// hooks.h.
#pragma once

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/hooks/short_calls.h"
#include "agent/ring/open_calls.h"
#include "agent/ring/stream.h"

namespace collect::agent {

// In the place of a function's address: the event itself is done with.
inline constexpr uint64_t kNoFunction = ~uint64_t{0};

// Everything that the short path does not do: first events, full pages, other modules, detail,
// version 1, nested hooks, deferred events. `stream` may be null.
void general_event(Stream* stream, uint64_t function, atf::EventKind kind, const HookFrame& frame);

// The time of an event. `ticks` was read before the stream was looked at. A signal handler that
// comes in between defers its events and takes the room away; so the handler's times are either
// before the look, which then fails, or after `ticks`.
[[gnu::always_inline]] static inline uint64_t time_short(const Stream& stream, uint64_t ticks) {
  const uint64_t now = line_ns(stream.clock, ticks);
  return now < stream.last_ns ? stream.last_ns : now;
}

// One record, which has room at stream.pos.
[[gnu::always_inline]] static inline void write_short(Stream& stream, uint64_t now, uint64_t id,
                                                      atf::EventKind kind) {
  stream.last_ns = now;
  uint8_t* pos = stream.pos;
  auto* event = reinterpret_cast<uint64_t*>(pos);  // our own memory, aligned to 32
  event[0] = now;
  event[1] = id;
  event[2] = atf::kNoDetail;
  event[3] = static_cast<uint8_t>(kind);
  stream.pos = pos + atf::kEventBytes;
}

// The end of both short paths.
[[gnu::always_inline]] static inline void commit_short(Stream& stream, uint64_t ticks, uint64_t id,
                                                       atf::EventKind kind) {
  write_short(stream, time_short(stream, ticks), id, kind);
  stream.committed->store(end_in_page(stream.pos),
                          std::memory_order_release);  // pairs with next_span's acquire
}

// Commits an event where short calls are left out.
[[gnu::always_inline]] static inline void commit_long(Stream& stream, uint64_t ticks, uint64_t id,
                                                      atf::EventKind kind) {
  const uint64_t now = time_short(stream, ticks);
  if (take_back(stream, now, id, kind)) return;
  write_short(stream, now, id, kind);
  if (kind == atf::EventKind::kCall) {
    add_tentative(stream, now);
  } else {
    stream.committed->store(end_in_page(stream.pos), std::memory_order_release);
  }
}

// The last of both short paths. False: handlers that interrupted it deferred events, and the
// general path has to move them; the hook's own event is done with, so `function` is made
// kNoFunction.
[[gnu::always_inline]] static inline bool leave_short(Stream& stream, uint64_t& function,
                                                      std::memory_order order) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stream.busy.store(0, order);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (COLLECT_LIKELY(stream.deferred.load(std::memory_order_relaxed) == 0)) return true;
  function = kNoFunction;
  return false;
}

// Whether the general path has to note the call, or its end: a chunk is full or empty, a call ended
// in another way, or an exception came to rest in its frame.
[[gnu::always_inline]] static inline bool open_calls_general(const Stream& stream,
                                                             uint64_t function,
                                                             atf::EventKind kind) {
  return kind == atf::EventKind::kCall ? open_calls_full(stream.open_calls)
                                       : stream.open_calls[-1].function != function;
}

[[gnu::always_inline]] static inline void follow_short(Stream& stream, uint64_t function,
                                                       atf::EventKind kind, uint64_t place) {
  OpenCall* top = stream.open_calls;
  if (kind == atf::EventKind::kCall) {
    top->function = function;
    top->place = place;
    stream.open_calls = top + 1;
  } else {
    stream.open_calls = top - 1;
  }
}

// The short path. True: the event is done with. False: it is for record_selected, and then for the
// general path, with `stream`; the shim calls them itself, so that it looks at the frame only then.
// `place` as in HookFrame, for calls that are followed.
template <bool kFollowed>
[[gnu::always_inline]] static inline bool record_short(uint64_t& function, atf::EventKind kind,
                                                       Stream*& stream, uint64_t place) {
  const uint64_t state = g_state.load(std::memory_order_relaxed);
  const uint64_t ours = g_owner.mask.load(std::memory_order_relaxed);
  if (COLLECT_LIKELY((state & ours & kStateRecording) == 0)) {
    // 0: the agent has not looked yet whether it is to start. The general path does, so that no
    // register has to outlive a call here.
    return COLLECT_LIKELY(state != 0);
  }
  stream = tls_stream;
  if (COLLECT_UNLIKELY(stream == nullptr || stream->busy.load(std::memory_order_relaxed) != 0)) {
    return false;
  }
  // busy is visible to a signal handler on this thread at once, and to the drain thread by the
  // barrier that it asks the kernel for: see quiesce().
  stream->busy.store(reinterpret_cast<uint64_t>(__builtin_frame_address(0)),
                     std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Before the counter is read, so that an event that is left out elsewhere does not pay for it.
  if (COLLECT_UNLIKELY(g_state.load(std::memory_order_relaxed) != stream->expected)) {
    stream->busy.store(0, std::memory_order_relaxed);
    return false;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint64_t ticks = read_counter();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint64_t offset = function - stream->module_base;
  if (COLLECT_UNLIKELY(stream->pos >= stream->end || offset >= stream->module_bytes ||
                       (kFollowed && open_calls_general(*stream, function, kind)))) {
    stream->busy.store(0, std::memory_order_relaxed);
    return false;
  }
  if (kFollowed) follow_short(*stream, function, kind, place);
  commit_short(*stream, ticks, stream->module_id_high | offset, kind);
  return leave_short(*stream, function, std::memory_order_relaxed);
}

// The record of an event that is selected, if it is. False: the general path's.
[[gnu::always_inline]] static inline bool select_short(Stream& stream, uint64_t id,
                                                       atf::EventKind kind) {
  StreamFilter& filter = stream.filter;
  const bool is_call = kind == atf::EventKind::kCall;
  const bool is_filtered = !filter.is_idle();
  // A return of a call from before the filter is judged in the general path.
  if (is_filtered && !is_call && filter.now.open == 0) return false;
  const bool taken = filter.table == nullptr || table_takes(*filter.table, id);
  const uint32_t depth = is_call ? stream.depth + 1 : stream.depth;
  const bool selected = taken && depth <= stream.max_depth;
  if (selected) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t ticks = read_counter();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (stream.pos >= stream.end) return false;
    if (stream.longer_than_ns == 0) {
      commit_short(stream, ticks, id, kind);
    } else {
      commit_long(stream, ticks, id, kind);
    }
  }
  if (is_filtered) filter.now.open += is_call ? 1u : ~0u;
  if (!selected && is_call) count_left_out(stream);
  if (taken) stream.depth = is_call || depth == 0 ? depth : depth - 1;
  return true;
}

// The short path of a stream of which not every event is recorded, by a function filter or a limit:
// what record_short did not take. True: the event is done with, recorded or not. False: it is the
// general path's.
template <bool kFollowed>
[[gnu::always_inline]] static inline bool record_selected(uint64_t& function, atf::EventKind kind,
                                                          Stream* stream, uint64_t place) {
  if (function == kNoFunction || stream == nullptr || stream->expected_selected == 0 ||
      stream->busy.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  stream->busy.store(reinterpret_cast<uint64_t>(__builtin_frame_address(0)),
                     std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint64_t offset = function - stream->module_base;
  const bool done = kind != atf::EventKind::kException &&
                    g_state.load(std::memory_order_relaxed) == stream->expected_selected &&
                    offset < stream->module_bytes &&
                    !(kFollowed && open_calls_general(*stream, function, kind)) &&
                    select_short(*stream, stream->module_id_high | offset, kind);
  if (COLLECT_LIKELY(done)) {
    if (kFollowed) follow_short(*stream, function, kind, place);
    // Pairs with the acquire of `busy` in show_long_calls.
    return leave_short(*stream, function, std::memory_order_release);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stream->busy.store(0, std::memory_order_relaxed);
  return false;
}

}  // namespace collect::agent
