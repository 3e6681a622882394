// collect.control.v1.Collector: checks requests, asks the collector, turns answers and errors into
// gRPC's. Internal to daemon/control: this header pulls in gRPC.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/control/collector_api.h"
#include "daemon/control/reactors.h"

namespace collect::control {

class CollectorService final : public api::Collector::CallbackService {
 public:
  // Whose call it is, by gRPC's name for the peer.
  using CallerOf = std::function<principal::Principal(const std::string& peer)>;

  CollectorService(CollectorApi& collector, std::shared_ptr<LiveCalls> live, CallerOf caller_of);

 private:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* ListAgents(Context*, const api::ListAgentsRequest*, api::ListAgentsResponse*) override;
  grpc::ServerWriteReactor<api::AgentEvent>* WatchAgents(Context*,
                                                         const api::WatchAgentsRequest*) override;
  Unary* GetAgent(Context*, const api::GetAgentRequest*, api::Agent*) override;
  Unary* GetDevice(Context*, const api::GetDeviceRequest*, api::Device*) override;
  Unary* AttachAgent(Context*, const api::AttachAgentRequest*, api::Agent*) override;
  Unary* DetachAgent(Context*, const api::DetachAgentRequest*, api::Agent*) override;
  Unary* AttachProcess(Context*, const api::AttachProcessRequest*,
                       api::AttachProcessResponse*) override;
  Unary* DetachProcess(Context*, const api::DetachProcessRequest*,
                       api::DetachProcessResponse*) override;
  Unary* ListThreads(Context*, const api::ListThreadsRequest*, api::ListThreadsResponse*) override;
  Unary* ListDevices(Context*, const api::ListDevicesRequest*, api::ListDevicesResponse*) override;
  grpc::ServerWriteReactor<api::DeviceEvent>* WatchDevices(
      Context*, const api::WatchDevicesRequest*) override;
  Unary* ListSessions(Context*, const api::ListSessionsRequest*,
                      api::ListSessionsResponse*) override;
  Unary* GetSession(Context*, const api::GetSessionRequest*, api::Session*) override;
  Unary* StartSession(Context*, const api::StartSessionRequest*,
                      api::StartSessionResponse*) override;
  Unary* StopSession(Context*, const api::StopSessionRequest*, api::StopSessionResponse*) override;
  grpc::ServerWriteReactor<api::Session>* WatchSession(Context*,
                                                       const api::WatchSessionRequest*) override;
  grpc::ServerWriteReactor<api::CallBatch>* WatchCalls(Context*,
                                                       const api::WatchCallsRequest*) override;
  Unary* GetManifest(Context*, const api::GetManifestRequest*, api::Manifest*) override;
  Unary* ListFiles(Context*, const api::ListFilesRequest*, api::ListFilesResponse*) override;
  grpc::ServerWriteReactor<api::FileChunk>* DownloadFile(Context*,
                                                         const api::DownloadFileRequest*) override;
  grpc::ServerWriteReactor<api::ConvertSessionProgress>* ConvertSession(
      Context*, const api::ConvertSessionRequest*) override;
  Unary* SnapshotSession(Context*, const api::SnapshotSessionRequest*, api::Session*) override;
  Unary* DeleteSession(Context*, const api::DeleteSessionRequest*,
                       api::DeleteSessionResponse*) override;
  Unary* ArmDetail(Context*, const api::ArmDetailRequest*, api::ArmDetailResponse*) override;
  Unary* StartDetail(Context*, const api::StartDetailRequest*, api::StartDetailResponse*) override;
  Unary* StopDetail(Context*, const api::StopDetailRequest*, api::StopDetailResponse*) override;
  Unary* SetTriggers(Context*, const api::SetTriggersRequest*, api::SetTriggersResponse*) override;
  Unary* GetTriggers(Context*, const api::GetTriggersRequest*, api::GetTriggersResponse*) override;
  Unary* SetFunctionFilter(Context*, const api::SetFunctionFilterRequest*,
                           api::SetFunctionFilterResponse*) override;
  Unary* Annotate(Context*, const api::AnnotateRequest*, api::AnnotateResponse*) override;
  Unary* RollContainer(Context*, const api::RollContainerRequest*,
                       api::RollContainerResponse*) override;
  Unary* SetRules(Context*, const api::SetRulesRequest*, api::Rules*) override;
  Unary* GetRules(Context*, const api::GetRulesRequest*, api::Rules*) override;
  Unary* GetStats(Context*, const api::GetStatsRequest*, api::Stats*) override;
  Unary* ListCollectors(Context*, const api::ListCollectorsRequest*,
                        api::ListCollectorsResponse*) override;

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
  Unary* set_detail(Context* context, const Result<DetailOrder>& order, Response* response);
  template <class Resource>
  Unary* get(Context* context, const std::string& name,
             Result<Resource> (CollectorApi::*look_up)(const std::string&), Resource* response);

  CollectorApi& collector_;
  const std::shared_ptr<LiveCalls> live_;
  const CallerOf caller_of_;
  const std::shared_ptr<std::atomic<uint32_t>> downloads_ =
      std::make_shared<std::atomic<uint32_t>>(0);
};

}  // namespace collect::control
