// The methods of CollectorService that answer with a stream. The collector outlives each call.
// Internal to daemon/control: this header pulls in gRPC.
#pragma once

#include <atomic>
#include <memory>

#include "daemon/control/collector_api.h"
#include "daemon/control/service/reactors.h"

namespace collect::control {

MessageStream* watch_agents(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                            const api::WatchAgentsRequest& request);
MessageStream* watch_devices(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                             const api::WatchDevicesRequest& request);
MessageStream* watch_session(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                             const api::WatchSessionRequest& request);
MessageStream* watch_calls(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                           const api::WatchCallsRequest& request);
MessageStream* download_file(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                             const api::DownloadFileRequest& request,
                             const std::shared_ptr<std::atomic<uint32_t>>& downloads);
MessageStream* convert_session(CollectorApi& collector, const std::shared_ptr<LiveCalls>& live,
                               const api::ConvertSessionRequest& request);

}  // namespace collect::control
