// Hands changes to those who watch: one thread delivers, each watch gets its calls one at a time,
// and none after it was ended.
//
// A change that is reported replaces an older one of the same agent, device or session that was not
// delivered yet: the cost is the same with no watch and with a thousand, and nothing grows with the
// number of changes. The delivering thread takes all changes and gives them to each watch; it rests
// kRestPerWork times as long as that took.
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
#include <vector>

#include "daemon/collector/agents/messages.h"

namespace collect::daemon {

// So that many watches together take a fifth of one core at most.
inline constexpr int kRestPerWork = 4;

class Watches {
 public:
  using OnAgent = std::function<void(const api::AgentEvent&)>;
  using OnDevice = std::function<void(const api::DeviceEvent&)>;
  using OnSession = std::function<void(const api::Session&, bool last)>;

  Watches();
  ~Watches();  // no call comes after it

  const Status& started() const { return started_; }  // else nothing is delivered

  uint64_t watch_agents(OnAgent on_event);
  uint64_t watch_devices(OnDevice on_event);
  // Called at once for a change of state, else at most every `interval`.
  uint64_t watch_session(const std::string& name, std::chrono::milliseconds interval,
                         OnSession on_session);
  // Returns when no call runs any more and none will come. Not from inside a call.
  void unwatch(uint64_t id);

  void agent_event(api::ChangeKind kind, const api::Agent& agent);
  void device_event(api::ChangeKind kind, const api::Device& device);
  void session_event(const std::string& name, const api::Session& session, bool last);

  // Work that may take its time, or comes later, on the delivering thread.
  asio::io_context& io() { return io_; }
  void stop();

 private:
  struct Watch {
    std::mutex calling;  // held during a call; guards `ended`
    bool ended = false;

    // constant once it was added
    uint64_t since = 0;  // changes up to this one are older than it
    OnAgent on_agent;
    OnDevice on_device;
    std::string session;
    OnSession on_session;

    // guarded by Watches::mutex_
    std::optional<api::Session> newest;
    bool last = false;
    bool urgent = false;
    api::SessionState shown_state = api::SESSION_STATE_UNSPECIFIED;
    std::chrono::milliseconds interval{0};
    std::chrono::steady_clock::time_point next_call{};
    bool scheduled = false;
  };
  using WatchRef = std::shared_ptr<Watch>;

  // A change that was not delivered yet.
  template <class Event>
  struct Change {
    Event event;
    uint64_t number = 0;    // of the newest change
    uint64_t added_at = 0;  // number of the change by which it was added; 0: it was there before
  };
  template <class Event>
  using Changes = std::map<std::string, Change<Event>>;  // by name
  struct SessionChange {
    api::Session session;
    bool last = false;
  };

  uint64_t add(WatchRef watch);
  std::vector<WatchRef> all_watches();
  template <class Event>
  Event& put(Changes<Event>& changes, const std::string& name, api::ChangeKind kind);
  void deliver_later();
  void deliver_all();
  void put_session(const WatchRef& watch, const SessionChange& change);
  void schedule(const WatchRef& watch, std::chrono::steady_clock::time_point when);
  template <class Event>
  void deliver_events(Watch& watch, const Changes<Event>& changes,
                      const std::function<void(const Event&)>& call);
  void deliver_session(const WatchRef& watch);

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::mutex mutex_;
  std::map<uint64_t, WatchRef> watches_;                   // guarded by mutex_
  uint64_t next_id_ = 1;                                   // guarded by mutex_
  uint64_t changes_ = 0;                                   // guarded by mutex_; how many there were
  Changes<api::AgentEvent> agents_;                        // guarded by mutex_
  Changes<api::DeviceEvent> devices_;                      // guarded by mutex_
  std::map<std::string, SessionChange> sessions_;          // guarded by mutex_; by name
  bool delivery_scheduled_ = false;                        // guarded by mutex_
  std::chrono::steady_clock::time_point next_delivery_{};  // guarded by mutex_
  Status started_;
  std::jthread thread_;
};

}  // namespace collect::daemon
