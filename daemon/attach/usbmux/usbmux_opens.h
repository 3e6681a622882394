// Streams to ports of devices that are being opened.
//
// Shared by the source and by the operations under way, on one io_context's thread. After stop()
// nothing is answered any more.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/device_source.h"
#include "daemon/attach/usbmux/usbmux_connection.h"

namespace collect::attach {

// The error for what usbmuxd answered to a Connect; not for kOk.
Error usbmux_connect_error(uint32_t number, const std::string& serial, uint16_t port);

class UsbmuxOpens : public std::enable_shared_from_this<UsbmuxOpens> {
 public:
  UsbmuxOpens(asio::io_context& io, UsbmuxAddress address)
      : io_(io), address_(std::move(address)) {}

  // By the first of `ids` that is there: the others are tried when it is gone, or goes meanwhile.
  // None: the device is not there.
  void open(const std::string& serial, std::vector<uint32_t> ids, uint16_t port,
            DeviceSource::OnOpen done);
  // Openings that wait for this DeviceID try the next one.
  void detached(uint32_t device_id);
  void stop();

 private:
  struct Opening {
    std::string serial;
    std::vector<uint32_t> ids;  // the one in use is the first
    uint16_t port = 0;
    DeviceSource::OnOpen done;
    std::shared_ptr<UsbmuxConnection> connection;
  };
  void try_first(const std::shared_ptr<Opening>& opening);
  void on_answer(const std::shared_ptr<Opening>& opening, Result<UsbmuxMessage> answer);
  void try_next(const std::shared_ptr<Opening>& opening, const Error& error);
  void finish(const std::shared_ptr<Opening>& opening, Result<Socket> outcome);

  asio::io_context& io_;
  const UsbmuxAddress address_;
  std::vector<std::shared_ptr<Opening>> openings_;
};

}  // namespace collect::attach
