#include "daemon/ctl/record/ios/iphones.h"

#include <fmt/core.h>

#include <vector>

#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/ios/iphone.h"

namespace collect::ctl {
namespace {

struct IphoneReport {
  attach::SourceDevice device;
  IphoneFacts facts;
  std::vector<uint16_t> ports;  // on which agents listen
  std::string obstacle;         // a sentence; empty: apps can be recorded
  std::string remark;           // a sentence; empty: nothing to say
};

IphoneReport look_at(UsbmuxClient& client, const attach::SourceDevice& device) {
  IphoneReport report;
  report.device = device;
  const Result<IphoneFacts> facts = look_at_iphone(client, device.serial);
  if (facts.ok()) {
    report.facts = *facts;
    const Status version = check_ios(device.serial, *facts);
    if (!version.ok()) report.obstacle = version.error().message;
  } else {
    report.remark = facts.error().message;
  }
  const auto ports = client.find_agents(device.serial);
  if (!ports.ok()) {
    report.obstacle = ports.error().message;
  } else if (ports->empty() && report.remark.empty()) {
    report.remark =
        "no app with an agent runs: start it from Xcode with COLLECT_LISTEN=tcp:7720-7729, as "
        "collectctl ios run UDID BUNDLE says";
  }
  if (ports.ok()) report.ports = *ports;
  return report;
}

Json json_of(const IphoneReport& report) {
  Json json{{"udid", report.device.serial}};
  add_text(json, "connection", report.device.connection);
  add_text(json, "name", report.facts.name);
  add_text(json, "model", report.facts.model);
  add_text(json, "ios", report.facts.version);
  json["agent_ports"] = report.ports;
  add_text(json, "obstacle", report.obstacle);
  add_text(json, "remark", report.remark);
  return json;
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "?" : printable(text);
}

std::string text_of(const std::vector<IphoneReport>& reports, size_t columns) {
  if (reports.empty()) {
    return "no device: plug an iPhone in, unlock it, and trust this computer\n";
  }
  Table table({"DEVICE", "NAME", "MODEL", "IOS", "VIA", "AGENTS"});
  for (const IphoneReport& report : reports) {
    std::string ports;
    for (const uint16_t port : report.ports) {
      ports += (ports.empty() ? "" : ", ") + std::to_string(port);
    }
    table.add({printable(report.device.serial), or_unknown(report.facts.name),
               or_unknown(report.facts.model), or_unknown(report.facts.version),
               or_unknown(report.device.connection), ports.empty() ? "none" : ports});
  }
  std::string text = table.text(columns);
  for (const IphoneReport& report : reports) {
    for (const std::string& sentence : {report.obstacle, report.remark}) {
      if (sentence.empty()) continue;
      text +=
          fmt::format("{}: {}\n", printable(report.device.serial), printable_sentence(sentence));
    }
  }
  return text;
}

}  // namespace

PhonesReport look_at_iphones(const std::string& udid, size_t columns) {
  const auto address = usbmuxd_address();
  if (!address.ok()) return {.unreachable = address.error()};
  WaitingIo io;
  UsbmuxClient client(io, *address);
  if (const Status connected = client.connect(); !connected.ok()) {
    return {.unreachable = connected.error()};
  }
  PhonesReport report;
  std::vector<IphoneReport> phones;
  const std::vector<attach::SourceDevice> devices = client.devices();
  for (const attach::SourceDevice& device : devices) {
    if (!udid.empty() && device.serial != udid) continue;
    phones.push_back(look_at(client, device));
    report.any_works = report.any_works || phones.back().obstacle.empty();
  }
  report.server = client.address();
  report.devices = phones.size();
  report.text = text_of(phones, columns);
  report.json = Json{{"usbmuxd", client.address()}};
  report.json["devices"] = Json::array();
  for (const IphoneReport& phone : phones) report.json["devices"].push_back(json_of(phone));
  return report;
}

}  // namespace collect::ctl
