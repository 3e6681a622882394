#include "agent/transport/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/platform/system.h"
#include "agent/transport/tls.h"

namespace collect::agent {
namespace {

constexpr int kListenBacklog = 8;
constexpr int kLocalSendBytes = 4 * 1024 * 1024;  // the kernel cuts it to net.core.wmem_max

#if defined(MSG_NOSIGNAL)
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // SO_NOSIGPIPE is set instead
#endif

const sockaddr* raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

bool is_path(const Address& address) {
  return address.is_local() && reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path[0];
}

// TCP can connect to itself when a loopback port is free: no one listens there then.
bool is_connected_to_itself(int fd) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_bytes = sizeof here;
  socklen_t there_bytes = sizeof there;
  // An address that is not known stays without a family.
  (void)sys::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_bytes);
  (void)sys::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_bytes);
  if (here.ss_family != AF_INET && here.ss_family != AF_INET6) return false;
  return std::memcmp(&here, &there, sizeof here) == 0;
}

void set_options(int fd, bool is_local) {
  const int on = 1;
  if (!is_local) sys::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
#if defined(SO_NOSIGPIPE)
  sys::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

}  // namespace

template <class Make>
int Socket::open(Make make) {
  const int error = descriptor_.open(make);
  if (error == 0) sys::fcntl(fd(), F_SETFL, sys::fcntl(fd(), F_GETFL) | O_NONBLOCK);
  return error;
}

void Socket::close() {
  if (tls_ != nullptr) tls_close(tls_);
  tls_ = nullptr;
  descriptor_.close();
}

IoResult Socket::send(const iovec* parts, size_t count) {
  if (!is_ours()) return {IoStatus::kLost};
  if (tls_ != nullptr) return tls_send(tls_, parts, count);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
  ssize_t sent = 0;
  do {
    sent = sys::sendmsg(fd(), &message, MSG_DONTWAIT | kNoSignal);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {IoStatus::kDone, static_cast<size_t>(sent)};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return {IoStatus::kAgain};
  if (errno == EBADF || errno == ENOTSOCK) return {IoStatus::kLost};
  if (errno == EPIPE || errno == ECONNRESET) return {IoStatus::kEnd};
  return {IoStatus::kError};
}

IoResult Socket::receive(uint8_t* out, size_t size) {
  if (!is_ours()) return {IoStatus::kLost};
  if (tls_ != nullptr) return tls_receive(tls_, out, size);
  ssize_t got = 0;
  do {
    got = sys::recv(fd(), out, size, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return {IoStatus::kDone, static_cast<size_t>(got)};
  if (got == 0) return {IoStatus::kEnd};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoStatus::kAgain};
  if (errno == EBADF || errno == ENOTSOCK) return {IoStatus::kLost};
  if (errno == ECONNRESET) return {IoStatus::kEnd};
  return {IoStatus::kError};
}

int Socket::connect(const Address& address, bool* connected) {
  *connected = false;
  const int failed = open([&] { return sys::socket(address.storage.ss_family, SOCK_STREAM, 0); });
  if (failed != 0) return failed;
  is_local_ = address.is_local();
  set_options(fd(), is_local_);
  int error = sys::connect(fd(), raw(address), address.bytes) == 0 ? 0 : errno;
  if (error == 0) {
    error = finish_connect();
    *connected = error == 0;
  } else if (error == EINPROGRESS || error == EINTR) {
    return 0;
  }
  if (error != 0) close();
  return error;
}

int Socket::finish_connect() {
  if (!is_ours()) return EBADF;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (sys::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  if (error == 0 && is_connected_to_itself(fd())) error = ECONNREFUSED;
  return error;
}

int Socket::bind_and_listen(const Address& address) {
  const int on = 1;
  if (!address.is_local()) sys::setsockopt(fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (sys::bind(fd(), raw(address), address.bytes) != 0) return errno;
  return sys::listen(fd(), kListenBacklog) == 0 ? 0 : errno;
}

int Socket::listen(const Address& address) {
  if (is_path(address)) {
    // A socket file outlives its listener. If no one answers there it is a dead one's.
    const char* path = reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path;
    struct stat found{};
    if (sys::lstat(path, &found) == 0 && S_ISSOCK(found.st_mode)) {
      Socket probe;
      bool connected = false;
      const int error = probe.connect(address, &connected);
      probe.close();
      if (error == ECONNREFUSED) sys::unlink(path);
    }
  }
  const int failed = open([&] { return sys::socket(address.storage.ss_family, SOCK_STREAM, 0); });
  if (failed != 0) return failed;
  is_local_ = address.is_local();
  const int error = bind_and_listen(address);
  if (error != 0) close();
  return error;
}

int Socket::accept(Socket& out, bool asks_for_token) {
  if (!is_ours()) return EBADF;
  const int failed = out.open([this] { return sys::accept(fd(), nullptr, nullptr); });
  if (failed != 0) return failed == EWOULDBLOCK ? EAGAIN : failed;
  out.is_local_ = is_local_;
  if (is_local_ || !asks_for_token) {
    const PeerUser user = peer_user(out.fd());
    if (user != PeerUser::kTrusted && user != PeerUser::kCannotAsk) {
      out.close();
      return user == PeerUser::kNotAsked ? EMFILE : EACCES;
    }
  }
  set_options(out.fd(), is_local_);
  return 0;
}

uint16_t Socket::local_port() const {
  Address address{};
  address.bytes = sizeof address.storage;
  if (!is_ours() ||
      sys::getsockname(fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0) {
    return 0;
  }
  return port_of(address);
}

bool Socket::start_tls(const char* host) {
  tls_ = tls_open(fd(), host);
  return tls_ != nullptr;
}

Server Socket::server(const Address& dialled) const {
  return is_ours() ? server_user(fd(), dialled) : Server{PeerUser::kUnknown, 0};
}

short Socket::poll_events(short events) const {
  return tls_ == nullptr ? events : tls_poll_events(tls_, events);
}

const char* Socket::fault_or(const char* otherwise) const {
  const char* const fault = tls_ == nullptr ? nullptr : tls_fault(tls_);
  return fault == nullptr ? otherwise : fault;
}

// Over TCP the kernel's own tuning goes further than what an ordinary process may ask for, and
// asking turns it off.
void Socket::widen_send_buffer() {
  if (!is_local_ || !is_ours()) return;
  sys::setsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &kLocalSendBytes, sizeof kLocalSendBytes);
}

}  // namespace collect::agent
