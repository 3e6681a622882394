// WatchAgents, WatchDevices and WatchSession: what is there, and then each change.
#include <utility>
#include <vector>

#include "daemon/control/request_checks.h"
#include "daemon/control/service/selector.h"
#include "daemon/control/service/service_streams.h"
#include "daemon/control/service/watch_backlog.h"

namespace collect::control {
namespace {

using AgentWatch = WatchCall<AgentBacklog>;
using DeviceWatch = WatchCall<DeviceBacklog>;
using SessionWatch = WatchCall<NewestBacklog<api::Session>>;

bool is_sealed(const api::Session& session) {
  return session.state() == api::SESSION_STATE_COMPLETE ||
         session.state() == api::SESSION_STATE_RECOVERED ||
         session.state() == api::SESSION_STATE_FAILED;
}

}  // namespace

MessageStream* watch_agents(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                            const api::WatchAgentsRequest& request) {
  const auto watch = AgentWatch::open(live);
  if (Status sound = check_selector(request.target()); !sound.ok()) {
    watch->end_now(to_grpc_status(sound.error()));
  }
  if (watch->ended()) return watch.get();
  // Subscribed first and looked around second: what happens between is seen twice at worst, and
  // the backlog keeps the newer word.
  const api::Selector target = request.target();
  const WatchId id = collector.watch_agents([watch, target](const api::AgentEvent& event) {
    if (!matches(event.agent(), target)) return;
    watch->update([&event](AgentBacklog& backlog) { backlog.put(event); });
  });
  watch->set_release([&collector, id] { collector.unwatch(id); });
  std::vector<api::Agent> present = collector.agents(target);
  watch->update([&present](AgentBacklog& backlog) { backlog.put_present(std::move(present)); });
  return watch.get();
}

MessageStream* watch_devices(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                             const api::WatchDevicesRequest& request) {
  const auto watch = DeviceWatch::open(live);
  if (Status named = check_name("match", request.match()); !named.ok()) {
    watch->end_now(to_grpc_status(named.error()));
  }
  if (watch->ended()) return watch.get();
  // In this order for the same reason as in WatchAgents.
  const std::string match = request.match();
  const WatchId id = collector.watch_devices([watch, match](const api::DeviceEvent& event) {
    if (!matches(event.device(), match)) return;
    watch->update([&event](DeviceBacklog& backlog) { backlog.put(event); });
  });
  watch->set_release([&collector, id] { collector.unwatch(id); });
  std::vector<api::Device> present = collector.devices(match);
  watch->update([&present](DeviceBacklog& backlog) { backlog.put_present(std::move(present)); });
  return watch.get();
}

MessageStream* watch_session(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                             const api::WatchSessionRequest& request) {
  const auto watch = SessionWatch::open(live);
  const auto refuse = [&watch](const Error& error) {
    watch->end_now(to_grpc_status(error));
    return watch.get();
  };
  if (watch->ended()) return watch.get();
  if (Status named = check_name("name", request.name()); !named.ok()) {
    return refuse(named.error());
  }
  const Result<uint32_t> interval_ms = watch_interval_ms(request);
  if (!interval_ms.ok()) return refuse(interval_ms.error());
  // An empty name means the newest: looked up once, so that all words are about the same session.
  Result<api::Session> now = collector.session(request.name());
  if (!now.ok()) return refuse(now.error());
  if (!is_sealed(*now)) {
    const Result<WatchId> id = collector.watch_session(
        now->name(), *interval_ms, [watch](const api::Session& session, bool last) {
          watch->update([&session](auto& backlog) { backlog.put(session); });
          if (!last) return;
          watch->end_when_sent(
              is_sealed(session)
                  ? grpc::Status::OK
                  : grpc::Status(grpc::StatusCode::ABORTED,
                                 "the session ended before it was sealed: " + session.status()));
        });
    if (!id.ok()) return refuse(id.error());
    watch->set_release([&collector, id = *id] { collector.unwatch(id); });
  }
  const bool sealed = is_sealed(*now);
  watch->update([&now](auto& backlog) {
    if (!backlog.ever_put()) backlog.put(std::move(*now));
  });
  if (sealed) watch->end_when_sent(grpc::Status::OK);
  return watch.get();
}

}  // namespace collect::control
