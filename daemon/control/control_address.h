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
  std::string host;       // as written, brackets included; empty for a Unix socket
  uint16_t port = 0;
  std::string path;  // of the Unix socket; with @ in front where it has a name and no file

  // "127.0.0.1:7711" or "unix:/path": what gRPC binds and what a client dials.
  std::string target() const;
};

Result<ControlAddress> parse_control_address(std::string_view text);

// A socket that listens on the TCP address, to own. Errors as listen_error() has them.
Result<int> listen_on(const ControlAddress& address);

// Where a socket that listens is bound; what counts for who can reach it. kUnsupported for an
// address that is neither TCP nor Unix.
Result<ControlAddress> bound_address(int listening);

// Why nobody could listen there, found out by trying with a plain socket: gRPC only says no.
Error listen_error(const ControlAddress& address);

// For a Unix socket: kAlreadyExists when somebody answers there, kInvalidArgument when the path is
// taken by something else. A socket file that nobody listens on any more is free.
Status check_free(const ControlAddress& address);

}  // namespace collect::control
