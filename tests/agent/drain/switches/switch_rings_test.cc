// Switches of real threads, beside what getrusage(2) counts of them.
#include "agent/drain/switches/switch_rings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace collect::agent {
namespace {

using What = SwitchRecord::What;

void sleep_us(int us) {
  const timespec pause{0, us * 1000L};
  ::nanosleep(&pause, nullptr);
}

struct Counted {
  uint32_t thread_id = 0;
  long blocked = 0;
  long preempted = 0;
};

// What the calling thread gave up, by itself and not, in `work`.
template <class Work>
Counted counted(Work work) {
  Counted done;
  done.thread_id = static_cast<uint32_t>(::syscall(SYS_gettid));
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &before);
  work();
  ::getrusage(RUSAGE_THREAD, &after);
  done.blocked = after.ru_nvcsw - before.ru_nvcsw;
  done.preempted = after.ru_nivcsw - before.ru_nivcsw;
  return done;
}

class SwitchRingsTest : public testing::Test {
 protected:
  void open(const SwitchesWanted& wanted = {}) {
    if (const char* const problem = rings_->open(::getpid(), wanted); problem != nullptr) {
      GTEST_SKIP() << problem;
    }
  }
  std::vector<SwitchRecord> of_thread(uint32_t thread_id) {
    SwitchRecord record;
    rings_->look();
    while (rings_->next(UINT64_MAX, record)) all_.push_back(record);
    std::vector<SwitchRecord> found;
    for (const SwitchRecord& one : all_) {
      if (one.thread_id == thread_id) found.push_back(one);
    }
    return found;
  }
  static long count(const std::vector<SwitchRecord>& records, What what) {
    long found = 0;
    for (const SwitchRecord& one : records) found += one.what == what ? 1 : 0;
    return found;
  }

  std::unique_ptr<SwitchRings> rings_ = std::make_unique<SwitchRings>();
  std::vector<SwitchRecord> all_;
};

void sleep_often() {
  for (int i = 0; i < 50; ++i) sleep_us(500);
}

TEST_F(SwitchRingsTest, LaterThreadsHaveAllTheirSwitches) {
  ASSERT_NO_FATAL_FAILURE(open());
  if (IsSkipped()) return;
  Counted done;
  std::thread([&] { done = counted(sleep_often); }).join();
  const std::vector<SwitchRecord> found = of_thread(done.thread_id);
  EXPECT_GE(done.blocked, 50);
  // It also switches before it counts and after; twice as many would be each one twice.
  EXPECT_GE(count(found, What::kBlocked), done.blocked);
  EXPECT_LE(count(found, What::kBlocked), done.blocked + 20);
  EXPECT_GE(count(found, What::kPreempted), done.preempted);
  EXPECT_EQ(rings_->lost(), 0u);
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_LE(found[i - 1].ns, found[i].ns);
    EXPECT_NE(found[i - 1].what == What::kIn, found[i].what == What::kIn) << "out and in in turn";
  }
}

TEST_F(SwitchRingsTest, ThreadThatWasThereHasThem) {
  std::atomic<bool> goes{false};
  Counted done;
  std::thread thread([&] {
    while (!goes) sleep_us(100);
    done = counted(sleep_often);
  });
  open();
  goes = true;
  thread.join();
  if (IsSkipped()) return;
  EXPECT_GE(count(of_thread(done.thread_id), What::kBlocked), done.blocked);
}

// As many as its time on a processor has milliseconds; a thread that sleeps has none.
TEST_F(SwitchRingsTest, SamplesAreOfThreadsThatRun) {
  ASSERT_NO_FATAL_FAILURE(open({.switches = false, .sample_hz = 1000}));
  if (IsSkipped()) return;
  if (rings_->no_samples() != nullptr) GTEST_SKIP() << rings_->no_samples();
  uint32_t sleeper = 0;
  uint32_t runner = 0;
  std::thread asleep([&] {
    sleeper = static_cast<uint32_t>(::syscall(SYS_gettid));
    sleep_often();
  });
  std::thread running([&] {
    runner = static_cast<uint32_t>(::syscall(SYS_gettid));
    timespec used{};
    while (used.tv_nsec < 200'000'000 && used.tv_sec == 0) {
      for (volatile int i = 0; i < 100'000; i = i + 1) {
      }
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    }
  });
  asleep.join();
  running.join();
  const std::vector<SwitchRecord> found = of_thread(runner);
  EXPECT_EQ(count(found, What::kSample), static_cast<long>(found.size()));
  EXPECT_GE(found.size(), 150u);
  EXPECT_LE(found.size(), 250u);
  for (const SwitchRecord& one : found) EXPECT_NE(one.address, 0u);
  EXPECT_LE(of_thread(sleeper).size(), 20u);
}

TEST_F(SwitchRingsTest, ChildProcessHasNone) {
  ASSERT_NO_FATAL_FAILURE(open());
  if (IsSkipped()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    sleep_often();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(of_thread(static_cast<uint32_t>(child)).empty());
}

TEST_F(SwitchRingsTest, NothingLaterThanAsked) {
  ASSERT_NO_FATAL_FAILURE(open());
  if (IsSkipped()) return;
  SwitchRecord first;
  EXPECT_FALSE(rings_->next(UINT64_MAX, first)) << "no one has looked";
  sleep_often();
  rings_->look();
  ASSERT_TRUE(rings_->next(UINT64_MAX, first));
  SwitchRecord none;
  EXPECT_FALSE(rings_->next(first.ns, none) && none.ns > first.ns);
  ASSERT_TRUE(rings_->next(UINT64_MAX, none));
  EXPECT_GE(none.ns, first.ns);
}

TEST_F(SwitchRingsTest, ProcessThatIsGoneIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_NE(rings_->open(child, {}), nullptr);
  EXPECT_FALSE(rings_->is_open());
}

}  // namespace
}  // namespace collect::agent
