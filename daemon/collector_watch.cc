#include "daemon/collector_watch.h"

#include <pthread.h>

#include <asio/post.hpp>
#include <vector>

namespace collect::daemon {

using Clock = std::chrono::steady_clock;

namespace {

// Who has not heard of a thing yet hears that it was added, however often it changed since.
template <class Event>
void set_kind(Event& event, api::AgentEvent::Kind kind) {
  const bool unheard = event.kind() == api::AgentEvent::ADDED && kind == api::AgentEvent::CHANGED;
  if (!unheard) event.set_kind(kind);
}

}  // namespace

CollectorWatches::CollectorWatches() {
  thread_ = std::thread([this] { io_.run(); });
  (void)pthread_setname_np(thread_.native_handle(), "collector");
}

CollectorWatches::~CollectorWatches() {
  stop();
}

void CollectorWatches::stop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

uint64_t CollectorWatches::add(WatchRef watch) {
  std::lock_guard lock(mutex_);
  const uint64_t id = next_id_++;
  watches_[id] = std::move(watch);
  return id;
}

uint64_t CollectorWatches::watch_agents(OnAgent on_event) {
  auto watch = std::make_shared<Watch>();
  watch->on_agent = std::move(on_event);
  return add(std::move(watch));
}

uint64_t CollectorWatches::watch_devices(OnDevice on_event) {
  auto watch = std::make_shared<Watch>();
  watch->on_device = std::move(on_event);
  return add(std::move(watch));
}

uint64_t CollectorWatches::watch_session(const std::string& name,
                                         std::chrono::milliseconds interval, OnSession on_session) {
  auto watch = std::make_shared<Watch>();
  watch->session = name;
  watch->on_session = std::move(on_session);
  watch->interval = interval;
  return add(std::move(watch));
}

void CollectorWatches::unwatch(uint64_t id) {
  WatchRef watch;
  {
    std::lock_guard lock(mutex_);
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    watch = std::move(found->second);
    watches_.erase(found);
  }
  std::lock_guard calling(watch->calling);  // waits for a call that runs
  watch->ended = true;
}

void CollectorWatches::agent_event(api::AgentEvent::Kind kind, const api::Agent& agent) {
  std::lock_guard lock(mutex_);
  for (auto& [id, watch] : watches_) {
    if (!watch->on_agent) continue;
    api::AgentEvent& event = watch->events[agent.name()];
    set_kind(event, kind);
    *event.mutable_agent() = agent;
    schedule(watch, Clock::now());
  }
}

void CollectorWatches::device_event(api::AgentEvent::Kind kind, const api::Device& device) {
  std::lock_guard lock(mutex_);
  for (auto& [id, watch] : watches_) {
    if (!watch->on_device) continue;
    api::DeviceEvent& event = watch->device_events[device.name()];
    set_kind(event, kind);
    *event.mutable_device() = device;
    schedule(watch, Clock::now());
  }
}

void CollectorWatches::session_event(const std::string& name, const api::Session& session,
                                     bool last) {
  std::lock_guard lock(mutex_);
  for (auto& [id, watch] : watches_) {
    if (!watch->on_session || watch->session != name) continue;
    watch->newest = session;
    watch->last = watch->last || last;
    const bool changed_state = watch->shown_state != session.state();
    watch->urgent = watch->urgent || changed_state;
    if (watch->urgent) {
      watch->scheduled = false;  // sooner than what is scheduled
      schedule(watch, Clock::now());
    } else {
      schedule(watch, watch->next_call);
    }
  }
}

// With mutex_ held.
void CollectorWatches::schedule(const WatchRef& watch, Clock::time_point when) {
  if (watch->scheduled) return;
  watch->scheduled = true;
  if (when <= Clock::now()) {
    asio::post(io_, [this, watch] { deliver(watch); });
    return;
  }
  auto timer = std::make_shared<asio::steady_timer>(io_, when);
  timer->async_wait([this, watch, timer](const std::error_code& error) {
    if (!error) deliver(watch);
  });
}

void CollectorWatches::deliver(const WatchRef& watch) {
  if (watch->on_agent) {
    deliver_events(*watch, watch->events, watch->on_agent);
  } else if (watch->on_device) {
    deliver_events(*watch, watch->device_events, watch->on_device);
  } else {
    deliver_session(watch);
  }
}

template <class Event>
void CollectorWatches::deliver_events(Watch& watch, std::map<std::string, Event>& waiting,
                                      const std::function<void(const Event&)>& call) {
  std::map<std::string, Event> events;
  {
    std::lock_guard lock(mutex_);
    watch.scheduled = false;
    events.swap(waiting);
  }
  for (const auto& [name, event] : events) {
    std::lock_guard calling(watch.calling);
    if (watch.ended) return;
    call(event);
  }
}

void CollectorWatches::deliver_session(const WatchRef& watch) {
  std::optional<api::Session> session;
  bool last = false;
  {
    std::lock_guard lock(mutex_);
    watch->scheduled = false;
    if (!watch->newest) return;
    if (!watch->urgent && Clock::now() < watch->next_call) {
      schedule(watch, watch->next_call);
      return;
    }
    session.swap(watch->newest);
    last = watch->last;
    watch->urgent = false;
    watch->shown_state = session->state();
    watch->next_call = Clock::now() + watch->interval;
  }
  std::lock_guard calling(watch->calling);
  if (watch->ended) return;
  watch->on_session(*session, last);
  watch->ended = last;
}

}  // namespace collect::daemon
