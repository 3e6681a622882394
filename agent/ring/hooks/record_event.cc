// One event, from its first look to its record in the ring.
#include "agent/ring/hooks/detail.h"
#include "agent/ring/hooks/general_path.h"
#include "agent/ring/hooks/lane_pages.h"
#include "agent/ring/hooks/page_wait.h"
#include "agent/ring/hooks/short_calls.h"
#include "agent/ring/modules.h"

namespace collect::agent {
namespace {

// Which of the short paths applies, if one does. 0 has no recording bit, so nothing equals it.
void note_expected(Stream& stream, uint64_t state) {
  const uint64_t expected = (state & kStateGeneral) == 0 ? state : 0;
  const bool selects =
      !stream.filter.is_idle() || stream.max_depth != UINT32_MAX || stream.longer_than_ns != 0;
  stream.expected = selects ? 0 : expected;
  stream.expected_selected = selects ? expected : 0;
}

void refresh(Stream& stream, uint64_t state) {
  stream.clock = clock_line();
  stream.module_bytes = 0;
  // The filter may be changed while neither flag is set.
  const bool detail = (state & (kStateDetailArmed | kStateDetailOn)) != 0;
  stream.detail_thread = detail && filter_takes_thread(stream.thread_id);
  if (settings().max_depth != 0) stream.max_depth = settings().max_depth;
  stream.longer_than_ns = settings().longer_than_ns;
  refresh_filter(stream.filter, stream.epoch_state.load(std::memory_order_relaxed) == 0);
  keep_open_page(stream, Lane::kIndex);
  note_expected(stream, state);
  stream.epoch_state.store(state, std::memory_order_release);  // pairs with is_quiet's acquire
}

// Whether the stream's copies hold for this state, in which something is recorded; they are renewed
// where they do not. False: the stream is of a recording that ended, and another began, between the
// thread's look at the number and the stream's publication, where quiesce() did not see it. Nothing
// may go into it, for the drain gives it back; the thread's next event takes another stream.
bool is_current(Stream& stream, uint64_t state) {
  if (stream.epoch_state.load(std::memory_order_relaxed) == state) return true;
  if (stream.recording != current_recording()) return false;
  refresh(stream, state);
  return true;
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
  auto* event = reinterpret_cast<uint64_t*>(pos);  // our own memory, aligned to 32
  event[0] = ns;
  event[1] = id;
  if ((state & kStateVersion1) != 0) {  // atf::IndexEventV1
    const uint64_t detail = detail_seq == atf::kNoDetail ? atf::kNoDetailV1 : detail_seq;
    event[2] = stream.thread_id | uint64_t{static_cast<uint32_t>(kind)} << 32;
    event[3] = depth | detail << 32;
  } else {  // atf::IndexEventV2
    event[2] = detail_seq;
    event[3] = static_cast<uint8_t>(kind);
  }
  stream.pos = pos + atf::kEventBytes;
}

// The depth of the event, which version 1 records: a call and its return have the same. A return
// whose call was not seen has 0.
uint32_t step_depth(Stream& stream, atf::EventKind kind) {
  if (kind == atf::EventKind::kCall) return ++stream.depth;
  return stream.depth == 0 ? 0 : stream.depth--;
}

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

// Whether filter and limits want the event, and its depth.
bool is_wanted(Stream& stream, Event& event, uint64_t id, uint64_t state) {
  if ((state & kStateSledsChanging) != 0 && event.frame.by_sled && !stream.filter.takes_now(id)) {
    return false;
  }
  const bool taken = filter_judges(stream.filter, id, event.kind == atf::EventKind::kCall);
  // The last call of an earlier filter may have returned.
  if (stream.filter.is_idle() && stream.expected_selected != 0) note_expected(stream, state);
  if (!taken) return false;
  event.depth = step_depth(stream, event.kind);
  return event.depth <= stream.max_depth;
}

// The first look at an event: whether it is recorded, at which depth and time.
bool judge(Stream& stream, Event& event, uint64_t id, uint64_t now_ns, uint64_t state) {
  if (!is_wanted(stream, event, id, state)) {
    if (event.kind == atf::EventKind::kCall) count_left_out(stream);
    return false;
  }
  event.is_judged = true;
  event.ns = now_ns < stream.last_ns ? stream.last_ns : now_ns;
  stream.last_ns = event.ns;
  return true;
}

// Whether the event is the return of a call that was too short for what is wanted: that is taken
// back. Open calls that are long enough by now are kept.
bool is_too_short(Stream& stream, const Event& event, uint64_t id) {
  if (stream.longer_than_ns != 0) return take_back(stream, event.ns, id, event.kind);
  return event.frame.is_left_out_if_brief && event.kind == atf::EventKind::kReturn &&
         take_brief_back(stream, event.ns, id);
}

// A call of a library function was recorded, or its return.
void note_lock(Stream& stream, const Event& event) {
  LockWait& wait = *event.frame.lock_wait;
  if (event.kind == atf::EventKind::kCall) {
    wait.call_ns = event.ns;
  } else if (wait.call_ns >= stream.start_ns && event.ns - wait.call_ns >= kBriefNs) {
    const uint64_t waited_ns = event.ns - wait.call_ns;
    add_lock_wait(stream.stalls, {wait.call_ns, event.ns, waited_ns, 1, true,
                                  static_cast<uint32_t>(wait.owner), wait.lock});
  }
}

}  // namespace

Outcome record_busy(Stream& stream, Event& event) {
  // Acquires what was changed before the state was: the filter, and lanes that got pre-roll.
  const uint64_t state = g_state.load(std::memory_order_acquire);
  if ((state & kStateRecording) == 0) return Outcome::kOver;
  if (!is_current(stream, state)) {
    count_lost_without_stream();
    return Outcome::kOver;
  }
  const bool is_library = event.frame.library_function != 0;
  const uint64_t id =
      is_library ? event.frame.library_function : function_id(stream, event.function, state);
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
  const bool detail = (state & (kStateDetailArmed | kStateDetailOn)) != 0 && event.has_frame &&
                      !is_library && stream.detail_thread && filter_takes_function(id);
  const bool may_be_brief = event.frame.is_left_out_if_brief && stream.longer_than_ns == 0;
  if (is_too_short(stream, event, id)) return Outcome::kDone;
  // A detail record refers to a record by its number, so nothing before it may be taken back.
  const bool is_tentative = (stream.longer_than_ns != 0 || may_be_brief) &&
                            event.kind == atf::EventKind::kCall && !detail;
  if (!is_tentative || may_be_brief) keep_tentative(stream);
  if (!index_has_room(stream)) {
    keep_tentative(stream);  // it ends with its page
    if (end_by_size(stream, index.open)) return Outcome::kOver;
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
  if (detail && event.deferred_ns != 0) {
    // Its registers and its stack are gone.
    if ((state & kStateDetailOn) != 0) {
      count_lost(stream.lane(Lane::kDetail), kLostReentry, ns);
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
  if (is_library && event.frame.lock_wait->lock != 0) note_lock(stream, event);
  if (is_tentative) {
    add_tentative(stream, ns);
  } else {
    stream.committed->store(end_in_page(stream.pos),
                            std::memory_order_release);  // pairs with next_span's acquire
  }
  return Outcome::kDone;
}

void forget_call(Stream& stream, uint64_t function) {
  const uint64_t state = g_state.load(std::memory_order_acquire);
  if ((state & kStateRecording) == 0) return;
  if (!is_current(stream, state)) return;
  if (!filter_judges(stream.filter, function_id(stream, function, state), false)) return;
  if (stream.depth != 0) --stream.depth;
  keep_tentative(stream);  // how long it was, no one can say
}

}  // namespace collect::agent
