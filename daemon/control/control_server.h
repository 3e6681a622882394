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
#include "daemon/control/control_access.h"
#include "formats/core/result.h"

namespace collect::control {

// gRPC 1.51 has no setting for a minimum version of TLS; this makes every older one impossible, for
// the whole process. To be called before there are threads and before the first server.
void allow_tls_1_3_only();

class ControlServer {
 public:
  // `address` is "host:port" (port 0: any free one) or "unix:/path". On a Unix socket `local` alone
  // says who may connect, and is the mode of its file. Errors: kInvalidArgument for what is no such
  // address, and for one that other machines can reach without TLS and a token or a client
  // certificate; kAlreadyExists when a process listens there already, kPermission, kIo. The files
  // of `access` are known to hold. `collector` must outlive the server. `listening`, if there is
  // one, is a socket that is used instead of `address`, to own: where it is bound decides what it
  // needs, and the mode of a Unix socket is left to who made it.
  static Result<std::unique_ptr<ControlServer>> start(const std::string& address,
                                                      CollectorApi& collector,
                                                      const ControlAccess& access = {},
                                                      int listening = -1);
  ~ControlServer();  // as shutdown(kShutdownDeadline)

  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  uint16_t port() const;               // 0 on a Unix socket
  const std::string& address() const;  // what a client dials: "127.0.0.1:7711" or "unix:/path"

  // Whether set_access() may take this: TLS and token that were asked for at the start are there.
  Status check_access(const ControlAccess& access) const;
  // From now on this token holds. The certificate files are looked at every few seconds anyway;
  // that they are others takes a restart.
  void set_access(const ControlAccess& access);

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
