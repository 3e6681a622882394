#include "daemon/collector/fleet_view.h"

#include <utility>

#include "daemon/collector/messages.h"
#include "formats/core/hex.h"
#include "formats/core/printable.h"

namespace collect::daemon {
namespace {

fleet::Holding holding_of(const attach::DeviceView& view) {
  fleet::Holding holding;
  holding.device = printable(view.device.serial);
  holding.key = "device/" + holding.device;
  holding.device_model = printable(view.device.model);
  return holding;
}

fleet::Holding holding_of(const ingest::AgentSnapshot& agent) {
  fleet::Holding holding;
  holding.key = "process/" + hex_bytes(agent.process_id);
  const std::string device = device_name_of(agent.address);
  holding.device =
      printable(device.empty() ? agent.device_id : device.substr(kDevicePrefix.size()));
  holding.device_id = printable(agent.device_id);
  holding.device_model = printable(agent.device_model);
  holding.process_name = printable(agent.process_name);
  holding.pid = agent.pid;
  holding.agent = agent_name(agent.id);
  holding.arrival = agent.id << 32 | agent.reconnects;
  return holding;
}

}  // namespace

fleet::Holdings holdings_of(const Registry& registry, const attach::Attach& devices) {
  fleet::Holdings holdings;
  for (const attach::DeviceView& view : devices.devices()) {
    if (view.state != attach::DeviceState::kAbsent) holdings.all.push_back(holding_of(view));
  }
  for (const ingest::AgentSnapshot& agent : registry.agents()) {
    if (!is_up(agent)) continue;
    holdings.all.push_back(holding_of(agent));
    ++holdings.agents;
  }
  for (const ingest::SessionSnapshot& session : registry.sessions()) {
    if (!is_over(session.state)) ++holdings.sessions;
  }
  return holdings;
}

}  // namespace collect::daemon
