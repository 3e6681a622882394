#include "daemon/ctl/record/android/app/app_preparation.h"

#include <fmt/core.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/ctl/control/messages/text.h"

namespace collect::ctl {
namespace {

constexpr int kLocked = 73;
constexpr std::chrono::milliseconds kLockBound{10'000};
constexpr uint32_t kPushedMode = 0100600;
constexpr int kRecordVersion = 1;

std::string phone_path(const std::string& package, const std::string& ending) {
  return fmt::format("{}/{}{}", kPhoneFolder, package, ending);
}

// adbd gives its shells an umask of 0: without it every app on the phone may write what we put
// down.
constexpr char kOursAlone[] = "umask 077; ";

// As run-as starts it, in the app's data and as its user.
std::string in_app(const std::string& package, const std::string& command) {
  return fmt::format("run-as {} sh -c {}", package, shell_word(kOursAlone + command));
}

// The shell that holds the lock says so; one that does not get it ends by itself.
struct LockAttempt {
  attach::ShellOutput said;
  std::optional<Status> end;

  bool is_held() const { return !said.output.empty(); }
};

// Runs the commands in order; the first that fails does not keep the others from running.
Status run_all(const AdbDevice& device, const std::vector<std::string>& commands) {
  Status first;
  for (const std::string& command : commands) {
    const Result<std::string> said = device.output_of(command);
    if (!said.ok() && first.ok()) first = said.error();
  }
  return first;
}

std::string record_text(const std::string& package, const std::vector<std::string>& undo) {
  nlohmann::ordered_json json;
  json["version"] = kRecordVersion;
  json["package"] = package;
  json["undo"] = undo;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<std::vector<std::string>> undo_commands(const std::string& record) {
  const auto json = nlohmann::json::parse(record, nullptr, false);
  if (!json.is_object() || !json.contains("undo") || !json["undo"].is_array()) return std::nullopt;
  std::vector<std::string> commands;
  for (const auto& command : json["undo"]) {
    if (!command.is_string()) return std::nullopt;
    commands.push_back(command.get<std::string>());
  }
  return commands;
}

}  // namespace

// ---- the lock

Result<std::unique_ptr<AppLock>> AppLock::take(const AdbDevice& device,
                                               const std::string& package) {
  const std::string file = phone_path(package, ".lock");
  // The shell goes with our connection, and the lock with the shell. Its redirection is that of a
  // group, because Android's shell keeps what `exec` opens to itself. Its last owner may remove the
  // file meanwhile: then it is tried again.
  const std::string command = fmt::format(
      "{}mkdir -p {}; {{ flock -n 9 || exit 73; [ /proc/self/fd/9 -ef {} ] || exit 1; echo held; "
      "exec cat; }} 9<>{}",
      kOursAlone, kPhoneFolder, file, file);
  for (int i = 0; i < kLockAttempts; ++i) {
    const auto attempt = std::make_shared<LockAttempt>();
    Result<std::shared_ptr<ShellStream>> shell = device.follow(
        command, [attempt](attach::ShellPacket packet) { attempt->said.take(std::move(packet)); },
        [attempt](const Status& status) { attempt->end = status; });
    if (!shell.ok()) return shell.error();
    const Status waited =
        device.client().io().wait([&] { return attempt->is_held() || attempt->end.has_value(); },
                                  kLockBound, fmt::format("{}: locking {}", device.serial(), file));
    if (!waited.ok()) return waited.error();
    if (attempt->is_held()) return std::unique_ptr<AppLock>(new AppLock(std::move(*shell)));
    if (!attempt->end->ok()) return attempt->end->error();
    if (attempt->said.exit_code == kLocked) {
      return Error{
          Code::kAlreadyExists,
          fmt::format("another collectctl has {} on {} under way: wait until it ends, or end it",
                      package, device.serial())};
    }
  }
  return Error{Code::kIo,
               fmt::format("{}: {} can't be locked; is there room on it?", device.serial(), file)};
}

// ---- the record

Result<bool> undo_by_record(const AdbDevice& device, const std::string& package) {
  const std::string file = phone_path(package, ".json");
  const auto record = device.shell("cat " + file);
  if (!record.ok()) return record.error();
  if (record->exit_code != 0) return false;
  const auto commands = undo_commands(record->output);
  if (!commands) {
    return Error{Code::kDamaged,
                 fmt::format("{}: {} is no record of changes; look at it, and remove it",
                             device.serial(), file)};
  }
  COLLECT_TRY(run_all(device, *commands));
  // The record last: until then the next run tries it again.
  COLLECT_TRY(run_all(device, {"rm -f " + file}));
  return true;
}

Status remove_lock(const AdbDevice& device, const std::string& package) {
  return run_all(device, {fmt::format("rm -f {} {} && {{ rmdir {} 2> /dev/null || true; }}",
                                      phone_path(package, ".json.new"),
                                      phone_path(package, ".lock"), kPhoneFolder)});
}

// ---- the changes

std::string AppPreparation::wrap_value() const {
  // logwrapper brings what the agent says to logcat, where there is room for the word.
  const std::string value = fmt::format("sh {}/wrap", agent_folder());
  const std::string logged = "logwrapper " + value;
  return logged.size() <= kMaxPropertyBytes ? logged : value;
}

Status AppPreparation::begin() {
  const std::string& package = app_.package;
  const std::string property = "wrap." + package;
  std::vector<std::string> undo;
  if (sets_property_) {
    if (wrap_value().size() > kMaxPropertyBytes) {
      return Error{Code::kLimit,
                   fmt::format("the name {} is too long for {}, which holds {} bytes: put wrap.sh "
                               "into the APK (deploy/android/README.md)",
                               package, property, kMaxPropertyBytes)};
    }
    const Result<std::string> before = device_.output_of("getprop " + property);
    if (!before.ok()) return before.error();
    if (!before->empty()) {
      return Error{Code::kAlreadyExists,
                   fmt::format("{}: {} is {} already, which is not ours: adb shell setprop {} ''",
                               device_.serial(), property, printable(*before), property)};
    }
    undo.push_back(fmt::format("[ \"$(getprop {})\" != {} ] || setprop {} ''", property,
                               shell_word(wrap_value()), property));
  }
  // What was uninstalled meanwhile has taken its data along.
  undo.push_back(fmt::format("{} || ! pm path {} > /dev/null",
                             in_app(package, "rm -rf collect cache/collect"), package));
  undo.push_back("rm -f " + phone_path(package, ".so"));
  const std::string record = phone_path(package, ".json");
  const Result<std::string> written = device_.output_of(
      kOursAlone + fmt::format("cat > {}.new && mv {}.new {}", record, record, record),
      record_text(package, undo));
  return written.ok() ? Status() : written.error();
}

Status AppPreparation::undo() {
  const Result<bool> undone = undo_by_record(device_, app_.package);
  if (!undone.ok()) return undone.error();
  return remove_lock(device_, app_.package);
}

Status AppPreparation::copy_agent(const std::string& library,
                                  const AdbDevice::OnProgress& on_progress) {
  return copy_file(library, "libcollect_agent.so", on_progress);
}

Status AppPreparation::copy_plans(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    COLLECT_TRY(copy_file(entry.path(), "plans/" + entry.path().filename().string(), nullptr));
  }
  if (error) return Error{Code::kIo, fmt::format("{}: {}", folder, error.message())};
  return {};
}

// What is pushed is the shell's; what is in the app's data has to be the app's own.
Status AppPreparation::copy_file(const std::string& path, const std::string& name,
                                 const AdbDevice::OnProgress& on_progress) {
  const std::string pushed = phone_path(app_.package, ".so");
  COLLECT_TRY(device_.push(path, pushed, kPushedMode, on_progress));
  const Result<std::string> copied = device_.output_of(fmt::format(
      "cat {} | {} && rm -f {}", pushed,
      in_app(app_.package, "mkdir -p collect/plans cache/collect && cat > collect/" + name),
      pushed));
  return copied.ok() ? Status() : copied.error();
}

Status AppPreparation::into_app(const std::string& name, const std::string& text) {
  const Result<std::string> written = device_.output_of(
      in_app(app_.package, "mkdir -p collect cache/collect && cat > collect/" + name), text);
  return written.ok() ? Status() : written.error();
}

Status AppPreparation::write_token(const std::string& token) {
  return into_app("token", token + "\n");
}

Status AppPreparation::write_variables(const std::vector<std::string>& variables) {
  std::string text;
  for (const std::string& entry : variables) {
    const size_t at = entry.find('=');
    text += fmt::format("export {}={}\n", entry.substr(0, at), shell_word(entry.substr(at + 1)));
  }
  return into_app("variables", text);
}

Status AppPreparation::set_wrap() {
  const std::string folder = agent_folder();
  COLLECT_TRY(into_app(
      "wrap",
      fmt::format(
          "#!/system/bin/sh\n. {}/variables\nexport "
          "LD_PRELOAD=\"{}/libcollect_agent.so${{LD_PRELOAD:+:$LD_PRELOAD}}\"\nexec \"$@\"\n",
          folder, folder)));
  const std::string property = "wrap." + app_.package;
  const auto set = device_.shell(
      fmt::format("setprop {} {}; getprop {}", property, shell_word(wrap_value()), property));
  if (!set.ok()) return set.error();
  // setprop says nothing on some phones that refuse.
  if (set->output == wrap_value() + "\n") return {};
  return Error{
      Code::kPermission,
      fmt::format(
          "{} refuses the property {}{}: put wrap.sh into the APK (deploy/android/README.md)",
          device_.serial(), property,
          set->errors.empty() ? "" : fmt::format(" ({})", printable_sentence(set->errors)))};
}

}  // namespace collect::ctl
