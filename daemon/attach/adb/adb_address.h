// Where the adb server is: from the setting, or from the environment as adb itself takes it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "formats/core/address.h"
#include "formats/core/result.h"

namespace collect::attach {

inline constexpr uint16_t kDefaultAdbPort = 5037;

struct AdbAddress {
  bool is_off = false;
  Address server;  // TCP or a path

  std::string text() const { return is_off ? "off" : to_string(server); }
};

// Returns the variable's value, or null.
using EnvironmentVariable = std::function<const char*(const char* name)>;

// "off"; "auto": ADB_SERVER_SOCKET, else ANDROID_ADB_SERVER_ADDRESS and _PORT, else
// 127.0.0.1:5037; "host:port", "tcp:host:port", "tcp:port", "unix:/path", "localfilesystem:/path".
// kInvalidArgument names the setting or the variable.
Result<AdbAddress> adb_address(std::string_view setting, const EnvironmentVariable& environment);

}  // namespace collect::attach
