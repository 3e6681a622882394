// iPhones and iPads through usbmuxd, spoken to directly. An endpoint is "tcp:7720": a port of the
// device on which an app listens. One socket to usbmuxd watches; each stream has one of its own.
//
// The port search makes connections and closes them at once: an agent takes no notice of one that
// ends before its Dial. A device that is there over USB and over the network is one device, reached
// over USB while it can be.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/attach/device_source.h"
#include "daemon/attach/usbmux/usbmux_address.h"

namespace collect::attach {

// How an endpoint on an iPhone begins, and the whole of one.
inline constexpr std::string_view kPortPrefix = "tcp:";
std::string port_endpoint(uint16_t port);

class UsbmuxOpens;
class UsbmuxWatch;

class UsbmuxSource final : public DeviceSource {
 public:
  UsbmuxSource(asio::io_context& io, UsbmuxAddress address);
  ~UsbmuxSource() override;

  const char* via() const override { return "usbmux"; }
  void start(OnServer on_server, OnDevices on_devices) override;
  void stop() override;
  void find_agents(const std::string& serial, OnAgents done) override;
  void open(const std::string& serial, const std::string& endpoint, OnOpen done) override;

 private:
  std::vector<uint32_t> ids_of(const std::string& serial) const;

  asio::io_context& io_;
  const UsbmuxAddress address_;
  std::shared_ptr<UsbmuxOpens> opens_;
  std::shared_ptr<UsbmuxWatch> watch_;  // null before start() and after stop()
};

}  // namespace collect::attach
