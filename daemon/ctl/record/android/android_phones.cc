#include "daemon/ctl/record/android/android_phones.h"

#include <fmt/core.h>

#include <cstdlib>
#include <vector>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/android/adb/adb_client.h"
#include "daemon/ctl/record/android/app/android_app.h"
#include "daemon/ctl/record/android/phone_agent.h"

namespace collect::ctl {
namespace {

struct PhoneReport {
  attach::SourceDevice device;
  PhoneFacts facts;
  std::string agent;     // the library's path; empty: none
  std::string obstacle;  // a sentence; empty: apps can be recorded
};

PhoneReport look_at(AdbClient& client, const attach::SourceDevice& found,
                    const std::string& library) {
  PhoneReport report;
  report.device = found;
  if (!found.is_usable) {
    report.obstacle = fmt::format("{}; {}", found.reason, found.advice);
    return report;
  }
  const AdbDevice device(client, found.serial, found.model);
  if (const Status shell = device.check_shell(); !shell.ok()) {
    report.obstacle = shell.error().message;
    return report;
  }
  const Result<PhoneFacts> facts = look_at_phone(device);
  if (!facts.ok()) {
    report.obstacle = facts.error().message;
    return report;
  }
  report.facts = *facts;
  if (const Status sdk = check_sdk(device, *facts); !sdk.ok()) {
    report.obstacle = sdk.error().message;
    return report;
  }
  const Result<std::string> agent = find_phone_agent(facts->abi, library);
  if (agent.ok()) {
    report.agent = *agent;
  } else {
    report.obstacle = agent.error().message;
  }
  return report;
}

Json json_of(const PhoneReport& report) {
  Json json{{"serial", report.device.serial}};
  add_text(json, "state", report.device.reported_state);
  add_text(json, "model", report.facts.model.empty() ? report.device.model : report.facts.model);
  if (report.facts.sdk != 0) json["sdk"] = report.facts.sdk;
  add_text(json, "abi", report.facts.abi);
  add_text(json, "agent", report.agent);
  add_text(json, "obstacle", report.obstacle);
  return json;
}

std::string text_of(const std::vector<PhoneReport>& reports, size_t columns) {
  if (reports.empty()) {
    return "no device: plug a phone in, and allow USB debugging in its developer options\n";
  }
  Table table({"DEVICE", "MODEL", "STATE", "SDK", "ABI", "AGENT"});
  for (const PhoneReport& report : reports) {
    table.add({printable(report.device.serial),
               printable(report.facts.model.empty() ? report.device.model : report.facts.model),
               printable(report.device.reported_state),
               report.facts.sdk == 0 ? "?" : std::to_string(report.facts.sdk),
               report.facts.abi.empty() ? "?" : printable(report.facts.abi),
               report.agent.empty() ? "none" : printable(report.agent)});
  }
  std::string text = table.text(columns);
  for (const PhoneReport& report : reports) {
    if (report.obstacle.empty()) continue;
    text += fmt::format("{}: {}\n", printable(report.device.serial),
                        printable_sentence(report.obstacle));
  }
  return text;
}

}  // namespace

PhonesReport look_at_android_phones(const std::string& serial, const std::string& library,
                                    size_t columns) {
  const auto address = attach::adb_address(
      "auto", [](const char* name) { return static_cast<const char*>(std::getenv(name)); });
  if (!address.ok()) return {.unreachable = address.error()};
  AdbClient client(*address);
  const Result<uint32_t> version = client.version();
  if (!version.ok()) return {.unreachable = version.error()};
  const auto devices = client.devices();
  if (!devices.ok()) return {.unreachable = devices.error()};
  PhonesReport report;
  std::vector<PhoneReport> phones;
  for (const attach::SourceDevice& device : *devices) {
    if (!serial.empty() && device.serial != serial) continue;
    phones.push_back(look_at(client, device, library));
    report.any_works = report.any_works || phones.back().obstacle.empty();
  }
  report.server = fmt::format("{}, version 1.0.{}", client.address(), *version);
  report.devices = phones.size();
  report.text = text_of(phones, columns);
  report.json = Json{{"adb_server", client.address()}, {"adb_version", *version}};
  report.json["devices"] = Json::array();
  for (const PhoneReport& phone : phones) report.json["devices"].push_back(json_of(phone));
  return report;
}

}  // namespace collect::ctl
