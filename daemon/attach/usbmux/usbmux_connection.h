// One connection to usbmuxd: a request, then messages, or the raw bytes of a device's port.
//
// Shared with the operations under way; on one io_context's thread. Nothing is called after
// close(), and nothing from within the call that it was given to.
#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/attach/device_source.h"
#include "daemon/attach/usbmux/usbmux_address.h"
#include "daemon/attach/usbmux/usbmux_message.h"

namespace collect::attach {

class UsbmuxConnection : public std::enable_shared_from_this<UsbmuxConnection> {
 public:
  using OnMessage = std::function<void(Result<UsbmuxMessage>)>;

  UsbmuxConnection(asio::io_context& io, const UsbmuxAddress& address)
      : address_(address), socket_(io), timer_(io) {}

  // Connects, sends, and hands on the first message, all within kUsbmuxDeadline. An error is the
  // end of the connection.
  void request(std::string message, OnMessage on_answer);
  // The next message, however long it takes to begin.
  void next(OnMessage on_message);
  // After an answer: the socket, with not a byte beyond that answer taken from it.
  Socket release();
  void close();

 private:
  void on_connected();
  void read_header();
  void on_header();
  void on_body();
  void limit(std::chrono::milliseconds time, const char* what);
  void finish(Result<UsbmuxMessage> outcome);
  void fail(const std::error_code& error, const char* doing);

  const UsbmuxAddress address_;
  Socket socket_;
  asio::steady_timer timer_;
  std::string request_;
  OnMessage waiting_;      // empty: no one waits
  uint64_t messages_ = 0;  // handed on: a timer that ran out too late belongs to another one
  std::array<uint8_t, sizeof(UsbmuxHeader)> header_{};
  uint32_t tag_ = 0;
  std::vector<uint8_t> body_;
};

}  // namespace collect::attach
