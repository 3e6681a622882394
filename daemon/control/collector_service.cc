#include "daemon/control/collector_service.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/control/paging.h"
#include "daemon/control/request_checks.h"
#include "daemon/control/service_streams.h"

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

// Each method stands here alone, in the order of the service; those that answer with a stream are
// in service_streams.h.
class CollectorService final : public api::Collector::CallbackService {
 public:
  CollectorService(CollectorApi& collector, std::shared_ptr<LiveCalls> live, CallerOf caller_of)
      : collector_(collector), live_(std::move(live)), caller_of_(std::move(caller_of)) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* ListAgents(Context* context, const api::ListAgentsRequest* request,
                    api::ListAgentsResponse* response) override {
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

  grpc::ServerWriteReactor<api::AgentEvent>* WatchAgents(
      Context*, const api::WatchAgentsRequest* request) override {
    return watch_agents(collector_, live_, *request);
  }

  Unary* GetAgent(Context* context, const api::GetAgentRequest* request,
                  api::Agent* response) override {
    return get(context, request->name(), &CollectorApi::agent, response);
  }

  Unary* GetDevice(Context* context, const api::GetDeviceRequest* request,
                   api::Device* response) override {
    return get(context, request->name(), &CollectorApi::device, response);
  }

  Unary* AttachAgent(Context* context, const api::AttachAgentRequest* request,
                     api::Agent* response) override {
    return call(context, check_attach(*request), *request, response);
  }

  Unary* DetachAgent(Context* context, const api::DetachAgentRequest* request,
                     api::Agent* response) override {
    return call(context, check_detach(*request), *request, response);
  }

  Unary* AttachProcess(Context* context, const api::AttachProcessRequest* request,
                       api::AttachProcessResponse* response) override {
    return call(context, check_attach_process(*request),
                CallOf<api::AttachProcessRequest>{*request, caller_of_(context->peer())}, response);
  }

  Unary* DetachProcess(Context* context, const api::DetachProcessRequest* request,
                       api::DetachProcessResponse* response) override {
    return call(context, check_pid(request->pid()),
                CallOf<api::DetachProcessRequest>{*request, caller_of_(context->peer())}, response);
  }

  Unary* ListThreads(Context* context, const api::ListThreadsRequest* request,
                     api::ListThreadsResponse* response) override {
    if (Status named = check_name("name", request->name()); !named.ok()) {
      return reply(context, named);
    }
    const auto call = UnaryCall<api::ListThreadsResponse>::open(live_, response);
    collector_.methods().call<api::ListThreadsResponse>(
        *request, [call, request = *request](Result<api::ListThreadsResponse> threads) {
          call->answer(threads.ok() ? page_of_threads(*threads, request) : std::move(threads));
        });
    return call.get();
  }

  Unary* ListDevices(Context* context, const api::ListDevicesRequest* request,
                     api::ListDevicesResponse* response) override {
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

  grpc::ServerWriteReactor<api::DeviceEvent>* WatchDevices(
      Context*, const api::WatchDevicesRequest* request) override {
    return watch_devices(collector_, live_, *request);
  }

  Unary* ListSessions(Context* context, const api::ListSessionsRequest* request,
                      api::ListSessionsResponse* response) override {
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

  Unary* GetSession(Context* context, const api::GetSessionRequest* request,
                    api::Session* response) override {
    return get(context, request->name(), &CollectorApi::session, response);
  }

  Unary* StartSession(Context* context, const api::StartSessionRequest* request,
                      api::StartSessionResponse* response) override {
    return call(context, check_start(*request), *request, response);
  }

  Unary* StopSession(Context* context, const api::StopSessionRequest* request,
                     api::StopSessionResponse* response) override {
    return call(context, check_selector(request->target()), *request, response);
  }

  grpc::ServerWriteReactor<api::Session>* WatchSession(
      Context*, const api::WatchSessionRequest* request) override {
    return watch_session(collector_, live_, *request);
  }

  grpc::ServerWriteReactor<api::CallBatch>* WatchCalls(
      Context*, const api::WatchCallsRequest* request) override {
    return watch_calls(collector_, live_, *request);
  }

  Unary* GetManifest(Context* context, const api::GetManifestRequest* request,
                     api::Manifest* response) override {
    return call(context, check_name("name", request->name()), *request, response);
  }

  Unary* ListFiles(Context* context, const api::ListFilesRequest* request,
                   api::ListFilesResponse* response) override {
    if (Status named = check_name("name", request->name()); !named.ok()) {
      return reply(context, named);
    }
    const auto call = UnaryCall<api::ListFilesResponse>::open(live_, response);
    collector_.methods().call<api::ListFilesResponse>(
        *request, [call, request = *request](Result<api::ListFilesResponse> files) {
          call->answer(files.ok() ? page_of_files(std::move(*files), request) : std::move(files));
        });
    return call.get();
  }

  grpc::ServerWriteReactor<api::FileChunk>* DownloadFile(
      Context*, const api::DownloadFileRequest* request) override {
    return download_file(collector_, live_, *request, downloads_);
  }

  grpc::ServerWriteReactor<api::ConvertSessionProgress>* ConvertSession(
      Context*, const api::ConvertSessionRequest* request) override {
    return convert_session(collector_, live_, *request);
  }

  Unary* SnapshotSession(Context* context, const api::SnapshotSessionRequest* request,
                         api::Session* response) override {
    return call(context, check_name("name", request->name()), *request, response);
  }

  Unary* DeleteSession(Context* context, const api::DeleteSessionRequest* request,
                       api::DeleteSessionResponse* response) override {
    return call(context, check_delete(*request), *request, response);
  }

  Unary* ArmDetail(Context* context, const api::ArmDetailRequest* request,
                   api::ArmDetailResponse* response) override {
    return set_detail(context, detail_command_of(*request), response);
  }

  Unary* StartDetail(Context* context, const api::StartDetailRequest* request,
                     api::StartDetailResponse* response) override {
    return set_detail(context, detail_command_of(*request), response);
  }

  Unary* StopDetail(Context* context, const api::StopDetailRequest* request,
                    api::StopDetailResponse* response) override {
    return set_detail(context, detail_command_of(*request), response);
  }

  Unary* SetTriggers(Context* context, const api::SetTriggersRequest* request,
                     api::SetTriggersResponse* response) override {
    return call(context, check_triggers(*request), *request, response);
  }

  Unary* GetTriggers(Context* context, const api::GetTriggersRequest* request,
                     api::GetTriggersResponse* response) override {
    return call(context, check_selector(request->target()), *request, response);
  }

  Unary* SetFunctionFilter(Context* context, const api::SetFunctionFilterRequest* request,
                           api::SetFunctionFilterResponse* response) override {
    return call(context, check_function_filter(*request), *request, response);
  }

  Unary* Annotate(Context* context, const api::AnnotateRequest* request,
                  api::AnnotateResponse* response) override {
    return call(context, check_annotation(*request), *request, response);
  }

  Unary* RollContainer(Context* context, const api::RollContainerRequest* request,
                       api::RollContainerResponse* response) override {
    return call(context, check_selector(request->target()), *request, response);
  }

  Unary* SetRules(Context* context, const api::SetRulesRequest* request,
                  api::Rules* response) override {
    return call(context, check_rules(*request), *request, response);
  }

  Unary* GetRules(Context* context, const api::GetRulesRequest* request,
                  api::Rules* response) override {
    return call(context, Status(), *request, response);
  }

  Unary* GetStats(Context* context, const api::GetStatsRequest*, api::Stats* response) override {
    *response = collector_.stats();
    return reply(context, {});
  }

  // Has it carried out by whoever serves it (methods.h), if it was checked and found sound.
  template <class Request, class Response>
  Unary* call(Context* context, const Status& checked, const Request& request, Response* response) {
    if (!checked.ok()) return reply(context, checked);
    const auto call = UnaryCall<Response>::open(live_, response);
    collector_.methods().template call<Response>(
        request, [call](Result<Response> result) { call->answer(std::move(result)); });
    return call.get();
  }
  template <class Response>
  Unary* set_detail(Context* context, const Result<DetailCommand>& command, Response* response) {
    if (!command.ok()) return reply(context, command.error());
    const auto call = UnaryCall<Response>::open(live_, response);
    collector_.methods().call<std::vector<api::DetailOutcome>>(
        *command, [call](Result<std::vector<api::DetailOutcome>> outcomes) {
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

  template <class Resource>
  Unary* get(Context* context, const std::string& name,
             Result<Resource> (CollectorApi::*look_up)(const std::string&), Resource* response) {
    if (Status named = check_name("name", name); !named.ok()) return reply(context, named);
    Result<Resource> found = (collector_.*look_up)(name);
    if (!found.ok()) return reply(context, found.error());
    *response = std::move(*found);
    return reply(context, {});
  }

  CollectorApi& collector_;
  const std::shared_ptr<LiveCalls> live_;
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
