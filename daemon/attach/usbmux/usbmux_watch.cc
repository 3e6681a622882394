#include "daemon/attach/usbmux/usbmux_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {

using std::chrono::steady_clock;

UsbmuxWatch::UsbmuxWatch(asio::io_context& io, UsbmuxAddress address,
                         DeviceSource::OnServer on_server, DeviceSource::OnDevices on_devices,
                         OnDetached on_detached)
    : io_(io),
      address_(std::move(address)),
      on_server_(std::move(on_server)),
      on_devices_(std::move(on_devices)),
      on_detached_(std::move(on_detached)),
      timer_(io),
      pause_(kUsbmuxFirstRetry) {}

void UsbmuxWatch::start() {
  connection_ = std::make_shared<UsbmuxConnection>(io_, address_);
  connection_->request(usbmux_listen(1),
                       [self = shared_from_this()](Result<UsbmuxMessage> message) {
                         self->on_message(std::move(message));
                       });
}

void UsbmuxWatch::stop() {
  stopped_ = true;
  timer_.cancel();
  if (connection_) connection_->close();
  connection_.reset();
}

void UsbmuxWatch::on_message(Result<UsbmuxMessage> message) {
  if (stopped_) return;
  if (!message.ok()) {
    lost(message.error());
    return;
  }
  if (!take(*message) || stopped_) return;
  connection_->next([self = shared_from_this()](Result<UsbmuxMessage> next) {
    self->on_message(std::move(next));
  });
}

bool UsbmuxWatch::take(const UsbmuxMessage& message) {
  switch (message.kind) {
    case UsbmuxMessage::Kind::kResult:
      if (message.number != static_cast<uint32_t>(UsbmuxResult::kOk)) {
        lost({Code::kUnsupported,
              fmt::format("usbmuxd at {} refused to list devices: result {}; install a newer one",
                          address_.text, message.number)});
        return false;
      }
      connected_at_ = steady_clock::now();
      report_server(true, "");
      return true;
    case UsbmuxMessage::Kind::kAttached:
      if (devices_.attached(message.device_id, message.serial, message.connection)) {
        report_devices();
      } else {
        report_server(true,
                      fmt::format("more than {} devices: the others are not shown; unplug some",
                                  kMaxUsbmuxDevices));
      }
      return true;
    case UsbmuxMessage::Kind::kDetached:
      devices_.detached(message.device_id);
      on_detached_(message.device_id);
      if (!stopped_) report_devices();
      return true;
    case UsbmuxMessage::Kind::kPaired:  // ports of apps need no pairing
    case UsbmuxMessage::Kind::kDevices:
    case UsbmuxMessage::Kind::kOther:  // of a newer usbmuxd
      return true;
  }
  return true;
}

void UsbmuxWatch::lost(const Error& error) {
  connection_->close();
  connection_.reset();
  if (server_.connected && steady_clock::now() - connected_at_ >= kUsbmuxLastRetry) {
    pause_ = kUsbmuxFirstRetry;
  }
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, kUsbmuxLastRetry);
  timer_.async_wait([self = shared_from_this()](const std::error_code& cancelled) {
    if (!cancelled && !self->stopped_) self->start();
  });
  devices_.clear();
  report_devices();
  if (!stopped_) report_server(false, error.message);
}

void UsbmuxWatch::report_server(bool connected, std::string status) {
  ServerState state{"usbmux", address_.text, connected, std::move(status)};
  if (state == server_) return;
  server_ = state;
  on_server_(state);
}

void UsbmuxWatch::report_devices() {
  std::vector<SourceDevice> list = devices_.list();
  if (list == devices_reported_) return;
  devices_reported_ = list;
  on_devices_(list);
}

}  // namespace collect::attach
