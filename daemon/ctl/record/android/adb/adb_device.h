// One Android device by its serial number: shell commands, files, and what runs on it for long.
// Errors begin with the serial number.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/ctl/record/android/adb/adb_client.h"
#include "daemon/ctl/record/android/adb/shell_stream.h"

namespace collect::ctl {

inline constexpr std::chrono::milliseconds kShellBound{60'000};  // starting an app takes long
inline constexpr size_t kMaxShellOutputBytes = 1u << 20;
// For a device that takes or gives no more bytes, or does not answer at the end of a file.
inline constexpr std::chrono::milliseconds kSyncStall{30'000};

class AdbDevice {
 public:
  using OnProgress = std::function<void(uint64_t sent, uint64_t total)>;

  // The device that is meant: `wanted`, else `variable` (ANDROID_SERIAL), else the only one that
  // can be used. The error says which there are, and why one can't be used.
  static Result<AdbDevice> choose(AdbClient& client, const std::string& wanted,
                                  const char* variable);
  AdbDevice(AdbClient& client, std::string serial, std::string model)
      : client_(client), serial_(std::move(serial)), model_(std::move(model)) {}

  const std::string& serial() const { return serial_; }
  const std::string& model() const { return model_; }  // may be empty
  AdbClient& client() const { return client_; }

  // kUnsupported: it has no "shell,v2" (before Android 7).
  Status check_shell() const;
  // kUnavailable: the device went; kLimit: more than kMaxShellOutputBytes came. Any exit code is
  // no error.
  Result<attach::ShellOutput> shell(const std::string& command, std::string_view input = {}) const;
  // What the command prints, without the last line's end. kIo with the command's own words when its
  // exit code is not 0.
  Result<std::string> output_of(const std::string& command, std::string_view input = {}) const;
  Result<std::shared_ptr<ShellStream>> follow(const std::string& command,
                                              ShellStream::OnPacket on_packet,
                                              ShellStream::OnEnd on_end) const;
  // A file of this machine, by "sync:"; its folder is there. kNoSpace and kIo: what the device
  // says.
  Status push(const std::string& path, const std::string& remote, uint32_t mode,
              const OnProgress& on_progress) const;
  // A file of the device into `path`, which may be begun when it fails. kIo: what the device says;
  // kLimit: it has more than `most` bytes.
  Status pull(const std::string& remote, const std::string& path, uint64_t most) const;

 private:
  Error error(Code code, const std::string& message) const {
    return {code, fmt::format("{}: {}", serial_, message)};
  }

  AdbClient& client_;
  std::string serial_;
  std::string model_;
};

// What a device said went wrong: kNoSpace where that is the reason, else kIo.
Code code_of_words(std::string_view words);

}  // namespace collect::ctl
