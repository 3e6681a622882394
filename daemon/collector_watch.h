// Hands changes to those who watch: one thread delivers, each watch gets its calls one at a time,
// and none after it was ended. What a slow watch has not been given yet is merged: the newest state
// of each agent or device, or of the session, so nothing grows with the number of changes.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "daemon/collector_messages.h"

namespace collect::daemon {

class CollectorWatches {
 public:
  using OnAgent = std::function<void(const api::AgentEvent&)>;
  using OnDevice = std::function<void(const api::DeviceEvent&)>;
  using OnSession = std::function<void(const api::Session&, bool last)>;

  CollectorWatches();
  ~CollectorWatches();  // no call comes after it

  uint64_t watch_agents(OnAgent on_event);
  uint64_t watch_devices(OnDevice on_event);
  // Called at once for a change of state, else at most every `interval`.
  uint64_t watch_session(const std::string& name, std::chrono::milliseconds interval,
                         OnSession on_session);
  // Returns when no call runs any more and none will come. Not from inside a call.
  void unwatch(uint64_t id);

  void agent_event(api::AgentEvent::Kind kind, const api::Agent& agent);
  void device_event(api::AgentEvent::Kind kind, const api::Device& device);
  void session_event(const std::string& name, const api::Session& session, bool last);

  // Work that may take its time, or comes later, on the delivering thread.
  asio::io_context& io() { return io_; }
  void stop();

 private:
  struct Watch {
    std::mutex calling;  // held during a call; guards `ended`
    bool ended = false;

    // guarded by CollectorWatches::mutex_
    OnAgent on_agent;
    std::map<std::string, api::AgentEvent> events;  // newest per agent
    OnDevice on_device;
    std::map<std::string, api::DeviceEvent> device_events;  // newest per device
    std::string session;
    OnSession on_session;
    std::optional<api::Session> newest;
    bool last = false;
    bool urgent = false;
    api::SessionState shown_state = api::SESSION_STATE_UNSPECIFIED;
    std::chrono::milliseconds interval{0};
    std::chrono::steady_clock::time_point next_call{};
    bool scheduled = false;
  };
  using WatchRef = std::shared_ptr<Watch>;

  uint64_t add(WatchRef watch);
  void schedule(const WatchRef& watch, std::chrono::steady_clock::time_point when);
  void deliver(const WatchRef& watch);
  template <class Event>
  void deliver_events(Watch& watch, std::map<std::string, Event>& waiting,
                      const std::function<void(const Event&)>& call);
  void deliver_session(const WatchRef& watch);

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::mutex mutex_;
  std::map<uint64_t, WatchRef> watches_;  // guarded by mutex_
  uint64_t next_id_ = 1;                  // guarded by mutex_
  std::thread thread_;
};

}  // namespace collect::daemon
