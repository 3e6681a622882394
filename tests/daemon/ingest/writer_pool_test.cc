// The threads that write: which session goes to which, in which order their work is done, and what
// is left of it when they stop.
#include "daemon/ingest/writer_pool.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "daemon/ingest/session_pipe.h"
#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using principal::Principal;
using testing::ElementsAre;

// How many threads of this process have the name.
int threads_named(const std::string& wanted) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name == wanted ? 1 : 0;
  }
  return count;
}

TEST(WriterPoolTest, SessionsGoFromThreadToThread) {
  WriterPool pool(3);
  EXPECT_EQ(threads_named("writer"), 3);
  EXPECT_EQ(threads_named("sealer"), 1);
  EXPECT_EQ(pool.assign(), 0u);
  EXPECT_EQ(pool.assign(), 1u);
  EXPECT_EQ(pool.assign(), 2u);
  EXPECT_EQ(pool.assign(), 0u);
  pool.stop();
  EXPECT_EQ(threads_named("writer"), 0);
}

TEST(WriterPoolTest, ThereAreAsManyThreadsAsWanted) {
  class Nobody final : public IngestObserver {
    void agent_changed(const AgentSnapshot&) override {}
    void agent_removed(AgentId) override {}
    void session_changed(const SessionSnapshot&) override {}
  } nobody;
  storage::PosixFs fs;
  const auto writers = [&](unsigned wanted) {
    IngestOptions options;
    options.writer_threads = wanted;
    const IngestCore core(options, fs, nobody);
    return threads_named("writer");
  };
  EXPECT_EQ(writers(1), 1);
  EXPECT_EQ(writers(4), 4);
  EXPECT_EQ(writers(5), 4);
  const unsigned cores = std::thread::hardware_concurrency();
  EXPECT_EQ(writers(0), static_cast<int>(std::clamp(cores, 1u, kMaxWriterThreads)));
}

TEST_F(IngestTest, IoThreadsAreAsManyAsWanted) {
  const unsigned cores = std::thread::hardware_concurrency();
  for (const auto& [wanted, expected] : {std::pair(1u, 1u), std::pair(4u, 4u), std::pair(5u, 4u),
                                         std::pair(0u, std::clamp(cores, 1u, kMaxIoThreads))}) {
    options_.io_threads = wanted;
    start();
    EXPECT_EQ(threads_named("ingest"), static_cast<int>(expected)) << wanted;
    stop();
  }
}

// Holds the sealing thread until it is told.
class Gate {
 public:
  explicit Gate(WriterPool& pool) {
    pool.schedule_seal({}, [this] {
      reached_.set_value();
      open_.get_future().wait();
    });
    reached_.get_future().wait();
  }
  void open() { open_.set_value(); }

 private:
  std::promise<void> reached_;
  std::promise<void> open_;
};

// Who has had much of the thread's time comes after those who had none.
TEST(WriterPoolTest, TimeIsDividedAmongPrincipals) {
  WriterPool pool(1);
  const Principal busy = Principal::of_uid(1);
  const Principal late = Principal::of_uid(2);
  std::vector<std::string> order;  // of the one thread
  std::promise<void> done;
  Gate gate(pool);
  pool.schedule_seal(busy, [&] {
    std::this_thread::sleep_for(milliseconds{300});
    order.emplace_back("busy");
  });
  for (int at = 0; at < 2; ++at) pool.schedule_seal(busy, [&] { order.emplace_back("busy"); });
  for (int at = 0; at < 3; ++at) pool.schedule_seal(late, [&] { order.emplace_back("late"); });
  // The last of all, because its principal will have had most.
  pool.schedule_seal(busy, [&] { done.set_value(); });
  gate.open();
  done.get_future().wait();
  EXPECT_THAT(order, ElementsAre("busy", "late", "late", "late", "busy", "busy"));
}

TEST(WriterPoolTest, WorkIsDestroyedWhereItMayScheduleMore) {
  WriterPool pool(1);
  std::promise<void> more;
  {
    const std::shared_ptr<void> last(
        nullptr, [&](void*) { pool.schedule_seal({}, [&] { more.set_value(); }); });
    pool.schedule_seal({}, [last] {});
  }
  EXPECT_EQ(more.get_future().wait_for(fakes::kPatience), std::future_status::ready);
}

TEST(WriterPoolTest, WhatIsHeldUpIsTriedAgainAndBounded) {
  WriterPool pool(1);
  std::promise<void> again;
  std::atomic<size_t> done{0};
  Gate gate(pool);
  for (size_t at = 0; at < kMaxHeldUpSeals; ++at) {
    ASSERT_TRUE(pool.schedule_seal_again({}, [&] {
      if (++done == kMaxHeldUpSeals) again.set_value();
    })) << at;
  }
  EXPECT_FALSE(pool.schedule_seal_again({}, [] { ADD_FAILURE() << "it was forgotten"; }));
  gate.open();
  EXPECT_EQ(again.get_future().wait_for(fakes::kPatience), std::future_status::ready);
}

TEST(WriterPoolTest, AnIdleThreadIsWokenForWhatIsTriedAgain) {
  WriterPool pool(1);
  std::promise<void> idle, again;
  pool.schedule_seal({}, [&] { idle.set_value(); });
  idle.get_future().wait();
  ASSERT_TRUE(pool.schedule_seal_again({}, [&] { again.set_value(); }));
  EXPECT_EQ(again.get_future().wait_for(fakes::kPatience), std::future_status::ready);
}

TEST(WriterPoolTest, StoppedItForgetsWhatWaits) {
  WriterPool pool(1);
  const auto waits = std::make_shared<int>(1);
  std::atomic<int> ran{0};
  Gate gate(pool);
  pool.schedule_seal({}, [waits, &ran] { ++ran; });
  ASSERT_TRUE(pool.schedule_seal_again({}, [waits, &ran] { ++ran; }));
  EXPECT_EQ(waits.use_count(), 3);
  std::thread stopping([&] { pool.stop(); });
  // The stop waits for what runs. From when it has begun, nothing more is taken.
  EXPECT_TRUE(eventually([&] {
    auto probe = std::make_shared<int>(1);
    pool.schedule_seal({}, [probe] {});
    return probe.use_count() == 1;
  }));
  gate.open();
  stopping.join();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(waits.use_count(), 1);
}

}  // namespace
}  // namespace collect::ingest
