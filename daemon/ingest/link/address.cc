#include "daemon/ingest/link/address.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <cstring>

namespace collect::ingest {
namespace {

// std::string_view of a local endpoint's path: sun_path may hold an abstract name.
std::string local_text(const Endpoint& endpoint) {
  if (endpoint.size() <= offsetof(sockaddr_un, sun_path) + 1) return "unix";
  sockaddr_un raw{};
  std::memcpy(&raw, endpoint.data(), std::min(endpoint.size(), sizeof raw));
  const size_t bytes = endpoint.size() - offsetof(sockaddr_un, sun_path);
  if (raw.sun_path[0] == '\0') {
    return to_string(Address{Address::Kind::kAbstract, std::string(raw.sun_path + 1, bytes - 1)});
  }
  return to_string(
      Address{Address::Kind::kUnix, std::string(raw.sun_path, strnlen(raw.sun_path, bytes))});
}

}  // namespace

Result<Endpoint> numeric_endpoint(const Address& address) {
  if (address.kind == Address::Kind::kUnix) {
    return Endpoint(asio::local::stream_protocol::endpoint(address.host));
  }
  if (address.kind == Address::Kind::kAbstract) {
    return Endpoint(asio::local::stream_protocol::endpoint(std::string(1, '\0') + address.host));
  }
  std::error_code error;
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const asio::ip::address ip = asio::ip::make_address(host, error);
  if (error) {
    return Error{Code::kUnsupported, fmt::format("host \"{}\" is not a number", address.host)};
  }
  return Endpoint(asio::ip::tcp::endpoint(ip, address.port));
}

Result<Endpoint> resolve_endpoint(const Address& address) {
  Result<Endpoint> numeric = numeric_endpoint(address);
  if (numeric.ok()) return numeric;
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  std::error_code error;
  const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
  if (error || found.empty()) {
    return Error{Code::kInvalidArgument,
                 fmt::format("address \"{}\": {}", to_string(address), error.message())};
  }
  return Endpoint(found.begin()->endpoint());
}

bool is_local(const Endpoint& endpoint) {
  if (endpoint.protocol().family() == AF_UNIX) return true;
  if (endpoint.protocol().family() == AF_INET) {
    sockaddr_in raw{};
    std::memcpy(&raw, endpoint.data(), std::min(endpoint.size(), sizeof raw));
    return (ntohl(raw.sin_addr.s_addr) >> 24) == 127;
  }
  if (endpoint.protocol().family() == AF_INET6) {
    sockaddr_in6 raw{};
    std::memcpy(&raw, endpoint.data(), std::min(endpoint.size(), sizeof raw));
    return IN6_IS_ADDR_LOOPBACK(&raw.sin6_addr) != 0;
  }
  return false;
}

std::string endpoint_text(const Endpoint& endpoint) {
  if (endpoint.protocol().family() == AF_UNIX) return local_text(endpoint);
  asio::ip::tcp::endpoint tcp;
  if (endpoint.size() > tcp.capacity()) return "unknown";
  std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
  tcp.resize(endpoint.size());
  return to_string(Address{Address::Kind::kTcp, tcp.address().to_string(), tcp.port()});
}

std::string origin_of(const Endpoint& endpoint) {
  asio::ip::tcp::endpoint tcp;
  if (is_local(endpoint) || endpoint.size() > tcp.capacity()) return {};
  std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
  tcp.resize(endpoint.size());
  if (tcp.address().is_v4()) return tcp.address().to_string();
  const asio::ip::address_v6 v6 = tcp.address().to_v6();
  if (v6.is_v4_mapped()) {
    const auto v4 = asio::ip::make_address_v4(asio::ip::v4_mapped, v6);
    return v4.is_loopback() ? std::string() : v4.to_string();
  }
  auto bytes = v6.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

std::string origin_of(const Socket& socket) {
  std::error_code error;
  const Endpoint endpoint = socket.remote_endpoint(error);
  return error ? std::string() : origin_of(endpoint);
}

std::string peer_text(const Socket& socket) {
  std::error_code error;
  const Endpoint endpoint = socket.remote_endpoint(error);
  return error ? "unknown" : endpoint_text(endpoint);
}

void prepare_socket(int native_handle) {
  // Each may fail on a socket that the peer closed already; the next read reports that.
  (void)::fcntl(native_handle, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  (void)::setsockopt(native_handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace collect::ingest
