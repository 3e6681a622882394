#include "agent/ring/page_wait.h"

#include <time.h>

#include "agent/ring/detail.h"

namespace collect::agent {
namespace {

bool page_may_be_free(Lane lane) {
  return lane == Lane::kDetail ? detail_may_grow() : pool_used_bytes() < pool_bytes();
}

}  // namespace

void pause_for_page() {
  const timespec pause{0, 50000};
  nanosleep(&pause, nullptr);
}

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
    pause_for_page();
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

}  // namespace collect::agent
