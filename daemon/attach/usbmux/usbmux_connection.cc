#include "daemon/attach/usbmux/usbmux_connection.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <cerrno>

#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {
namespace {

// What a failed connect means to a user who wants to see an iPhone.
Error no_usbmuxd(const UsbmuxAddress& address, const std::error_code& error) {
  const std::string where = " at " + address.text;
  // By number: Asio's own category maps few of them to conditions.
  if (error.value() == ENOENT) {
    return {Code::kUnavailable,
            fmt::format("no usbmuxd{}: it starts when an iPhone is plugged in, where the package "
                        "usbmuxd is installed; one elsewhere is named by USBMUXD_SOCKET_ADDRESS",
                        where)};
  }
  if (error.value() == ECONNREFUSED) {
    return {Code::kUnavailable,
            fmt::format("no one answers{}: usbmuxd has ended; it starts again when an iPhone is "
                        "plugged in, or by: systemctl start usbmuxd",
                        where)};
  }
  if (error.value() == EACCES) {
    return {Code::kPermission,
            fmt::format("usbmuxd's socket{} may not be opened by this user: see its owner and mode",
                        where)};
  }
  return {Code::kUnavailable,
          fmt::format("usbmuxd{} can't be reached: {}", where, error.message())};
}

}  // namespace

void UsbmuxConnection::limit(std::chrono::milliseconds time, const char* what) {
  timer_.expires_after(time);
  timer_.async_wait(
      [self = shared_from_this(), what, time, message = messages_](const std::error_code& error) {
        if (error || !self->waiting_ || message != self->messages_) return;
        self->finish(
            Error{Code::kUnavailable, fmt::format("usbmuxd at {} gave no {} within {} s",
                                                  self->address_.text, what, time.count() / 1000)});
      });
}

void UsbmuxConnection::request(std::string message, OnMessage on_answer) {
  request_ = std::move(message);
  waiting_ = std::move(on_answer);
  limit(kUsbmuxDeadline, "answer");
  socket_.async_connect(address_.endpoint,
                        [self = shared_from_this()](const std::error_code& error) {
                          if (!self->waiting_) return;
                          if (error) {
                            self->finish(no_usbmuxd(self->address_, error));
                          } else {
                            self->on_connected();
                          }
                        });
}

void UsbmuxConnection::on_connected() {
  // Asio sets neither.
  const int fd = socket_.native_handle();
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // none on a Unix socket
  asio::async_write(socket_, asio::buffer(request_),
                    [self = shared_from_this()](const std::error_code& error, size_t) {
                      if (!self->waiting_) return;
                      if (error) {
                        self->fail(error, "taking a request");
                      } else {
                        self->read_header();
                      }
                    });
}

void UsbmuxConnection::next(OnMessage on_message) {
  waiting_ = std::move(on_message);
  read_header();
}

// Never a byte more than the message: what follows an answer to Connect is the device's.
void UsbmuxConnection::read_header() {
  // The first byte may take for ever; the rest of what was begun may not.
  asio::async_read(socket_, asio::buffer(header_), asio::transfer_at_least(1),
                   [self = shared_from_this()](const std::error_code& error, size_t got) {
                     if (!self->waiting_) return;
                     if (error) {
                       self->fail(error, "waiting for a message");
                       return;
                     }
                     if (self->request_.empty()) self->limit(kUsbmuxStall, "whole message");
                     if (got == self->header_.size()) {
                       self->on_header();
                       return;
                     }
                     asio::async_read(self->socket_, asio::buffer(self->header_) + got,
                                      [self](const std::error_code& later, size_t) {
                                        if (!self->waiting_) return;
                                        if (later) {
                                          self->fail(later, "in the middle of a header");
                                        } else {
                                          self->on_header();
                                        }
                                      });
                   });
}

void UsbmuxConnection::on_header() {
  const Result<UsbmuxHeader> header = decode_usbmux_header(header_);
  if (!header.ok()) {
    finish(header.error());
    return;
  }
  tag_ = header->tag;
  body_.resize(header->message_bytes - sizeof(UsbmuxHeader));
  asio::async_read(socket_, asio::buffer(body_),
                   [self = shared_from_this()](const std::error_code& error, size_t) {
                     if (!self->waiting_) return;
                     if (error) {
                       self->fail(error, "in the middle of a message");
                     } else {
                       self->on_body();
                     }
                   });
}

void UsbmuxConnection::on_body() {
  request_.clear();  // answered
  finish(decode_usbmux_body(tag_, body_));
}

void UsbmuxConnection::fail(const std::error_code& error, const char* doing) {
  const bool ended = error == asio::error::eof || error == asio::error::connection_reset ||
                     error == asio::error::broken_pipe;
  finish(
      Error{Code::kUnavailable, fmt::format("usbmuxd at {}, {}: {}", address_.text, doing,
                                            ended ? "it closed the connection" : error.message())});
}

void UsbmuxConnection::finish(Result<UsbmuxMessage> outcome) {
  timer_.cancel();
  ++messages_;
  const OnMessage waiting = std::move(waiting_);
  waiting_ = nullptr;
  if (!outcome.ok()) {
    std::error_code ignored;
    socket_.close(ignored);
  }
  waiting(std::move(outcome));
}

Socket UsbmuxConnection::release() {
  return std::move(socket_);
}

void UsbmuxConnection::close() {
  waiting_ = nullptr;
  timer_.cancel();
  std::error_code ignored;
  socket_.close(ignored);
}

}  // namespace collect::attach
