// The gRPC server of the control plane: collect.control.v1.Collector, the standard health service
// and reflection, on one address. It knows agents and sessions only through CollectorApi.
//
// Threads: gRPC's own run the handlers; none of them waits for anything. The owner starts the
// server last, when everything behind `collector` answers (health says SERVING from then on), and
// shuts it down first, from a thread that CollectorApi::unwatch does not depend on.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/control/collector_api.h"
#include "formats/core/result.h"

namespace collect::control {

class ControlServer {
 public:
  // `address` is "host:port" on a loopback address (port 0: any free one) or "unix:/path". Errors:
  // kInvalidArgument for what is no such address, kAlreadyExists when somebody listens there
  // already, kPermission, kIo. `collector` must outlive the server.
  static Result<std::unique_ptr<ControlServer>> start(const std::string& address,
                                                      CollectorApi& collector);
  ~ControlServer();  // as shutdown(kShutdownDeadline)

  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  uint16_t port() const;               // 0 on a Unix socket
  const std::string& address() const;  // what a client dials: "127.0.0.1:7711" or "unix:/path"

  // Ends the live watches, lets running calls answer until the deadline, cancels those that have
  // not. Returns when no handler runs any more. Answers that the collector gives later go nowhere.
  // Calling it again does nothing.
  void shutdown(std::chrono::milliseconds deadline);

  static constexpr std::chrono::milliseconds kShutdownDeadline{2000};

 private:
  struct State;
  explicit ControlServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace collect::control
