// Sockets of a guest: high-numbered, close-on-exec, non-blocking, without SIGPIPE, and checked
// before every use. The host program may close every descriptor it sees, and open something else
// under the same number; then the socket is lost to us, and what has its number is not touched.
//
// Drain thread only, but for the fork functions at the end. Nothing allocates.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "agent/transport/address.h"

namespace collect::agent {

// Descriptors are moved up to here, or to just below the process's limit: programs that count on
// low numbers, or close a range of them, keep what they expect.
inline constexpr int kDescriptorFloor = 3000;
inline constexpr int kDescriptorMargin = 24;  // below a limit that is lower than that

enum class IoStatus : uint8_t {
  kDone,   // `bytes` were moved
  kAgain,  // nothing now: wait for it with poll
  kEnd,    // the peer closed
  kLost,   // the descriptor is not ours any more
  kError,  // errno is in `error`
};

struct IoResult {
  IoStatus status;
  int error;
  size_t bytes;
};

struct TlsSession;

// Plain data, so that it can live in static storage; closing is explicit.
class Socket {
 public:
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Whether the descriptor still is the socket that was opened.
  bool is_ours() const;

  IoResult send(const iovec* parts, size_t count);
  IoResult receive(uint8_t* out, size_t size);
  // Closes it if it is ours, forgets it in any case.
  void close();

  // Begins to connect: 0 with `*connected` saying whether it is done already, or errno.
  int connect(const Address& address, bool* connected);
  // After poll reported the socket writable: 0 when connected, or errno.
  int finish_connect();
  // 0 or errno. A path that a dead listener left behind is taken over.
  int listen(const Address& address);
  // Takes a waiting connection of `*this` into `out`: 0, EAGAIN when there is none, EACCES when the
  // peer of a Unix socket may not (it is closed then), or errno. kLost is reported as EBADF.
  int accept(Socket& out);
  // The port listened on.
  uint16_t local_port() const;
  // From here on everything is within TLS, as a client; what is sent first begins the handshake,
  // and until its end there is nothing to receive and no room to send. False: there is no memory.
  bool start_tls();
  // What to poll for, where a plain socket would be polled for `events`.
  short poll_events(short events) const;
  // Why TLS failed, or `otherwise`.
  const char* fault_or(const char* otherwise) const;
  // More room in the kernel for data on the way, where that is ours to ask for.
  void widen_send_buffer();

 private:
  int adopt(int low_fd);
  int bind_and_listen(const Address& address);

  int fd_ = -1;
  TlsSession* tls_ = nullptr;  // null: plain
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool is_local_ = false;
};

// fork takes a copy of every descriptor. Between these two calls no socket is half-made, so that
// the child knows, and can close, all of them. Called around fork on the forking thread.
void sockets_before_fork();
void sockets_after_fork();

}  // namespace collect::agent
