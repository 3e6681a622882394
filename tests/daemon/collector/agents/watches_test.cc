#include "daemon/collector/agents/watches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace collect::daemon {
namespace {

using Clock = std::chrono::steady_clock;

api::Agent agent(const std::string& name, const std::string& status = "") {
  api::Agent agent;
  agent.set_name(name);
  agent.set_status(status);
  return agent;
}

// The first call of each watch stops until the test lets it go.
class StalledWatches {
 public:
  StalledWatches(Watches& watches, size_t count) {
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

api::Session session(api::SessionState state, uint64_t events) {
  api::Session session;
  session.set_state(state);
  session.set_events(events);
  return session;
}

// What a watch of a session hears.
class SessionCalls {
 public:
  SessionCalls(Watches& watches, const std::string& name, std::chrono::milliseconds interval) {
    watches.watch_session(name, interval, [this](const api::Session& session, bool last) {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      if (!events_.empty()) least_pause_ = std::min(least_pause_, now - called_at_);
      called_at_ = now;
      events_.push_back(session.events());
      lasts_ += last ? 1 : 0;
      changed_.notify_all();
    });
  }
  bool wait_for(uint64_t events) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return !events_.empty() && events_.back() == events; });
  }
  std::vector<uint64_t> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  size_t lasts() {
    const std::lock_guard lock(mutex_);
    return lasts_;
  }
  Clock::duration least_pause() {
    const std::lock_guard lock(mutex_);
    return least_pause_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> events_;
  size_t lasts_ = 0;
  Clock::time_point called_at_{};
  Clock::duration least_pause_ = std::chrono::hours(1);
};

Clock::duration time_to_report(Watches& watches, int changes) {
  const auto start = Clock::now();
  for (int at = 0; at < changes; ++at) {
    watches.agent_event(api::CHANGE_KIND_CHANGED, agent("agents/" + std::to_string(at % 50)));
  }
  return Clock::now() - start;
}

// Seen: with a thousand watches that no one read, an agent waited three seconds to connect. A ratio
// of two runs in one process; it was some hundred.
TEST(CollectorWatchTest, ThousandWatchesCostWhoReportsNoMoreThanOne) {
  constexpr int kChanges = 2'000;
  Watches few;
  StalledWatches one(few, 1);
  const auto with_one = time_to_report(few, kChanges);
  Watches many;
  StalledWatches thousand(many, 1000);
  const auto with_many = time_to_report(many, kChanges);
  EXPECT_LT(with_many, 20 * with_one);
  one.let_go();
  thousand.let_go();
  many.stop();
  few.stop();
}

TEST(CollectorWatchTest, StalledWatchGetsTheNewestOfEach) {
  Watches watches;
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

TEST(CollectorWatchTest, ReportsAgentsAddedSinceTheWatchBegan) {
  Watches watches;
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

TEST(CollectorWatchTest, SkipsEventsOlderThanTheWatch) {
  Watches watches;
  StalledWatches stalled(watches, 1);
  // The first is being delivered, the second waits behind it.
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/1"));
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/2"));
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> heard;
  watches.watch_agents([&](const api::AgentEvent& event) {
    const std::lock_guard lock(mutex);
    heard.push_back(event.agent().name());
    changed.notify_all();
  });
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/3"));
  stalled.let_go();
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return !heard.empty(); }));
  EXPECT_EQ(heard, std::vector<std::string>{"agents/3"});
  lock.unlock();
  watches.stop();
}

TEST(CollectorWatchTest, SendsDevicesOnlyToDeviceWatches) {
  Watches watches;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<api::DeviceEvent> heard;
  int agents = 0;
  watches.watch_agents([&](const api::AgentEvent&) { ++agents; });
  watches.watch_devices([&](const api::DeviceEvent& event) {
    const std::lock_guard lock(mutex);
    heard.push_back(event);
    changed.notify_all();
  });
  api::Device device;
  device.set_name("devices/A");
  device.set_reason("why");
  watches.device_event(api::CHANGE_KIND_REMOVED, device);
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return !heard.empty(); }));
  EXPECT_EQ(heard[0].kind(), api::CHANGE_KIND_REMOVED);
  EXPECT_EQ(heard[0].device().SerializeAsString(), device.SerializeAsString());
  EXPECT_EQ(agents, 0);
  lock.unlock();
  watches.stop();
}

TEST(CollectorWatchTest, SendsStatesAtOnceAndNumbersAtTheirInterval) {
  Watches watches;
  SessionCalls slow(watches, "slow", std::chrono::hours(1));
  SessionCalls quick(watches, "quick", std::chrono::milliseconds(1));
  const auto tell = [&](api::SessionState state, uint64_t events, bool last = false) {
    watches.session_event("slow", session(state, events), last);
    // Behind the other on the same thread: once it came, the other came or will not.
    watches.session_event("quick", session(state, events), false);
    EXPECT_TRUE(quick.wait_for(events));
  };
  tell(api::SESSION_STATE_ACTIVE, 1);
  EXPECT_EQ(slow.events(), (std::vector<uint64_t>{1}));
  tell(api::SESSION_STATE_ACTIVE, 2);
  tell(api::SESSION_STATE_ACTIVE, 3);
  EXPECT_EQ(slow.events(), (std::vector<uint64_t>{1})) << "an hour is not over";
  tell(api::SESSION_STATE_SEALING, 4);
  EXPECT_EQ(slow.events(), (std::vector<uint64_t>{1, 4}));
  tell(api::SESSION_STATE_SEALING, 5);
  EXPECT_EQ(slow.events(), (std::vector<uint64_t>{1, 4}));
  EXPECT_EQ(slow.lasts(), 0u);
  tell(api::SESSION_STATE_COMPLETE, 6, true);
  EXPECT_EQ(slow.events(), (std::vector<uint64_t>{1, 4, 6}));
  EXPECT_EQ(slow.lasts(), 1u);
  tell(api::SESSION_STATE_RECOVERED, 7, true);
  EXPECT_EQ(slow.events(), (std::vector<uint64_t>{1, 4, 6})) << "nothing comes after the last";
  watches.stop();
}

TEST(CollectorWatchTest, WaitsForTheIntervalBetweenEvents) {
  constexpr std::chrono::milliseconds kInterval{50};
  Watches watches;
  SessionCalls calls(watches, "s", kInterval);
  for (uint64_t at = 1; at <= 5; ++at) {
    watches.session_event("s", session(api::SESSION_STATE_ACTIVE, at), false);
    ASSERT_TRUE(calls.wait_for(at));
  }
  EXPECT_GE(calls.least_pause(), kInterval - std::chrono::milliseconds(1));
  // Of another session nothing.
  watches.session_event("other", session(api::SESSION_STATE_ACTIVE, 9), false);
  watches.session_event("s", session(api::SESSION_STATE_SEALING, 6), false);
  ASSERT_TRUE(calls.wait_for(6));
  EXPECT_EQ(calls.events(), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6}));
  watches.stop();
}

TEST(CollectorWatchTest, EndedWatchReceivesNothingMore) {
  Watches watches;
  std::atomic<bool> inside{false};
  std::atomic<bool> done{false};
  std::atomic<int> calls{0};
  const uint64_t id = watches.watch_agents([&](const api::AgentEvent&) {
    ++calls;
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
  });
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/1"));
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/2"));
  while (!inside) std::this_thread::yield();
  watches.unwatch(id);
  EXPECT_TRUE(done) << "it returns when no call runs any more";
  const int so_far = calls;
  SessionCalls after(watches, "s", std::chrono::milliseconds(0));
  watches.agent_event(api::CHANGE_KIND_ADDED, agent("agents/3"));
  watches.session_event("s", session(api::SESSION_STATE_ACTIVE, 1), false);
  ASSERT_TRUE(after.wait_for(1));
  EXPECT_EQ(calls, so_far);
  watches.unwatch(id);  // it is known no more
  watches.stop();
}

}  // namespace
}  // namespace collect::daemon
