#include "daemon/ingest/link/connector.h"

#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <memory>

#include "formats/core/threads.h"

namespace collect::ingest {
namespace {

Error unavailable(const std::error_code& error) {
  return {Code::kUnavailable, error.message()};
}

void connect(asio::io_context& io, const Endpoint& endpoint, OnConnected done) {
  auto socket = std::make_shared<Socket>(io);
  socket->async_connect(endpoint, [socket, done = std::move(done)](const std::error_code& error) {
    if (error) {
      done(unavailable(error));
    } else {
      done(ConnectedSocket::from(std::move(*socket)));
    }
  });
}

}  // namespace

ConnectedSocket::~ConnectedSocket() {
  if (handle_ >= 0) ::close(handle_);
}

Result<ConnectedSocket> ConnectedSocket::from(Socket socket) {
  std::error_code error;
  const int family = socket.local_endpoint(error).protocol().family();
  if (error) return unavailable(error);
  const int handle = socket.release(error);
  if (error) return unavailable(error);
  return ConnectedSocket(handle, family);
}

Result<Socket> ConnectedSocket::adopt(asio::io_context& io) && {
  Socket socket(io);
  std::error_code error;
  socket.assign(asio::generic::stream_protocol(family_, 0), handle_, error);
  if (error) return unavailable(error);
  handle_ = -1;
  return socket;
}

Connector connector_to(asio::io_context& io, const Address& address) {
  const Result<Endpoint> endpoint = numeric_endpoint(address);
  if (endpoint.ok()) {
    return [&io, to = *endpoint](OnConnected done) { connect(io, to, std::move(done)); };
  }
  return [&io, address](OnConnected done) {
    auto resolver = std::make_shared<asio::ip::tcp::resolver>(io);
    // It has a thread of its own.
    const Status asked = contain([&] {
      resolver->async_resolve(
          address.host, std::to_string(address.port),
          [&io, resolver, done](const std::error_code& error,
                                const asio::ip::tcp::resolver::results_type& found) {
            if (error || found.empty()) {
              done(unavailable(error));
            } else {
              connect(io, Endpoint(found.begin()->endpoint()), done);
            }
          });
    });
    if (!asked.ok()) asio::post(io, [done, error = asked.error()] { done(error); });
  };
}

}  // namespace collect::ingest
