// collect.control.v1.Collector: checks requests, asks the collector, turns answers and errors into
// gRPC's. Internal to daemon/control: this header pulls in gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/control/collector_api.h"
#include "daemon/control/service/reactors.h"

namespace collect::control {

// Whose call it is, by gRPC's name for the peer.
using CallerOf = std::function<principal::Principal(const std::string& peer)>;

// The collector outlives it.
std::unique_ptr<grpc::Service> make_collector_service(CollectorApi& collector,
                                                      std::shared_ptr<LiveCalls> live,
                                                      CallerOf caller_of);

}  // namespace collect::control
