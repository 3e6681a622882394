#include "daemon/collector/agents/watches.h"

#include <asio/post.hpp>
#include <vector>

#include "formats/core/threads.h"

namespace collect::daemon {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Watches::Watches() {
  auto started = start_thread("collector", [this] { io_.run(); });
  if (started.ok()) {
    thread_ = std::move(*started);
  } else {
    started_ = started.error();
  }
}

Watches::~Watches() {
  stop();
}

void Watches::stop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

uint64_t Watches::add(WatchRef watch) {
  std::lock_guard lock(mutex_);
  const uint64_t id = next_id_++;
  watch->since = changes_;
  watches_[id] = std::move(watch);
  return id;
}

uint64_t Watches::watch_agents(OnAgent on_event) {
  auto watch = std::make_shared<Watch>();
  watch->on_agent = std::move(on_event);
  return add(std::move(watch));
}

uint64_t Watches::watch_devices(OnDevice on_event) {
  auto watch = std::make_shared<Watch>();
  watch->on_device = std::move(on_event);
  return add(std::move(watch));
}

uint64_t Watches::watch_session(const std::string& name, std::chrono::milliseconds interval,
                                OnSession on_session) {
  auto watch = std::make_shared<Watch>();
  watch->session = name;
  watch->on_session = std::move(on_session);
  watch->interval = interval;
  return add(std::move(watch));
}

void Watches::unwatch(uint64_t id) {
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

// With mutex_ held. A watch that does not know a thing yet gets it as added, however often it
// changed since.
template <class Event>
Event& Watches::put(Changes<Event>& changes, const std::string& name, api::ChangeKind kind) {
  Change<Event>& change = changes[name];
  change.number = ++changes_;
  if (kind == api::CHANGE_KIND_ADDED) change.added_at = change.number;
  change.event.set_kind(kind);
  deliver_later();
  return change.event;
}

void Watches::agent_event(api::ChangeKind kind, const api::Agent& agent) {
  std::lock_guard lock(mutex_);
  if (watches_.empty()) return;
  *put(agents_, agent.name(), kind).mutable_agent() = agent;
}

void Watches::device_event(api::ChangeKind kind, const api::Device& device) {
  std::lock_guard lock(mutex_);
  if (watches_.empty()) return;
  *put(devices_, device.name(), kind).mutable_device() = device;
}

void Watches::session_event(const std::string& name, const api::Session& session, bool last) {
  std::lock_guard lock(mutex_);
  if (watches_.empty()) return;
  SessionChange& change = sessions_[name];
  change.session = session;
  change.last = change.last || last;
  deliver_later();
}

// With mutex_ held.
void Watches::deliver_later() {
  if (delivery_scheduled_) return;
  delivery_scheduled_ = true;
  if (next_delivery_ <= Clock::now()) {
    asio::post(io_, [this] { deliver_all(); });
    return;
  }
  auto timer = std::make_shared<asio::steady_timer>(io_, next_delivery_);
  timer->async_wait([this, timer](const std::error_code& error) {
    if (!error) deliver_all();
  });
}

std::vector<Watches::WatchRef> Watches::all_watches() {
  std::vector<WatchRef> all;
  all.reserve(watches_.size());
  for (const auto& [id, watch] : watches_) all.push_back(watch);
  return all;
}

void Watches::deliver_all() {
  const auto start = Clock::now();
  Changes<api::AgentEvent> agents;
  Changes<api::DeviceEvent> devices;
  std::map<std::string, SessionChange> sessions;
  std::vector<WatchRef> watches;
  {
    std::lock_guard lock(mutex_);
    delivery_scheduled_ = false;
    agents.swap(agents_);
    devices.swap(devices_);
    sessions.swap(sessions_);
    watches = all_watches();
  }
  for (const WatchRef& watch : watches) {
    if (watch->on_agent) deliver_events(*watch, agents, watch->on_agent);
    if (watch->on_device) deliver_events(*watch, devices, watch->on_device);
    if (!watch->on_session) continue;
    const auto change = sessions.find(watch->session);
    if (change != sessions.end()) put_session(watch, change->second);
  }
  std::lock_guard lock(mutex_);
  next_delivery_ = Clock::now() + kRestPerWork * (Clock::now() - start);
}

void Watches::put_session(const WatchRef& watch, const SessionChange& change) {
  std::lock_guard lock(mutex_);
  watch->newest = change.session;
  watch->last = watch->last || change.last;
  watch->urgent = watch->urgent || watch->shown_state != change.session.state();
  if (watch->urgent) watch->scheduled = false;  // sooner than what is scheduled
  schedule(watch, watch->urgent ? Clock::now() : watch->next_call);
}

// With mutex_ held.
void Watches::schedule(const WatchRef& watch, Clock::time_point when) {
  if (watch->scheduled) return;
  watch->scheduled = true;
  if (when <= Clock::now()) {
    asio::post(io_, [this, watch] { deliver_session(watch); });
    return;
  }
  auto timer = std::make_shared<asio::steady_timer>(io_, when);
  timer->async_wait([this, watch, timer](const std::error_code& error) {
    if (!error) deliver_session(watch);
  });
}

template <class Event>
void Watches::deliver_events(Watch& watch, const Changes<Event>& changes,
                             const std::function<void(const Event&)>& call) {
  for (const auto& [name, change] : changes) {
    if (change.number <= watch.since) continue;  // older than the watch
    std::lock_guard calling(watch.calling);
    if (watch.ended) return;
    const bool is_new =
        change.event.kind() == api::CHANGE_KIND_CHANGED && change.added_at > watch.since;
    if (!is_new) {
      call(change.event);
      continue;
    }
    Event event = change.event;
    event.set_kind(api::CHANGE_KIND_ADDED);
    call(event);
  }
}

void Watches::deliver_session(const WatchRef& watch) {
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
