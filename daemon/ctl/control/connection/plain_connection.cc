#include "daemon/ctl/control/connection/plain_connection.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "daemon/principal/peer_user.h"
#include "formats/core/address.h"

namespace collect::ctl {

Error no_host(const std::string& host) {
  return {Code::kNotFound, fmt::format("there is no host \"{}\", or its name cannot be looked up "
                                       "now; name the collector's address with --control",
                                       host)};
}

Error no_collector_answers(const std::string& address) {
  return {Code::kUnavailable,
          fmt::format(
              "no collector answers at {}; start collectord, or name its address with --control",
              address)};
}

namespace {

constexpr int kConnectSeconds = 10;

// -1: no one answers there.
int connected_to(int family, const sockaddr* address, socklen_t bytes) {
  const int fd = ::socket(family, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  timeval limit{};
  limit.tv_sec = kConnectSeconds;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd, address, bytes) == 0) return fd;
  ::close(fd);
  return -1;
}

Result<int> checked(int fd, const std::string& address, const std::string& path) {
  const Status served = principal::PeerLookup().check_server(fd, path);
  if (!served.ok()) {
    ::close(fd);
    return Error{served.error().code,
                 fmt::format("{} {}: nothing was sent; name the collector's own socket with "
                             "--control unix:/path, or use TLS",
                             address, served.error().message)};
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

Result<int> connect_unix(const std::string& address, const std::string& path) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, path.data(), path.size());
  const int fd = connected_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&local), sizeof local);
  if (fd < 0) return no_collector_answers(address);
  return checked(fd, address, path);
}

}  // namespace

Result<int> connect_plain(const std::string& address) {
  const auto where = parse_address(address);
  if (!where.ok()) return where.error();
  if (where->kind == Address::Kind::kUnix) return connect_unix(address, where->host);
  if (where->kind == Address::Kind::kAbstract) return no_collector_answers(address);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(where->host.c_str(), std::to_string(where->port).c_str(), &wanted, &list) !=
      0) {
    return no_host(where->host);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  Result<int> outcome = no_collector_answers(address);
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    const int fd = connected_to(at->ai_family, at->ai_addr, at->ai_addrlen);
    if (fd < 0) continue;
    outcome = checked(fd, address, "");
    if (outcome.ok()) return outcome;
  }
  return outcome;
}

bool has_ended(int connected) {
#if defined(POLLRDHUP)
  constexpr short kEnds = POLLRDHUP;
#else
  constexpr short kEnds = 0;
#endif
  pollfd state{connected, kEnds, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace collect::ctl
