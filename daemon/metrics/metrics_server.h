// The collector's counters for Prometheus, served as text at an address of their own. No names of
// programs, devices or sessions are in them, so that nothing is secret and their number is fixed.
// METRICS.md lists them.
//
// A server of the library's own threads, which ask the collector as the control plane does.
#pragma once

#include <memory>
#include <string>

#include "daemon/control/collector_api.h"
#include "formats/core/result.h"

namespace collect::metrics {

class MetricsServer {
 public:
  // `address`: host:port; port 0 is any. kInvalidArgument: none that can be listened at;
  // kAlreadyExists: a process listens there, or it may not be. `collector` outlives the server.
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& address,
                                                      control::CollectorApi& collector);
  ~MetricsServer();  // answers what was asked, and listens no more; may take two seconds

  // http://127.0.0.1:7713/metrics
  std::string url() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace collect::metrics
