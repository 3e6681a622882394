// Sockets of a guest (descriptor.h): non-blocking, without SIGPIPE, and checked before every use.
// Drain thread only. Nothing allocates.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "agent/transport/address.h"
#include "agent/transport/descriptor.h"
#include "agent/transport/io_result.h"
#include "agent/transport/peer_user.h"

namespace collect::agent {

struct TlsSession;

// Plain data, so that it can live in static storage; closing is explicit.
class Socket {
 public:
  bool is_open() const { return descriptor_.is_open(); }
  int fd() const { return descriptor_.fd(); }
  // Whether the descriptor still is the socket that was opened.
  bool is_ours() const { return descriptor_.is_ours(); }

  IoResult send(const iovec* parts, size_t count);
  IoResult receive(uint8_t* out, size_t size);
  // Closes it if it is ours, forgets it in any case.
  void close();

  // Begins to connect: 0 with `*connected` saying whether it is done already, or errno.
  int connect(const Address& address, bool* connected);
  // After poll reported the socket writable: 0 when connected, or errno.
  int finish_connect();
  // Who serves it, once it is connected: nothing is to be sent to who is not trusted.
  Server server(const Address& dialled) const;
  // 0 or errno. A path that a dead listener left behind is taken over.
  int listen(const Address& address);
  // Takes a waiting connection of `*this` into `out`: 0, EAGAIN when there is none, EACCES when its
  // user may not connect (it is closed then), or errno. kLost is reported as EBADF. Over TCP a
  // token that is asked for decides, and not the user.
  int accept(Socket& out, bool asks_for_token);
  // The port listened on.
  uint16_t local_port() const;
  // From here on everything is within TLS, as a client of `host`; what is sent first begins the
  // handshake, and until its end there is nothing to receive and no room to send. False: there is
  // no memory.
  bool start_tls(const char* host);
  // What to poll for, where a plain socket would be polled for `events`.
  short poll_events(short events) const;
  // Why TLS failed, or `otherwise`.
  const char* fault_or(const char* otherwise) const;
  // More room in the kernel for data on the way, where that is ours to ask for.
  void widen_send_buffer();

 private:
  // Takes what `make()` gives, a new descriptor or -1; 0 or errno.
  template <class Make>
  int open(Make make);
  int bind_and_listen(const Address& address);

  Descriptor descriptor_;
  TlsSession* tls_ = nullptr;  // null: plain
  bool is_local_ = false;
};

}  // namespace collect::agent
