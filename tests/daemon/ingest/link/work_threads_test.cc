// The threads that store and seal: how many there are, in which order their work is done, and what
// is left of it when they stop.
#include "daemon/ingest/link/work_threads.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <optional>
#include <thread>

#include "daemon/ingest/session/core.h"
#include "formats/core/threads.h"
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

// A thread that was joined is in /proc a moment longer.
bool has_threads_named(const std::string& wanted, unsigned count) {
  return eventually([&] { return threads_named(wanted) == static_cast<int>(count); });
}

TEST(WorkThreadsTest, ThereAreAsManyThreadsAsWanted) {
  class Silent final : public IngestObserver {
    void agent_changed(const AgentSnapshot&) override {}
    void agent_removed(AgentId) override {}
    void session_changed(const SessionSnapshot&) override {}
  } silent;
  storage::PosixFs fs;
  const unsigned cores = std::thread::hardware_concurrency();
  for (const auto& [wanted, expected] : {std::pair(1u, 1u), std::pair(4u, 4u), std::pair(5u, 4u),
                                         std::pair(0u, std::clamp(cores, 1u, kMaxDataThreads))}) {
    IngestOptions options;
    options.data_threads = wanted;
    IngestCore core(options, fs, silent);
    EXPECT_TRUE(has_threads_named("sealer", 1));
    EXPECT_TRUE(has_threads_named("data", expected)) << wanted;
    core.data_threads.stop();
    EXPECT_TRUE(has_threads_named("data", 0));
  }
}

TEST(WorkThreadsTest, WithoutThreadsTheOwnerDoesTheWork) {
  WorkThreads none("none", 0, 0);
  const Principal one = Principal::of_uid(1);
  std::vector<std::string> done;
  EXPECT_FALSE(none.work_one());
  none.add(one, [&] {
    done.push_back("first");
    none.add(one, [&] { done.push_back("its next"); });
  });
  none.relieve(std::chrono::steady_clock::now() + std::chrono::hours(1));
  EXPECT_EQ(threads_named("none"), 0);
  EXPECT_TRUE(none.work_one());
  EXPECT_TRUE(none.work_one());
  EXPECT_TRUE(none.add_later(one, [&] { done.push_back("later"); }, milliseconds{1}));
  EXPECT_TRUE(eventually([&] { return none.work_one(); }));
  EXPECT_THAT(done, ElementsAre("first", "its next", "later"));
  none.add(one, [] {});
  none.stop();
  EXPECT_FALSE(none.work_one());
}

TEST_F(IngestTest, IoThreadsAreAsManyAsWanted) {
  const unsigned cores = std::thread::hardware_concurrency();
  for (const auto& [wanted, expected] : {std::pair(1u, 1u), std::pair(4u, 4u), std::pair(5u, 4u),
                                         std::pair(0u, std::clamp(cores, 1u, kMaxIoThreads))}) {
    options_.io_threads = wanted;
    start();
    EXPECT_TRUE(has_threads_named("ingest", expected)) << wanted;
    stop();
  }
}

// Holds one thread until it is opened.
class Gate {
 public:
  explicit Gate(WorkThreads& threads) {
    threads.add({}, [this] {
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

bool add_again(WorkThreads& threads, WorkThreads::Work work) {
  return threads.add_later({}, std::move(work), milliseconds{20}, kMaxDeferredSeals);
}

// Who has had much of the thread's time comes after those who had none.
TEST(WorkThreadsTest, TimeIsDividedAmongPrincipals) {
  WorkThreads threads("test", 1, 1);
  const Principal busy = Principal::of_uid(1);
  const Principal late = Principal::of_uid(2);
  std::vector<std::string> order;  // of the one thread
  std::promise<void> done;
  Gate gate(threads);
  threads.add(busy, [&] {
    std::this_thread::sleep_for(milliseconds{300});
    order.emplace_back("busy");
  });
  for (int at = 0; at < 2; ++at) threads.add(busy, [&] { order.emplace_back("busy"); });
  for (int at = 0; at < 3; ++at) threads.add(late, [&] { order.emplace_back("late"); });
  // The last of all, because its principal will have had most.
  threads.add(busy, [&] { done.set_value(); });
  gate.open();
  done.get_future().wait();
  EXPECT_THAT(order, ElementsAre("busy", "late", "late", "late", "busy", "busy"));
}

TEST(WorkThreadsTest, WorkIsDestroyedWhereItMayScheduleMore) {
  WorkThreads threads("test", 1, 1);
  std::promise<void> more;
  {
    const std::shared_ptr<void> last(nullptr,
                                     [&](void*) { threads.add({}, [&] { more.set_value(); }); });
    threads.add({}, [last] {});
  }
  EXPECT_EQ(more.get_future().wait_for(fakes::kPatience), std::future_status::ready);
}

TEST(WorkThreadsTest, RetriesALimitedNumberOfDeferredSeals) {
  WorkThreads threads("test", 1, 1);
  std::promise<void> again;
  std::atomic<size_t> done{0};
  Gate gate(threads);
  for (size_t at = 0; at < kMaxDeferredSeals; ++at) {
    ASSERT_TRUE(add_again(threads, [&] {
      if (++done == kMaxDeferredSeals) again.set_value();
    })) << at;
  }
  EXPECT_FALSE(add_again(threads, [] { ADD_FAILURE() << "it was forgotten"; }));
  gate.open();
  EXPECT_EQ(again.get_future().wait_for(fakes::kPatience), std::future_status::ready);
}

TEST(WorkThreadsTest, IdleThreadIsWokenForWhatIsTriedAgain) {
  WorkThreads threads("test", 1, 1);
  std::promise<void> idle, again;
  threads.add({}, [&] { idle.set_value(); });
  idle.get_future().wait();
  ASSERT_TRUE(add_again(threads, [&] { again.set_value(); }));
  EXPECT_EQ(again.get_future().wait_for(fakes::kPatience), std::future_status::ready);
}

TEST(WorkThreadsTest, StoppedItForgetsWhatWaits) {
  WorkThreads threads("test", 1, 1);
  const auto waits = std::make_shared<int>(1);
  std::atomic<int> ran{0};
  Gate gate(threads);
  threads.add({}, [waits, &ran] { ++ran; });
  ASSERT_TRUE(add_again(threads, [waits, &ran] { ++ran; }));
  EXPECT_EQ(waits.use_count(), 3);
  std::thread stopping([&] { threads.stop(); });
  // The stop waits for what runs. From when it has begun, nothing more is taken.
  EXPECT_TRUE(eventually([&] {
    auto probe = std::make_shared<int>(1);
    threads.add({}, [probe] {});
    return probe.use_count() == 1;
  }));
  gate.open();
  stopping.join();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(waits.use_count(), 1);
}

// One that is stuck is made up for by another, up to a limit; one that works is not.
TEST(WorkThreadsTest, WhereAllAreStuckAnotherIsStarted) {
  WorkThreads threads("relieved", 2, 4);
  std::vector<std::unique_ptr<Gate>> gates;
  const auto later = [](milliseconds pause) { return std::chrono::steady_clock::now() + pause; };
  gates.push_back(std::make_unique<Gate>(threads));
  gates.push_back(std::make_unique<Gate>(threads));
  threads.relieve(later(2 * kStuckAfter));
  EXPECT_EQ(threads_named("relieved"), 2) << "nothing waits";
  std::promise<void> passed;
  threads.add({}, [&] { passed.set_value(); });
  threads.relieve(later(milliseconds{0}) - kStuckAfter);
  EXPECT_EQ(threads_named("relieved"), 2) << "not stuck for long";
  threads.relieve(later(2 * kStuckAfter));
  EXPECT_EQ(threads_named("relieved"), 3);
  EXPECT_EQ(passed.get_future().wait_for(fakes::kPatience), std::future_status::ready);
  gates.push_back(std::make_unique<Gate>(threads));
  for (int at = 0; at < 3; ++at) {
    threads.add({}, [] {});
    threads.relieve(later(2 * kStuckAfter));
  }
  EXPECT_LE(threads_named("relieved"), 4);
  for (const auto& gate : gates) gate->open();
  threads.stop();
}

// The system's limit of processes: what is there continues, and the others come with the next call.
TEST(WorkThreadsTest, ThreadsThatAreNotStartedAreAskedForAgain) {
  std::optional<WorkThreads> threads;
  {
    const ThreadShortage shortage(1, 2);
    threads.emplace("short", 2, 3);
    EXPECT_EQ(threads_named("short"), 1);
    std::promise<void> passed;
    threads->add({}, [&] { passed.set_value(); });
    EXPECT_EQ(passed.get_future().wait_for(fakes::kPatience), std::future_status::ready);
    threads->relieve();  // refused once more
    EXPECT_EQ(threads_named("short"), 1);
    threads->relieve();
    EXPECT_EQ(threads_named("short"), 2);
  }
  const ThreadShortage shortage(0, 1);
  Gate first(*threads);
  Gate second(*threads);
  std::promise<void> passed;
  threads->add({}, [&] { passed.set_value(); });
  const auto later = std::chrono::steady_clock::now() + 2 * kStuckAfter;
  threads->relieve(later);  // was an exception that ended the daemon
  EXPECT_EQ(threads_named("short"), 2);
  threads->relieve(later);
  EXPECT_EQ(threads_named("short"), 3);
  EXPECT_EQ(passed.get_future().wait_for(fakes::kPatience), std::future_status::ready);
  first.open();
  second.open();
  threads->stop();
}

TEST(WorkThreadsTest, WorkThatThrowsEndsNothingElse) {
  WorkThreads threads("throwing", 1, 1);
  threads.add({}, [] { throw std::bad_alloc(); });
  std::promise<void> passed;
  threads.add({}, [&] { passed.set_value(); });
  EXPECT_EQ(passed.get_future().wait_for(fakes::kPatience), std::future_status::ready);
  threads.stop();
}

}  // namespace
}  // namespace collect::ingest
