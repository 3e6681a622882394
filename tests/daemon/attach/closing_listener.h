// A server that closes every connection at once, on the test's own io_context, and counts them.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

namespace collect::attach {

class ClosingListener {
 public:
  explicit ClosingListener(asio::io_context& io)
      : acceptor_(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    accept_next();
  }
  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  int accepted() const { return accepted_; }

 private:
  void accept_next() {
    acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket) {
      if (error) return;
      ++accepted_;
      accept_next();
    });
  }

  asio::ip::tcp::acceptor acceptor_;
  int accepted_ = 0;
};

}  // namespace collect::attach
