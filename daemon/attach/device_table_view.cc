// What the table shows of its devices: in answers, to its observer and in the log.
#include <spdlog/spdlog.h>

#include "daemon/attach/device_table.h"
#include "formats/core/text/printable.h"

namespace collect::attach {
namespace {

std::string how_to_listen(const std::string& via) {
  return via == "adb"
             ? "start an app that has the agent in it, with COLLECT_LISTEN=abstract: in its "
               "wrap.sh (deploy/android/README.md has three ways)"
             : "start an app with the agent in it and COLLECT_LISTEN=tcp:7720-7729";
}

std::string advice_for(EndpointReport::Trouble trouble) {
  switch (trouble) {
    case EndpointReport::Trouble::kVersion:
      return "take the agent and collectord from the same release";
    case EndpointReport::Trouble::kToken:
      return "give both the same token: token_file here, COLLECT_TOKEN_FILE there";
    default:
      return "COLLECT_LOG=1 makes the agent say more";
  }
}

const char* word(DeviceState state) {
  switch (state) {
    case DeviceState::kServing:
      return "an agent is attached";
    case DeviceState::kNoAgent:
      return "no agent";
    case DeviceState::kBlocked:
      return "can't be used";
    case DeviceState::kAbsent:
      break;
  }
  return "absent";
}

void log_device(const DeviceView& view) {
  spdlog::info("{}: device {}{}: {}{}", view.via, in_quotes(view.device.serial),
               view.device.model.empty() ? "" : fmt::format(" ({})", in_quotes(view.device.model)),
               word(view.state), view.device.reason.empty() ? "" : ": " + view.device.reason);
}

}  // namespace

DeviceView DeviceTable::view_of(const Device& device) const {
  DeviceView view{device.source.via(), device.shown, DeviceState::kNoAgent, {}};
  const Endpoint* refused = nullptr;
  std::string refused_name;
  bool serves = false;
  for (const auto& [name, endpoint] : device.endpoints) {
    view.endpoints.push_back({name, endpoint.agent, endpoint.is_up ? "" : endpoint.status});
    serves = serves || endpoint.is_up;
    if (endpoint.trouble != EndpointReport::Trouble::kNone && refused == nullptr) {
      refused = &endpoint;
      refused_name = name;
    }
  }
  const auto say = [&view](DeviceState state, std::string reason, std::string advice) {
    view.state = state;
    view.device.reason = std::move(reason);
    view.device.advice = std::move(advice);
  };
  if (!device.is_present) {
    say(DeviceState::kAbsent, kUnplugged, "plug it in again: what was recorded continues");
  } else if (!device.shown.is_usable) {
    view.state = DeviceState::kBlocked;
  } else if (serves) {
    say(DeviceState::kServing, "", "");
  } else if (!device.search_fault.empty()) {
    say(DeviceState::kBlocked, device.search_fault, "unplug it and plug it in again");
  } else if (refused != nullptr) {
    say(DeviceState::kBlocked, fmt::format("{}: {}", refused_name, refused->status),
        advice_for(refused->trouble));
  } else {
    say(DeviceState::kNoAgent, "no program with an agent is attached", how_to_listen(view.via));
  }
  return view;
}

void DeviceTable::notify(Device& device) {
  DeviceView view = view_of(device);
  if (device.reported && *device.reported == view) return;
  const bool is_new = !device.reported;
  if (is_new || device.reported->state != view.state ||
      device.reported->device.reason != view.device.reason) {
    log_when_true(device, view);
  }
  {
    const std::lock_guard lock(mutex_);
    views_[{view.via, view.device.serial}] = view;
  }
  device.reported = view;
  observer_.device_changed(view, is_new);
}

// A phone that is plugged in is "offline" for a moment, and its first search may fail: that it
// can't be used is logged when it stays so.
void DeviceTable::log_when_true(Device& device, const DeviceView& view) {
  device.log_timer.cancel();
  if (view.state != DeviceState::kBlocked) {
    log_device(view);
    return;
  }
  const std::weak_ptr<Device> weak = devices_.at({device.source.via(), device.shown.serial});
  device.log_timer.expires_after(kBlockedLogPause);
  device.log_timer.async_wait([weak](const std::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->reported && self->reported->state == DeviceState::kBlocked) {
      log_device(*self->reported);
    }
  });
}

std::vector<DeviceView> DeviceTable::devices() const {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceView> all;
  for (const auto& [key, view] : views_) all.push_back(view);
  return all;
}

std::vector<ServerState> DeviceTable::servers() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServerState> all;
  for (const auto& [via, server] : servers_) all.push_back(server);
  return all;
}

}  // namespace collect::attach
