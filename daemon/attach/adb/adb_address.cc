#include "daemon/attach/adb/adb_address.h"

#include <fmt/core.h>

#include <utility>

namespace collect::attach {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr std::string_view kTcpPrefix = "tcp:";
constexpr std::string_view kPathPrefix = "localfilesystem:";

Error wrong(const std::string& where, std::string_view text) {
  return {Code::kInvalidArgument,
          fmt::format("{} \"{}\" is no address of an adb server: host:port, unix:/path, "
                      "tcp:host:port, tcp:port or localfilesystem:/path",
                      where, text)};
}

std::string host_of(const std::string& written) {
  return written.empty() || written == "localhost" ? kLoopback : written;
}

// With the two forms that adb itself has beside ours.
Result<AdbAddress> parse(std::string_view text, const std::string& where) {
  std::string ours(text);
  if (text.starts_with(kPathPrefix)) {
    ours = "unix:" + ours.substr(kPathPrefix.size());
  } else if (text.starts_with(kTcpPrefix) && text.find(':', kTcpPrefix.size()) != text.npos) {
    ours = ours.substr(kTcpPrefix.size());
  }
  if (ours.starts_with(':')) ours.insert(0, kLoopback);
  auto server = parse_address(ours);
  const bool is_tcp = server.ok() && server->kind == Address::Kind::kTcp;
  if (!server.ok() || server->kind == Address::Kind::kAbstract || (is_tcp && server->port == 0)) {
    return wrong(where, text);
  }
  if (is_tcp) server->host = host_of(server->host);
  return AdbAddress{false, std::move(*server)};
}

}  // namespace

Result<AdbAddress> adb_address(std::string_view setting, const EnvironmentVariable& environment) {
  if (setting == "off") return AdbAddress{true, {}};
  if (setting != "auto") return parse(setting, "adb:");
  const auto variable = [&environment](const char* name) -> std::string {
    const char* const value = environment(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  const std::string socket = variable("ADB_SERVER_SOCKET");
  if (!socket.empty()) return parse(socket, "ADB_SERVER_SOCKET:");
  const std::string host = variable("ANDROID_ADB_SERVER_ADDRESS");
  const std::string port = variable("ANDROID_ADB_SERVER_PORT");
  Address server{Address::Kind::kTcp, host_of(host), kDefaultAdbPort};
  if (!port.empty()) {
    const auto parsed = parse_address("tcp:" + port);
    if (!parsed.ok() || parsed->port == 0) {
      return Error{
          Code::kInvalidArgument,
          fmt::format("ANDROID_ADB_SERVER_PORT: \"{}\" is no port between 1 and 65535", port)};
    }
    server.port = parsed->port;
  }
  return AdbAddress{false, std::move(server)};
}

}  // namespace collect::attach
