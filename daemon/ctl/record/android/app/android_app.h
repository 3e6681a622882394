// What there is to know of a phone and of an app on it before the agent can be put into the app.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr uint32_t kLeastSdk = 29;  // Android 10

struct PhoneFacts {
  std::string abi;  // "arm64-v8a"
  uint32_t sdk = 0;
  std::string model;
};

struct AndroidApp {
  std::string package;
  std::string data_directory;  // "/data/user/0/com.example.app"
  std::string code_directory;  // of its APK: "/data/app/~~…/com.example.app-…"
  std::string abi;             // of its native code; the phone's where it has none
  // Its APK brings a wrap.sh, which goes before the wrap property. One of deploy/android reads our
  // variables.
  bool has_wrap = false;
  bool wrap_reads_variables = false;
};

// kInvalidArgument: no app can have that name. What passes can be part of a shell command.
Status check_package_name(const std::string& package);

Result<PhoneFacts> look_at_phone(const AdbDevice& device);
// kUnsupported: below kLeastSdk.
Status check_sdk(const AdbDevice& device, const PhoneFacts& phone);

// kNotFound: not installed; kPermission: not debuggable.
Result<AndroidApp> look_at_app(const AdbDevice& device, const PhoneFacts& phone,
                               const std::string& package);

// "com.example.app/.MainActivity": `activity` of the package, or the one that a launcher starts.
Result<std::string> find_activity(const AdbDevice& device, const std::string& package,
                                  const std::string& activity);
// Ends the app and starts it again.
Status restart_app(const AdbDevice& device, const std::string& package,
                   const std::string& component);

}  // namespace collect::ctl
