#include "agent/ring/hooks/page_wait.h"

#include <time.h>

#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/ring/hooks/detail.h"

namespace collect::agent {
namespace {

// A thread that continued at the first free page would wait again after a few microseconds of work,
// and so would all others: what the drain needs would go into switching between them, and into
// their waits for its answer, awake. So a part of the ring has to be free, at first.
constexpr uint64_t kRoomWaitNs = 20'000'000;
// Who waits longer looks less often: the drain wakes those for whom there is a page.
constexpr uint64_t kPauseNs = 50'000;
constexpr uint32_t kPausesOfALength = 64;
constexpr uint32_t kMostDoublings = 8;

// Stream::sleep: a state, and above it a number that counts the questions.
enum SleepState : uint32_t { kNotAsked, kAsked, kAllowed, kRefused };
constexpr uint32_t kNextTurn = 4;

uint32_t state_of(uint32_t sleep) {
  return sleep % kNextTurn;
}
uint32_t turn_of(uint32_t sleep) {
  return sleep - sleep % kNextTurn;
}

bool is_room(Lane lane, uint64_t waited_ns) {
  if (lane == Lane::kDetail) return detail_may_grow();
  return waited_ns < kRoomWaitNs ? pool_has_room() : pool_free_pages() != 0;
}

bool sleeps_unasked() {
  return stream_slots() >= kManyThreads && !program_is_filtered();
}

bool is_over(const Stream& stream) {
  return (g_state.load(std::memory_order_seq_cst) & kStateRecording) == 0 ||
         stream.recording != current_recording();
}

// In the time of events: no stall begins before the event that waits.
uint64_t stall_clock(const Stream& stream) {
  const uint64_t ns = now_ns();
  return ns < stream.last_ns ? stream.last_ns : ns;
}

// A signal handler ran meanwhile, and recorded events: the thread did not wait then. What came
// before is a stall of its own. False: the recording is over.
bool leave_out_handler(Stream& stream) {
  stream.waiting.store(0, std::memory_order_seq_cst);
  if (is_over(stream)) return false;
  add_stalls(stream.stalls);
  begin_wait(stream.stalls, stall_clock(stream));
  stream.waiting.store(1, std::memory_order_release);
  return true;
}

}  // namespace

void pause_for_page(const Stream& stream, uint32_t pauses) {
  if (sleeps_unasked() || state_of(stream.sleep.load(std::memory_order_acquire)) == kAllowed) {
    const uint32_t doublings = pauses / kPausesOfALength;
    sleep_for_page(kPauseNs << (doublings < kMostDoublings ? doublings : kMostDoublings));
    return;
  }
  for (const uint64_t since_ns = now_ns(); now_ns() - since_ns < kPauseNs;) sys::relax();
}

SleepRequest::SleepRequest(Stream& stream)
    : stream_(!sleeps_unasked() &&
                      state_of(stream.sleep.load(std::memory_order_relaxed)) == kNotAsked
                  ? &stream
                  : nullptr) {
  if (stream_ == nullptr) return;
  stream_->sleep.store(turn_of(stream_->sleep.load(std::memory_order_relaxed)) + kNextTurn + kAsked,
                       std::memory_order_release);
}

SleepRequest::~SleepRequest() {
  if (stream_ != nullptr) end_sleep_requests(*stream_);
}

void end_sleep_requests(Stream& stream) {
  stream.sleep.store(turn_of(stream.sleep.load(std::memory_order_relaxed)),
                     std::memory_order_release);
}

void answer_sleep_requests() {
  const pid_t process = memory_is_shared() ? traced_process() : 0;
  for_each_stream([process](Stream& stream) {
    uint32_t asked = stream.sleep.load(std::memory_order_acquire);
    if (state_of(asked) != kAsked) return;
    const uint32_t answer = is_filtered(process, stream.thread_id) ? kRefused : kAllowed;
    // It may have continued meanwhile, and ask again: then this is no answer to that.
    (void)stream.sleep.compare_exchange_strong(asked, turn_of(asked) + answer,
                                               std::memory_order_acq_rel);
  });
}

Wait wait_for_page(Stream& stream, Lane lane, uint32_t reasons) {
  // Memory that the system does not give is not waited for.
  const bool hopeless = (reasons & kLostNoMemory) != 0 ||
                        (stream.wait_timed_out && stream.turns_at_timeout == pool_turns());
  if (full_policy() != FullPolicy::kWait || hopeless || !waiting_allowed()) return Wait::kGiveUp;
  stream.wait_timed_out = false;
  uint32_t turns = pool_turns();
  const uint64_t began_ns = now_ns();
  uint64_t moved_at_ns = began_ns;
  uint64_t waited_ns = 0;
  uint64_t deferred = stream.deferred_tail.load(std::memory_order_relaxed);
  begin_wait(stream.stalls, stall_clock(stream));
  const SleepRequest request(stream);
  stream.waiting.store(1, std::memory_order_release);
  for (uint32_t pauses = 0;
       waiting_allowed() && full_policy() == FullPolicy::kWait && !is_room(lane, waited_ns) &&
       !stream.wait_timed_out && (g_state.load(std::memory_order_acquire) & kStateRecording) != 0;
       ++pauses) {
    pause_for_page(stream, pauses);
    if (stream.deferred_tail.load(std::memory_order_relaxed) != deferred) {
      deferred = stream.deferred_tail.load(std::memory_order_relaxed);
      if (!leave_out_handler(stream)) break;
    } else {
      continue_wait(stream.stalls, stall_clock(stream));
    }
    const uint64_t at_ns = now_ns();
    waited_ns = at_ns - began_ns;
    if (pool_turns() != turns) {
      turns = pool_turns();
      moved_at_ns = at_ns;
    } else if (at_ns - moved_at_ns > kMaxWaitNs) {
      stream.wait_timed_out = true;
      stream.turns_at_timeout = turns;
    }
  }
  stream.waiting.store(0, std::memory_order_seq_cst);
  // A quiesce in the meantime took this waiting thread for a quiet one.
  return is_over(stream) ? Wait::kOver : Wait::kRetry;
}

}  // namespace collect::agent
