// Hooks in signal handlers, also when the signal lands inside another hook: each is recorded once,
// in its order by time, at any point of the interrupted hook.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/recorder.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

uint64_t outside() {
  return reinterpret_cast<uint64_t>(&outside);
}
uint64_t inside() {
  return reinterpret_cast<uint64_t>(&inside);
}

void record_pairs(uint64_t count, uint64_t function) {
  const HookFrame frame;
  for (uint64_t i = 0; i < count; ++i) {
    on_event(function, atf::EventKind::kCall, frame);
    on_event(function, atf::EventKind::kReturn, frame);
  }
}

std::atomic<uint64_t> pairs_in_handler{0};
std::atomic<uint64_t> pairs_a_signal{1};

constexpr uint64_t kPairsARound = 50;
std::atomic<uint64_t> rounds{0};  // of the program outside

// Each handler records once in a round of the program: where it takes longer than the timer's
// period, the next signal comes before it has returned, and the program would not go on.
void record_in_handler(std::atomic<uint64_t>& last_round) {
  const uint64_t round = rounds.load(std::memory_order_relaxed);
  if (last_round.exchange(round, std::memory_order_relaxed) == round) return;
  const uint64_t pairs = pairs_a_signal.load(std::memory_order_relaxed);
  record_pairs(pairs, inside());
  pairs_in_handler.fetch_add(pairs, std::memory_order_relaxed);
}
void on_alarm(int) {
  static std::atomic<uint64_t> last_round{0};
  record_in_handler(last_round);
}
void on_second_alarm(int) {
  static std::atomic<uint64_t> last_round{0};
  record_in_handler(last_round);
}

// A timer's signals for as long as it lives. SIGALRM's handler can be interrupted by SIGVTALRM's.
class Alarms {
 public:
  Alarms(uint64_t pairs, suseconds_t every_us) {
    pairs_in_handler = 0;
    pairs_a_signal = pairs;
    handle(SIGALRM, on_alarm);
    handle(SIGVTALRM, on_second_alarm);
    set(ITIMER_REAL, every_us);
    set(ITIMER_VIRTUAL, 20 * every_us);
  }
  ~Alarms() {
    set(ITIMER_REAL, 0);
    set(ITIMER_VIRTUAL, 0);
    handle(SIGALRM, SIG_IGN);
    handle(SIGVTALRM, SIG_IGN);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // TSan leaves every signal blocked after some handlers.
  static void let_through() {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGVTALRM);
    pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
  }

 private:
  static void handle(int number, void (*handler)(int)) {
    struct sigaction action{};
    action.sa_handler = handler;
    sigaction(number, &action, nullptr);
  }
  static void set(__itimer_which timer, suseconds_t us) {
    const itimerval every{{0, us}, {0, us}};
    setitimer(timer, &every, nullptr);
  }
};

// Takes and acknowledges on a thread that gets no signals.
class Drainer {
 public:
  explicit Drainer(RingDrain& drain) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this, &drain] {
      ignore_this_thread();
      while (!done_.load()) {
        drain.take();
        recalibrate_clock();
        poll_threads();
      }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Drainer() { stop(); }
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;
  void stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// What the one thread of this test recorded: how often each function, and that calls nest.
struct Counted {
  uint64_t outside = 0;
  uint64_t inside = 0;
};

Counted count_nested(const RingDrain& drain) {
  Counted counted;
  for (const auto& [id, stream] : drain.streams) {
    uint64_t last_ns = 0;
    uint64_t depth = 0;
    const std::vector<atf::IndexEventV2> events = stream.events();
    // Both functions lie in one module: the distance of the ids is that of the addresses.
    const uint64_t inside_id = events.front().function_id + (inside() - outside());
    for (const atf::IndexEventV2& event : events) {
      EXPECT_GE(event.timestamp_ns, last_ns);
      last_ns = event.timestamp_ns;
      const bool is_inside = event.function_id == inside_id;
      ++(is_inside ? counted.inside : counted.outside);
      if (event.event_kind == 1) ++depth;
      if (event.event_kind == 2) {
        EXPECT_GT(depth, 0u);
        --depth;
      }
    }
    EXPECT_EQ(depth, 0u);
  }
  return counted;
}

struct Run {
  FullPolicy full = FullPolicy::kWait;
  uint8_t version = 2;
  uint32_t detail = 0;
  uint64_t pairs_a_signal = 1;
  uint64_t signals = 3000;
  suseconds_t every_us = 50;
  uint32_t max_depth = 0;
  uint64_t longer_than_ns = 0;
};

// One thread records while signals come, until the handlers were there often enough.
uint64_t record_under_alarms(const Run& run, RingDrain& drain) {
  Settings settings;
  settings.full = run.full;
  settings.buffer_mb = 4;
  settings.atf_version = run.version;
  settings.max_depth = run.max_depth;
  settings.longer_than_ns = run.longer_than_ns;
  EXPECT_TRUE(recorder_init(settings));
  start_recording();
  uint64_t pairs = 1000;
  record_pairs(pairs, outside());  // the thread has its stream before the first signal
  if (run.detail != 0) (void)set_detail(run.detail, 0, nullptr);
  Drainer drainer(drain);
  {
    const Alarms alarms(run.pairs_a_signal, run.every_us);
    while (pairs_in_handler.load() < run.signals * run.pairs_a_signal) {
      ++rounds;
      Alarms::let_through();
      record_pairs(kPairsARound, outside());
      pairs += kPairsARound;
    }
  }
  drainer.stop();
  drain.finish();
  EXPECT_EQ(recorder_stats().lost_without_stream, 0u);
  return pairs;
}

TEST(SignalInsideAHook, EveryEventOfTheHandlerIsRecordedInOrder) {
  RingDrain drain;
  const uint64_t pairs = record_under_alarms({}, drain);
  EXPECT_EQ(drain.lost(), 0u);
  const Counted counted = count_nested(drain);
  EXPECT_EQ(counted.outside, 2 * pairs);
  EXPECT_EQ(counted.inside, 2 * pairs_in_handler.load());
}

// Of a handler that interrupted a call, or its hook, nothing is recorded; of one that came between
// two calls all is.
TEST(SignalInsideAHook, CountsHandlerCallsThatAreTooDeep) {
  RingDrain drain;
  const uint64_t pairs = record_under_alarms({.max_depth = 1}, drain);
  EXPECT_EQ(drain.lost(), 0u);
  const Counted counted = count_nested(drain);
  EXPECT_EQ(counted.outside, 2 * pairs);
  EXPECT_EQ(counted.inside + 2 * drain.left_out(), 2 * pairs_in_handler.load());
}

// Whichever call the handler interrupts: it is recorded with its return, or left out with it.
TEST(SignalInsideAHook, ShortCallsAroundHandlersAreCounted) {
  for (const uint64_t limit_ns : {500, 2000, 20'000}) {
    RingDrain drain;
    const uint64_t pairs =
        record_under_alarms({.signals = 1000, .longer_than_ns = limit_ns}, drain);
    EXPECT_EQ(drain.lost(), 0u);
    const Counted counted = count_nested(drain);
    EXPECT_EQ(counted.outside + counted.inside + 2 * drain.left_out(),
              2 * (pairs + pairs_in_handler.load()));
  }
}

// More than one page of deferred events for one interrupted hook.
TEST(SignalInsideAHook, LongHandlersAreRecordedToo) {
  RingDrain drain;
  const uint64_t pairs =
      record_under_alarms({.pairs_a_signal = 5000, .signals = 30, .every_us = 20000}, drain);
  EXPECT_EQ(drain.lost(), 0u);
  const Counted counted = count_nested(drain);
  EXPECT_EQ(counted.outside, 2 * pairs);
  EXPECT_EQ(counted.inside, 2 * pairs_in_handler.load());
}

// With detail every hook takes the general path, and what handlers deferred has no registers any
// more: its detail is a counted loss, its event is not.
TEST(SignalInsideAHook, DetailOfDeferredEventsIsCountedAsLost) {
  RingDrain drain;
  const uint64_t pairs = record_under_alarms({.detail = 2, .signals = 1000}, drain);
  EXPECT_EQ(drain.lost(), 0u);
  uint64_t details = 0;
  for (const auto& [id, stream] : drain.streams) {
    details += stream.detail.records + stream.detail.lost_total;
  }
  EXPECT_EQ(drain.records(), 2 * (pairs + pairs_in_handler.load()));
  EXPECT_EQ(details, drain.records() - 2000u) << "detail began after the first 2000 events";
}

TEST(SignalInsideAHook, VersionOneIsRecordedToo) {
  RingDrain drain;
  const uint64_t pairs = record_under_alarms({.version = 1}, drain);
  EXPECT_EQ(drain.lost(), 0u);
  EXPECT_EQ(drain.records(), 2 * (pairs + pairs_in_handler.load()));
}

TEST(SignalInsideAHook, PolicyOverwriteAndDropCountWhatTheyLose) {
  for (const FullPolicy full : {FullPolicy::kDrop, FullPolicy::kOverwrite}) {
    RingDrain drain;
    const uint64_t pairs = record_under_alarms({.full = full}, drain);
    EXPECT_EQ(drain.records() + drain.lost(), 2 * (pairs + pairs_in_handler.load()));
  }
}

}  // namespace
}  // namespace collect::agent
