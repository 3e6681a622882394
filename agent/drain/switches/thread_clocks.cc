#include "agent/drain/switches/thread_clocks.h"

#include "agent/platform/system.h"

namespace collect::agent {

bool ThreadClocks::watch(int32_t process) {
  ThreadTimes times;
  const uint32_t one = process == sys::getpid() ? os_thread_id() : static_cast<uint32_t>(process);
  if (!read_thread_times(process, one, times)) return false;
  process_ = process;
  return true;
}

void ThreadClocks::look(uint64_t now_ns, bool is_running) {
  if (process_ == 0) return;
  const bool is_last = was_running_ && !is_running;
  was_running_ = is_running;
  if (!is_last && (!is_running || now_ns < next_ns_)) return;
  next_ns_ = now_ns + kClockLookNs;
  streams_.refresh();
  const uint32_t slots = streams_.size();
  uint32_t left = is_last ? slots : kClockLooks;
  for (uint32_t i = 0; i < slots && left > 0; ++i) {
    if (turn_ >= slots) turn_ = 0;
    const StreamSlot& slot = streams_.at(turn_);
    Clock& clock = clocks_[turn_++];
    if (slot.stream == nullptr || slot.close_sent) continue;
    if (!is_last && stream_ended(*slot.stream)) continue;
    --left;
    look_at(clock, slot, now_ns);
  }
}

void ThreadClocks::look_at(Clock& clock, const StreamSlot& slot, uint64_t now_ns) {
  ThreadTimes now;
  if (!read_thread_times(process_, slot.thread_id, now)) return;
  if (clock.stream_id != slot.stream_id) {
    clock = {slot.stream_id, now_ns, now, 0};
    // A thread that has run for longer than its stream was there before.
    if (now_ns - slot.start_ns < now.run_ns) return;
    clock.since_ns = slot.start_ns;
    clock.then = {};
  }
  if (now.run_ns < clock.then.run_ns) return;  // another thread has its number by now
  const uint64_t wall_ns = now_ns - clock.since_ns;
  const auto off_ns =
      static_cast<int64_t>(wall_ns) - static_cast<int64_t>(now.run_ns - clock.then.run_ns);
  int64_t kept_ns = clock.kept_ns + off_ns;
  if (kept_ns >= kLeastOffNs) {
    const uint64_t all_ns =
        static_cast<uint64_t>(kept_ns) < wall_ns ? static_cast<uint64_t>(kept_ns) : wall_ns;
    const uint64_t waited_ns = now.wait_ns - clock.then.wait_ns;
    const uint64_t preempted_ns = waited_ns < all_ns ? waited_ns : all_ns;
    const auto slices = static_cast<uint32_t>(now.slices - clock.then.slices);
    if (!report(clock, now_ns, all_ns - preempted_ns, preempted_ns, slices)) return;
    kept_ns -= static_cast<int64_t>(all_ns);
  }
  clock.since_ns = now_ns;
  clock.then = now;
  clock.kept_ns = kept_ns;
}

// One behind the other, each as long as its part: so both are as dense. A single time would count
// as whole.
bool ThreadClocks::report(const Clock& clock, uint64_t now_ns, uint64_t blocked_ns,
                          uint64_t preempted_ns, uint32_t count) {
  if (count < 2) count = 2;
  const uint64_t wall_ns = now_ns - clock.since_ns;
  __extension__ using Product = unsigned __int128;
  const uint64_t middle_ns = clock.since_ns + static_cast<uint64_t>(Product{wall_ns} * blocked_ns /
                                                                    (blocked_ns + preempted_ns));
  if (!stalls_.has_room_for_threads(2)) return false;
  if (blocked_ns != 0) {
    (void)stalls_.add_of_thread(clock.stream_id, collect_wire_Stall_Kind_BLOCKED,
                                {clock.since_ns, middle_ns, blocked_ns, count});
  }
  if (preempted_ns != 0) {
    (void)stalls_.add_of_thread(clock.stream_id, collect_wire_Stall_Kind_PREEMPTED,
                                {middle_ns, now_ns, preempted_ns, count});
  }
  return true;
}

}  // namespace collect::agent
