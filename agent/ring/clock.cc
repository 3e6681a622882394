#include "agent/ring/clock.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

struct Pair {
  uint64_t ticks;
  uint64_t ns;
};

// One writer (the drain thread, or the thread that initialises), any number of readers: a sequence
// lock whose fields are atomics, so that a torn read is only ever a retry.
struct alignas(kSharedPage) SharedLine {
  std::atomic<uint32_t> version{0};
  std::atomic<uint64_t> ticks{0};
  std::atomic<uint64_t> ns_base{0};
  std::atomic<uint64_t> slope{0};
};
constinit SharedLine shared_line;

Pair last_pair;  // writer's: the pair the newest line was fitted with

constexpr int kPairTries = 5;
constexpr uint64_t kFirstFitNs = 1000000;
constexpr uint64_t kStepNs = 1000000;  // further behind than this: step forward instead of slewing

bool counter_is_invariant() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0x80000007, &a, &b, &c, &d)) return false;
  return (d & (1u << 8)) != 0;
#else
  return true;  // the generic timer counts at a fixed rate by architecture
#endif
}

// Counter and clock at one moment: of several tries the one with the smallest span between.
Pair read_pair() {
  Pair best{0, 0};
  uint64_t best_span = UINT64_MAX;
  for (int i = 0; i < kPairTries; ++i) {
    const uint64_t before = read_counter();
    const uint64_t ns = read_system_clock();
    const uint64_t after = read_counter();
    if (after - before < best_span) {
      best_span = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

uint64_t slope(const Pair& from, const Pair& to) {
  return static_cast<uint64_t>((UInt128{to.ns - from.ns} << 32) / (to.ticks - from.ticks));
}

void publish(const ClockLine& line) {
  const uint32_t version = shared_line.version.load(std::memory_order_relaxed);
  shared_line.version.store(version + 1, std::memory_order_relaxed);  // odd: being written
  // Releases, so that a reader of one of these sees the odd version too.
  shared_line.ticks.store(line.base_ticks, std::memory_order_release);
  shared_line.ns_base.store(line.base_ns, std::memory_order_release);
  shared_line.slope.store(line.ns_per_tick, std::memory_order_release);
  shared_line.version.store(version + 2,
                            std::memory_order_release);  // pairs with clock_line's acquire
}

}  // namespace

bool clock_init() {
  if (!share(shared_line)) return false;
  sys::find_clock();
  if (!counter_is_invariant()) {
    publish({});
    return true;
  }
  const Pair first = read_pair();
  while (read_system_clock() - first.ns < kFirstFitNs) {
  }
  last_pair = read_pair();
  publish({last_pair.ticks, last_pair.ns, slope(first, last_pair)});
  return true;
}

bool clock_fit() {
  const ClockLine line = clock_line();
  if (line.ns_per_tick == 0) return false;
  const Pair now = read_pair();
  if (now.ticks <= last_pair.ticks || now.ns <= last_pair.ns) return false;
  const uint64_t predicted = line_ns(line, now.ticks);
  const auto error = static_cast<int64_t>(now.ns - predicted);  // positive: the line is behind
  const uint64_t interval = now.ns - last_pair.ns;
  uint64_t rate = slope(last_pair, now);
  uint64_t base = predicted;
  if (error > static_cast<int64_t>(kStepNs)) {
    base = now.ns;  // the machine slept: the clock continued, the counter did not
    rate = line.ns_per_tick;
  } else {
    // Run a little faster or slower, so that the error is gone after another such interval; never
    // slower than half speed, never backwards.
    const double correction = 1.0 + static_cast<double>(error) / static_cast<double>(interval);
    const double bounded = correction < 0.5 ? 0.5 : correction;
    rate = static_cast<uint64_t>(static_cast<double>(rate) * bounded);
  }
  last_pair = now;
  publish({now.ticks, base, rate});
  return true;
}

ClockLine clock_line() {
  for (;;) {
    const uint32_t before = shared_line.version.load(std::memory_order_acquire);
    const ClockLine line{shared_line.ticks.load(std::memory_order_acquire),
                         shared_line.ns_base.load(std::memory_order_acquire),
                         shared_line.slope.load(std::memory_order_acquire)};
    if (shared_line.version.load(std::memory_order_relaxed) == before && before % 2 == 0)
      return line;
  }
}

}  // namespace collect::agent
