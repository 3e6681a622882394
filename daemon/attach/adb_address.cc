#include "daemon/attach/adb_address.h"

#include <charconv>

namespace collect::attach {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr size_t kMaxPathBytes = 107;  // of a Unix socket
constexpr size_t kMaxHostBytes = 255;

bool parse_port(std::string_view digits, uint16_t& port) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, port);
  return error == std::errc() && stop == end && port != 0;
}

bool strip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<AdbAddress> parse(std::string_view text, const std::string& where) {
  AdbAddress address;
  const Error wrong{Code::kInvalidArgument,
                    where + " \"" + std::string(text) +
                        "\" is no address of an adb server: host:port, unix:/path, tcp:host:port, "
                        "tcp:port or localfilesystem:/path"};
  if (strip(text, "unix:") || strip(text, "localfilesystem:")) {
    if (!text.starts_with('/') || text.size() > kMaxPathBytes) return wrong;
    address.is_path = true;
    address.host = std::string(text);
    return address;
  }
  const bool has_prefix = strip(text, "tcp:");
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos && !has_prefix) return wrong;
  std::string_view host = colon == std::string_view::npos ? "" : text.substr(0, colon);
  const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong;
  }
  if (!parse_port(port, address.port) || host.size() > kMaxHostBytes) return wrong;
  address.host = host.empty() || host == "localhost" ? kLoopback : std::string(host);
  return address;
}

}  // namespace

std::string AdbAddress::text() const {
  if (is_off) return "off";
  if (is_path) return "unix:" + host;
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<AdbAddress> adb_address(std::string_view setting, const EnvironmentVariable& environment) {
  AdbAddress address;
  if (setting == "off") {
    address.is_off = true;
    return address;
  }
  if (setting != "auto") return parse(setting, "adb:");
  const auto variable = [&environment](const char* name) -> std::string {
    const char* const value = environment(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  const std::string socket = variable("ADB_SERVER_SOCKET");
  if (!socket.empty()) return parse(socket, "ADB_SERVER_SOCKET:");
  const std::string host = variable("ANDROID_ADB_SERVER_ADDRESS");
  const std::string port = variable("ANDROID_ADB_SERVER_PORT");
  address.host = host.empty() || host == "localhost" ? kLoopback : host;
  address.port = kDefaultAdbPort;
  if (!port.empty() && !parse_port(port, address.port)) {
    return Error{Code::kInvalidArgument,
                 "ANDROID_ADB_SERVER_PORT: \"" + port + "\" is no port between 1 and 65535"};
  }
  return address;
}

}  // namespace collect::attach
