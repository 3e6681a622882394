#include "daemon/attach/attach.h"

#include <algorithm>

#include <fmt/core.h>
#include <asio/post.hpp>

#include "daemon/attach/adb/adb_source.h"
#include "daemon/attach/usbmux/usbmux_source.h"
#include "formats/core/threads.h"

namespace collect::attach {

Result<std::unique_ptr<Attach>> Attach::create(const AttachOptions& options,
                                               const EnvironmentVariable& environment,
                                               DeviceObserver& observer) {
  std::unique_ptr<Attach> attach(new Attach);
  std::vector<std::unique_ptr<DeviceSource>> sources;
  const Result<AdbAddress> adb = adb_address(options.adb, environment);
  if (!adb.ok()) return adb.error();
  if (!adb->is_off) sources.push_back(std::make_unique<AdbSource>(attach->io_, *adb));
  if (options.usbmux != "off") {
    const Result<UsbmuxAddress> usbmux =
        usbmux_address(options.usbmux, environment("USBMUXD_SOCKET_ADDRESS"));
    if (!usbmux.ok()) return usbmux.error();
    sources.push_back(std::make_unique<UsbmuxSource>(attach->io_, *usbmux));
  }
  for (const std::string& endpoint : options.endpoints) {
    const auto reaches = [&endpoint](const auto& source) {
      return endpoint.starts_with(std::string(source->via()) + ":");
    };
    if (std::none_of(sources.begin(), sources.end(), reaches)) {
      const std::string via = endpoint.substr(0, endpoint.find(':'));
      return Error{Code::kInvalidArgument,
                   fmt::format("{} is to be attached, and {} is off: set {} = \"auto\"", endpoint,
                               via, via)};
    }
  }
  attach->table_ = std::make_unique<DeviceTable>(attach->io_, std::move(sources),
                                                 options.keep_absent, observer, options.endpoints);
  return attach;
}

Attach::~Attach() {
  stop();
}

Status Attach::run() {
  asio::post(io_, [this] { table_->start(); });
  auto started = start_thread("attach", [this] { io_.run(); });
  if (!started.ok()) return started.error();
  thread_ = std::move(*started);
  return {};
}

void Attach::stop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  if (table_) table_->stop();
}

void Attach::open(const std::string& address, DeviceSource::OnOpen done) {
  asio::post(io_, [this, address, done = std::move(done)] { table_->open(address, done); });
}

void Attach::report(const std::string& address, EndpointReport report) {
  asio::post(io_, [this, address, report = std::move(report)] { table_->report(address, report); });
}

void Attach::agent_is(const std::string& address, const std::string& agent, bool is_up,
                      bool is_gone) {
  asio::post(io_, [this, address, agent, is_up, is_gone] {
    table_->agent_is(address, agent, is_up, is_gone);
  });
}

void Attach::release(const std::string& address) {
  asio::post(io_, [this, address] { table_->release(address); });
}

void Attach::attach(const std::string& address, std::function<void(Status)> done) {
  asio::post(io_, [this, address, done = std::move(done)] { done(table_->attach(address)); });
}

void Attach::search() {
  asio::post(io_, [this] { table_->search(); });
}

void Attach::status_of(const std::string& address, std::function<void(Result<std::string>)> done) {
  asio::post(io_, [this, address, done = std::move(done)] { done(table_->status_of(address)); });
}

bool is_device_address(const std::string& address) {
  return address.starts_with("adb:") || address.starts_with("usbmux:");
}

std::string device_address_fault(const std::string& address) {
  const std::string serial = serial_of(address);
  const std::string endpoint =
      serial.empty() ? "" : address.substr(address.find(':') + 1 + serial.size() + 1);
  const bool is_port = endpoint.starts_with("tcp:") && endpoint.size() > 4;
  if (address.starts_with("usbmux:") ? is_port : !endpoint.empty()) return "";
  return fmt::format(
      "address \"{}\": an endpoint on a device is written adb:SERIAL:NAME or "
      "usbmux:SERIAL:tcp:PORT",
      address);
}

std::string serial_of(const std::string& address) {
  if (!is_device_address(address)) return "";
  // Serials hold colons ("192.168.1.7:5555"), names of Unix sockets do not, and ports have a word.
  const size_t begin = address.find(':') + 1;
  const size_t end = std::min(address.rfind(":tcp:"), address.rfind(':'));
  return end < begin || end == std::string::npos ? "" : address.substr(begin, end - begin);
}

}  // namespace collect::attach
