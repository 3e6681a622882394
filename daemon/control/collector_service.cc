#include "daemon/control/collector_service.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/control/paging.h"
#include "daemon/control/request_checks.h"
#include "daemon/control/selector.h"
#include "daemon/control/watch_backlog.h"

namespace collect::control {
namespace {

using AgentWatch = WatchCall<api::AgentEvent, AgentBacklog>;
using DeviceWatch = WatchCall<api::DeviceEvent, DeviceBacklog>;
using SessionWatch = WatchCall<api::Session, NewestBacklog<api::Session>>;

template <class Items>
std::vector<std::string_view> names_of(const Items& items) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(item.name());
  return names;
}

bool is_sealed(const api::Session& session) {
  return session.state() == api::SESSION_STATE_COMPLETE ||
         session.state() == api::SESSION_STATE_RECOVERED ||
         session.state() == api::SESSION_STATE_FAILED;
}

// The words of a request that a page token belongs to.
template <class Request>
std::string filter_of(const Request& request) {
  std::string text = request.target().SerializeAsString();
  for (const int state : request.states()) text += "," + std::to_string(state);
  return text;
}

Result<Page> requested_page(const std::vector<std::string_view>& names, const auto& request) {
  return page_of(names, filter_of(request), request.page_size(), request.page_token());
}

// Leaves what is in one of the request's states; in none given, everything.
template <class Item, class Request>
void keep_states(std::vector<Item>& items, const Request& request) {
  if (request.states().empty()) return;
  std::erase_if(items, [&request](const Item& item) {
    return std::find(request.states().begin(), request.states().end(), item.state()) ==
           request.states().end();
  });
}

// Leaves in `items` the page that the request asks for; `names` are theirs, and `about` is what
// else the list depends on. The token of the next one.
template <class Items>
Result<std::string> keep_page(Items& items, const std::vector<std::string_view>& names,
                              const std::string& about, const auto& request) {
  auto page = page_of(names, about, request.page_size(), request.page_token());
  if (!page.ok()) return page.error();
  items.DeleteSubrange(static_cast<int>(page->end), items.size() - static_cast<int>(page->end));
  items.DeleteSubrange(0, static_cast<int>(page->begin));
  return std::move(page->next_token);
}

Result<api::ListCollectorsResponse> page_of_collectors(api::ListCollectorsResponse all,
                                                       const api::ListCollectorsRequest& request) {
  auto next =
      keep_page(*all.mutable_collectors(), names_of(all.collectors()), request.device(), request);
  if (!next.ok()) return next.error();
  all.set_next_page_token(*next);
  return all;
}

Result<api::ListThreadsResponse> page_of_threads(api::ListThreadsResponse all,
                                                 const api::ListThreadsRequest& request) {
  std::vector<std::string> ids;
  for (const api::AgentThread& thread : all.threads()) {
    ids.push_back(std::to_string(thread.thread_id()));
  }
  auto next = keep_page(*all.mutable_threads(), {ids.begin(), ids.end()}, all.agent(), request);
  if (!next.ok()) return next.error();
  all.set_next_page_token(*next);
  return all;
}

}  // namespace

CollectorService::CollectorService(CollectorApi& collector, std::shared_ptr<LiveCalls> live,
                                   CallerOf caller_of)
    : collector_(collector), live_(std::move(live)), caller_of_(std::move(caller_of)) {}

grpc::ServerUnaryReactor* CollectorService::ListAgents(Context* context,
                                                       const api::ListAgentsRequest* request,
                                                       api::ListAgentsResponse* response) {
  if (Status sound = check_selector(request->target()); !sound.ok()) return reply(context, sound);
  std::vector<api::Agent> agents = collector_.agents(request->target());
  keep_states(agents, *request);
  Result<Page> page = requested_page(names_of(agents), *request);
  if (!page.ok()) return reply(context, page.error());
  for (size_t i = page->begin; i < page->end; ++i) {
    *response->add_agents() = std::move(agents[i]);
  }
  response->set_next_page_token(page->next_token);
  return reply(context, {});
}

grpc::ServerWriteReactor<api::AgentEvent>* CollectorService::WatchAgents(
    Context*, const api::WatchAgentsRequest* request) {
  const auto watch = AgentWatch::open(live_);
  if (Status sound = check_selector(request->target()); !sound.ok()) {
    watch->end_now(to_grpc_status(sound.error()));
  }
  if (watch->ended()) return watch.get();
  // Subscribed first and looked around second: what happens between is seen twice at worst, and
  // the backlog keeps the newer word.
  const api::Selector target = request->target();
  const WatchId id = collector_.watch_agents([watch, target](const api::AgentEvent& event) {
    if (!matches(event.agent(), target)) return;
    watch->update([&event](AgentBacklog& backlog) { backlog.put(event); });
  });
  watch->set_release([this, id] { collector_.unwatch(id); });
  std::vector<api::Agent> present = collector_.agents(target);
  watch->update([&present](AgentBacklog& backlog) { backlog.put_present(std::move(present)); });
  return watch.get();
}

grpc::ServerUnaryReactor* CollectorService::AttachAgent(Context* context,
                                                        const api::AttachAgentRequest* request,
                                                        api::Agent* response) {
  return call(context, check_attach(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::DetachAgent(Context* context,
                                                        const api::DetachAgentRequest* request,
                                                        api::Agent* response) {
  return call(context, check_detach(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::AttachProcess(Context* context,
                                                          const api::AttachProcessRequest* request,
                                                          api::AttachProcessResponse* response) {
  return call(context, check_attach_process(*request),
              CallOf<api::AttachProcessRequest>{*request, caller_of_(context->peer())}, response);
}

grpc::ServerUnaryReactor* CollectorService::DetachProcess(Context* context,
                                                          const api::DetachProcessRequest* request,
                                                          api::DetachProcessResponse* response) {
  return call(context, check_pid(request->pid()),
              CallOf<api::DetachProcessRequest>{*request, caller_of_(context->peer())}, response);
}

grpc::ServerUnaryReactor* CollectorService::ListThreads(Context* context,
                                                        const api::ListThreadsRequest* request,
                                                        api::ListThreadsResponse* response) {
  if (Status named = check_name("name", request->name()); !named.ok()) return reply(context, named);
  const auto call = UnaryCall<api::ListThreadsResponse>::open(live_, response);
  collector_.methods().call<api::ListThreadsResponse>(
      *request, [call, request = *request](Result<api::ListThreadsResponse> threads) {
        call->answer(threads.ok() ? page_of_threads(*threads, request) : std::move(threads));
      });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::ListDevices(Context* context,
                                                        const api::ListDevicesRequest* request,
                                                        api::ListDevicesResponse* response) {
  if (Status named = check_name("match", request->match()); !named.ok()) {
    return reply(context, named);
  }
  std::vector<api::Device> devices = collector_.devices(request->match());
  keep_states(devices, *request);
  for (api::Device& device : devices) *response->add_devices() = std::move(device);
  for (api::DeviceServer& server : collector_.device_servers()) {
    *response->add_servers() = std::move(server);
  }
  return reply(context, {});
}

grpc::ServerWriteReactor<api::DeviceEvent>* CollectorService::WatchDevices(
    Context*, const api::WatchDevicesRequest* request) {
  const auto watch = DeviceWatch::open(live_);
  if (Status named = check_name("match", request->match()); !named.ok()) {
    watch->end_now(to_grpc_status(named.error()));
  }
  if (watch->ended()) return watch.get();
  // In this order for the same reason as in WatchAgents.
  const std::string match = request->match();
  const WatchId id = collector_.watch_devices([watch, match](const api::DeviceEvent& event) {
    if (!matches(event.device(), match)) return;
    watch->update([&event](DeviceBacklog& backlog) { backlog.put(event); });
  });
  watch->set_release([this, id] { collector_.unwatch(id); });
  std::vector<api::Device> present = collector_.devices(match);
  watch->update([&present](DeviceBacklog& backlog) { backlog.put_present(std::move(present)); });
  return watch.get();
}

grpc::ServerUnaryReactor* CollectorService::ListSessions(Context* context,
                                                         const api::ListSessionsRequest* request,
                                                         api::ListSessionsResponse* response) {
  if (Status sound = check_selector(request->target()); !sound.ok()) return reply(context, sound);
  std::vector<api::Session> sessions = collector_.sessions(request->target());
  keep_states(sessions, *request);
  Result<Page> page = requested_page(names_of(sessions), *request);
  if (!page.ok()) return reply(context, page.error());
  for (size_t i = page->begin; i < page->end; ++i) {
    *response->add_sessions() = std::move(sessions[i]);
  }
  response->set_next_page_token(page->next_token);
  return reply(context, {});
}

grpc::ServerUnaryReactor* CollectorService::GetAgent(Context* context,
                                                     const api::GetAgentRequest* request,
                                                     api::Agent* response) {
  return get(context, request->name(), &CollectorApi::agent, response);
}

grpc::ServerUnaryReactor* CollectorService::GetDevice(Context* context,
                                                      const api::GetDeviceRequest* request,
                                                      api::Device* response) {
  return get(context, request->name(), &CollectorApi::device, response);
}

grpc::ServerUnaryReactor* CollectorService::GetSession(Context* context,
                                                       const api::GetSessionRequest* request,
                                                       api::Session* response) {
  return get(context, request->name(), &CollectorApi::session, response);
}

template <class Resource>
grpc::ServerUnaryReactor* CollectorService::get(
    Context* context, const std::string& name,
    Result<Resource> (CollectorApi::*look_up)(const std::string&), Resource* response) {
  if (Status named = check_name("name", name); !named.ok()) return reply(context, named);
  Result<Resource> found = (collector_.*look_up)(name);
  if (!found.ok()) return reply(context, found.error());
  *response = std::move(*found);
  return reply(context, {});
}

grpc::ServerUnaryReactor* CollectorService::StartSession(Context* context,
                                                         const api::StartSessionRequest* request,
                                                         api::StartSessionResponse* response) {
  return call(context, check_start(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::StopSession(Context* context,
                                                        const api::StopSessionRequest* request,
                                                        api::StopSessionResponse* response) {
  return call(context, check_selector(request->target()), *request, response);
}

grpc::ServerWriteReactor<api::Session>* CollectorService::WatchSession(
    Context*, const api::WatchSessionRequest* request) {
  const auto watch = SessionWatch::open(live_);
  const auto refuse = [&watch](const Error& error) {
    watch->end_now(to_grpc_status(error));
    return watch.get();
  };
  if (watch->ended()) return watch.get();
  if (Status named = check_name("name", request->name()); !named.ok()) {
    return refuse(named.error());
  }
  const Result<uint32_t> interval_ms = watch_interval_ms(*request);
  if (!interval_ms.ok()) return refuse(interval_ms.error());
  // An empty name means the newest: looked up once, so that all words are about the same session.
  Result<api::Session> now = collector_.session(request->name());
  if (!now.ok()) return refuse(now.error());
  if (!is_sealed(*now)) {
    const Result<WatchId> id = collector_.watch_session(
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
    watch->set_release([this, id = *id] { collector_.unwatch(id); });
  }
  const bool sealed = is_sealed(*now);
  watch->update([&now](auto& backlog) {
    if (!backlog.ever_put()) backlog.put(std::move(*now));
  });
  if (sealed) watch->end_when_sent(grpc::Status::OK);
  return watch.get();
}

grpc::ServerUnaryReactor* CollectorService::GetManifest(Context* context,
                                                        const api::GetManifestRequest* request,
                                                        api::Manifest* response) {
  return call(context, check_name("name", request->name()), *request, response);
}

template <class Response>
grpc::ServerUnaryReactor* CollectorService::set_detail(Context* context,
                                                       const Result<DetailOrder>& order,
                                                       Response* response) {
  if (!order.ok()) return reply(context, order.error());
  const auto call = UnaryCall<Response>::open(live_, response);
  collector_.methods().call<std::vector<api::DetailOutcome>>(
      *order, [call](Result<std::vector<api::DetailOutcome>> outcomes) {
        if (!outcomes.ok()) {
          call->answer(outcomes.error());
          return;
        }
        Response all;
        for (api::DetailOutcome& outcome : *outcomes) *all.add_outcomes() = std::move(outcome);
        call->answer(std::move(all));
      });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::ArmDetail(Context* context,
                                                      const api::ArmDetailRequest* request,
                                                      api::ArmDetailResponse* response) {
  return set_detail(context, detail_order(*request), response);
}

grpc::ServerUnaryReactor* CollectorService::StartDetail(Context* context,
                                                        const api::StartDetailRequest* request,
                                                        api::StartDetailResponse* response) {
  return set_detail(context, detail_order(*request), response);
}

grpc::ServerUnaryReactor* CollectorService::StopDetail(Context* context,
                                                       const api::StopDetailRequest* request,
                                                       api::StopDetailResponse* response) {
  return set_detail(context, detail_order(*request), response);
}

grpc::ServerUnaryReactor* CollectorService::SetTriggers(Context* context,
                                                        const api::SetTriggersRequest* request,
                                                        api::SetTriggersResponse* response) {
  return call(context, check_triggers(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::GetTriggers(Context* context,
                                                        const api::GetTriggersRequest* request,
                                                        api::GetTriggersResponse* response) {
  return call(context, check_selector(request->target()), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::SetFunctionFilter(
    Context* context, const api::SetFunctionFilterRequest* request,
    api::SetFunctionFilterResponse* response) {
  return call(context, check_function_filter(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::Annotate(Context* context,
                                                     const api::AnnotateRequest* request,
                                                     api::AnnotateResponse* response) {
  return call(context, check_annotation(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::RollContainer(Context* context,
                                                          const api::RollContainerRequest* request,
                                                          api::RollContainerResponse* response) {
  return call(context, check_selector(request->target()), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::SetRules(Context* context,
                                                     const api::SetRulesRequest* request,
                                                     api::Rules* response) {
  return call(context, check_rules(*request), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::GetRules(Context* context,
                                                     const api::GetRulesRequest* request,
                                                     api::Rules* response) {
  return call(context, Status(), *request, response);
}

grpc::ServerUnaryReactor* CollectorService::GetStats(Context* context, const api::GetStatsRequest*,
                                                     api::Stats* response) {
  *response = collector_.stats();
  return reply(context, {});
}

grpc::ServerUnaryReactor* CollectorService::ListCollectors(
    Context* context, const api::ListCollectorsRequest* request,
    api::ListCollectorsResponse* response) {
  if (Status named = check_name("device", request->device()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::ListCollectorsResponse>::open(live_, response);
  collector_.methods().call<api::ListCollectorsResponse>(
      *request, [call, request = *request](Result<api::ListCollectorsResponse> all) {
        call->answer(all.ok() ? page_of_collectors(std::move(*all), request) : std::move(all));
      });
  return call.get();
}

}  // namespace collect::control
