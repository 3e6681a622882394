// Where usbmuxd is: "UNIX:/path", "unix:/path", "/path" or "host:port". On this machine only: what
// goes through it is not encrypted.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::attach {

inline constexpr std::string_view kDefaultUsbmuxd = "UNIX:/var/run/usbmuxd";

struct UsbmuxAddress {
  asio::generic::stream_protocol::endpoint endpoint;
  std::string text;  // "unix:/var/run/usbmuxd", "127.0.0.1:27015"
};

Result<UsbmuxAddress> parse_usbmux_address(std::string_view text);

// What `setting` asks for: "auto" is the variable USBMUXD_SOCKET_ADDRESS (`environment`, may be
// null), else the default; anything else is the address itself.
Result<UsbmuxAddress> usbmux_address(std::string_view setting, const char* environment);

}  // namespace collect::attach
