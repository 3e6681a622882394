#include "daemon/ctl/record/android/adb/adb_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/ctl/record/android/adb/file_pull.h"
#include "daemon/ctl/record/android/adb/file_push.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

using attach::ShellOutput;
using attach::SourceDevice;

std::string trimmed_end(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

std::string list_of(const std::vector<SourceDevice>& devices) {
  std::string text;
  for (const SourceDevice& device : devices) {
    text += (text.empty() ? "" : ", ") + printable(device.serial);
    if (!device.is_usable) text += fmt::format(" ({})", printable(device.reported_state));
    if (device.is_usable && !device.model.empty())
      text += fmt::format(" ({})", printable(device.model));
  }
  return text;
}

std::string why_unusable(const SourceDevice& device) {
  return fmt::format("{} can't be used: {}; {}", device.serial, device.reason, device.advice);
}

}  // namespace

Result<AdbDevice> AdbDevice::choose(AdbClient& client, const std::string& wanted,
                                    const char* variable) {
  const Result<std::vector<SourceDevice>> devices = client.devices();
  if (!devices.ok()) return devices.error();
  const std::string name = !wanted.empty() ? wanted : variable != nullptr ? variable : "";
  std::vector<SourceDevice> meant;
  for (const SourceDevice& device : *devices) {
    if (name.empty() ? device.is_usable : device.serial == name) meant.push_back(device);
  }
  if (meant.size() == 1 && meant.front().is_usable) {
    return AdbDevice(client, meant.front().serial, meant.front().model);
  }
  if (meant.size() > 1) {
    return Error{
        Code::kInvalidArgument,
        fmt::format(
            "several devices can be used: {}; say which one with --serial or ANDROID_SERIAL",
            list_of(meant))};
  }
  if (!meant.empty()) return Error{Code::kUnavailable, why_unusable(meant.front())};
  if (devices->empty()) {
    return Error{Code::kNotFound,
                 "the adb server knows no device: plug a phone in, and allow USB debugging in its "
                 "developer options"};
  }
  if (!name.empty()) {
    return Error{Code::kNotFound,
                 fmt::format("there is no device {}{}; there is {}", name,
                             wanted.empty() ? " (from ANDROID_SERIAL)" : "", list_of(*devices))};
  }
  std::string text;
  for (const SourceDevice& device : *devices) {
    text += (text.empty() ? "" : "; ") + why_unusable(device);
  }
  return Error{Code::kUnavailable, text};
}

Code code_of_words(std::string_view words) {
  return words.find("No space left") != std::string_view::npos ? Code::kNoSpace : Code::kIo;
}

Status AdbDevice::check_shell() const {
  const Result<std::string> features = client_.features(serial_);
  if (!features.ok() && features.code() != Code::kNotFound) return features.error();
  if (features.ok() && fmt::format(",{},", *features).find(",shell_v2,") != std::string::npos)
    return {};
  return error(Code::kUnsupported,
               "it has no shell that says how commands end (shell,v2): Android 10 is needed");
}

Result<std::shared_ptr<ShellStream>> AdbDevice::follow(const std::string& command,
                                                       ShellStream::OnPacket on_packet,
                                                       ShellStream::OnEnd on_end) const {
  Result<attach::Socket> socket = client_.open(serial_, "shell,v2,raw:" + command);
  if (!socket.ok()) return socket.error();
  return ShellStream::start(std::move(*socket), std::move(on_packet), std::move(on_end));
}

Result<ShellOutput> AdbDevice::shell(const std::string& command, std::string_view input) const {
  struct ShellAnswer {
    ShellOutput said;
    std::optional<Status> end;
  };
  const auto answer = std::make_shared<ShellAnswer>();
  const auto stream = follow(
      command,
      [answer](attach::ShellPacket packet) {
        if (answer->said.output.size() <= kMaxShellOutputBytes)
          answer->said.take(std::move(packet));
      },
      [answer](const Status& status) { answer->end = status; });
  if (!stream.ok()) return stream.error();
  (*stream)->send_input(input);
  const auto is_done = [&answer] {
    return answer->end.has_value() || answer->said.output.size() > kMaxShellOutputBytes;
  };
  const Status waited = client_.io().wait(is_done, kShellBound, command);
  (*stream)->close();
  if (!waited.ok()) return error(waited.code(), waited.error().message);
  if (answer->said.output.size() > kMaxShellOutputBytes) {
    return error(Code::kLimit,
                 fmt::format("{}: it says more than {} bytes", command, kMaxShellOutputBytes));
  }
  if (!answer->end->ok()) return error(answer->end->code(), answer->end->error().message);
  return std::move(answer->said);
}

Result<std::string> AdbDevice::output_of(const std::string& command, std::string_view input) const {
  Result<ShellOutput> said = shell(command, input);
  if (!said.ok()) return said.error();
  if (said->exit_code == 0) return trimmed_end(std::move(said->output));
  const std::string& words = said->errors.empty() ? said->output : said->errors;
  return error(code_of_words(words), words.empty()
                                         ? fmt::format("{}: exit code {}", command, said->exit_code)
                                         : trimmed_end(words));
}

Status AdbDevice::push(const std::string& path, const std::string& remote, uint32_t mode,
                       const OnProgress& on_progress) const {
  Result<attach::Socket> socket = client_.open(serial_, "sync:");
  if (!socket.ok()) return socket.error();
  const Result<std::shared_ptr<FilePush>> push =
      FilePush::start(std::move(*socket), path, remote, mode);
  if (!push.ok()) return push.error();
  while (!(*push)->result()) {
    const uint64_t before = (*push)->sent();
    const Status waited = client_.io().wait(
        [&] { return (*push)->result().has_value() || (*push)->sent() != before; }, kSyncStall,
        "pushing " + path);
    if (!waited.ok()) {
      (*push)->close();
      return error(waited.code(), waited.error().message);
    }
    if (on_progress) on_progress((*push)->sent(), (*push)->total());
  }
  const Status& result = *(*push)->result();
  return result.ok() ? Status()
                     : error(result.code(), fmt::format("{}: {}", remote, result.error().message));
}

Status AdbDevice::pull(const std::string& remote, const std::string& path, uint64_t most) const {
  Result<attach::Socket> socket = client_.open(serial_, "sync:");
  if (!socket.ok()) return socket.error();
  const Result<std::shared_ptr<FilePull>> pull =
      FilePull::start(std::move(*socket), remote, path, most);
  if (!pull.ok()) return pull.error();
  while (!(*pull)->result()) {
    const uint64_t before = (*pull)->received();
    const Status waited = client_.io().wait(
        [&] { return (*pull)->result().has_value() || (*pull)->received() != before; }, kSyncStall,
        "copying " + remote);
    if (!waited.ok()) {
      (*pull)->close();
      return error(waited.code(), waited.error().message);
    }
  }
  const Status& result = *(*pull)->result();
  return result.ok() ? Status()
                     : error(result.code(), fmt::format("{}: {}", remote, result.error().message));
}

}  // namespace collect::ctl
