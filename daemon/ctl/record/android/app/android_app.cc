#include "daemon/ctl/record/android/app/android_app.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

constexpr size_t kMaxPackageBytes = 223;  // as Android has it
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
    lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The folder that Android unpacks an ABI's libraries into.
std::string library_folder(const std::string& abi) {
  if (abi == "arm64-v8a") return "arm64";
  if (abi.starts_with("armeabi")) return "arm";
  return abi;
}

std::string name_on(const AdbDevice& device, const std::string& package) {
  return fmt::format("{} on {}", package, device.serial());
}

// The package manager's word for the ABI that the app runs as; empty: none, or it does not say.
Result<std::string> abi_of(const AdbDevice& device, const std::string& package) {
  const auto said =
      device.shell(fmt::format("dumpsys package {} | grep -m 1 primaryCpuAbi=", package));
  if (!said.ok()) return said.error();
  const size_t at = said->output.find('=');
  if (at == std::string::npos) return std::string();
  std::string abi = lines_of(std::string_view(said->output).substr(at + 1)).front();
  return abi == "null" ? std::string() : abi;
}

Status look_for_wrap(const AdbDevice& device, AndroidApp& app) {
  const std::string& folder = app.code_directory;
  if (folder.empty() || folder.find('\'') != std::string::npos) return {};
  const auto said = device.shell(fmt::format("run-as {} cat '{}/lib/{}/wrap.sh'", app.package,
                                             folder, library_folder(app.abi)));
  if (!said.ok()) return said.error();
  app.has_wrap = said->exit_code == 0;
  app.wrap_reads_variables = said->output.find("collect/variables") != std::string::npos;
  return {};
}

}  // namespace

Status check_package_name(const std::string& package) {
  const bool is_name = !package.empty() && package.size() <= kMaxPackageBytes &&
                       package.find_first_not_of(kNameCharacters) == std::string::npos &&
                       package.front() != '.';
  if (is_name) return {};
  return Error{Code::kInvalidArgument,
               in_quotes(package) +
                   " is no package of Android: give a name such as "
                   "com.example.app, as `adb shell pm list packages` has them"};
}

Result<PhoneFacts> look_at_phone(const AdbDevice& device) {
  const Result<std::string> said = device.output_of(
      "getprop ro.product.cpu.abi; getprop ro.build.version.sdk; getprop ro.product.model");
  if (!said.ok()) return said.error();
  const std::vector<std::string> lines = lines_of(*said);
  PhoneFacts phone;
  if (lines.size() >= 2) {
    phone.abi = lines[0];
    std::from_chars(lines[1].data(), lines[1].data() + lines[1].size(), phone.sdk);
  }
  if (lines.size() >= 3) phone.model = lines[2];
  if (!phone.abi.empty() && phone.sdk != 0) return phone;
  return Error{Code::kUnsupported, device.serial() + ": it does not say what Android it runs"};
}

Status check_sdk(const AdbDevice& device, const PhoneFacts& phone) {
  if (phone.sdk >= kLeastSdk) return {};
  return Error{Code::kUnsupported, fmt::format("{} runs Android of API level {}; the agent needs "
                                               "{} (Android 10): take a newer phone or emulator",
                                               device.serial(), phone.sdk, kLeastSdk)};
}

Result<AndroidApp> look_at_app(const AdbDevice& device, const PhoneFacts& phone,
                               const std::string& package) {
  COLLECT_TRY(check_package_name(package));
  const auto path = device.shell("pm path " + package);
  if (!path.ok()) return path.error();
  constexpr std::string_view kPrefix = "package:";
  const std::vector<std::string> lines = lines_of(path->output);
  if (path->exit_code != 0 || lines.empty() || !lines[0].starts_with(kPrefix)) {
    return Error{Code::kNotFound, name_on(device, package) +
                                      " is not installed: install it with `adb install`, or see "
                                      "`adb shell pm list packages`"};
  }
  const auto home = device.shell(fmt::format("run-as {} pwd", package));
  if (!home.ok()) return home.error();
  if (home->exit_code != 0) {
    const std::vector<std::string> words = lines_of(home->errors + home->output);
    if (home->errors.find("not debuggable") != std::string::npos) {
      return Error{Code::kPermission,
                   name_on(device, package) +
                       " is not debuggable: install its debug build, or let the app start the "
                       "agent by itself (deploy/android/README.md)"};
    }
    return Error{Code::kPermission,
                 fmt::format("{} can't be entered by run-as: {}", name_on(device, package),
                             words.empty() ? "it does not say why" : words.front())};
  }
  AndroidApp app;
  app.package = package;
  const std::vector<std::string> folder = lines_of(home->output);
  if (folder.empty() || !folder[0].starts_with('/') ||
      folder[0].find_first_of(" '\"\\$`;&|<>()*?[]") != std::string::npos) {
    return Error{Code::kUnsupported,
                 name_on(device, package) + ": run-as does not say where the app's data is"};
  }
  app.data_directory = folder[0];
  const Result<std::string> abi = abi_of(device, package);
  if (!abi.ok()) return abi.error();
  app.abi = abi->empty() ? phone.abi : *abi;
  const std::string apk = lines[0].substr(kPrefix.size());
  app.code_directory = apk.substr(0, apk.rfind('/'));
  COLLECT_TRY(look_for_wrap(device, app));
  return app;
}

Result<std::string> find_activity(const AdbDevice& device, const std::string& package,
                                  const std::string& activity) {
  if (!activity.empty()) {
    const std::string component = activity.find('/') == std::string::npos
                                      ? fmt::format("{}/{}", package, activity)
                                      : activity;
    if (component.starts_with(package + "/") &&
        component.find_first_not_of(std::string(kNameCharacters) + "/$") == std::string::npos) {
      return component;
    }
    return Error{Code::kInvalidArgument,
                 fmt::format("{} is no activity of {}: give a name such as .MainActivity",
                             in_quotes(activity), package)};
  }
  const auto said = device.shell("cmd package resolve-activity --brief " + package);
  if (!said.ok()) return said.error();
  for (const std::string& line : lines_of(said->output)) {
    if (line.starts_with(package + "/")) return line;
  }
  return Error{Code::kNotFound, name_on(device, package) +
                                    " has no activity that a launcher would start: name one, such "
                                    "as .MainActivity"};
}

Status restart_app(const AdbDevice& device, const std::string& package,
                   const std::string& component) {
  // In quotes: names of inner classes have a dollar sign.
  const auto said =
      device.shell(fmt::format("am force-stop {} && am start -W -n '{}'", package, component));
  if (!said.ok()) return said.error();
  for (const std::string& line : lines_of(fmt::format("{}\n{}", said->output, said->errors))) {
    if (line.starts_with("Error")) {
      return Error{Code::kNotFound,
                   fmt::format("{}: {} did not start: {}", device.serial(), component, line)};
    }
  }
  if (said->exit_code == 0) return {};
  return Error{Code::kIo, fmt::format("{}: {} did not start: am ended with {}", device.serial(),
                                      component, said->exit_code)};
}

}  // namespace collect::ctl
