#include "daemon/collector/agents/device_bridge.h"

#include <fmt/core.h>

#include <cstdlib>
#include <utility>

#include "daemon/collector/agents/messages.h"
#include "daemon/collector/agents/registry.h"
#include "daemon/control/service/selector.h"

namespace collect::daemon {
namespace {

attach::EndpointReport report_of(const ingest::DialReport& dial) {
  using Trouble = attach::EndpointReport::Trouble;
  switch (dial.refused) {
    case wire::REFUSE_UNSPECIFIED:
      return {Trouble::kNone, dial.status};
    case wire::REFUSE_VERSION:
      return {Trouble::kVersion, dial.status};
    case wire::REFUSE_TOKEN:
      return {Trouble::kToken, dial.status};
    default:
      return {Trouble::kRefused, dial.status};
  }
}

}  // namespace

Result<std::unique_ptr<DeviceBridge>> DeviceBridge::create(const attach::AttachOptions& devices,
                                                           Watches& watches) {
  std::unique_ptr<DeviceBridge> bridge(new DeviceBridge(watches));
  auto attach = attach::Attach::create(
      devices, [](const char* name) -> const char* { return std::getenv(name); }, *bridge);
  if (!attach.ok()) return attach.error();
  bridge->attach_ = std::move(attach).value();
  return bridge;
}

Status DeviceBridge::run(ingest::Ingest& ingest) {
  ingest_ = &ingest;
  return attach_->run();
}

std::vector<api::Device> DeviceBridge::devices(const std::string& match) {
  attach_->search();  // who asks has just started something, it may be
  std::vector<api::Device> all;
  for (const attach::DeviceView& device : attach_->devices()) {
    api::Device message = to_message(device);
    if (control::matches(message, match)) all.push_back(std::move(message));
  }
  return all;
}

Result<api::Device> DeviceBridge::device(const std::string& name) {
  attach_->search();
  std::string list;
  std::vector<api::Device> found;
  for (const attach::DeviceView& view : attach_->devices()) {
    api::Device device = to_message(view);
    list += (list.empty() ? "" : ", ") + device.name();
    if (name.empty() || name == device.name() || name == device.serial()) {
      found.push_back(std::move(device));
    }
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) {
    return Error{Code::kNotFound, (name.empty() ? "there is no device"
                                                : fmt::format("no device \"{}\"; there are: {}",
                                                              name, list.empty() ? "none" : list))};
  }
  return Error{Code::kInvalidArgument, "name a device; there are: " + list};
}

std::vector<api::DeviceServer> DeviceBridge::servers() const {
  std::vector<api::DeviceServer> all;
  for (const attach::ServerState& server : attach_->servers()) {
    api::DeviceServer& message = all.emplace_back();
    message.set_via(server.via);
    message.set_address(utf8_text(server.address));
    message.set_connected(server.connected);
    message.set_status(utf8_text(server.status));
  }
  return all;
}

void DeviceBridge::device_changed(const attach::DeviceView& device, bool is_new) {
  watches_.device_event(is_new ? api::CHANGE_KIND_ADDED : api::CHANGE_KIND_CHANGED,
                        to_message(device));
}

void DeviceBridge::device_removed(const attach::DeviceView& device) {
  watches_.device_event(api::CHANGE_KIND_REMOVED, to_message(device));
}

// The stream is made on the thread of daemon/attach and goes to an io thread as a descriptor.
void DeviceBridge::endpoint_found(const std::string& address) {
  ingest_->attach(
      address,
      [this, address](ingest::OnConnected done) {
        attach_->open(address, [done = std::move(done)](Result<attach::Socket> opened) {
          if (opened.ok()) {
            done(ingest::ConnectedSocket::from(std::move(*opened)));
          } else {
            done(opened.error());
          }
        });
      },
      [this, address](const ingest::DialReport& dial) {
        // That it is up is reported by the agent itself, with its name.
        if (dial.state == ingest::DialReport::State::kDialing) {
          attach_->report(address, report_of(dial));
        }
      });
}

void DeviceBridge::endpoint_gone(const std::string& address) {
  ingest_->detach_address(address, [](const Result<std::string>&) {});
}

void DeviceBridge::agent_changed(const ingest::AgentSnapshot& agent) {
  if (!agent.dialled || !attach::is_device_address(agent.address)) return;
  attach_->agent_is(agent.address, agent_name(agent.id), is_up(agent),
                    agent.state == ingest::AgentState::kGone);
}

}  // namespace collect::daemon
