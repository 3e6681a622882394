#include "daemon/ctl/record/android/android_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/connection/credential_files.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/android/adb/adb_client.h"
#include "daemon/ctl/record/android/app/app_preparation.h"
#include "daemon/ctl/record/android/app/app_process.h"
#include "daemon/ctl/record/android/app/app_watch.h"
#include "daemon/ctl/record/android/app/library_pull.h"
#include "daemon/ctl/record/android/phone_agent.h"
#include "daemon/ctl/record/android/phone_variables.h"
#include "daemon/ctl/record/phones/app_recording.h"
#include "daemon/ctl/record/run/run_command.h"

namespace collect::ctl {
namespace {

using End = AppRecording::End;

// How much of the agent is on the phone, on a terminal's line.
AdbDevice::OnProgress progress_line(const AndroidOptions& options, std::ostream& err) {
  if (options.quiet || options.json) return nullptr;
  return [&err, shown = uint64_t{0}](uint64_t sent, uint64_t total) mutable {
    // Four lines at most, and none for what is there at once.
    if (total < (4u << 20)) return;
    const uint64_t quarter = sent * 4 / total;
    if (quarter == shown) return;
    shown = quarter;
    err << "collectctl: pushed " << short_bytes(sent) << " of " << short_bytes(total) << "\n";
  };
}

AppWatch::OnLine log_lines(const AndroidOptions& options, std::ostream& err) {
  if (options.quiet || options.json) return nullptr;
  return [&err](const std::string& line) {
    err << "collectctl: phone: " << printable_sentence(line) << "\n";
  };
}

std::string device_text(const AdbDevice& device) {
  return printable(device.serial()) +
         (device.model().empty() ? "" : fmt::format(" ({})", printable(device.model())));
}

std::string no_agent_text(End end, const AppWatch& watch, const std::string& package) {
  if (end == End::kInterrupted) return "it was ended before the app's agent reached the collector";
  if (end == End::kAppEnded) {
    return std::string(watch.was_seen() ? "the app ended" : "the app did not start") +
           " before its agent reached the collector: `adb logcat` says why";
  }
  return fmt::format(
      "no agent of {} reached the collector within {} s: `adb logcat` may say why its library was "
      "not loaded",
      package, kAgentBound.count() / 1000);
}

// One command's way to a device, and the words for what fails.
class AndroidPhone {
 public:
  AndroidPhone(const AndroidOptions& options, JobSignals& signals)
      : interruption_(signals), options_(options) {}

  // The device that is meant; its shell can be used.
  Status connect() {
    const auto address = attach::adb_address(
        "auto", [](const char* name) { return static_cast<const char*>(std::getenv(name)); });
    if (!address.ok()) return address.error();
    client_.emplace(*address);
    interruptible(true);
    Result<AdbDevice> device =
        AdbDevice::choose(*client_, options_.serial, std::getenv("ANDROID_SERIAL"));
    if (!device.ok()) return device.error();
    device_.emplace(std::move(*device));
    return device_->check_shell();
  }
  // What undoes has to come to its end.
  void interruptible(bool is) {
    client_->io().set_interrupted(is ? WaitingIo::Predicate([this] { return interruption_.look(); })
                                     : WaitingIo::Predicate());
  }
  const AdbDevice& device() const { return *device_; }
  Interruption& interruption() { return interruption_; }

 private:
  Interruption interruption_;
  const AndroidOptions& options_;
  std::optional<AdbClient> client_;
  std::optional<AdbDevice> device_;
};

struct Target {
  AndroidApp app;
  std::string component;
  std::string library;
};

// The agent into the app, and the app started with it.
Status prepare(const AndroidOptions& options, const AdbDevice& device, const Target& target,
               const AgentSettings& settings, AppPreparation& preparation, std::ostream& err) {
  Result<std::vector<std::string>> variables =
      phone_variables(settings, preparation.spool_folder());
  if (!variables.ok()) return variables.error();
  Result<std::string> token = std::string();
  if (!options.token_file.empty()) token = read_token("--agent-token-file", options.token_file);
  if (!token.ok()) return token.error();
  COLLECT_TRY(preparation.begin());
  if (!token->empty()) {
    COLLECT_TRY(preparation.write_token(*token));
    variables->push_back("COLLECT_TOKEN_FILE=" + preparation.token_path());
  }
  if (!target.app.has_wrap) {
    COLLECT_TRY(preparation.copy_agent(target.library, progress_line(options, err)));
  }
  COLLECT_TRY(preparation.write_variables(*variables));
  if (!target.app.has_wrap) COLLECT_TRY(preparation.set_wrap());
  return restart_app(device, target.app.package, target.component);
}

Result<Target> look_at_target(const AndroidOptions& options, const AdbDevice& device) {
  const Result<PhoneFacts> phone = look_at_phone(device);
  if (!phone.ok()) return phone.error();
  COLLECT_TRY(check_sdk(device, *phone));
  Target target;
  Result<AndroidApp> app = look_at_app(device, *phone, options.package);
  if (!app.ok()) return app.error();
  target.app = std::move(*app);
  if (target.app.has_wrap && !target.app.wrap_reads_variables) {
    return Error{Code::kUnsupported,
                 fmt::format("the APK of {} has a wrap.sh of its own, which goes before ours: take "
                             "it out, or take that of deploy/android",
                             options.package)};
  }
  Result<std::string> component = find_activity(device, options.package, options.activity);
  if (!component.ok()) return component.error();
  target.component = std::move(*component);
  if (target.app.has_wrap) return target;
  Result<std::string> library = find_phone_agent(target.app.abi, options.library);
  if (!library.ok()) return library.error();
  target.library = std::move(*library);
  return target;
}

// Not being able to undo is trouble, but none of the recording.
std::string undo_trouble(AndroidPhone& phone, AppPreparation& preparation,
                         const std::string& package) {
  phone.interruptible(false);
  const Status undone = preparation.undo();
  if (undone.ok()) return "";
  return fmt::format(
      "what was changed on the phone is still there ({}): collectctl android undo {} undoes it",
      undone.error().message, package);
}

// The agent is in the app already, and listens.
int attach_prepared(const AndroidOptions& options, AndroidPhone& phone, JobSignals& signals,
                    std::ostream& err) {
  const AdbDevice& device = phone.device();
  Result<RunCollector> collector =
      find_collector({options.root, options.control, Phones::kAndroid}, signals);
  if (!collector.ok()) return run_failed(options, err, collector.error());
  if (!options.quiet && !options.json) {
    err << "collectctl: " << options.package << " on " << device_text(device) << "\n";
    announce(*collector, false, err);
  }
  Client client(collector->control);
  const Result<std::vector<api::Session>> earlier = client.sessions("");
  if (!earlier.ok()) return run_failed(options, err, earlier.error());
  SealWait wait;
  for (const api::Session& session : *earlier) {
    if (is_sealed(session)) wait.before.insert(session.name());
  }
  AppWatch watch(device, options.package, log_lines(options, err));
  std::ostringstream discarded;
  AppRecording recording(watch, client, wait, options.quiet || options.json ? discarded : err);
  recording.start_idle_agent();
  const End end = recording.follow(phone.interruption());
  RunOutcome outcome;
  outcome.app_ending = ending_text(device_text(device), end);
  RunSessions followed = recording.finish(end, signals);
  if (!followed.agent_seen && followed.trouble.empty()) {
    followed.trouble = no_agent_text(end, watch, options.package);
  }
  return conclude(options, options.package, *collector, std::move(outcome), std::move(followed),
                  signals, err);
}

// A running app, the agent for it, and plans for its code.
struct RunningTarget {
  AndroidApp app;
  AppProcess process;
  std::string library;
};

Result<RunningTarget> look_at_running(const AndroidOptions& options, const AdbDevice& device) {
  const Result<PhoneFacts> phone = look_at_phone(device);
  if (!phone.ok()) return phone.error();
  COLLECT_TRY(check_sdk(device, *phone));
  RunningTarget target;
  Result<AndroidApp> app = look_at_app(device, *phone, options.package);
  if (!app.ok()) return app.error();
  target.app = std::move(*app);
  Result<AppProcess> process = look_at_process(device, target.app);
  if (!process.ok()) return process.error();
  target.process = std::move(*process);
  if (target.process.has_agent) return target;
  if (target.app.abi != kChangeableAbi) {
    return Error{
        Code::kUnsupported,
        fmt::format("{} runs as {}: only on {} can the code of an app be changed while it runs. "
                    "Build it with -finstrument-functions, and use collectctl android run",
                    options.package, target.app.abi, kChangeableAbi)};
  }
  Result<std::string> library = find_phone_agent(target.app.abi, options.library);
  if (!library.ok()) return library.error();
  target.library = std::move(*library);
  return target;
}

// The agent and the plans into the app that runs, and the code changed there.
Status prepare_running(const AndroidOptions& options, const AdbDevice& device,
                       const RunningTarget& target, const patch::ModulePlans& plans,
                       const AgentSettings& settings, AppPreparation& preparation,
                       std::ostream& err) {
  Result<std::vector<std::string>> variables =
      phone_variables(settings, preparation.spool_folder());
  if (!variables.ok()) return variables.error();
  variables->push_back("COLLECT_PLANS=" + preparation.plans_folder());
  Result<std::string> token = std::string();
  if (!options.token_file.empty()) token = read_token("--agent-token-file", options.token_file);
  if (!token.ok()) return token.error();
  COLLECT_TRY(preparation.begin());
  if (!token->empty()) {
    COLLECT_TRY(preparation.write_token(*token));
    variables->push_back("COLLECT_TOKEN_FILE=" + preparation.token_path());
  }
  COLLECT_TRY(preparation.copy_agent(target.library, progress_line(options, err)));
  COLLECT_TRY(preparation.copy_plans(plans.folder.path()));
  const Result<std::string> attached =
      attach_agent_to(device, target.app, target.process.pid, preparation.agent_path(),
                      preparation.answer_path(), *variables);
  return attached.ok() ? Status() : attached.error();
}

void say_plans(const patch::ModulePlans& plans, std::ostream& err) {
  for (const std::string& sentence : plans.left_out) {
    err << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  err << "collectctl: records " << counted(plans.functions, "function") << " of "
      << (plans.modules.size() == 1
              ? printable(std::filesystem::path(plans.modules.front()).filename().string())
              : counted(plans.modules.size(), "module"))
      << "\n";
}

int attach_dynamic(const AndroidOptions& options, AndroidPhone& phone, JobSignals& signals,
                   std::ostream& err) {
  const AdbDevice& device = phone.device();
  const Result<RunningTarget> target = look_at_running(options, device);
  if (!target.ok()) return run_failed(options, err, target.error());
  const bool speaks = !options.quiet && !options.json;
  if (target->process.has_agent) {
    if (speaks) {
      err << "collectctl: " << options.package
          << " has the agent in it already: what that records is recorded, with its settings\n";
    }
    return attach_prepared(options, phone, signals, err);
  }
  const auto lock = AppLock::take(device, options.package);
  if (!lock.ok()) return run_failed(options, err, lock.error());
  const Result<bool> leftovers = undo_by_record(device, options.package);
  if (!leftovers.ok()) return run_failed(options, err, leftovers.error());
  AppPreparation preparation(device, target->app, AgentEntry::kRunning);
  const auto give_up = [&](const Error& error) {
    failed(err, error, options.json);
    const std::string trouble = undo_trouble(phone, preparation, options.package);
    if (!trouble.empty()) err << "collectctl: " << printable_sentence(trouble) << "\n";
    return kExitRunFailed;
  };
  std::ostringstream discarded;
  std::ostream& messages = speaks ? err : discarded;
  LibraryPull libraries(device, target->app, messages);
  const auto plans = plans_of_app(target->process, target->app, options.dynamic, libraries);
  if (!plans.ok()) return give_up(plans.error());
  Result<RunCollector> collector = find_collector(
      {options.root, options.control, Phones::kAndroid, options.token_file}, signals);
  if (!collector.ok()) return give_up(collector.error());
  AgentSettings settings = options.agent;
  settings.tag = new_run_tag();
  messages << "collectctl: " << options.package << " on " << device_text(device) << "\n";
  announce(*collector, settings.start_idle, messages);
  const Status prepared =
      prepare_running(options, device, *target, *plans, settings, preparation, err);
  if (!prepared.ok()) return give_up(prepared.error());
  say_plans(*plans, messages);
  Client client(collector->control);
  AppWatch watch(device, options.package, log_lines(options, err));
  SealWait wait;
  wait.tag = settings.tag;
  AppRecording recording(watch, client, wait, messages);
  recording.set_limits(options.agent);
  const End end = recording.follow(phone.interruption());
  RunOutcome outcome;
  outcome.dynamic = outcome.attached = true;
  outcome.app_ending = ending_text(device_text(device), end);
  RunSessions followed = recording.finish(end, signals);
  // Later than of a run: the agent reads its token and writes its spool as long as it ships.
  outcome.trouble = undo_trouble(phone, preparation, options.package);
  if (!followed.agent_seen && followed.trouble.empty()) {
    followed.trouble = no_agent_text(end, watch, options.package);
  }
  return conclude(options, options.package, *collector, std::move(outcome), std::move(followed),
                  signals, err,
                  [&libraries](const std::string& session) { return libraries.fetch(session); });
}

}  // namespace

int android_run(const AndroidOptions& options, std::ostream& err) {
  JobSignals signals;
  AndroidPhone phone(options, signals);
  if (const Status status = phone.connect(); !status.ok())
    return run_failed(options, err, status.error());
  const AdbDevice& device = phone.device();
  const Result<Target> target = look_at_target(options, device);
  if (!target.ok()) return run_failed(options, err, target.error());
  const auto lock = AppLock::take(device, options.package);
  if (!lock.ok()) return run_failed(options, err, lock.error());
  const Result<bool> leftovers = undo_by_record(device, options.package);
  if (!leftovers.ok()) return run_failed(options, err, leftovers.error());
  if (*leftovers && !options.quiet) {
    err << "collectctl: undid what an earlier run left on " << device_text(device) << "\n";
  }
  AppPreparation preparation(device, target->app);
  const auto give_up = [&](const Error& error) {
    failed(err, error, options.json);
    const std::string trouble = undo_trouble(phone, preparation, options.package);
    if (!trouble.empty()) err << "collectctl: " << printable_sentence(trouble) << "\n";
    return kExitRunFailed;
  };
  Result<RunCollector> collector = find_collector(
      {options.root, options.control, Phones::kAndroid, options.token_file}, signals);
  if (!collector.ok()) return give_up(collector.error());
  AgentSettings settings = options.agent;
  settings.tag = new_run_tag();
  if (!options.quiet && !options.json) {
    err << "collectctl: " << options.package << " on " << device_text(device) << "\n";
    announce(*collector, settings.start_idle, err);
  }
  const Status prepared = prepare(options, device, *target, settings, preparation, err);
  if (!prepared.ok()) return give_up(prepared.error());
  Client client(collector->control);
  AppWatch watch(device, options.package, log_lines(options, err));
  SealWait wait;
  wait.tag = settings.tag;
  std::ostringstream discarded;
  AppRecording recording(watch, client, wait, options.quiet || options.json ? discarded : err);
  recording.set_limits(options.agent);
  const End end = recording.follow(phone.interruption());
  RunOutcome outcome;
  outcome.trouble = undo_trouble(phone, preparation, options.package);
  outcome.app_ending = ending_text(device_text(device), end);
  RunSessions followed = recording.finish(end, signals);
  if (!followed.agent_seen && followed.trouble.empty()) {
    followed.trouble = no_agent_text(end, watch, options.package);
  }
  LibraryPull libraries(device, target->app, options.quiet || options.json ? discarded : err);
  return conclude(options, options.package, *collector, std::move(outcome), std::move(followed),
                  signals, err,
                  [&libraries](const std::string& session) { return libraries.fetch(session); });
}

int android_attach(const AndroidOptions& options, std::ostream& err) {
  JobSignals signals;
  if (const Status status = check_package_name(options.package); !status.ok()) {
    return run_failed(options, err, status.error());
  }
  AndroidPhone phone(options, signals);
  if (const Status status = phone.connect(); !status.ok())
    return run_failed(options, err, status.error());
  if (!options.dynamic.empty()) return attach_dynamic(options, phone, signals, err);
  const Result<pid_t> running = find_process(phone.device(), options.package);
  if (!running.ok()) return run_failed(options, err, running.error());
  return attach_prepared(options, phone, signals, err);
}

int android_undo(const AndroidOptions& options, std::ostream& out, std::ostream& err) {
  JobSignals signals;
  if (const Status status = check_package_name(options.package); !status.ok()) {
    return failed(err, status.error());
  }
  AndroidPhone phone(options, signals);
  if (const Status status = phone.connect(); !status.ok()) return failed(err, status.error());
  const auto lock = AppLock::take(phone.device(), options.package);
  if (!lock.ok()) return failed(err, lock.error());
  const Result<bool> undone = undo_by_record(phone.device(), options.package);
  if (!undone.ok()) return failed(err, undone.error());
  const Status removed = remove_lock(phone.device(), options.package);
  if (!removed.ok()) return failed(err, removed.error());
  out << (*undone ? "undid what was changed for " : "there is nothing to undo for ")
      << options.package << " on " << device_text(phone.device()) << "\n";
  return kExitOk;
}

}  // namespace collect::ctl
