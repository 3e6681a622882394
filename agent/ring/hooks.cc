#include "agent/ring/hooks.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/lifecycle.h"
#include "agent/platform/threads.h"
#include "agent/ring/deferred.h"
#include "agent/ring/detail.h"
#include "agent/ring/hooks_inline.h"
#include "agent/ring/lane_pages.h"
#include "agent/ring/modules.h"
#include "agent/ring/page_wait.h"

namespace collect::agent {
namespace {

// A signal's frame on x86-64 and arm64 is larger than this, so a hook that a handler runs lies at
// least so much deeper than the hook that it interrupted.
constexpr uint64_t kLeastSignalFrame = 512;

bool on_alternate_stack() {
  stack_t stack;
  return sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_ONSTACK) != 0;
}

// Whether the hook that marked the stream busy is gone: a handler interrupted it and left by
// siglongjmp. Then its frame, lower on this stack than `frame`, cannot be alive.
bool is_abandoned(const Stream& stream, uint64_t frame) {
  if (&stream == &g_registering || &stream == &g_ignored) return false;
  const uint64_t busy = stream.busy.load(std::memory_order_relaxed);
  const uint64_t outer = busy & ~kBusyGeneral;
  // The general path may call into code of the host, whose hooks nest without a signal.
  const uint64_t slack = (busy & kBusyGeneral) != 0 ? 0 : kLeastSignalFrame;
  return frame + slack > outer && !on_alternate_stack();
}

// Makes a stream whole again that a hook left in the middle of things: what was not committed is
// gone, and a page that was linked but not entered is entered.
void recover_abandoned(Stream& stream) {
  for (LaneState& lane : stream.lanes) recover_chain(lane);
  recover_deferred(stream);
  stream.waiting.store(0, std::memory_order_relaxed);
  add_stalls(stream.stalls);
  const LaneState& index = stream.lane(Lane::kIndex);
  stream.end = nullptr;  // the next event begins a page
  if (index.open != 0) stream.committed = &page_info(index.open).committed;
  count_lost(stream.lane(Lane::kIndex), wire::kLostReentry, stream.last_ns);
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
  stream->busy.store(frame, std::memory_order_relaxed);
  stream_publish(*stream);
  tls_stream = stream;
  return stream;
}

// Which of the short paths applies, if one does. 0 has no recording bit, so nothing equals it.
void note_expected(Stream& stream, uint64_t state) {
  const uint64_t expected = (state & kStateGeneral) == 0 ? state : 0;
  const bool is_filtered = !stream.filter.is_idle();
  stream.expected = is_filtered ? 0 : expected;
  stream.expected_filtered = is_filtered ? expected : 0;
}

void refresh(Stream& stream, uint64_t state) {
  stream.clock = clock_line();
  stream.module_bytes = 0;
  // The filter may be changed while neither flag is set.
  const bool detail = (state & (kStateDetailArmed | kStateDetailOn)) != 0;
  stream.detail_thread = detail && filter_takes_thread(stream.thread_id);
  refresh_filter(stream.filter, stream.epoch_state.load(std::memory_order_relaxed) == 0);
  note_expected(stream, state);
  stream.epoch_state.store(state, std::memory_order_release);  // pairs with is_quiet's acquire
}

// The function's id; the module is kept for the next event.
uint64_t function_id(Stream& stream, uint64_t function, uint64_t state) {
  if ((state & kStateModulesChanging) != 0) (void)modules_scan();
  const uint64_t offset = function - stream.module_base;
  if (offset < stream.module_bytes && (state & kStateModulesChanging) == 0) {
    return stream.module_id_high | offset;
  }
  ModuleRange range;
  if (!module_find(function, range)) {
    stream.module_bytes = 0;
    return uint64_t{kUnknownModule} << 32 | (function & 0xFFFFFFFFu);
  }
  stream.module_base = range.base;
  stream.module_bytes = range.bytes;
  stream.module_id_high = uint64_t{range.module_id} << 32;
  return stream.module_id_high | (function - range.base);
}

void write_event(Stream& stream, uint64_t ns, uint64_t id, atf::EventKind kind, uint32_t depth,
                 uint64_t detail_seq, uint64_t state) {
  uint8_t* pos = stream.pos;
  if ((state & kStateVersion1) != 0) {
    const atf::IndexEventV1 event{
        ns,
        id,
        stream.thread_id,
        static_cast<uint32_t>(kind),
        depth,
        detail_seq == atf::kNoDetail ? atf::kNoDetailV1 : static_cast<uint32_t>(detail_seq)};
    memcpy(pos, &event, sizeof event);
  } else {
    const atf::IndexEventV2 event{ns, id, detail_seq, static_cast<uint8_t>(kind), {}};
    memcpy(pos, &event, sizeof event);
  }
  stream.pos = pos + atf::kEventBytes;
  stream.committed->fetch_add(atf::kEventBytes, std::memory_order_release);
}

// The depth that the event carries (version 1): a call and its return carry the same.
uint32_t step_depth(Stream& stream, atf::EventKind kind) {
  if (kind == atf::EventKind::kCall) return ++stream.depth;
  return stream.depth == 0 ? 0 : stream.depth--;
}

// A hook inside a hook: a signal handler's, or one of the agent itself. The outer one owns the
// ring, so this event is deferred; a null end keeps the outer hook from the short path when it has
// not looked yet.
void nested_event(Stream* stream, uint64_t function, atf::EventKind kind, const HookFrame& frame) {
  if (stream == &g_ignored || function == kNoFunction) return;
  const uint64_t state = g_state.load(std::memory_order_acquire);
  if ((state & kStateRecording) == 0) return;
  // The stream of a recording that is over may have been counted already.
  if (stream == &g_registering || stream->recording != current_recording()) {
    count_lost_without_stream();
    return;
  }
  const int saved_errno = errno;
  uint32_t reasons = 0;
  bool deferred = defer_event(*stream, function, kind, frame.by_sled, &reasons);
  // The interrupted hook is at no safe point, and neither is this one: quiesce() must not have to
  // give up on them. Where one wait was in vain, the rest of the handler does not wait.
  const uint64_t until_ns = read_system_clock() + kMaxNestedWaitNs;
  uint64_t waits_since_ns = 0;
  while (!deferred && settings().full == FullPolicy::kWait && waiting_allowed() &&
         !stream->needs_deferred_page && (reasons & wire::kLostNoMemory) == 0 &&
         read_system_clock() < until_ns &&
         (g_state.load(std::memory_order_acquire) & kStateRecording) != 0) {
    if (waits_since_ns == 0) waits_since_ns = now_ns();
    pause_for_page();
    deferred = defer_event(*stream, function, kind, frame.by_sled, &reasons);
  }
  // A wait of the interrupted hook leaves out the handlers that recorded something, and no others.
  if (waits_since_ns != 0 && (deferred || stream->waiting.load(std::memory_order_relaxed) == 0)) {
    add_nested_wait(stream->stalls, waits_since_ns, now_ns());
  }
  errno = saved_errno;
  if (!deferred) {
    stream->needs_deferred_page = true;
    count_lost(stream->lane(Lane::kIndex), reasons, stream->last_ns);
  }
  stream->end = nullptr;
}

// kDeferred: handlers have deferred events that come before this one.
enum class Outcome : uint8_t { kDone, kTryAgain, kDeferred, kOver };

struct Event {
  uint64_t function;
  atf::EventKind kind;
  const HookFrame& frame;
  uint64_t deferred_ns = 0;  // of a deferred event: when it was
  // From its first look on, whatever it waits for afterwards: the function filter counts each event
  // once, and a call from before a change is not one of after it.
  bool is_judged = false;
  uint32_t depth = 0;
  uint64_t ns = 0;
};

// Whether the page that is open takes another record. A null end is put right again where nothing
// was lost: handlers make it null, also between these lines.
bool index_has_room(Stream& stream) {
  LaneState& index = stream.lane(Lane::kIndex);
  if (stream.end == nullptr && index.open != 0 &&
      index.lost_reasons.load(std::memory_order_relaxed) == 0) {
    stream.end = page_bytes(index.open) + kPageBytes;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (index.lost_reasons.load(std::memory_order_relaxed) != 0) stream.end = nullptr;
  }
  return stream.pos < stream.end;
}

// The first look at an event: whether it is recorded, at which depth and time.
bool judge(Stream& stream, Event& event, uint64_t id, uint64_t now_ns, uint64_t state) {
  if ((state & kStateSledsChanging) != 0 && event.frame.by_sled && !stream.filter.takes_now(id)) {
    return false;
  }
  const bool taken = filter_judges(stream.filter, id, event.kind == atf::EventKind::kCall);
  // The last call of an earlier filter may have returned.
  if (stream.filter.is_idle() && stream.expected_filtered != 0) note_expected(stream, state);
  if (!taken) return false;
  event.is_judged = true;
  event.depth = step_depth(stream, event.kind);
  event.ns = now_ns < stream.last_ns ? stream.last_ns : now_ns;
  stream.last_ns = event.ns;
  return true;
}

Outcome record_busy(Stream& stream, Event& event) {
  // Acquires what was changed before the state was: the filter, and lanes that got pre-roll.
  const uint64_t state = g_state.load(std::memory_order_acquire);
  if ((state & kStateRecording) == 0) return Outcome::kOver;
  if (stream.epoch_state.load(std::memory_order_relaxed) != state) refresh(stream, state);
  const uint64_t id = function_id(stream, event.function, state);
  if (!event.is_judged) {
    uint64_t now_ns = event.deferred_ns;
    if (now_ns == 0) {
      now_ns = clock_now(stream.clock);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (stream.deferred.load(std::memory_order_relaxed) != 0) return Outcome::kDeferred;
    }
    if (!judge(stream, event, id, now_ns, state)) return Outcome::kDone;
  }
  const uint64_t ns = event.ns;
  LaneState& index = stream.lane(Lane::kIndex);
  if (!index_has_room(stream)) {
    uint32_t reasons = 0;
    if (!open_index_page(stream, &reasons)) {
      const Wait wait = wait_for_page(stream, Lane::kIndex, reasons);
      if (wait == Wait::kRetry) return Outcome::kTryAgain;
      if (wait == Wait::kOver) return Outcome::kOver;
      count_lost(index, reasons, ns);
      return Outcome::kDone;
    }
  }
  // Index place first, then the detail record, then the index event that links to it: neither lane
  // ever refers to what is not there.
  uint64_t detail_seq = atf::kNoDetail;
  const bool detail = (state & (kStateDetailArmed | kStateDetailOn)) != 0 && stream.detail_thread &&
                      filter_takes_function(id);
  if (detail && event.deferred_ns != 0) {
    // Its registers and its stack are gone.
    if ((state & kStateDetailOn) != 0) {
      count_lost(stream.lane(Lane::kDetail), wire::kLostReentry, ns);
    }
  } else if (detail) {
    const DetailRecord record{id, ns, index_next_seq(stream), event.kind, event.frame};
    uint32_t reasons = 0;
    if (!write_detail(stream, record, state, &detail_seq, &reasons)) {
      const Wait wait = wait_for_page(stream, Lane::kDetail, reasons);
      if (wait == Wait::kRetry) return Outcome::kTryAgain;
      if (wait == Wait::kOver) return Outcome::kOver;
      count_lost(stream.lane(Lane::kDetail), reasons, ns);
    }
  }
  write_event(stream, ns, id, event.kind, event.depth, detail_seq, state);
  return Outcome::kDone;
}

// Moves what handlers have deferred into the index lane. Each event is taken out before it is
// written: a handler that leaves by siglongjmp out of here costs one, which is counted.
Outcome move_deferred(Stream& stream) {
  constexpr HookFrame kNoFrame;
  constexpr HookFrame kSledFrame{.by_sled = true};
  if (stream.needs_deferred_page) {
    // With policy overwrite the pool never has one; the stream's own oldest will do.
    stream.needs_deferred_page = false;
    uint32_t reasons = 0;
    if (settings().full == FullPolicy::kOverwrite) {
      give_deferred_page(stream, take_page(stream.lane(Lane::kIndex), Lane::kIndex, &reasons));
    }
  }
  while (stream.deferred.load(std::memory_order_relaxed) != 0) {
    stream.deferred.store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    DeferredEvent taken;
    while (take_deferred(stream, taken)) {
      if (taken.kind == 0) {  // a handler left in the middle of it
        count_lost(stream.lane(Lane::kIndex), wire::kLostReentry, stream.last_ns);
        continue;
      }
      Event event{taken.function, static_cast<atf::EventKind>(taken.kind),
                  taken.by_sled != 0 ? kSledFrame : kNoFrame, taken.ns};
      Outcome outcome = Outcome::kTryAgain;
      while (outcome == Outcome::kTryAgain) outcome = record_busy(stream, event);
      if (outcome == Outcome::kOver) {
        count_lost(stream.lane(Lane::kIndex), wire::kLostReentry, event.deferred_ns);
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
      outcome = record_busy(stream, event);
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
  const uint64_t own = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const uint64_t here = (frame.hook != 0 ? frame.hook : own) | kBusyGeneral;
  if (stream != nullptr && stream->busy.load(std::memory_order_relaxed) != 0) {
    if (!is_abandoned(*stream, here)) {
      nested_event(stream, function, kind, frame);
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

void on_event(uint64_t function, atf::EventKind kind, const HookFrame& frame) {
  Stream* stream = nullptr;
  if (record_short(function, kind, stream) || record_filtered(function, kind, stream)) return;
  general_event(stream, function, kind, frame);
}

}  // namespace collect::agent
