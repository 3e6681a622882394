// Which devices usbmuxd has, by serial number. A device may be there twice, over USB and over the
// network, and gets another DeviceID at each replug. No sockets here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/attach/device_source.h"

namespace collect::attach {

class UsbmuxDevices {
 public:
  // False: one too many, not taken.
  bool attached(uint32_t device_id, const std::string& serial, const std::string& connection);
  void detached(uint32_t device_id) { devices_.erase(device_id); }
  void clear() { devices_.clear(); }

  // One entry for each serial number, in their order.
  std::vector<SourceDevice> list() const;
  // Every DeviceID of this serial number, the one to prefer first: USB, and what came last.
  std::vector<uint32_t> ids_of(const std::string& serial) const;

 private:
  struct Device {
    std::string serial;
    std::string connection;  // "usb", "network", or what usbmuxd said
    uint64_t order = 0;      // of its Attached
  };
  std::map<uint32_t, Device> devices_;
  uint64_t attached_ = 0;
};

}  // namespace collect::attach
