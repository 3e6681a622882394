#include "daemon/attach/usbmux_address.h"

#include <sys/un.h>

#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <charconv>

namespace collect::attach {
namespace {

Error wrong(std::string_view text, const std::string& why) {
  return {Code::kInvalidArgument, "usbmuxd's address \"" + std::string(text) + "\": " + why};
}

bool starts_with_unix(std::string_view text) {
  return text.starts_with("UNIX:") || text.starts_with("unix:");
}

Result<UsbmuxAddress> unix_address(std::string_view text, std::string_view path) {
  if (path.empty() || path[0] != '/') return wrong(text, "a socket's path begins with /");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return wrong(text, "longer than the " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                           " bytes of a socket's path");
  }
  if (path.find('\0') != std::string_view::npos) return wrong(text, "a path without zeroes");
  return UsbmuxAddress{asio::local::stream_protocol::endpoint(path), "unix:" + std::string(path)};
}

}  // namespace

Result<UsbmuxAddress> parse_usbmux_address(std::string_view text) {
  if (starts_with_unix(text)) return unix_address(text, text.substr(5));
  if (!text.empty() && text[0] == '/') return unix_address(text, text);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong(text, "neither UNIX:/path nor host:port");
  std::string host(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    return wrong(text, "the port is a number from 1 to 65535");
  }
  if (host == "localhost") host = "127.0.0.1";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::error_code no_number;
  const asio::ip::address address = asio::ip::make_address(host, no_number);
  if (no_number || !address.is_loopback()) {
    return wrong(text,
                 "not on this machine, and what goes through usbmuxd is not encrypted; bring it "
                 "here with ssh -L and name 127.0.0.1");
  }
  return UsbmuxAddress{asio::ip::tcp::endpoint(address, port),
                       (address.is_v6() ? "[" + address.to_string() + "]" : address.to_string()) +
                           ":" + std::to_string(port)};
}

Result<UsbmuxAddress> usbmux_address(std::string_view setting, const char* environment) {
  if (setting != "auto") return parse_usbmux_address(setting);
  if (environment != nullptr && *environment != '\0') {
    const Result<UsbmuxAddress> address = parse_usbmux_address(environment);
    if (address.ok()) return address;
    return Error{address.code(), address.error().message +
                                     " (USBMUXD_SOCKET_ADDRESS says so; the setting usbmux goes "
                                     "before it, and \"off\" looks for no iPhones)"};
  }
  return parse_usbmux_address(kDefaultUsbmuxd);
}

}  // namespace collect::attach
