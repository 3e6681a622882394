#include "daemon/control/collector_service.h"

#include <string_view>
#include <utility>
#include <vector>

#include "daemon/control/name_filter.h"
#include "daemon/control/paging.h"
#include "daemon/control/request_checks.h"
#include "daemon/control/watch_backlog.h"
#include "formats/core/printable.h"

namespace collect::control {
namespace {

// Clients take 8 KiB of metadata, and what is not ASCII travels as three characters a byte.
constexpr size_t kMaxStatusBytes = 2048;

using AgentWatch = WatchCall<api::AgentEvent, AgentBacklog>;
using DeviceWatch = WatchCall<api::DeviceEvent, DeviceBacklog>;
using SessionWatch = WatchCall<api::Session, NewestBacklog<api::Session>>;

template <class Item>
std::vector<std::string_view> names_of(const std::vector<Item>& items) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(item.name());
  return names;
}

Result<Page> requested_page(const std::vector<std::string_view>& names, const auto& request) {
  return page_of(names, request.filter(), request.page_size(), request.page_token());
}

bool is_sealed(const api::Session& session) {
  return session.state() == api::COMPLETE || session.state() == api::RECOVERED ||
         session.state() == api::FAILED;
}

// StartSession and StopSession answer with the sessions they touched.
template <class Response>
Callback<std::vector<api::Session>> answer_sessions(std::shared_ptr<UnaryCall<Response>> call) {
  return [call = std::move(call)](Result<std::vector<api::Session>> result) {
    if (!result.ok()) {
      call->answer(result.error());
      return;
    }
    Response response;
    for (api::Session& session : *result) *response.add_sessions() = std::move(session);
    call->answer(std::move(response));
  };
}

}  // namespace

grpc::Status to_grpc_status(const Error& error) {
  // Clients print it as it comes, and it may name what an agent called itself.
  const std::string message = printable_sentence(error.message, kMaxStatusBytes);
  switch (error.code) {
    case Code::kInvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, message};
    case Code::kNotFound:
      return {grpc::StatusCode::NOT_FOUND, message};
    case Code::kAlreadyExists:
      return {grpc::StatusCode::ALREADY_EXISTS, message};
    case Code::kDamaged:
    case Code::kTruncated:
      return {grpc::StatusCode::DATA_LOSS, message};
    case Code::kUnsupported:
      return {grpc::StatusCode::FAILED_PRECONDITION, message};
    case Code::kLimit:
    case Code::kNoSpace:
    case Code::kExhausted:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, message};
    case Code::kIo:
      return {grpc::StatusCode::INTERNAL, message};
    case Code::kPermission:
      return {grpc::StatusCode::PERMISSION_DENIED, message};
    case Code::kUnavailable:
      return {grpc::StatusCode::UNAVAILABLE, message};
    case Code::kCancelled:
      return {grpc::StatusCode::CANCELLED, message};
  }
  return {grpc::StatusCode::UNKNOWN, message};
}

CollectorService::CollectorService(CollectorApi& collector, std::shared_ptr<LiveCalls> live)
    : collector_(collector), live_(std::move(live)) {}

grpc::ServerUnaryReactor* CollectorService::ListAgents(Context* context,
                                                       const api::ListAgentsRequest* request,
                                                       api::ListAgentsResponse* response) {
  if (Status named = check_name("filter", request->filter()); !named.ok()) {
    return reply(context, named);
  }
  std::vector<api::Agent> agents = collector_.agents(request->filter());
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
  if (Status named = check_name("filter", request->filter()); !named.ok()) {
    watch->end_now(to_grpc_status(named.error()));
  }
  if (watch->ended()) return watch.get();
  // Subscribed first and looked around second: what happens between is seen twice at worst, and
  // the backlog keeps the newer word.
  const std::string filter = request->filter();
  const WatchId id = collector_.watch_agents([watch, filter](const api::AgentEvent& event) {
    if (!matches(event.agent(), filter)) return;
    watch->update([&event](AgentBacklog& backlog) { backlog.put(event); });
  });
  watch->set_release([this, id] { collector_.unwatch(id); });
  std::vector<api::Agent> present = collector_.agents(filter);
  watch->update([&present](AgentBacklog& backlog) { backlog.put_present(std::move(present)); });
  return watch.get();
}

grpc::ServerUnaryReactor* CollectorService::AttachAgent(Context* context,
                                                        const api::AttachAgentRequest* request,
                                                        api::Agent* response) {
  Status named = check_name("address", request->address());
  if (named.ok() && request->address().empty()) {
    named = Error{Code::kInvalidArgument,
                  "address is empty; say where the agent listens, for example "
                  "{\"address\": \"127.0.0.1:7720\"} or {\"address\": \"unix:/path\"}"};
  }
  if (!named.ok()) return reply(context, named);
  const auto call = UnaryCall<api::Agent>::open(live_, response);
  collector_.attach(request->address(),
                    [call](Result<api::Agent> agent) { call->answer(std::move(agent)); });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::DetachAgent(Context* context,
                                                        const api::DetachAgentRequest* request,
                                                        api::Agent* response) {
  Status named = check_name("name", request->name());
  if (named.ok() && request->name().empty()) {
    named = Error{Code::kInvalidArgument,
                  "name is empty; ListAgents gives the names, as in {\"name\": \"agents/1\"}"};
  }
  if (!named.ok()) return reply(context, named);
  const auto call = UnaryCall<api::Agent>::open(live_, response);
  collector_.detach(request->name(),
                    [call](Result<api::Agent> agent) { call->answer(std::move(agent)); });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::ListDevices(Context* context,
                                                        const api::ListDevicesRequest* request,
                                                        api::ListDevicesResponse* response) {
  if (Status named = check_name("filter", request->filter()); !named.ok()) {
    return reply(context, named);
  }
  for (api::Device& device : collector_.devices(request->filter())) {
    *response->add_devices() = std::move(device);
  }
  for (api::DeviceServer& server : collector_.device_servers()) {
    *response->add_servers() = std::move(server);
  }
  return reply(context, {});
}

grpc::ServerWriteReactor<api::DeviceEvent>* CollectorService::WatchDevices(
    Context*, const api::WatchDevicesRequest* request) {
  const auto watch = DeviceWatch::open(live_);
  if (Status named = check_name("filter", request->filter()); !named.ok()) {
    watch->end_now(to_grpc_status(named.error()));
  }
  if (watch->ended()) return watch.get();
  // In this order for the same reason as in WatchAgents.
  const std::string filter = request->filter();
  const WatchId id = collector_.watch_devices([watch, filter](const api::DeviceEvent& event) {
    if (!matches(event.device(), filter)) return;
    watch->update([&event](DeviceBacklog& backlog) { backlog.put(event); });
  });
  watch->set_release([this, id] { collector_.unwatch(id); });
  std::vector<api::Device> present = collector_.devices(filter);
  watch->update([&present](DeviceBacklog& backlog) { backlog.put_present(std::move(present)); });
  return watch.get();
}

grpc::ServerUnaryReactor* CollectorService::ListSessions(Context* context,
                                                         const api::ListSessionsRequest* request,
                                                         api::ListSessionsResponse* response) {
  if (Status named = check_name("filter", request->filter()); !named.ok()) {
    return reply(context, named);
  }
  std::vector<api::Session> sessions = collector_.sessions(request->filter());
  Result<Page> page = requested_page(names_of(sessions), *request);
  if (!page.ok()) return reply(context, page.error());
  for (size_t i = page->begin; i < page->end; ++i) {
    *response->add_sessions() = std::move(sessions[i]);
  }
  response->set_next_page_token(page->next_token);
  return reply(context, {});
}

grpc::ServerUnaryReactor* CollectorService::GetSession(Context* context,
                                                       const api::GetSessionRequest* request,
                                                       api::Session* response) {
  if (Status named = check_name("name", request->name()); !named.ok()) {
    return reply(context, named);
  }
  Result<api::Session> session = collector_.session(request->name());
  if (!session.ok()) return reply(context, session.error());
  *response = std::move(*session);
  return reply(context, {});
}

grpc::ServerUnaryReactor* CollectorService::StartSession(Context* context,
                                                         const api::StartSessionRequest* request,
                                                         api::StartSessionResponse* response) {
  if (Status named = check_name("agent", request->agent()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::StartSessionResponse>::open(live_, response);
  collector_.start_session(request->agent(), answer_sessions(call));
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::StopSession(Context* context,
                                                        const api::StopSessionRequest* request,
                                                        api::StopSessionResponse* response) {
  if (Status named = check_name("name", request->name()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::StopSessionResponse>::open(live_, response);
  collector_.stop_session(request->name(), answer_sessions(call));
  return call.get();
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
  if (Status named = check_name("name", request->name()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::Manifest>::open(live_, response);
  collector_.manifest(request->name(), [call](Result<api::Manifest> manifest) {
    call->answer(std::move(manifest));
  });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::ArmDetail(Context* context,
                                                      const api::DetailRequest* request,
                                                      api::DetailResponse* response) {
  if (Status sound = check_detail(*request); !sound.ok()) return reply(context, sound);
  return set_detail(api::ARMED, *request, response);
}

grpc::ServerUnaryReactor* CollectorService::StartDetail(Context* context,
                                                        const api::DetailRequest* request,
                                                        api::DetailResponse* response) {
  if (Status sound = check_detail(*request); !sound.ok()) return reply(context, sound);
  return set_detail(api::ON, *request, response);
}

grpc::ServerUnaryReactor* CollectorService::StopDetail(Context* context,
                                                       const api::DetailRequest* request,
                                                       api::DetailResponse* response) {
  if (Status sound = check_detail(*request); !sound.ok()) return reply(context, sound);
  return set_detail(api::OFF, *request, response);
}

grpc::ServerUnaryReactor* CollectorService::set_detail(api::DetailMode mode,
                                                       const api::DetailRequest& request,
                                                       api::DetailResponse* response) {
  const auto call = UnaryCall<api::DetailResponse>::open(live_, response);
  collector_.set_detail(mode, request, [call](Result<api::DetailResponse> outcome) {
    call->answer(std::move(outcome));
  });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::SetFunctionFilter(
    Context* context, const api::SetFunctionFilterRequest* request,
    api::SetFunctionFilterResponse* response) {
  if (Status sound = check_function_filter(*request); !sound.ok()) return reply(context, sound);
  const auto call = UnaryCall<api::SetFunctionFilterResponse>::open(live_, response);
  collector_.set_function_filter(*request, [call](Result<api::SetFunctionFilterResponse> outcome) {
    call->answer(std::move(outcome));
  });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::Annotate(Context* context,
                                                     const api::AnnotateRequest* request,
                                                     api::AnnotateResponse* response) {
  if (Status sound = check_annotation(*request); !sound.ok()) return reply(context, sound);
  const auto call = UnaryCall<api::AnnotateResponse>::open(live_, response);
  collector_.annotate(*request, [call](Result<api::AnnotateResponse> outcome) {
    call->answer(std::move(outcome));
  });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::RollContainer(Context* context,
                                                          const api::RollContainerRequest* request,
                                                          api::RollContainerResponse* response) {
  if (Status named = check_name("target", request->target()); !named.ok()) {
    return reply(context, named);
  }
  const auto call = UnaryCall<api::RollContainerResponse>::open(live_, response);
  collector_.roll_container(*request, [call](Result<api::RollContainerResponse> outcome) {
    call->answer(std::move(outcome));
  });
  return call.get();
}

grpc::ServerUnaryReactor* CollectorService::GetStats(Context* context, const api::GetStatsRequest*,
                                                     api::Stats* response) {
  *response = collector_.stats();
  return reply(context, {});
}

}  // namespace collect::control
