#include "daemon/attach/usbmux/usbmux_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "daemon/attach/usbmux/usbmux_limits.h"
#include "daemon/attach/usbmux/usbmux_opens.h"
#include "daemon/attach/usbmux/usbmux_watch.h"

namespace collect::attach {

std::string port_endpoint(uint16_t port) {
  return std::string(kPortPrefix) + std::to_string(port);
}

namespace {

std::optional<uint16_t> port_of(std::string_view endpoint) {
  if (!endpoint.starts_with(kPortPrefix)) return std::nullopt;
  const std::string_view digits = endpoint.substr(kPortPrefix.size());
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    return std::nullopt;
  }
  return port;
}

// Tries every port on which an agent may listen, a few at a time.
class PortSearch : public std::enable_shared_from_this<PortSearch> {
 public:
  PortSearch(std::shared_ptr<UsbmuxOpens> opens, std::string serial, std::vector<uint32_t> ids,
             DeviceSource::OnAgents done)
      : opens_(std::move(opens)),
        serial_(std::move(serial)),
        ids_(std::move(ids)),
        done_(std::move(done)) {}

  void start() {
    for (size_t i = 0; i < kUsbmuxProbesAtOnce; ++i) try_next();
  }

 private:
  void try_next() {
    if (next_ > kLastAgentPort) return;
    const uint16_t port = next_++;
    ++under_way_;
    opens_->open(serial_, ids_, port, [self = shared_from_this(), port](Result<Socket> opened) {
      --self->under_way_;
      if (opened.ok()) {
        self->found_.push_back(port);
      } else if (opened.code() != Code::kNotFound && !self->fault_) {
        self->fault_ = opened.error();
      }
      self->try_next();
      if (self->under_way_ == 0) self->finish();
    });
  }

  // A port that failed hides no other that answered.
  void finish() {
    if (found_.empty() && fault_) {
      done_(*fault_);
      return;
    }
    std::sort(found_.begin(), found_.end());
    std::vector<std::string> endpoints;
    for (const uint16_t port : found_) {
      endpoints.push_back(port_endpoint(port));
    }
    done_(std::move(endpoints));
  }

  const std::shared_ptr<UsbmuxOpens> opens_;
  const std::string serial_;
  const std::vector<uint32_t> ids_;
  const DeviceSource::OnAgents done_;
  uint16_t next_ = kFirstAgentPort;
  size_t under_way_ = 0;
  std::vector<uint16_t> found_;
  std::optional<Error> fault_;
};

}  // namespace

UsbmuxSource::UsbmuxSource(asio::io_context& io, UsbmuxAddress address)
    : io_(io), address_(std::move(address)), opens_(std::make_shared<UsbmuxOpens>(io_, address_)) {}

UsbmuxSource::~UsbmuxSource() {
  stop();
}

void UsbmuxSource::start(OnServer on_server, OnDevices on_devices) {
  watch_ = std::make_shared<UsbmuxWatch>(
      io_, address_, std::move(on_server), std::move(on_devices),
      [opens = opens_](uint32_t device_id) { opens->detached(device_id); });
  watch_->start();
}

void UsbmuxSource::stop() {
  if (watch_) watch_->stop();
  watch_.reset();
  opens_->stop();
}

std::vector<uint32_t> UsbmuxSource::ids_of(const std::string& serial) const {
  if (!watch_ || serial.empty()) return {};
  return watch_->devices().ids_of(serial);
}

void UsbmuxSource::find_agents(const std::string& serial, OnAgents done) {
  std::vector<uint32_t> ids = ids_of(serial);
  if (ids.empty()) {
    opens_->open(serial, {}, kFirstAgentPort,
                 [done = std::move(done)](Result<Socket> opened) { done(opened.error()); });
    return;
  }
  std::make_shared<PortSearch>(opens_, serial, std::move(ids), std::move(done))->start();
}

void UsbmuxSource::open(const std::string& serial, const std::string& endpoint, OnOpen done) {
  const std::optional<uint16_t> port = port_of(endpoint);
  if (!port) {
    opens_->open(serial, {}, 0, [done = std::move(done), endpoint](Result<Socket>) {
      done(Error{Code::kInvalidArgument,
                 fmt::format("\"{}\" is no endpoint on an iPhone; write tcp:7720", endpoint)});
    });
    return;
  }
  opens_->open(serial, ids_of(serial), *port, std::move(done));
}

}  // namespace collect::attach
