// How the dialler gets a connection: a function that makes one, somewhere, and hands it over. To an
// address that is a connect(); to a device it is a stream through the adb server or usbmuxd.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <utility>

#include "daemon/ingest/link/address.h"
#include "formats/core/result.h"

namespace collect::ingest {

// A connected descriptor on its way from the thread that made it; closed unless it is taken.
class ConnectedSocket {
 public:
  ConnectedSocket(int handle, int family) : handle_(handle), family_(family) {}
  // Takes it out of its io_context, on the thread of that.
  static Result<ConnectedSocket> from(Socket socket);
  ~ConnectedSocket();
  ConnectedSocket(ConnectedSocket&& other) noexcept
      : handle_(std::exchange(other.handle_, -1)), family_(other.family_) {}
  ConnectedSocket& operator=(ConnectedSocket&&) = delete;

  Result<Socket> adopt(asio::io_context& io) &&;

 private:
  int handle_;
  int family_;
};

using OnConnected = std::function<void(Result<ConnectedSocket>)>;
// Called on io thread 0, once for each attempt; answers once or never, on any thread, not from
// inside the call. An answer that comes too late is closed.
using Connector = std::function<void(OnConnected done)>;

// Connects to `address`; host names are looked up.
Connector connector_to(asio::io_context& io, const Address& address);

}  // namespace collect::ingest
