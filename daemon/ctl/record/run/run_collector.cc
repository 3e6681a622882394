#include "daemon/ctl/record/run/run_collector.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/record/program/program_paths.h"

namespace collect::ctl {
namespace {

// A collector that runs answers at once; nothing else should hold up the program for long.
constexpr std::chrono::milliseconds kProbeDeadline{1000};

// A run that was killed leaves its collector behind, which seals before it ends.
constexpr std::chrono::milliseconds kRootBound{5'000};
constexpr std::chrono::milliseconds kNoWait{0};  // there are other directories

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::absolute(path, error);
  return error ? path : resolved.lexically_normal().string();
}

// The collector's word for what it reaches them through, and its flag.
const char* via_of(Phones phones) {
  return phones == Phones::kIos ? "usbmux" : "adb";
}

// One that was started with adb = "off" finds nothing on Android phones.
Result<bool> finds_phones(const ControlTarget& control, Phones phones) {
  if (phones == Phones::kNone) return true;
  const auto devices = Client(control).devices("");
  if (!devices.ok()) return devices.error();
  return std::any_of(
      devices->servers().begin(), devices->servers().end(),
      [phones](const api::DeviceServer& server) { return server.via() == via_of(phones); });
}

Error finds_none(const std::string& collector, Phones phones) {
  return {Code::kUnsupported,
          fmt::format(
              "the collector at {} looks for no {}: start it with --{} auto, or use -o DIRECTORY",
              collector, phones == Phones::kIos ? "iPhones" : "Android devices", via_of(phones))};
}

Error serves_no_page(const std::string& collector) {
  return {Code::kUnsupported,
          fmt::format("the collector at {} runs already, and its live page is its own: start it "
                      "with --web, or let this run start another one with -o DIRECTORY",
                      collector)};
}

}  // namespace

Result<RunCollector> find_collector(const CollectorRequest& wanted, JobSignals& signals) {
  RunCollector collector;
  if (wanted.root.empty()) {
    collector.control = wanted.control;
    if (collector.control.address.empty()) collector.control.address = default_control_address();
    const Result<api::Stats> stats = Client(collector.control).stats(kProbeDeadline);
    Result<bool> finds = true;
    if (stats.ok()) finds = finds_phones(collector.control, wanted.phones);
    if (!finds.ok()) return finds.error();
    if (stats.ok() && *finds && wanted.web) return serves_no_page(collector.control.address);
    if (stats.ok() && *finds) {
      collector.ingest = dialable(stats->ingest_address());
      collector.root = stats->root();
      return collector;
    }
    if (!wanted.control.address.empty()) {
      if (!stats.ok()) return stats.error();
      return finds_none(wanted.control.address, wanted.phones);
    }
  }
  const Result<std::string> program = find_collectord();
  if (!program.ok()) return program.error();
  const std::string address =
      wanted.control.address.empty() ? "127.0.0.1:0" : wanted.control.address;
  // It is there for one program, and does not come back.
  const auto looks_for = [&wanted](Phones phones) {
    return wanted.phones == phones ? "auto" : "off";
  };
  std::vector<std::string> attach = {"--adb",          looks_for(Phones::kAndroid),
                                     "--usbmux",       looks_for(Phones::kIos),
                                     "--seal-at-stop", "true"};
  if (!wanted.token_file.empty()) attach.insert(attach.end(), {"--token-file", wanted.token_file});
  if (!wanted.guest_token_file.empty()) {
    attach.insert(attach.end(), {"--guest-token-file", wanted.guest_token_file});
  }
  if (wanted.web) attach.insert(attach.end(), {"--web", "127.0.0.1:0"});
  const std::chrono::milliseconds root_bound = wanted.root.empty() ? kNoWait : kRootBound;
  collector.root = absolute(wanted.root.empty() ? kDefaultRoot : wanted.root);
  auto daemon =
      EmbeddedDaemon::start(*program, collector.root, address, attach, root_bound, signals);
  for (int i = 2; wanted.root.empty() && !daemon.ok() && i <= kMaxDefaultRoots; ++i) {
    if (daemon.code() != Code::kAlreadyExists) break;
    collector.root = absolute(kDefaultRoot + fmt::format("-{}", i));
    daemon = EmbeddedDaemon::start(*program, collector.root, address, attach, root_bound, signals);
  }
  if (!daemon.ok()) return daemon.error();
  collector.embedded = std::move(*daemon);
  collector.ingest = collector.embedded->addresses().ingest;
  collector.control = collector.embedded->addresses().control;
  collector.web = collector.embedded->addresses().web;
  return collector;
}

std::string start_command(const RunCollector& collector) {
  return fmt::format("collectctl --control {} start", collector.control.address);
}

void announce(const RunCollector& collector, bool idle, std::ostream& err) {
  err << "collectctl: " << (collector.embedded ? "recording to " : "recording to the collector in ")
      << collector.root << "\n"
      << "collectctl: control plane: collectctl --control " << collector.control.address
      << " detail start";
  if (collector.control.tls_ca.empty()) {
    err << "    (or grpcurl -plaintext " << collector.control.address << " list)";
  }
  err << "\n";
  if (!collector.web.empty()) err << "collectctl: live page: " << collector.web << "\n";
  if (idle) {
    err << "collectctl: nothing is recorded until someone asks for it: " << start_command(collector)
        << "\n";
  }
  err.flush();
}

}  // namespace collect::ctl
