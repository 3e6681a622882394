#include "daemon/control/service/collector_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/control/request_checks.h"
#include "daemon/control/service/method_table.h"
#include "daemon/control/service/paging.h"
#include "daemon/control/service/service_streams.h"

namespace collect::control {
namespace {

template <class Items>
std::vector<std::string_view> names_of(const Items& items) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(item.name());
  return names;
}

// The words of a request that a page token belongs to.
template <class Request>
std::string filter_of(const Request& request) {
  std::string text = request.target().SerializeAsString();
  for (const int state : request.states()) text += fmt::format(",{}", state);
  return text;
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

template <class Response, class Item, class Request>
Result<Response> page_of_items(std::vector<Item> items, const Request& request,
                               Item* (Response::*add)()) {
  const Result<Page> page =
      page_of(names_of(items), filter_of(request), request.page_size(), request.page_token());
  if (!page.ok()) return page.error();
  Response response;
  for (size_t i = page->begin; i < page->end; ++i) *(response.*add)() = std::move(items[i]);
  response.set_next_page_token(page->next_token);
  return response;
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

Result<api::ListFilesResponse> page_of_files(api::ListFilesResponse all,
                                             const api::ListFilesRequest& request) {
  std::vector<std::string_view> paths;
  paths.reserve(static_cast<size_t>(all.files_size()));
  for (const api::SessionFile& file : all.files()) paths.push_back(file.path());
  auto next = keep_page(*all.mutable_files(), paths, all.session(), request);
  if (!next.ok()) return next.error();
  all.set_next_page_token(*next);
  return all;
}

template <class Request>
Status check_target(const Request& request) {
  return check_selector(request.target());
}

template <class Request>
Status check_session_name(const Request& request) {
  return check_name("name", request.name());
}

Status check_nothing(const api::GetRulesRequest&) {
  return {};
}

class CollectorService final : public MethodTable {
 public:
  CollectorService(CollectorApi& collector, std::shared_ptr<LiveCalls> live, CallerOf caller_of)
      : MethodTable("collect.control.v1.Collector", std::move(live)),
        collector_(collector),
        caller_of_(std::move(caller_of)) {
    add_agents_and_processes();
    add_sessions();
    add_recording();
  }

 private:
  void add_agents_and_processes() {
    listed("ListAgents", &CollectorService::list_agents);
    streamed("WatchAgents", watch_agents);
    looked_up<api::GetAgentRequest>("GetAgent", &CollectorApi::agent);
    looked_up<api::GetDeviceRequest>("GetDevice", &CollectorApi::device);
    passed_on<api::Agent>("AttachAgent", check_attach);
    passed_on<api::Agent>("DetachAgent", check_detach);
    passed_on_for_caller<api::AttachProcessResponse>("AttachProcess", check_attach_process);
    passed_on_for_caller<api::DetachProcessResponse>(
        "DetachProcess",
        +[](const api::DetachProcessRequest& request) { return check_pid(request.pid()); });
    paged("ListThreads", page_of_threads);
    listed("ListDevices", &CollectorService::list_devices);
    streamed("WatchDevices", watch_devices);
  }

  void add_sessions() {
    listed("ListSessions", &CollectorService::list_sessions);
    looked_up<api::GetSessionRequest>("GetSession", &CollectorApi::session);
    passed_on<api::StartSessionResponse>("StartSession", check_start);
    passed_on<api::StopSessionResponse>("StopSession", check_target<api::StopSessionRequest>);
    streamed("WatchSession", watch_session);
    streamed("WatchCalls", watch_calls);
    passed_on<api::Manifest>("GetManifest", check_session_name<api::GetManifestRequest>);
    paged("ListFiles", page_of_files);
    stream<api::DownloadFileRequest>(
        "DownloadFile", [this](const api::DownloadFileRequest& request) {
          return download_file(collector_, live(), request, downloads_);
        });
    streamed("ConvertSession", convert_session);
    passed_on<api::Session>("SnapshotSession", check_session_name<api::SnapshotSessionRequest>);
    passed_on<api::Session>("PackSession", check_session_name<api::PackSessionRequest>);
    passed_on<api::Session>("UnpackSession", check_session_name<api::UnpackSessionRequest>);
    passed_on<api::DeleteSessionResponse>("DeleteSession", check_delete);
  }

  void add_recording() {
    detail<api::ArmDetailRequest, api::ArmDetailResponse>("ArmDetail");
    detail<api::StartDetailRequest, api::StartDetailResponse>("StartDetail");
    detail<api::StopDetailRequest, api::StopDetailResponse>("StopDetail");
    passed_on<api::SetTriggersResponse>("SetTriggers", check_triggers);
    passed_on<api::GetTriggersResponse>("GetTriggers", check_target<api::GetTriggersRequest>);
    passed_on<api::SetFunctionFilterResponse>("SetFunctionFilter", check_function_filter);
    passed_on<api::AnnotateResponse>("Annotate", check_annotation);
    passed_on<api::RollContainerResponse>("RollContainer", check_target<api::RollContainerRequest>);
    passed_on<api::Rules>("SetRules", check_rules);
    passed_on<api::Rules>("GetRules", check_nothing);
    listed("GetStats", &CollectorService::get_stats);
  }

  Result<api::ListAgentsResponse> list_agents(const api::ListAgentsRequest& request) {
    COLLECT_TRY(check_selector(request.target()));
    std::vector<api::Agent> agents = collector_.agents(request.target());
    keep_states(agents, request);
    return page_of_items<api::ListAgentsResponse>(std::move(agents), request,
                                                  &api::ListAgentsResponse::add_agents);
  }

  Result<api::ListSessionsResponse> list_sessions(const api::ListSessionsRequest& request) {
    COLLECT_TRY(check_selector(request.target()));
    std::vector<api::Session> sessions = collector_.sessions(request.target());
    keep_states(sessions, request);
    return page_of_items<api::ListSessionsResponse>(std::move(sessions), request,
                                                    &api::ListSessionsResponse::add_sessions);
  }

  Result<api::ListDevicesResponse> list_devices(const api::ListDevicesRequest& request) {
    COLLECT_TRY(check_name("match", request.match()));
    api::ListDevicesResponse response;
    std::vector<api::Device> devices = collector_.devices(request.match());
    keep_states(devices, request);
    for (api::Device& device : devices) *response.add_devices() = std::move(device);
    for (api::DeviceServer& server : collector_.device_servers()) {
      *response.add_servers() = std::move(server);
    }
    return response;
  }

  Result<api::Stats> get_stats(const api::GetStatsRequest&) { return collector_.stats(); }

  // Answered at once.
  template <class Request, class Response>
  void listed(const char* name, Result<Response> (CollectorService::*method)(const Request&)) {
    unary<Request, Response>(
        name, [this, method](const Request& request, const std::string&, Callback<Response> done) {
          done((this->*method)(request));
        });
  }

  template <class Request, class Resource>
  void looked_up(const char* name,
                 Result<Resource> (CollectorApi::*look_up)(const std::string& name)) {
    unary<Request, Resource>(
        name, [this, look_up](const Request& request, const std::string&, Callback<Resource> done) {
          const Status named = check_name("name", request.name());
          done(named.ok() ? (collector_.*look_up)(request.name()) : named.error());
        });
  }

  // Carried out by the class that serves it (methods.h), if the check finds it sound.
  template <class Response, class Request>
  void passed_on(const char* name, Status (*check)(const Request&)) {
    unary<Request, Response>(
        name, [this, check](const Request& request, const std::string&, Callback<Response> done) {
          if (const Status sound = check(request); !sound.ok()) return done(sound.error());
          collector_.methods().call<Response>(request, std::move(done));
        });
  }

  template <class Response, class Request>
  void passed_on_for_caller(const char* name, Status (*check)(const Request&)) {
    unary<Request, Response>(name, [this, check](const Request& request, const std::string& peer,
                                                 Callback<Response> done) {
      if (const Status sound = check(request); !sound.ok()) return done(sound.error());
      collector_.methods().call<Response>(CallOf<Request>{request, caller_of_(peer)},
                                          std::move(done));
    });
  }

  // The page of a long list that is asked for.
  template <class Response, class Request>
  void paged(const char* name, Result<Response> (*page)(Response all, const Request&)) {
    unary<Request, Response>(
        name, [this, page](const Request& request, const std::string&, Callback<Response> done) {
          if (const Status named = check_session_name(request); !named.ok()) {
            return done(named.error());
          }
          collector_.methods().call<Response>(
              request, [done = std::move(done), page, request](Result<Response> all) {
                done(all.ok() ? page(std::move(*all), request) : std::move(all));
              });
        });
  }

  template <class Request, class Response>
  void detail(const char* name) {
    using Outcomes = std::vector<api::DetailOutcome>;
    unary<Request, Response>(
        name, [this](const Request& request, const std::string&, Callback<Response> done) {
          const Result<DetailCommand> command = detail_command_of(request);
          if (!command.ok()) return done(command.error());
          collector_.methods().call<Outcomes>(*command,
                                              [done = std::move(done)](Result<Outcomes> outcomes) {
                                                if (!outcomes.ok()) return done(outcomes.error());
                                                Response all;
                                                for (api::DetailOutcome& one : *outcomes)
                                                  *all.add_outcomes() = std::move(one);
                                                done(std::move(all));
                                              });
        });
  }

  template <class Request>
  void streamed(const char* name,
                MessageStream* (*open)(CollectorApi&, const std::shared_ptr<LiveCalls>&,
                                       const Request&)) {
    stream<Request>(
        name, [this, open](const Request& request) { return open(collector_, live(), request); });
  }

  CollectorApi& collector_;
  const CallerOf caller_of_;
  const std::shared_ptr<std::atomic<uint32_t>> downloads_ =
      std::make_shared<std::atomic<uint32_t>>(0);
};

}  // namespace

std::unique_ptr<grpc::Service> make_collector_service(CollectorApi& collector,
                                                      std::shared_ptr<LiveCalls> live,
                                                      CallerOf caller_of) {
  return std::make_unique<CollectorService>(collector, std::move(live), std::move(caller_of));
}

}  // namespace collect::control
