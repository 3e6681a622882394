#include "daemon/ctl/control/devices.h"

#include <fmt/core.h>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"

namespace collect::ctl {
namespace {

std::string via_text(const api::Device& device) {
  return printable(device.via()) +
         (device.connection().empty() ? "" : fmt::format(" ({})", printable(device.connection())));
}

// The agents that said hello, by the names that `collectctl agents` lists.
std::string agents_text(const api::Device& device) {
  std::string text;
  for (const api::DeviceAgent& place : device.agents()) {
    if (place.agent().empty()) continue;
    text += (text.empty() ? "" : ", ") + short_name(place.agent());
  }
  return text;
}

// Why it can't be used, what to do about it, and the same for each agent on it.
std::string explanation(const api::Device& device) {
  std::string text;
  const std::string serial = printable(device.serial());
  if (!device.reason().empty())
    text += fmt::format("{}: {}\n", serial, printable_sentence(device.reason()));
  if (!device.advice().empty()) text += fmt::format("  {}\n", printable_sentence(device.advice()));
  for (const api::DeviceAgent& place : device.agents()) {
    if (place.status().empty()) continue;
    text += fmt::format("{} {}: {}\n", serial, printable(place.socket()),
                        printable_sentence(place.status()));
  }
  return text;
}

std::string devices_text(const api::ListDevicesResponse& response, const std::string& filter,
                         size_t columns) {
  std::string text;
  if (response.devices().empty()) {
    text = filter.empty() ? "no devices\n" : "no device matches\n";
  } else {
    Table table({"DEVICE", "VIA", "MODEL", "STATE", "AGENTS"});
    for (const api::Device& device : response.devices()) {
      table.add({printable(device.serial()), via_text(device), printable(device.model()),
                 state_word(device.state()), agents_text(device)});
    }
    text = table.text(columns);
    for (const api::Device& device : response.devices()) text += explanation(device);
  }
  for (const api::DeviceServer& server : response.servers()) {
    if (!server.connected()) text += printable_sentence(server.status()) + "\n";
  }
  if (response.servers().empty() && response.devices().empty()) {
    text += "the collector looks for none: its settings adb and usbmux are off\n";
  }
  return text;
}

std::string event_line(const api::DeviceEvent& event) {
  const api::Device& device = event.device();
  std::string line = fmt::format("{}  {}  {}", event_word(event.kind()), printable(device.serial()),
                                 via_text(device));
  if (!device.model().empty()) line += "  " + printable(device.model());
  line += "  " + state_word(device.state());
  const std::string agents = agents_text(device);
  if (!agents.empty()) line += "  agents " + agents;
  if (!device.reason().empty()) line += "  " + printable_sentence(device.reason());
  return line;
}

}  // namespace

int devices(const Online& online, const DeviceOptions& options) {
  Client client(online.control);
  if (options.watch) {
    const Status status = client.watch_devices(options.filter, [&](const api::DeviceEvent& event) {
      online.out << (online.json ? message_line(event) : event_line(event) + "\n");
      online.out.flush();
      return online.out.good();
    });
    return status.ok() ? kExitOk : failed(online, status.error());
  }
  const Result<api::ListDevicesResponse> response = client.devices(options.filter);
  if (!response.ok()) return failed(online, response.error());
  online.out << (online.json ? message_line(*response)
                             : devices_text(*response, options.filter, online.columns));
  online.out.flush();
  return kExitOk;
}

}  // namespace collect::ctl
