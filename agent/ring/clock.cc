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

struct Line {
  std::atomic<uint64_t> ticks{0};
  std::atomic<uint64_t> ns_base{0};
  std::atomic<uint64_t> slope{0};
};

// One writer (the drain, or the thread that initialises), any number of readers. The version says
// which line holds; the writer fills the other one before it counts up. So a reader tries again
// only when a newer line was published, and no one waits for a writer that stopped in the middle:
// a drain process can be killed there.
struct alignas(kSharedPage) SharedLine {
  std::atomic<uint32_t> version{0};
  Line lines[2];
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
  const uint32_t version = shared_line.version.load(std::memory_order_relaxed) + 1;
  Line& next = shared_line.lines[version % 2];
  // Releases, so that a reader of one of these sees that the version before has passed.
  next.ticks.store(line.base_ticks, std::memory_order_release);
  next.ns_base.store(line.base_ns, std::memory_order_release);
  next.slope.store(line.ns_per_tick, std::memory_order_release);
  shared_line.version.store(version, std::memory_order_release);  // pairs with clock_line's acquire
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
    const uint32_t version = shared_line.version.load(std::memory_order_acquire);
    const Line& newest = shared_line.lines[version % 2];
    const ClockLine line{newest.ticks.load(std::memory_order_acquire),
                         newest.ns_base.load(std::memory_order_acquire),
                         newest.slope.load(std::memory_order_acquire)};
    if (shared_line.version.load(std::memory_order_relaxed) == version) return line;
  }
}

}  // namespace collect::agent
