// Listens to usbmuxd for devices that come and go, and connects to it again for ever. That it is
// not there is nothing unusual: on Linux it lives from the first device to the last.
//
// Shared with the operations under way; on one io_context's thread. Silent after stop().
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "daemon/attach/device_source.h"
#include "daemon/attach/usbmux/usbmux_connection.h"
#include "daemon/attach/usbmux/usbmux_devices.h"

namespace collect::attach {

class UsbmuxWatch : public std::enable_shared_from_this<UsbmuxWatch> {
 public:
  using OnDetached = std::function<void(uint32_t device_id)>;

  UsbmuxWatch(asio::io_context& io, UsbmuxAddress address, DeviceSource::OnServer on_server,
              DeviceSource::OnDevices on_devices, OnDetached on_detached);

  void start();
  void stop();
  const UsbmuxDevices& devices() const { return devices_; }

 private:
  void on_message(Result<UsbmuxMessage> message);
  bool take(const UsbmuxMessage& message);  // false: it ended the connection
  void lost(const Error& error);
  void report_server(bool connected, std::string status);
  void report_devices();

  asio::io_context& io_;
  const UsbmuxAddress address_;
  DeviceSource::OnServer on_server_;
  DeviceSource::OnDevices on_devices_;
  OnDetached on_detached_;
  asio::steady_timer timer_;
  std::shared_ptr<UsbmuxConnection> connection_;
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point connected_at_;
  bool stopped_ = false;
  UsbmuxDevices devices_;
  ServerState server_;  // as last reported
  std::vector<SourceDevice> devices_reported_;
};

}  // namespace collect::attach
