// Where the control plane listens. Loopback and Unix sockets need no credentials; what everything
// else needs is checked by the server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::control {

struct ControlAddress {
  bool unix_socket = false;
  bool loopback = false;  // TCP that only this machine can reach
  std::string host;       // without brackets; empty for a Unix socket
  uint16_t port = 0;
  std::string path;  // of the Unix socket; with @ in front where it has a name and no file

  // "127.0.0.1:7711" or "unix:/path": what gRPC binds and what a client dials.
  std::string target() const;
};

Result<ControlAddress> parse_control_address(std::string_view text);

// A socket that listens on the address, to own; of a Unix socket, a file that no one listens on any
// more is replaced, and the mode of the new one is for its owner alone. Errors name the address.
Result<int> listen_on(const ControlAddress& address);

// Where a socket that listens is bound; what counts for who can reach it. kUnsupported for an
// address that is neither TCP nor Unix.
Result<ControlAddress> bound_address(int listening);

}  // namespace collect::control
