#include "daemon/attach/adb/adb_connection.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include "formats/core/threads.h"

namespace collect::attach {
namespace {

constexpr size_t kReadStepBytes = 64u << 10;

// Close-on-exec, which Asio does not set, and no delay: agents are asked for the time over it.
void prepare(Socket& socket) {
  const int handle = socket.native_handle();
  (void)fcntl(handle, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  (void)setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // none on a Unix socket
}

}  // namespace

AdbConnection::AdbConnection(asio::io_context& io, AdbAddress address)
    : address_(std::move(address)), socket_(io), resolver_(io), deadline_(io) {}

void AdbConnection::close() {
  std::error_code ignored;
  socket_.close(ignored);
  resolver_.cancel();
  deadline_.cancel();
}

void AdbConnection::begin_deadline() {
  deadline_.expires_after(kAdbAnswerDeadline);
  deadline_.async_wait([weak = weak_from_this()](const std::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->timed_out_ = true;
    self->close();
  });
}

Error AdbConnection::failure(const std::error_code& error) const {
  const std::string why =
      timed_out_ ? fmt::format("no answer within {} s", kAdbAnswerDeadline.count() / 1000)
      : error == asio::error::eof ? "the connection ended"
                                  : error.message();
  return {Code::kUnavailable, fmt::format("adb server at {}: {}", address_.text(), why)};
}

void AdbConnection::connect(OnDone done) {
  begin_deadline();
  const Address& server = address_.server;
  if (server.kind == Address::Kind::kUnix) {
    connect_to(asio::local::stream_protocol::endpoint(server.host), std::move(done));
    return;
  }
  std::error_code error;
  const asio::ip::address number = asio::ip::make_address(server.host, error);
  if (!error) {
    connect_to(asio::ip::tcp::endpoint(number, server.port), std::move(done));
    return;
  }
  // It has a thread of its own.
  const Status asked = contain([&] {
    resolver_.async_resolve(
        server.host, std::to_string(server.port),
        [self = shared_from_this(), done](const std::error_code& fault,
                                          const asio::ip::tcp::resolver::results_type& found) {
          if (fault || found.empty()) {
            self->deadline_.cancel();
            done(self->failure(fault));
          } else {
            self->connect_to(found.begin()->endpoint(), done);
          }
        });
  });
  if (asked.ok()) return;
  deadline_.cancel();
  asio::post(socket_.get_executor(), [done, error = asked.error()] { done(error); });
}

void AdbConnection::connect_to(const asio::generic::stream_protocol::endpoint& endpoint,
                               OnDone done) {
  socket_.async_connect(
      endpoint, [self = shared_from_this(), done = std::move(done)](const std::error_code& error) {
        self->deadline_.cancel();
        if (error) {
          done(self->failure(error));
          return;
        }
        prepare(self->socket_);
        done({});
      });
}

void AdbConnection::ask(std::string_view request, OnDone done) {
  send(request, AdbAnswer::Parts::kStatus, [done = std::move(done)](Result<std::string> text) {
    done(text.ok() ? Status() : Status(text.error()));
  });
}

void AdbConnection::ask_text(std::string_view request, OnText done) {
  send(request, AdbAnswer::Parts::kStatusAndText, std::move(done));
}

void AdbConnection::next_text(OnText done) {
  read_answer(AdbAnswer::Parts::kText, std::move(done));
}

void AdbConnection::send(std::string_view request, AdbAnswer::Parts parts, OnText done) {
  Result<std::string> framed = adb_request(request);
  if (!framed.ok()) {
    asio::post(socket_.get_executor(),
               [done = std::move(done), error = framed.error()] { done(error); });
    return;
  }
  request_ = std::move(*framed);
  begin_deadline();
  asio::async_write(socket_, asio::buffer(request_),
                    [self = shared_from_this(), parts, done = std::move(done)](
                        const std::error_code& error, size_t) {
                      if (!error) {
                        self->read_answer(parts, done);
                        return;
                      }
                      self->deadline_.cancel();
                      done(self->failure(error));
                    });
}

void AdbConnection::read_answer(AdbAnswer::Parts parts, OnText done) {
  answer_ = AdbAnswer(parts);
  read_piece(std::move(done));
}

void AdbConnection::read_piece(OnText done) {
  bytes_.resize(answer_.wanted());
  asio::async_read(
      socket_, asio::buffer(bytes_),
      [self = shared_from_this(), done = std::move(done)](const std::error_code& error, size_t) {
        Status taken = error ? Status(self->failure(error)) : self->answer_.take(self->bytes_);
        if (taken.ok() && self->answer_.wanted() != 0) {
          self->read_piece(done);
          return;
        }
        self->deadline_.cancel();
        if (!taken.ok()) {
          done(taken.error());
        } else if (self->answer_.is_failure()) {
          done(Error{Code::kNotFound, self->answer_.text()});
        } else {
          done(self->answer_.text());
        }
      });
}

void AdbConnection::read_to_end(size_t limit, OnText done) {
  bytes_.clear();
  filled_ = 0;
  begin_deadline();
  read_more(limit, std::move(done));
}

void AdbConnection::read_more(size_t limit, OnText done) {
  bytes_.resize(filled_ + kReadStepBytes);
  socket_.async_read_some(
      asio::buffer(bytes_.data() + filled_, kReadStepBytes),
      [self = shared_from_this(), limit, done = std::move(done)](const std::error_code& error,
                                                                 size_t count) {
        self->filled_ += count;
        if (!error && self->filled_ <= limit) {
          self->read_more(limit, done);
          return;
        }
        self->deadline_.cancel();
        self->bytes_.resize(self->filled_);
        if (!error) {
          done(Error{Code::kLimit, fmt::format("more than {} bytes came", limit)});
        } else if (error == asio::error::eof) {
          done(std::move(self->bytes_));
        } else {
          done(self->failure(error));
        }
      });
}

}  // namespace collect::attach
