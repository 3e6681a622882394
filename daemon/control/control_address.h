// Where the control plane may listen: loopback and Unix sockets need no credentials, everything
// else is refused until it has some.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::control {

struct ControlAddress {
  bool unix_socket = false;
  std::string host;  // as written, brackets included; empty for a Unix socket
  uint16_t port = 0;
  std::string path;  // of the Unix socket

  // "127.0.0.1:7711" or "unix:/path": what gRPC binds and what a client dials.
  std::string target() const;
};

Result<ControlAddress> parse_control_address(std::string_view text);

// Why nobody could listen there, found out by trying with a plain socket: gRPC only says no.
Error listen_error(const ControlAddress& address);

// For a Unix socket: kAlreadyExists when somebody answers there, kInvalidArgument when the path is
// taken by something else. A socket file that nobody listens on any more is free.
Status check_free(const ControlAddress& address);

}  // namespace collect::control
