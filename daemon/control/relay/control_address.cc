#include "daemon/control/relay/control_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "formats/core/address.h"
#include "storage/fs/descriptor.h"

namespace collect::control {
namespace {

Descriptor new_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kMaxSocketPath));
  return address;
}

// 0 with the listening socket in `kept`, or errno.
int bind_tcp(const ControlAddress& address, Descriptor& kept) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found) !=
      0) {
    return EADDRNOTAVAIL;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  Descriptor socket = new_socket(found->ai_family);
  if (socket.get() < 0) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return errno;
  if (::listen(socket.get(), SOMAXCONN) != 0) return errno;
  kept = std::move(socket);
  return 0;
}

// Checks the path of a Unix socket: kAlreadyExists when a process answers there, or the path is
// taken by something else. A socket file that no process listens on any more is free.
Status check_free(const ControlAddress& address) {
  struct stat status{};
  if (::lstat(address.path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return Error{Code::kAlreadyExists,
                 address.path + " exists and is no socket; choose another control address"};
  }
  Descriptor socket = new_socket(AF_UNIX);
  if (socket.get() < 0) return errno_error(errno, "cannot make a Unix socket");
  sockaddr_un peer = unix_address(address.path);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) == 0) {
    return Error{Code::kAlreadyExists,
                 address.target() +
                     " is in use, perhaps by another collectord; stop it or choose another control "
                     "address"};
  }
  return {};
}

int bind_unix(const ControlAddress& address, Descriptor& kept) {
  Descriptor socket = new_socket(AF_UNIX);
  if (socket.get() < 0) return errno;
  sockaddr_un bound = unix_address(address.path);
  ::unlink(address.path.c_str());  // check_free() has looked at it
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&bound), sizeof(bound)) != 0) return errno;
  if (::chmod(address.path.c_str(), S_IRUSR | S_IWUSR) != 0) return errno;
  if (::listen(socket.get(), SOMAXCONN) != 0) return errno;
  kept = std::move(socket);
  return 0;
}

Error error_of(const ControlAddress& address, int error) {
  if (error == EADDRINUSE) {
    return {Code::kAlreadyExists,
            address.target() +
                " is in use, perhaps by another collectord; stop it or choose another control "
                "address"};
  }
  return errno_error(error, "cannot listen on " + address.target());
}

}  // namespace

std::string ControlAddress::target() const {
  return to_string(unix_socket ? Address{Address::Kind::kUnix, path, 0}
                               : Address{Address::Kind::kTcp, host, port});
}

Result<ControlAddress> parse_control_address(std::string_view text) {
  auto parsed = parse_address(text);
  if (!parsed.ok()) return Error{parsed.code(), "control " + parsed.error().message};
  ControlAddress address;
  switch (parsed->kind) {
    case Address::Kind::kAbstract:
      return Error{
          Code::kInvalidArgument,
          fmt::format(
              "control address \"{}\": gRPC takes host:port, as in 127.0.0.1:7711, or unix:/path",
              text)};
    case Address::Kind::kUnix:
      address.unix_socket = true;
      address.path = std::move(parsed->host);
      break;
    case Address::Kind::kTcp:
      address.host = std::move(parsed->host);
      address.port = parsed->port;
      address.loopback = is_loopback(address.host);
  }
  return address;
}

Result<int> listen_on(const ControlAddress& address) {
  if (address.unix_socket) COLLECT_TRY(check_free(address));
  Descriptor listening;
  const int error =
      address.unix_socket ? bind_unix(address, listening) : bind_tcp(address, listening);
  if (error != 0) return error_of(address, error);
  return listening.release();
}

Result<ControlAddress> bound_address(int listening) {
  sockaddr_storage raw{};
  socklen_t bytes = sizeof raw;
  if (::getsockname(listening, reinterpret_cast<sockaddr*>(&raw), &bytes) != 0) {
    return errno_error(errno, "inherited control socket");
  }
  ControlAddress address;
  if (raw.ss_family == AF_UNIX) {
    sockaddr_un local{};
    std::memcpy(&local, &raw, sizeof local);
    const size_t length = bytes - offsetof(sockaddr_un, sun_path);
    address.unix_socket = true;
    address.path = std::string(local.sun_path, std::min(length, sizeof local.sun_path));
    if (address.path.starts_with('\0')) {
      address.path[0] = '@';
    } else {
      address.path = address.path.c_str();  // up to its end
    }
    return address;
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (raw.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &raw, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    address.host = text;
    address.port = ntohs(v4.sin_port);
  } else if (raw.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &raw, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    address.host = text;
    address.port = ntohs(v6.sin6_port);
  } else {
    return Error{Code::kUnsupported, "the inherited control socket is neither TCP nor Unix"};
  }
  address.loopback = is_loopback(address.host);
  return address;
}

}  // namespace collect::control
