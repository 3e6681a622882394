// A hook runs between any two instructions of a program, so it keeps errno (hooks.h): also where it
// waits, is interrupted, or finds no room.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

constexpr int kOfProgram = 77;
constexpr int kOfHandler = 55;
std::atomic<uint64_t> changed{0};
std::atomic<uint64_t> handled{0};

void record_and_look(uint64_t events, int expected) {
  const HookFrame frame;
  for (uint64_t i = 0; i < events; ++i) {
    errno = expected;
    on_event(function(1), i % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn, frame);
    if (errno != expected) ++changed;
  }
}

// Records too, in the middle of the hook that it interrupts.
void handle(int) {
  const int saved_errno = errno;
  record_and_look(2, kOfHandler);
  errno = saved_errno;
  ++handled;
}

class ErrnoTest : public testing::TestWithParam<FullPolicy> {
 protected:
  void SetUp() override {
    changed = handled = 0;
    Settings settings;
    settings.buffer_mb = 1;
    settings.full = GetParam();
    ASSERT_TRUE(recorder_init(settings));
    allow_waiting(true);
    struct sigaction action{};
    action.sa_handler = handle;  // without SA_RESTART: a wait ends with EINTR
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  }
  void TearDown() override { signal(SIGUSR1, SIG_DFL); }
};

INSTANTIATE_TEST_SUITE_P(Policies, ErrnoTest,
                         testing::Values(FullPolicy::kWait, FullPolicy::kDrop,
                                         FullPolicy::kOverwrite));

TEST_P(ErrnoTest, IsKeptWhenASignalInterruptsTheHook) {
  record_and_look(10, kOfProgram);  // nothing is recorded yet
  start_recording();
  constexpr uint64_t kSignals = 50;
  std::atomic<bool> done{false};
  std::thread program([&] {
    while (handled < kSignals) record_and_look(1000, kOfProgram);  // the first makes its stream
    done = true;
  });
  RingDrain drain;
  for (int turn = 1; !done; ++turn) {
    ASSERT_EQ(pthread_kill(program.native_handle(), SIGUSR1), 0);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    if (turn % 20 == 0) drain.take();  // the ring is full by then
  }
  program.join();
  EXPECT_EQ(changed, 0u);
  drain.finish();
  record_and_look(10, kOfProgram);  // nor any more
  EXPECT_EQ(changed, 0u);
}

}  // namespace
}  // namespace collect::agent
