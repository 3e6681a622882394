#include "daemon/attach/usbmux/usbmux_devices.h"

#include <algorithm>

#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {

bool UsbmuxDevices::attached(uint32_t device_id, const std::string& serial,
                             const std::string& connection) {
  if (devices_.size() >= kMaxUsbmuxDevices && !devices_.contains(device_id)) return false;
  std::string shown = connection;
  if (connection == "USB") shown = "usb";
  if (connection == "Network") shown = "network";
  devices_[device_id] = {serial, shown, ++attached_};
  return true;
}

std::vector<uint32_t> UsbmuxDevices::ids_of(const std::string& serial) const {
  std::vector<uint32_t> ids;
  for (const auto& [id, device] : devices_) {
    if (device.serial == serial) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(), [this](uint32_t a, uint32_t b) {
    const Device& left = devices_.at(a);
    const Device& right = devices_.at(b);
    const bool left_usb = left.connection == "usb";
    const bool right_usb = right.connection == "usb";
    return left_usb != right_usb ? left_usb : left.order > right.order;
  });
  return ids;
}

std::vector<SourceDevice> UsbmuxDevices::list() const {
  std::map<std::string, SourceDevice> by_serial;
  for (const auto& [id, device] : devices_) {
    if (by_serial.contains(device.serial)) continue;
    SourceDevice shown;
    shown.serial = device.serial;
    shown.reported_state = "attached";
    shown.connection = devices_.at(ids_of(device.serial).front()).connection;
    shown.is_usable = !device.serial.empty();
    if (!shown.is_usable) {
      shown.reason =
          "usbmuxd names no serial number of it, so it can't be distinguished from others";
      shown.advice = "unplug it, unlock it, plug it in again";
    }
    by_serial[device.serial] = std::move(shown);
  }
  std::vector<SourceDevice> list;
  for (auto& [serial, device] : by_serial) list.push_back(std::move(device));
  return list;
}

}  // namespace collect::attach
