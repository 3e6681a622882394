#include "daemon/ctl/record/ios/usbmux_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "daemon/attach/usbmux/usbmux_connection.h"
#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::ctl {
namespace {

// The connections keep deadlines of their own: these only end a wait that would never end.
constexpr std::chrono::milliseconds kUsbmuxAnswerBound = 2 * attach::kUsbmuxDeadline;
// A port of a phone that swallows connections takes one deadline, and four are tried at a time.
constexpr std::chrono::milliseconds kSearchBound = 5 * attach::kUsbmuxDeadline;
constexpr uint32_t kTag = 1;

}  // namespace

Result<attach::UsbmuxAddress> usbmuxd_address() {
  return attach::usbmux_address("auto", std::getenv("USBMUXD_SOCKET_ADDRESS"));
}

UsbmuxClient::UsbmuxClient(WaitingIo& io, attach::UsbmuxAddress address)
    : io_(io), address_(address), source_(io.io(), std::move(address)) {}

Result<std::vector<std::string>> UsbmuxClient::list() {
  const auto connection = std::make_shared<attach::UsbmuxConnection>(io_.io(), address_);
  const Result<attach::UsbmuxMessage> answer = io_.answer_of<attach::UsbmuxMessage>(
      [&](auto done) { connection->request(attach::usbmux_list_devices(kTag), std::move(done)); },
      kUsbmuxAnswerBound, "usbmuxd at " + address());
  if (!answer.ok()) return answer.error();
  if (answer->kind != attach::UsbmuxMessage::Kind::kDevices) {
    return Error{Code::kUnsupported,
                 fmt::format("usbmuxd at {} lists no devices: install a newer one", address())};
  }
  std::vector<std::string> serials;
  for (const attach::UsbmuxMessage& device : answer->devices) serials.push_back(device.serial);
  return serials;
}

// The watch reports one device after the other, and not when these were all.
Status UsbmuxClient::connect() {
  const Result<std::vector<std::string>> there = list();
  if (!there.ok()) return there.error();
  source_.start([](const attach::ServerState&) {},
                [this](const std::vector<attach::SourceDevice>& devices) { devices_ = devices; });
  const auto has_all = [&] {
    return std::all_of(there->begin(), there->end(),
                       [this](const std::string& serial) { return serial.empty() || has(serial); });
  };
  return io_.wait(has_all, kUsbmuxAnswerBound, "usbmuxd at " + address());
}

bool UsbmuxClient::has(const std::string& serial) const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [&](const attach::SourceDevice& device) { return device.serial == serial; });
}

Result<std::vector<uint16_t>> UsbmuxClient::find_agents(const std::string& serial) {
  using Endpoints = std::vector<std::string>;
  const Result<Endpoints> endpoints =
      io_.answer_of<Endpoints>([&](auto done) { source_.find_agents(serial, std::move(done)); },
                               kSearchBound, "looking for agents on " + serial);
  if (!endpoints.ok()) return endpoints.error();
  std::vector<uint16_t> ports;
  for (const std::string& endpoint : *endpoints) {
    uint16_t port = 0;
    std::from_chars(endpoint.data() + attach::kPortPrefix.size(), endpoint.data() + endpoint.size(),
                    port);
    ports.push_back(port);
  }
  return ports;
}

Result<attach::Socket> UsbmuxClient::open(const std::string& serial, uint16_t port) {
  return io_.answer_of<attach::Socket>(
      [&](auto done) { source_.open(serial, attach::port_endpoint(port), std::move(done)); },
      kUsbmuxAnswerBound, fmt::format("port {} of {}", port, serial));
}

}  // namespace collect::ctl
