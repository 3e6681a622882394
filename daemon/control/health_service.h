// grpc.health.v1.Health. gRPC has its own, but reflection cannot describe that one, and clients
// that learn the schema by reflection (grpcurl, buf) then fail. Internal to daemon/control.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/control/reactors.h"
#include "daemon/control/watch_backlog.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace collect::control {

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  using Response = grpc::health::v1::HealthCheckResponse;

  explicit HealthService(std::shared_ptr<LiveCalls> live);

  // For "" and "collect.control.v1.Collector" alike.
  void set_serving(bool serving);

 private:
  using Request = grpc::health::v1::HealthCheckRequest;
  using HealthWatch = WatchCall<Response, NewestBacklog<Response>>;

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const Request* request,
                                  Response* response) override;
  grpc::ServerWriteReactor<Response>* Watch(grpc::CallbackServerContext* context,
                                            const Request* request) override;

  const std::shared_ptr<LiveCalls> live_;
  std::mutex mutex_;  // guards what follows
  bool serving_ = false;
  std::vector<std::weak_ptr<HealthWatch>> watches_;
};

}  // namespace collect::control
