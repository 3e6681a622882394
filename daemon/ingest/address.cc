#include "daemon/ingest/address.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <charconv>
#include <cstring>

namespace collect::ingest {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kAbstractPrefix = "abstract:";
constexpr std::string_view kPortPrefix = "tcp:";
constexpr size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;

Error wrong(std::string_view text, std::string_view why) {
  return {Code::kInvalidArgument, "address \"" + std::string(text) + "\": " + std::string(why) +
                                      " (want host:port, unix:/path or abstract:name)"};
}

Result<Address> parse_local(std::string_view text, std::string_view name, Address::Kind kind) {
  if (name.empty()) return wrong(text, "the name is empty");
  if (name.size() > kMaxUnixPath - 1) return wrong(text, "the name is longer than 106 bytes");
  Address address;
  address.kind = kind;
  address.host = std::string(name);
  return address;
}

// std::string_view of a local endpoint's path: sun_path may hold an abstract name.
std::string local_text(const Endpoint& endpoint) {
  if (endpoint.size() <= offsetof(sockaddr_un, sun_path) + 1) return "unix";
  sockaddr_un raw{};
  std::memcpy(&raw, endpoint.data(), std::min(endpoint.size(), sizeof raw));
  const size_t bytes = endpoint.size() - offsetof(sockaddr_un, sun_path);
  if (raw.sun_path[0] == '\0') return "abstract:" + std::string(raw.sun_path + 1, bytes - 1);
  return "unix:" + std::string(raw.sun_path, strnlen(raw.sun_path, bytes));
}

}  // namespace

// As agents are told it: a port of this machine.
Result<Address> parse_port_here(std::string_view text, std::string_view digits) {
  Address address;
  address.host = "127.0.0.1";
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, address.port);
  if (error != std::errc{} || end != last) {
    return wrong(text, "behind tcp: stands one port of this machine, as in tcp:7720");
  }
  return address;
}

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) {
    return parse_local(text, text.substr(kUnixPrefix.size()), Address::Kind::kUnix);
  }
  if (text.starts_with(kAbstractPrefix)) {
    return parse_local(text, text.substr(kAbstractPrefix.size()), Address::Kind::kAbstract);
  }
  if (text.starts_with(kPortPrefix)) return parse_port_here(text, text.substr(kPortPrefix.size()));
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return wrong(text, "the host is missing");
  Address address;
  address.host = std::string(host);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || end != port.data() + port.size()) {
    return wrong(text, "the port is not a number from 0 to 65535");
  }
  return address;
}

std::string to_string(const Address& address) {
  switch (address.kind) {
    case Address::Kind::kUnix:
      return std::string(kUnixPrefix) + address.host;
    case Address::Kind::kAbstract:
      return std::string(kAbstractPrefix) + address.host;
    case Address::Kind::kTcp:
      break;
  }
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

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
    return Error{Code::kUnsupported, "host \"" + address.host + "\" is not a number"};
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
                 "address \"" + to_string(address) + "\": " + error.message()};
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
  const std::string host = tcp.address().to_string();
  return (tcp.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(tcp.port());
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
  // Each may fail on a socket that the peer closed already; the next read says so.
  (void)::fcntl(native_handle, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  (void)::setsockopt(native_handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace collect::ingest
