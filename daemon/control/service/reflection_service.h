// grpc.reflection.v1 and v1alpha: how grpcurl, buf and others learn what can be called. gRPC 1.51
// has v1alpha alone, and leaves the JSON names of fields out, so that each client makes up its own.
// Internal to daemon/control.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/control/service/reactors.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace collect::control {

// Both packages have the same messages.
template <class Package>
class ReflectionService final : public Package::Service::CallbackService {
 public:
  using Request = typename Package::Request;
  using Response = typename Package::Response;

  ReflectionService(std::shared_ptr<LiveCalls> live, std::vector<std::string> services)
      : live_(std::move(live)), services_(std::move(services)) {}

 private:
  class Call;

  grpc::ServerBidiReactor<Request, Response>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

  const std::shared_ptr<LiveCalls> live_;
  const std::vector<std::string> services_;
};

struct ReflectionV1 {
  using Service = grpc::reflection::v1::ServerReflection;
  using Request = grpc::reflection::v1::ServerReflectionRequest;
  using Response = grpc::reflection::v1::ServerReflectionResponse;
};
struct ReflectionV1Alpha {
  using Service = grpc::reflection::v1alpha::ServerReflection;
  using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = grpc::reflection::v1alpha::ServerReflectionResponse;
};
extern template class ReflectionService<ReflectionV1>;
extern template class ReflectionService<ReflectionV1Alpha>;

}  // namespace collect::control
