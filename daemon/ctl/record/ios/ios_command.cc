#include "daemon/ctl/record/ios/ios_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/ios/iphone.h"
#include "daemon/ctl/record/phones/app_recording.h"
#include "daemon/ctl/record/run/run_command.h"

namespace collect::ctl {
namespace {

using End = AppRecording::End;

const char* const kPorts = "tcp:7720-7729";
constexpr size_t kMaxBundleBytes = 155;  // as App Store Connect has it
constexpr std::string_view kBundleCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";

std::string device_prefix(const std::string& serial) {
  return fmt::format("usbmux:{}:", serial);
}

// As far as usbmuxd knows it. Whether an app runs no one says but its agent.
class IphoneApp final : public WatchedApp {
 public:
  // `address` is empty where the collector finds the agent.
  IphoneApp(UsbmuxClient& client, std::string serial, std::string address)
      : client_(client), serial_(std::move(serial)), address_(std::move(address)) {}

  void work_for(std::chrono::milliseconds time) override { client_.io().work_for(time); }
  std::string agent_address() const override { return address_; }
  const std::string& serial() const override { return serial_; }
  bool has_ended() const override { return false; }
  bool is_away() const override { return !client_.has(serial_); }

 private:
  UsbmuxClient& client_;
  const std::string serial_;
  const std::string address_;
};

// One command's way to a device.
class Iphone {
 public:
  explicit Iphone(JobSignals& signals) : interruption_(signals) {
    io_.set_interrupted([this] { return interruption_.look(); });
  }

  Status connect(const std::string& udid) {
    const auto address = usbmuxd_address();
    if (!address.ok()) return address.error();
    client_.emplace(io_, *address);
    COLLECT_TRY(client_->connect());
    const auto device = choose_iphone(*client_, udid);
    if (!device.ok()) return device.error();
    serial_ = device->serial;
    const Result<IphoneFacts> facts = look_at_iphone(*client_, serial_);
    // Nothing of it is needed to record.
    if (!facts.ok()) return facts.code() == Code::kCancelled ? Status(facts.error()) : Status();
    facts_ = *facts;
    return check_ios(serial_, facts_);
  }
  UsbmuxClient& client() { return *client_; }
  Interruption& interruption() { return interruption_; }
  const std::string& serial() const { return serial_; }
  std::string text() const { return iphone_text(serial_, facts_); }

 private:
  Interruption interruption_;
  WaitingIo io_;
  std::optional<UsbmuxClient> client_;
  std::string serial_;
  IphoneFacts facts_;
};

// Names of sealed sessions, and of agents that are gone.
Result<std::set<std::string>> finished_names(Client& collector) {
  std::set<std::string> names;
  const auto sessions = collector.sessions("");
  if (!sessions.ok()) return sessions.error();
  for (const api::Session& session : *sessions) {
    if (is_sealed(session)) names.insert(session.name());
  }
  const auto agents = collector.agents("");
  if (!agents.ok()) return agents.error();
  for (const api::Agent& agent : *agents) {
    if (agent.state() == api::AGENT_STATE_GONE) names.insert(agent.name());
  }
  return names;
}

// What has to be done where Xcode is.
std::string how_to_start(const std::string& udid, const std::string& bundle) {
  const std::string variables =
      fmt::format(R"({{"COLLECT_LISTEN": "{}", "COLLECT_TAG": "{}", "COLLECT_SWITCHES": "on"}})",
                  kPorts, bundle);
  return fmt::format(
      "collectctl: start {} now from Xcode, with these variables in its scheme (Run, Arguments):\n"
      "    COLLECT_LISTEN={}\n"
      "    COLLECT_TAG={}\n"
      "    COLLECT_SWITCHES=on\n"
      "  or on a Mac that is paired with the phone:\n"
      "    xcrun devicectl device process launch --terminate-existing --device {} "
      "--environment-variables '{}' {}\n"
      "  The agent has to be linked into it: deploy/ios/README.md. Ctrl-C ends the wait.\n",
      bundle, kPorts, bundle, shell_word(udid), variables, bundle);
}

// It is shown within a command for a shell.
Status check_bundle(const std::string& bundle) {
  const bool is_name = !bundle.empty() && bundle.size() <= kMaxBundleBytes &&
                       bundle.find_first_not_of(kBundleCharacters) == std::string::npos;
  if (is_name) return {};
  return Error{Code::kInvalidArgument,
               in_quotes(bundle) + " is no bundle identifier: give one such as com.example.app"};
}

// Agents on the device that are not the one that is waited for, once each.
class Others {
 public:
  Others(Client& collector, std::string prefix, std::string bundle, std::ostream& err)
      : collector_(collector), prefix_(std::move(prefix)), bundle_(std::move(bundle)), err_(err) {}

  void say() {
    const auto agents = collector_.agents("");
    if (!agents.ok()) return;
    for (const api::Agent& agent : *agents) {
      const bool is_up = agent.state() == api::AGENT_STATE_CONNECTED ||
                         agent.state() == api::AGENT_STATE_RECORDING;
      if (!is_up || !agent.address().starts_with(prefix_) || agent.tag() == bundle_) continue;
      if (!said_.insert(agent.name()).second) continue;
      err_ << "collectctl: " << printable(agent.process_name()) << " runs there with "
           << (agent.tag().empty() ? "no COLLECT_TAG" : "COLLECT_TAG=" + printable(agent.tag()))
           << ": if it is the app, start it with COLLECT_TAG=" << bundle_
           << ", or use collectctl ios attach\n";
    }
  }

 private:
  Client& collector_;
  const std::string prefix_;
  const std::string bundle_;
  std::ostream& err_;
  std::set<std::string> said_;
};

std::string no_start(const std::string& bundle) {
  return "nothing was recorded: the app was not started with COLLECT_TAG=" + bundle;
}

std::string no_answer(const std::string& address) {
  return fmt::format(
      "nothing was recorded: the agent at {} did not answer the collector; collectctl devices of "
      "the same collector says why",
      address);
}

Result<uint16_t> choose_port(Iphone& phone, uint16_t wanted) {
  if (wanted != 0) return wanted;
  const auto ports = phone.client().find_agents(phone.serial());
  if (!ports.ok()) return ports.error();
  if (ports->size() == 1) return ports->front();
  if (ports->empty()) {
    return Error{Code::kNotFound,
                 fmt::format("no app with an agent runs on {}: start it with COLLECT_LISTEN={} and "
                             "keep it in the foreground, or use collectctl ios run",
                             printable(phone.serial()), kPorts)};
  }
  std::string list;
  for (const uint16_t port : *ports) list += (list.empty() ? "" : ", ") + std::to_string(port);
  return Error{Code::kInvalidArgument,
               fmt::format("agents listen on ports {} of {}: name one by --port", list,
                           printable(phone.serial()))};
}

int finish(const IosOptions& options, const std::string& app, Iphone& phone,
           RunCollector& collector, AppRecording& recording, End end, const std::string& no_agent,
           JobSignals& signals, std::ostream& err) {
  RunOutcome outcome;
  outcome.app_ending = ending_text(phone.text(), end);
  RunSessions followed = recording.finish(end, signals);
  if (!followed.agent_seen && followed.trouble.empty()) followed.trouble = no_agent;
  return conclude(options, app, collector, std::move(outcome), std::move(followed), signals, err);
}

}  // namespace

int ios_run(const IosOptions& options, std::ostream& err) {
  JobSignals signals;
  if (const Status name = check_bundle(options.bundle); !name.ok()) {
    return run_failed(options, err, name.error());
  }
  Iphone phone(signals);
  if (const Status found = phone.connect(options.udid); !found.ok()) {
    return run_failed(options, err, found.error());
  }
  Result<RunCollector> collector =
      find_collector({options.root, options.control, Phones::kIos}, signals);
  if (!collector.ok()) return run_failed(options, err, collector.error());
  Client client(collector->control);
  auto before = finished_names(client);
  if (!before.ok()) return run_failed(options, err, before.error());
  const bool speaks = !options.quiet && !options.json;
  if (speaks) {
    err << "collectctl: " << options.bundle << " on " << phone.text() << "\n";
    announce(*collector, false, err);
    err << how_to_start(phone.serial(), options.bundle);
  }
  SealWait wait;
  wait.tag = options.bundle;
  wait.device = device_prefix(phone.serial());
  wait.before = std::move(*before);
  IphoneApp app(phone.client(), phone.serial(), "");
  std::ostringstream discarded;
  std::ostream& messages = speaks ? err : discarded;
  Others others(client, wait.device, options.bundle, messages);
  AppRecording recording(app, client, wait, messages);
  recording.wait_for_start([&others] { others.say(); });
  recording.start_idle_agent();
  const End end = recording.follow(phone.interruption());
  return finish(options, options.bundle, phone, *collector, recording, end,
                no_start(options.bundle), signals, err);
}

int ios_attach(const IosOptions& options, std::ostream& err) {
  JobSignals signals;
  Iphone phone(signals);
  if (const Status found = phone.connect(options.udid); !found.ok()) {
    return run_failed(options, err, found.error());
  }
  const Result<uint16_t> port = choose_port(phone, options.port);
  if (!port.ok()) return run_failed(options, err, port.error());
  const std::string address = device_prefix(phone.serial()) + attach::port_endpoint(*port);
  Result<RunCollector> collector =
      find_collector({options.root, options.control, Phones::kIos}, signals);
  if (!collector.ok()) return run_failed(options, err, collector.error());
  Client client(collector->control);
  auto before = finished_names(client);
  if (!before.ok()) return run_failed(options, err, before.error());
  const bool speaks = !options.quiet && !options.json;
  if (speaks) {
    err << "collectctl: port " << *port << " of " << phone.text() << "\n";
    announce(*collector, false, err);
  }
  SealWait wait;
  wait.before = std::move(*before);
  IphoneApp app(phone.client(), phone.serial(), address);
  std::ostringstream discarded;
  AppRecording recording(app, client, wait, speaks ? err : discarded);
  recording.start_idle_agent();
  const End end = recording.follow(phone.interruption());
  return finish(options, address, phone, *collector, recording, end, no_answer(address), signals,
                err);
}

}  // namespace collect::ctl
