#include "agent/ring/stalls.h"

namespace collect::agent {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

void join(ThreadStall& into, const ThreadStall& stall) {
  if (into.count == 0) {
    into = stall;
    return;
  }
  if (stall.first_ns < into.first_ns) into.first_ns = stall.first_ns;
  if (stall.last_ns > into.last_ns) into.last_ns = stall.last_ns;
  into.stalled_ns += stall.stalled_ns;
  into.count += stall.count;
  if (into.place != stall.place) into.place = 0;
  if (into.owner != stall.owner) into.owner = 0;
}

bool put(StallRing& stalls, const ThreadStall& stall) {
  const uint32_t added = stalls.added.load(kRelaxed);
  // Pairs with the release in take_stall: the entry is read.
  if (added - stalls.taken.load(std::memory_order_acquire) == stalls.held) return false;
  stalls.entries[added % stalls.held] = stall;
  stalls.added.store(added + 1, std::memory_order_release);
  return true;
}

void add(StallRing& stalls, const ThreadStall& stall) {
  ThreadStall& joined = stalls.joined[stall.is_for_lock ? 1 : 0];
  if (joined.count == 0 && put(stalls, stall)) return;
  join(joined, stall);
}

void add_joined(StallRing& stalls) {
  for (ThreadStall& joined : stalls.joined) {
    if (joined.count != 0 && put(stalls, joined)) joined.count = 0;
  }
}

void add_nested(StallRing& stalls) {
  if (stalls.nested_count.load(kRelaxed) == 0) return;
  // A handler that comes between these lines is counted now or the next time.
  const uint64_t first_ns = stalls.nested_first_ns.exchange(0, kRelaxed);
  const uint64_t stalled_ns = stalls.nested_ns.exchange(0, kRelaxed);
  const uint32_t count = stalls.nested_count.exchange(0, kRelaxed);
  const uint64_t last_ns = stalls.nested_last_ns.load(kRelaxed);
  const bool is_whole = first_ns != 0 && first_ns + stalled_ns <= last_ns;
  add(stalls, {is_whole ? first_ns : last_ns - stalled_ns, last_ns, stalled_ns, count});
}

void add_wait(StallRing& stalls) {
  const uint64_t first_ns = stalls.wait_first_ns.load(kRelaxed);
  if (first_ns == 0) return;
  const uint64_t last_ns = stalls.wait_last_ns.load(kRelaxed);
  if (last_ns > first_ns) add(stalls, {first_ns, last_ns, last_ns - first_ns, 1});
  stalls.wait_first_ns.store(0, kRelaxed);
}

}  // namespace

void begin_wait(StallRing& stalls, uint64_t now_ns) {
  add_joined(stalls);
  if (stalls.wait_first_ns.load(kRelaxed) != 0) {
    continue_wait(stalls, now_ns);
    return;
  }
  add_nested(stalls);
  stalls.wait_last_ns.store(now_ns, kRelaxed);
  stalls.wait_first_ns.store(now_ns, std::memory_order_release);  // pairs with add_last_stalls
}

void continue_wait(StallRing& stalls, uint64_t now_ns) {
  if (now_ns > stalls.wait_last_ns.load(kRelaxed)) stalls.wait_last_ns.store(now_ns, kRelaxed);
}

void add_lock_wait(StallRing& stalls, const ThreadStall& wait) {
  add_joined(stalls);
  add(stalls, wait);
}

void add_nested_wait(StallRing& stalls, uint64_t first_ns, uint64_t last_ns) {
  if (last_ns <= first_ns) return;
  uint64_t none = 0;
  (void)stalls.nested_first_ns.compare_exchange_strong(none, first_ns, kRelaxed);
  stalls.nested_last_ns.store(last_ns, kRelaxed);
  stalls.nested_ns.fetch_add(last_ns - first_ns, kRelaxed);
  stalls.nested_count.fetch_add(1, kRelaxed);
}

void add_stalls(StallRing& stalls) {
  add_joined(stalls);
  add_wait(stalls);
  add_nested(stalls);
}

void add_last_stalls(StallRing& stalls) {
  (void)stalls.wait_first_ns.load(std::memory_order_acquire);
  add_stalls(stalls);
}

}  // namespace collect::agent
