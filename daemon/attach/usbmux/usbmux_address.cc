#include "daemon/attach/usbmux/usbmux_address.h"

#include <fmt/core.h>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>

#include "formats/core/address.h"

namespace collect::attach {
namespace {

Error wrong(std::string_view text, const std::string& why) {
  return {Code::kInvalidArgument, fmt::format("usbmuxd's address \"{}\": {}", text, why)};
}

}  // namespace

Result<UsbmuxAddress> parse_usbmux_address(std::string_view text) {
  std::string ours(text);
  if (text.starts_with("UNIX:")) ours.replace(0, 5, "unix:");
  if (text.starts_with('/')) ours.insert(0, "unix:");
  auto address = parse_address(ours);
  if (!address.ok()) return Error{address.code(), "usbmuxd's " + address.error().message};
  if (address->kind == Address::Kind::kUnix) {
    return UsbmuxAddress{asio::local::stream_protocol::endpoint(address->host),
                         to_string(*address)};
  }
  if (address->kind == Address::Kind::kAbstract)
    return wrong(text, "neither UNIX:/path nor host:port");
  if (address->port == 0) return wrong(text, "the port is a number from 1 to 65535");
  if (address->host == "localhost") address->host = "127.0.0.1";
  std::error_code no_number;
  const asio::ip::address number = asio::ip::make_address(address->host, no_number);
  if (no_number || !number.is_loopback()) {
    return wrong(text,
                 "not on this machine, and what goes through usbmuxd is not encrypted; bring it "
                 "here with ssh -L and name 127.0.0.1");
  }
  address->host = number.to_string();
  return UsbmuxAddress{asio::ip::tcp::endpoint(number, address->port), to_string(*address)};
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
