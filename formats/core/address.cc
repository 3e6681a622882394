#include "formats/core/address.h"

#include <fmt/core.h>

#include <charconv>

namespace collect {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kAbstractPrefix = "abstract:";
constexpr std::string_view kPortPrefix = "tcp:";
constexpr char kLoopback[] = "127.0.0.1";

Error wrong(std::string_view text, std::string_view why) {
  return {
      Code::kInvalidArgument,
      fmt::format("address \"{}\": {} (write host:port, unix:/path or abstract:name)", text, why)};
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool parse_port(std::string_view digits, uint16_t& port) {
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, port);
  return error == std::errc{} && end == last;
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  std::string_view rest = text;
  if (text.find('\0') != std::string_view::npos) return wrong(text, "it holds a zero byte");
  if (take(rest, kUnixPrefix)) {
    if (!rest.starts_with('/')) return wrong(text, "a socket's path begins with /");
    if (rest.size() > kMaxSocketPath) {
      return wrong(text,
                   fmt::format("longer than the {} bytes of a socket's path", kMaxSocketPath));
    }
    return Address{Address::Kind::kUnix, std::string(rest), 0};
  }
  if (take(rest, kAbstractPrefix)) {
    if (rest.empty()) return wrong(text, "the name is empty");
    if (rest.size() > kMaxSocketName) {
      return wrong(text, fmt::format("the name is longer than {} bytes", kMaxSocketName));
    }
    return Address{Address::Kind::kAbstract, std::string(rest), 0};
  }
  Address address;
  if (take(rest, kPortPrefix)) {
    address.host = kLoopback;
    if (parse_port(rest, address.port)) return address;
    return wrong(text, "behind tcp: is one port of this machine, as in tcp:7720");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return wrong(text, "a number of IPv6 is in brackets, as in [::1]:7710");
  }
  if (host.empty()) return wrong(text, "the host is missing");
  if (host.size() > kMaxHostBytes) return wrong(text, "the host is too long");
  if (!parse_port(text.substr(colon + 1), address.port)) {
    return wrong(text, "the port is not a number from 0 to 65535");
  }
  address.host = std::string(host);
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
  return fmt::format("{}:{}", is_v6 ? fmt::format("[{}]", address.host) : address.host,
                     address.port);
}

}  // namespace collect
