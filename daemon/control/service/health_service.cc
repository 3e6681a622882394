#include "daemon/control/service/health_service.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/control/request_checks.h"

namespace collect::control {
namespace {

constexpr std::string_view kServiceName = "collect.control.v1.Collector";

bool is_known(const std::string& service) {
  return service.empty() || service == kServiceName;
}

HealthService::Response health(bool serving) {
  HealthService::Response response;
  response.set_status(serving ? HealthService::Response::SERVING
                              : HealthService::Response::NOT_SERVING);
  return response;
}

}  // namespace

HealthService::HealthService(std::shared_ptr<LiveCalls> live)
    : MethodTable("grpc.health.v1.Health", std::move(live)) {
  unary<Request, Response>("Check", [this](const Request& request, const std::string&,
                                           Callback<Response> done) { done(check(request)); });
  stream<Request>("Watch", [this](const Request& request) { return watch(request); });
}

void HealthService::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  if (serving == serving_) return;
  serving_ = serving;
  for (const std::weak_ptr<HealthWatch>& weak : watches_) {
    if (const auto watch = weak.lock()) {
      watch->update([serving](auto& backlog) { backlog.put(health(serving)); });
    }
  }
}

Result<HealthService::Response> HealthService::check(const Request& request) {
  if (!is_known(request.service())) {
    return Error{Code::kNotFound,
                 fmt::format("no such service here; ask for \"\" or \"{}\"", kServiceName)};
  }
  const std::lock_guard lock(mutex_);
  return health(serving_);
}

MessageStream* HealthService::watch(const Request& request) {
  const auto watch = HealthWatch::open(live());
  // As the health protocol says: an unknown service is a state that might change, not an error.
  if (!is_known(request.service())) {
    watch->update([](auto& backlog) {
      Response unknown;
      unknown.set_status(Response::SERVICE_UNKNOWN);
      backlog.put(unknown);
    });
    return watch.get();
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(watches_, [](const auto& weak) { return weak.expired(); });
  watches_.push_back(watch);
  watch->update([this](auto& backlog) { backlog.put(health(serving_)); });
  return watch.get();
}

}  // namespace collect::control
