// grpc.health.v1.Health. gRPC has its own, but reflection cannot describe that one, and clients
// that learn the schema by reflection (grpcurl, buf) then fail. Internal to daemon/control.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/service/method_table.h"
#include "daemon/control/service/reactors.h"
#include "daemon/control/service/watch_backlog.h"
#include "grpc/health/v1/health.pb.h"

namespace collect::control {

class HealthService final : public MethodTable {
 public:
  using Response = grpc::health::v1::HealthCheckResponse;

  explicit HealthService(std::shared_ptr<LiveCalls> live);

  // For "" and "collect.control.v1.Collector" alike.
  void set_serving(bool serving);

 private:
  using Request = grpc::health::v1::HealthCheckRequest;
  using HealthWatch = WatchCall<NewestBacklog<Response>>;

  Result<Response> check(const Request& request);
  MessageStream* watch(const Request& request);

  std::mutex mutex_;  // guards what follows
  bool serving_ = false;
  std::vector<std::weak_ptr<HealthWatch>> watches_;
};

}  // namespace collect::control
