#include "agent/ring/hooks.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "agent/lifecycle.h"
#include "agent/platform/threads.h"
#include "agent/ring/detail.h"
#include "agent/ring/hooks_inline.h"
#include "agent/ring/lane_pages.h"
#include "agent/ring/modules.h"

namespace collect::agent {
namespace {

// A hook inside a hook: a signal handler's, or one of the agent itself. The outer one owns the
// ring, so this event is counted as lost; a null end makes the outer's next event note where.
void nested_event(Stream* stream) {
  if (stream == &g_ignored) return;
  if (stream == &g_registering) {
    count_lost_without_stream();
    return;
  }
  count_lost(stream->lane(Lane::kIndex), wire::kLostReentry, stream->last_ns);
  stream->end = nullptr;
}

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
  stream.waiting.store(0, std::memory_order_relaxed);
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

enum class Wait : uint8_t { kRetry, kGiveUp, kOver };

bool page_may_be_free(Lane lane) {
  return lane == Lane::kDetail ? detail_may_grow() : pool_used_bytes() < pool_bytes();
}

// With FullPolicy::kWait, holds the program until a page of the lane may be free, or until that
// can't be expected any more. kGiveUp is said at once, before anything can change. After a wait the
// caller begins anew, for it was a safe point: detail may have been switched, and the recording may
// be over, and then this stream must not be written any more.
Wait wait_for_page(Stream& stream, Lane lane, uint32_t reasons) {
  // Memory that the system does not give is not waited for.
  const bool hopeless = (reasons & wire::kLostNoMemory) != 0 ||
                        (stream.waited_in_vain && stream.vain_turns == pool_turns());
  if (settings().full != FullPolicy::kWait || hopeless || !waiting_allowed()) return Wait::kGiveUp;
  stream.waited_in_vain = false;
  uint32_t turns = pool_turns();
  uint64_t moved_at_ns = read_system_clock();
  stream.waiting.store(1, std::memory_order_release);
  while (waiting_allowed() && !page_may_be_free(lane) && !stream.waited_in_vain &&
         (g_state.load(std::memory_order_acquire) & kStateRecording) != 0) {
    const timespec pause{0, 50000};
    nanosleep(&pause, nullptr);
    const uint64_t now_ns = read_system_clock();
    if (pool_turns() != turns) {
      turns = pool_turns();
      moved_at_ns = now_ns;
    } else if (now_ns - moved_at_ns > kMaxWaitNs) {
      stream.waited_in_vain = true;
      stream.vain_turns = turns;
    }
  }
  stream.waiting.store(0, std::memory_order_seq_cst);
  // Whoever quiesced meanwhile took a waiting thread for a quiet one.
  const bool over = (g_state.load(std::memory_order_seq_cst) & kStateRecording) == 0 ||
                    stream.recording != current_recording();
  return over ? Wait::kOver : Wait::kRetry;
}

enum class Outcome : uint8_t { kDone, kTryAgain };

struct Event {
  uint64_t function;
  atf::EventKind kind;
  const HookFrame& frame;
  // From its first look on, whatever it waits for afterwards: the function filter counts each event
  // once, and a call from before a change is not one of after it.
  bool is_judged = false;
  uint32_t depth = 0;
  uint64_t ns = 0;
};

Outcome record_busy(Stream& stream, Event& event) {
  // Acquires what was changed before the state was: the filter, and lanes that got pre-roll.
  const uint64_t state = g_state.load(std::memory_order_acquire);
  if ((state & kStateRecording) == 0) return Outcome::kDone;
  if (stream.epoch_state.load(std::memory_order_relaxed) != state) refresh(stream, state);
  const uint64_t id = function_id(stream, event.function, state);
  if (!event.is_judged) {
    if ((state & kStateSledsChanging) != 0 && event.frame.by_sled && !stream.filter.takes_now(id)) {
      return Outcome::kDone;
    }
    const bool taken = filter_judges(stream.filter, id, event.kind == atf::EventKind::kCall);
    // The last call of an earlier filter may have returned.
    if (stream.filter.is_idle() && stream.expected_filtered != 0) note_expected(stream, state);
    if (!taken) return Outcome::kDone;
    event.is_judged = true;
    event.depth = step_depth(stream, event.kind);
    const uint64_t now_ns = clock_now(stream.clock);
    event.ns = now_ns < stream.last_ns ? stream.last_ns : now_ns;
    stream.last_ns = event.ns;
  }
  const uint64_t ns = event.ns;
  LaneState& index = stream.lane(Lane::kIndex);
  if (stream.pos >= stream.end) {
    uint32_t reasons = 0;
    if (!open_index_page(stream, &reasons)) {
      const Wait wait = wait_for_page(stream, Lane::kIndex, reasons);
      if (wait == Wait::kRetry) return Outcome::kTryAgain;
      if (wait == Wait::kGiveUp) count_lost(index, reasons, ns);
      return Outcome::kDone;
    }
  }
  // Index place first, then the detail record, then the index event that links to it: neither lane
  // ever refers to what is not there.
  uint64_t detail_seq = atf::kNoDetail;
  if ((state & (kStateDetailArmed | kStateDetailOn)) != 0 && stream.detail_thread &&
      filter_takes_function(id)) {
    const DetailRecord record{id, ns, index_next_seq(stream), event.kind, event.frame};
    uint32_t reasons = 0;
    if (!write_detail(stream, record, state, &detail_seq, &reasons)) {
      const Wait wait = wait_for_page(stream, Lane::kDetail, reasons);
      if (wait == Wait::kRetry) return Outcome::kTryAgain;
      if (wait == Wait::kOver) return Outcome::kDone;
      count_lost(stream.lane(Lane::kDetail), reasons, ns);
    }
  }
  write_event(stream, ns, id, event.kind, event.depth, detail_seq, state);
  return Outcome::kDone;
}

}  // namespace

[[gnu::noinline]] void general_event(Stream* stream, uint64_t function, atf::EventKind kind,
                                     const HookFrame& frame) {
  const uint64_t own = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const uint64_t here = (frame.hook != 0 ? frame.hook : own) | kBusyGeneral;
  if (stream != nullptr && stream->busy.load(std::memory_order_relaxed) != 0) {
    if (!is_abandoned(*stream, here)) {
      nested_event(stream);
      return;
    }
    recover_abandoned(*stream);
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
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Event event{function, kind, frame};
  while (record_busy(*stream, event) == Outcome::kTryAgain) {
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stream->busy.store(0, std::memory_order_release);
  errno = saved_errno;
}

void on_event(uint64_t function, atf::EventKind kind, const HookFrame& frame) {
  Stream* stream = nullptr;
  if (record_short(function, kind, stream) || record_filtered(function, kind, stream)) return;
  general_event(stream, function, kind, frame);
}

}  // namespace collect::agent
