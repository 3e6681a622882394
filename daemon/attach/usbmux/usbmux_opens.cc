#include "daemon/attach/usbmux/usbmux_opens.h"

#include <fmt/core.h>
#include <algorithm>
#include <asio/post.hpp>

#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {
namespace {

constexpr uint32_t kTag = 1;  // one request for each connection

Error device_gone(const std::string& serial) {
  return {Code::kUnavailable, fmt::format("device {} was unplugged", serial)};
}

}  // namespace

Error usbmux_connect_error(uint32_t number, const std::string& serial, uint16_t port) {
  switch (static_cast<UsbmuxResult>(number)) {
    case UsbmuxResult::kRefused:
      return {Code::kNotFound,
              fmt::format("no one listens on port {} of device {}: start the app with "
                          "COLLECT_LISTEN=tcp:7720-7729 and keep it in the foreground, since iOS "
                          "closes the ports of suspended apps",
                          port, serial)};
    case UsbmuxResult::kBadDevice:
      return device_gone(serial);
    case UsbmuxResult::kBadCommand:
      return {Code::kUnsupported, "usbmuxd does not know Connect: install a newer one"};
    case UsbmuxResult::kBadVersion:
      return {Code::kUnsupported,
              "usbmuxd does not speak version 1 of its protocol: install a newer one"};
    case UsbmuxResult::kOk:
      break;
  }
  return {Code::kUnavailable,
          fmt::format("usbmuxd could not connect to port {} of device {}: result {}", port, serial,
                      number)};
}

void UsbmuxOpens::open(const std::string& serial, std::vector<uint32_t> ids, uint16_t port,
                       DeviceSource::OnOpen done) {
  const auto opening = std::make_shared<Opening>();
  const bool too_many = openings_.size() >= kMaxUsbmuxOpens;
  *opening = {serial, std::move(ids), port, std::move(done), nullptr};
  openings_.push_back(opening);
  if (too_many) {
    opening->ids.clear();  // no one tries it
    asio::post(io_, [self = shared_from_this(), opening] {
      self->finish(opening,
                   Error{Code::kExhausted,
                         fmt::format("usbmuxd at {} leaves {} connections without an answer",
                                     self->address_.text, kMaxUsbmuxOpens)});
    });
    return;
  }
  if (!opening->ids.empty()) {
    try_first(opening);
    return;
  }
  asio::post(io_, [self = shared_from_this(), opening] {
    self->finish(
        opening,
        Error{Code::kNotFound,
              fmt::format("device {} is not there: plug it in, unlock it, and trust this computer",
                          opening->serial)});
  });
}

void UsbmuxOpens::try_first(const std::shared_ptr<Opening>& opening) {
  opening->connection = std::make_shared<UsbmuxConnection>(io_, address_);
  opening->connection->request(usbmux_connect(kTag, opening->ids.front(), opening->port),
                               [self = shared_from_this(), opening](Result<UsbmuxMessage> answer) {
                                 self->on_answer(opening, std::move(answer));
                               });
}

void UsbmuxOpens::on_answer(const std::shared_ptr<Opening>& opening, Result<UsbmuxMessage> answer) {
  if (!answer.ok()) {
    finish(opening, answer.error());
    return;
  }
  if (answer->kind != UsbmuxMessage::Kind::kResult || answer->tag != kTag) {
    finish(opening,
           Error{Code::kDamaged,
                 fmt::format("usbmuxd at {} answered something else than a result to Connect",
                             address_.text)});
    return;
  }
  if (answer->number == static_cast<uint32_t>(UsbmuxResult::kOk)) {
    finish(opening, opening->connection->release());
    return;
  }
  const Error error = usbmux_connect_error(answer->number, opening->serial, opening->port);
  if (answer->number == static_cast<uint32_t>(UsbmuxResult::kBadDevice)) {
    try_next(opening, error);
  } else {
    finish(opening, error);
  }
}

void UsbmuxOpens::try_next(const std::shared_ptr<Opening>& opening, const Error& error) {
  opening->connection->close();
  opening->ids.erase(opening->ids.begin());
  if (opening->ids.empty()) {
    finish(opening, error);
  } else {
    try_first(opening);
  }
}

void UsbmuxOpens::detached(uint32_t device_id) {
  const auto self = shared_from_this();  // a callback may let go of us
  const auto under_way = openings_;      // and may open more
  for (const std::shared_ptr<Opening>& opening : under_way) {
    if (!opening->done || opening->ids.empty()) continue;
    if (opening->ids.front() == device_id) {
      try_next(opening, device_gone(opening->serial));
    } else {
      std::erase(opening->ids, device_id);
    }
  }
}

void UsbmuxOpens::finish(const std::shared_ptr<Opening>& opening, Result<Socket> outcome) {
  const DeviceSource::OnOpen done = std::move(opening->done);
  opening->done = nullptr;
  if (opening->connection && !outcome.ok()) opening->connection->close();
  opening->connection.reset();
  std::erase(openings_, opening);
  if (done) done(std::move(outcome));
}

void UsbmuxOpens::stop() {
  for (const std::shared_ptr<Opening>& opening : openings_) {
    opening->done = nullptr;
    if (opening->connection) opening->connection->close();
    opening->connection.reset();
  }
  openings_.clear();
}

}  // namespace collect::attach
