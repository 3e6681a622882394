#include "daemon/collector_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

namespace collect::daemon {
namespace {

using Clock = std::chrono::steady_clock;

api::Agent agent(const std::string& name, const std::string& status = "") {
  api::Agent agent;
  agent.set_name(name);
  agent.set_status(status);
  return agent;
}

// The first call of each watch stands still until the test lets it go.
class StalledWatches {
 public:
  StalledWatches(CollectorWatches& watches, size_t count) {
    for (size_t at = 0; at < count; ++at) {
      watches.watch_agents([this](const api::AgentEvent& event) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return open_; });
        ++calls_;
        newest_ = event;
        changed_.notify_all();
      });
    }
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait_calls(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return calls_ >= count; });
  }
  size_t calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  api::AgentEvent newest() {
    const std::lock_guard lock(mutex_);
    return newest_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  size_t calls_ = 0;
  api::AgentEvent newest_;
};

Clock::duration time_to_report(CollectorWatches& watches, int changes) {
  const auto start = Clock::now();
  for (int at = 0; at < changes; ++at) {
    watches.agent_event(api::CHANGE_KIND_CHANGED, agent("agents/" + std::to_string(at % 50)));
  }
  return Clock::now() - start;
}

// Seen: with a thousand watches that nobody read, an agent waited three seconds to connect. A ratio
// of two runs in one process; it was some hundred.
TEST(CollectorWatchTest, ThousandWatchesCostWhoReportsNoMoreThanOne) {
  constexpr int kChanges = 2'000;
  CollectorWatches few;
  StalledWatches one(few, 1);
  const auto with_one = time_to_report(few, kChanges);
  CollectorWatches many;
  StalledWatches thousand(many, 1000);
  const auto with_many = time_to_report(many, kChanges);
  EXPECT_LT(with_many, 20 * with_one);
  one.let_go();
  thousand.let_go();
  many.stop();
  few.stop();
}

TEST(CollectorWatchTest, WatchThatStandsStillGetsTheNewestOfEach) {
  CollectorWatches watches;
  StalledWatches stalled(watches, 3);
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/1", "first"));
  for (int at = 0; at < 1000; ++at) {
    watches.agent_event(api::CHANGE_KIND_CHANGED, agent("agents/1", std::to_string(at)));
  }
  stalled.let_go();
  ASSERT_TRUE(stalled.wait_calls(3));
  watches.agent_event(api::CHANGE_KIND_CHANGED, agent("agents/1", "last"));
  for (int round = 0; round < 4 && stalled.newest().agent().status() != "last"; ++round) {
    stalled.wait_calls(stalled.calls() + 1);
  }
  EXPECT_EQ(stalled.newest().agent().status(), "last");
  EXPECT_LE(stalled.calls(), 9u);
  watches.stop();
}

TEST(CollectorWatchTest, WhatWasAddedSinceTheWatchBeganIsNew) {
  CollectorWatches watches;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, api::ChangeKind> kinds;
  const auto note = [&](const api::AgentEvent& event) {
    const std::lock_guard lock(mutex);
    kinds[event.agent().name()] = event.kind();
    changed.notify_all();
  };
  watches.watch_agents(note);
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/1"));
  watches.agent_event(api::CHANGE_KIND_CHANGED, agent("agents/1"));
  watches.agent_event(api::CHANGE_KIND_CHANGED, agent("agents/2"));
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/3"));
  watches.agent_event(api::CHANGE_KIND_REMOVED, agent("agents/3"));
  std::unique_lock lock(mutex);
  const auto all_came = [&] {
    return kinds.size() == 3 && kinds["agents/3"] == api::CHANGE_KIND_REMOVED;
  };
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), all_came));
  EXPECT_NE(kinds["agents/2"], api::CHANGE_KIND_ADDED);
  lock.unlock();
  watches.stop();
}

}  // namespace
}  // namespace collect::daemon
