// Addresses of sockets as the system calls want them.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace collect::fakes {

struct SocketAddress {
  sockaddr_storage raw{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

inline SocketAddress tcp4(in_addr_t host, uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(host);
  SocketAddress address{{}, sizeof v4};
  std::memcpy(&address.raw, &v4, sizeof v4);
  return address;
}

inline SocketAddress tcp6(const in6_addr& host, uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = host;
  SocketAddress address{{}, sizeof v6};
  std::memcpy(&address.raw, &v6, sizeof v6);
  return address;
}

// 127.0.0.1 within IPv6, as sockets of both have it.
inline in6_addr mapped_loopback() {
  in6_addr host{};
  host.s6_addr[10] = host.s6_addr[11] = 0xff;
  host.s6_addr[12] = 127;
  host.s6_addr[15] = 1;
  return host;
}

// A path; or an abstract name, after a zero byte.
inline SocketAddress unix_name(const std::string& name) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  EXPECT_LT(name.size(), sizeof local.sun_path);
  std::memcpy(local.sun_path, name.data(), name.size());
  const size_t end = name.starts_with('/') ? 1 : 0;
  SocketAddress address{
      {}, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + end)};
  std::memcpy(&address.raw, &local, sizeof local);
  return address;
}

}  // namespace collect::fakes
