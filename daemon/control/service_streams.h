// The methods of CollectorService that answer with a stream. The collector outlives each call.
// Internal to daemon/control: this header pulls in gRPC.
#pragma once

#include <atomic>
#include <memory>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/control/collector_api.h"
#include "daemon/control/reactors.h"

namespace collect::control {

grpc::ServerWriteReactor<api::AgentEvent>* watch_agents(CollectorApi& collector,
                                                        const std::shared_ptr<LiveCalls>& live,
                                                        const api::WatchAgentsRequest& request);
grpc::ServerWriteReactor<api::DeviceEvent>* watch_devices(CollectorApi& collector,
                                                          const std::shared_ptr<LiveCalls>& live,
                                                          const api::WatchDevicesRequest& request);
grpc::ServerWriteReactor<api::Session>* watch_session(CollectorApi& collector,
                                                      const std::shared_ptr<LiveCalls>& live,
                                                      const api::WatchSessionRequest& request);
grpc::ServerWriteReactor<api::CallBatch>* watch_calls(CollectorApi& collector,
                                                      const std::shared_ptr<LiveCalls>& live,
                                                      const api::WatchCallsRequest& request);
grpc::ServerWriteReactor<api::FileChunk>* download_file(
    CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
    const api::DownloadFileRequest& request,
    const std::shared_ptr<std::atomic<uint32_t>>& downloads);
grpc::ServerWriteReactor<api::ConvertSessionProgress>* convert_session(
    CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
    const api::ConvertSessionRequest& request);

}  // namespace collect::control
