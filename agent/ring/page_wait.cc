#include "agent/ring/page_wait.h"

#include <time.h>

#include "agent/ring/detail.h"

namespace collect::agent {
namespace {

bool page_may_be_free(Lane lane) {
  return lane == Lane::kDetail ? detail_may_grow() : pool_used_bytes() < pool_bytes();
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

void pause_for_page() {
  const timespec pause{0, 50000};
  nanosleep(&pause, nullptr);
}

Wait wait_for_page(Stream& stream, Lane lane, uint32_t reasons) {
  // Memory that the system does not give is not waited for.
  const bool hopeless = (reasons & kLostNoMemory) != 0 ||
                        (stream.waited_in_vain && stream.vain_turns == pool_turns());
  if (settings().full != FullPolicy::kWait || hopeless || !waiting_allowed()) return Wait::kGiveUp;
  stream.waited_in_vain = false;
  uint32_t turns = pool_turns();
  uint64_t moved_at_ns = read_system_clock();
  uint64_t deferred = stream.deferred_tail.load(std::memory_order_relaxed);
  begin_wait(stream.stalls, stall_clock(stream));
  stream.waiting.store(1, std::memory_order_release);
  while (waiting_allowed() && !page_may_be_free(lane) && !stream.waited_in_vain &&
         (g_state.load(std::memory_order_acquire) & kStateRecording) != 0) {
    pause_for_page();
    if (stream.deferred_tail.load(std::memory_order_relaxed) != deferred) {
      deferred = stream.deferred_tail.load(std::memory_order_relaxed);
      if (!leave_out_handler(stream)) break;
    } else {
      continue_wait(stream.stalls, stall_clock(stream));
    }
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
  return is_over(stream) ? Wait::kOver : Wait::kRetry;
}

}  // namespace collect::agent
