#include "agent/ring/hooks/hooks.h"

#include <errno.h>

#include "agent/platform/threads.h"
#include "agent/ring/hooks/alternate_stack.h"
#include "agent/ring/hooks/deferred.h"
#include "agent/ring/hooks/general_path.h"
#include "agent/ring/hooks/hooks_inline.h"
#include "agent/ring/hooks/lane_pages.h"
#include "agent/ring/hooks/page_wait.h"
#include "agent/ring/hooks/shared_threads.h"
#include "agent/ring/hooks/short_calls.h"

namespace collect::agent {
namespace {

// A signal's frame on x86-64 and arm64 is larger than this, so a hook that a handler runs is at
// least so much deeper than the hook that it interrupted.
constexpr uint64_t kLeastSignalFrame = 512;

// Whether the hook that marked the stream busy is gone: a handler interrupted it and left by
// siglongjmp. Then its frame, lower on this stack than `frame`, cannot be alive.
bool is_abandoned(const Stream& stream, uint64_t frame) {
  if (&stream == &g_registering || &stream == &g_ignored) return false;
  const uint64_t busy = stream.busy.load(std::memory_order_relaxed);
  const uint64_t outer = busy & ~kBusyGeneral;
  // The general path may call into code of the host, whose hooks nest without a signal.
  const uint64_t slack = (busy & kBusyGeneral) != 0 ? 0 : kLeastSignalFrame;
  return frame + slack > outer && !on_alternate_stack(frame);
}

// Makes a stream whole again that a hook left in the middle of things: what was not committed is
// gone, and a page that was linked but not entered is entered.
void recover_abandoned(Stream& stream) {
  stream.waiting.store(0, std::memory_order_seq_cst);
  for (const Lane which : {Lane::kIndex, Lane::kDetail}) {
    keep_open_page(stream, which);
    recover_chain(stream.lane(which));
  }
  settle_tentative(stream);
  recover_deferred(stream);
  end_sleep_requests(stream);
  add_stalls(stream.stalls);
  const LaneState& index = stream.lane(Lane::kIndex);
  stream.end = nullptr;  // the next event begins a page
  if (index.open != 0) stream.committed = &page_info(index.open).committed;
  count_lost(stream.lane(Lane::kIndex), kLostReentry, stream.last_ns);
  stream.busy.store(0, std::memory_order_relaxed);
}

// Gives the calling thread a stream of the recording that runs now.
Stream* register_thread(uint64_t frame) {
  tls_stream = &g_registering;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Stream* stream = stream_take();
  if (stream == nullptr) {
    tls_stream = nullptr;
    count_lost_without_stream();
    return nullptr;
  }
  stream->recording = current_recording();
  stream->thread_id = os_thread_id();
  stream->stream_id = next_stream_id();
  stream->start_ns = now_ns();
  take_own_name(*stream);
  stream->busy.store(frame, std::memory_order_relaxed);
  stream_publish(*stream);
  watch_this_thread();
  tls_stream = stream;
  return stream;
}

// The interrupted hook is at no safe point, and neither is the handler's: quiesce() must not have
// to give up on them. Where one wait timed out, the rest of the handler does not wait.
bool wait_to_defer(Stream& stream, const DeferredEvent& event, uint32_t& reasons) {
  const uint64_t since_ns = now_ns();
  uint64_t until_ns = since_ns;
  bool deferred = false;
  const SleepRequest request(stream);
  while (!deferred && waiting_allowed() && (reasons & kLostNoMemory) == 0 &&
         until_ns - since_ns < kMaxNestedWaitNs &&
         (g_state.load(std::memory_order_acquire) & kStateRecording) != 0) {
    pause_for_page(stream, 0);
    deferred = defer_event(stream, event, &reasons);
    until_ns = now_ns();
  }
  // A wait of the interrupted hook leaves out the handlers that recorded something, and no others.
  if (until_ns != since_ns && (deferred || stream.waiting.load(std::memory_order_relaxed) == 0)) {
    add_nested_wait(stream.stalls, since_ns, until_ns);
  }
  return deferred;
}

// A hook inside a hook: a signal handler's, or one of the agent itself. The outer one owns the
// ring, so this event is deferred; a null end keeps the outer hook from the short path when it has
// not looked yet.
void nested_event(Stream* stream, const DeferredEvent& event) {
  if (stream == &g_ignored || event.function == kNoFunction) return;
  const uint64_t state = g_state.load(std::memory_order_acquire);
  if ((state & kStateRecording) == 0) return;
  // The stream of a recording that is over may have been counted already.
  const bool is_step = is_unwind_step(event.kind);
  if (stream == &g_registering || stream->recording != current_recording()) {
    if (!is_step) count_lost_without_stream();
    return;
  }
  const int saved_errno = errno;
  uint32_t reasons = 0;
  bool deferred = defer_event(*stream, event, &reasons);
  if (!deferred && full_policy() == FullPolicy::kWait && !stream->needs_deferred_page) {
    deferred = wait_to_defer(*stream, event, reasons);
  }
  errno = saved_errno;
  if (!deferred) {
    stream->needs_deferred_page = true;
    if (!is_step) count_lost(stream->lane(Lane::kIndex), reasons, stream->last_ns);
  }
  stream->end = nullptr;
}

Outcome record_followed(Stream& stream, Event& event) {
  if (!event.is_followed) {
    event.is_followed = true;
    const Outcome outcome = follow(stream, event);
    if (outcome == Outcome::kOver || event.move != nullptr) return outcome;
  }
  return record_busy(stream, event);
}

// Moves what handlers have deferred into the index lane. Each event is taken out before it is
// written: a handler that leaves by siglongjmp out of here costs one, which is counted.
Outcome move_deferred(Stream& stream) {
  if (stream.needs_deferred_page) {
    // With policy overwrite the pool never has one; the stream's own oldest will do.
    stream.needs_deferred_page = false;
    uint32_t reasons = 0;
    if (full_policy() == FullPolicy::kOverwrite) {
      give_deferred_page(stream, take_page(stream.lane(Lane::kIndex), Lane::kIndex, &reasons));
    }
  }
  while (stream.deferred.load(std::memory_order_relaxed) != 0) {
    stream.deferred.store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    DeferredEvent taken;
    while (take_deferred(stream, taken)) {
      if (taken.kind == 0) {  // a handler left in the middle of it
        count_lost(stream.lane(Lane::kIndex), kLostReentry, stream.last_ns);
        continue;
      }
      HookFrame frame;
      frame.place = taken.place;
      frame.by_sled = taken.by_sled != 0;
      const UnwindMove move = deferred_move(taken.kind, taken.place, taken.function);
      Event event{taken.function, static_cast<atf::EventKind>(taken.kind), frame, taken.ns};
      if (is_unwind_step(taken.kind)) event.move = &move;
      Outcome outcome = Outcome::kTryAgain;
      while (outcome == Outcome::kTryAgain) outcome = record_followed(stream, event);
      if (outcome == Outcome::kOver) {
        if (event.move == nullptr)
          count_lost(stream.lane(Lane::kIndex), kLostReentry, event.deferred_ns);
        return outcome;
      }
    }
  }
  return Outcome::kDone;
}

// From where the stream is busy to where it is not any more.
void record_general(Stream& stream, Event& event, uint64_t here) {
  bool is_done = event.function == kNoFunction;
  for (;;) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    Outcome outcome = move_deferred(stream);
    while (!is_done && outcome != Outcome::kOver) {
      outcome = record_followed(stream, event);
      is_done = outcome == Outcome::kDone;
      if (outcome == Outcome::kDeferred) outcome = move_deferred(stream);
    }
    if (outcome != Outcome::kOver) outcome = move_deferred(stream);
    if (outcome != Outcome::kOver && COLLECT_UNLIKELY(stream.stalls.is_pending())) {
      add_stalls(stream.stalls);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    stream.busy.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A handler may have come before that store.
    if (outcome == Outcome::kOver || stream.deferred.load(std::memory_order_relaxed) == 0) return;
    stream.busy.store(here, std::memory_order_relaxed);
  }
}

}  // namespace

[[gnu::noinline]] void general_event(Stream* stream, uint64_t function, atf::EventKind kind,
                                     const HookFrame& frame) {
  if (COLLECT_UNLIKELY(g_state.load(std::memory_order_relaxed) == 0) && !starts_by_early_event()) {
    return;
  }
  const uint64_t own = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const uint64_t here = (frame.hook != 0 ? frame.hook : own) | kBusyGeneral;
  if (stream == &g_without_clock) {
    count_lost_without_stream();
    return;
  }
  if (stream == &g_shared_by_threads) {
    if (has_shared_threads()) {
      count_lost_without_stream();
      return;
    }
    tls_stream = stream = nullptr;
  }
  if (stream != nullptr && stream->busy.load(std::memory_order_relaxed) != 0) {
    if (!is_abandoned(*stream, here)) {
      nested_event(stream,
                   {0, function, frame.place, static_cast<uint8_t>(kind), frame.by_sled, {}});
      return;
    }
    recover_abandoned(*stream);
  }
  if (function == kNoFunction && (stream == nullptr || stream->recording != current_recording())) {
    return;  // the drain counts what is left of a recording that is over
  }
  const int saved_errno = errno;
  if (COLLECT_UNLIKELY((g_state.load(std::memory_order_relaxed) & kStateForked) != 0)) {
    tls_stream = &g_registering;
    const bool ready = restart_in_child();
    tls_stream = nullptr;
    stream = nullptr;
    if (!ready) {
      errno = saved_errno;
      return;
    }
  }
  // A stream of an earlier recording stays with the drain thread; this thread begins a new one.
  if (stream != nullptr && stream->recording != current_recording()) {
    tls_stream = nullptr;
    stream_leave(*stream);
    stream = nullptr;
  }
  if (stream == nullptr) {
    stream = register_thread(here);
    if (stream == nullptr) {
      errno = saved_errno;
      return;
    }
  } else {
    stream->busy.store(here, std::memory_order_relaxed);
  }
  Event event{function, kind, frame};
  record_general(*stream, event, here);
  errno = saved_errno;
}

bool follows_this_thread() {
  const Stream* stream = tls_stream;
  const uint64_t state = g_state.load(std::memory_order_relaxed);
  const uint64_t ours = g_owner.mask.load(std::memory_order_relaxed);
  return (state & ours & kStateRecording) != 0 && (state & kStateForked) == 0 &&
         stream != nullptr && stream != &g_registering && stream != &g_ignored &&
         stream != &g_shared_by_threads && stream != &g_without_clock;
}

void on_unwind(const UnwindMove& move) {
  if (!follows_this_thread()) return;
  Stream* stream = tls_stream;
  const uint64_t here = reinterpret_cast<uint64_t>(__builtin_frame_address(0)) | kBusyGeneral;
  if (stream->busy.load(std::memory_order_relaxed) != 0) {
    if (!is_abandoned(*stream, here)) {
      nested_event(stream,
                   {0, move.function, move.stack_pointer, static_cast<uint8_t>(move.step), 0, {}});
      return;
    }
    recover_abandoned(*stream);
  }
  if (stream->recording != current_recording()) return;
  const int saved_errno = errno;
  stream->busy.store(here, std::memory_order_relaxed);
  constexpr HookFrame kNoFrame;
  Event event{move.function, atf::EventKind::kException, kNoFrame, 0, &move};
  record_general(*stream, event, here);
  errno = saved_errno;
}

void on_event(uint64_t function, atf::EventKind kind, const HookFrame& frame) {
  Stream* stream = nullptr;
  if (record_short<false>(function, kind, stream, 0) ||
      record_selected<false>(function, kind, stream, 0)) {
    return;
  }
  general_event(stream, function, kind, frame);
}

}  // namespace collect::agent
