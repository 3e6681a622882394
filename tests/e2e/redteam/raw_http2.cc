#include "tests/e2e/redteam/raw_http2.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace collect::e2e {
namespace {

constexpr int kWaitMs = 20'000;
constexpr size_t kKeptBytes = 64 * 1024;

int connected(int family, const sockaddr* address, socklen_t bytes) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, address, bytes) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

}  // namespace

namespace http2 {

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  std::string bytes;
  for (const uint32_t byte : {length >> 16, length >> 8, length, uint32_t{type}, uint32_t{flags},
                              stream >> 24, stream >> 16, stream >> 8, stream}) {
    bytes += static_cast<char>(byte & 0xff);
  }
  return bytes + payload;
}

std::string greeting() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0);
}

std::string header_field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

std::string call(uint32_t stream, const std::string& path, uint8_t flags) {
  // :method POST and :scheme http of HPACK's static table, :path and :authority by its names.
  const std::string block = "\x83\x86\x04" + (static_cast<char>(path.size()) + path) + "\x01\x01x" +
                            header_field("te", "trailers") +
                            header_field("content-type", "application/grpc");
  return frame(1, flags, stream, block);
}

std::string reset(uint32_t stream) {
  return frame(3, 0, stream, std::string("\0\0\0\x8", 4));
}

}  // namespace http2

RawHttp2::RawHttp2(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socket_ = connected(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

RawHttp2::RawHttp2(const std::string& unix_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, unix_path.c_str(), sizeof address.sun_path - 1);
  socket_ = connected(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

RawHttp2::~RawHttp2() {
  if (socket_ >= 0) close(socket_);
}

RawHttp2::RawHttp2(RawHttp2&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      at_end_(std::exchange(other.at_end_, true)),
      received_(std::move(other.received_)) {}

bool RawHttp2::read_some(int wait_ms) {
  pollfd waiting{socket_, POLLIN, 0};
  if (at_end_ || poll(&waiting, 1, wait_ms) <= 0) return false;
  char bytes[16 * 1024];
  const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  at_end_ = got == 0 || (got < 0 && errno != EAGAIN);
  if (got <= 0) return false;
  received_.append(bytes, static_cast<size_t>(got));
  if (received_.size() > kKeptBytes) received_.erase(0, received_.size() - kKeptBytes);
  return true;
}

bool RawHttp2::send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size() && !at_end_) {
    while (read_some(0)) continue;
    const ssize_t now =
        ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now > 0) {
      sent += static_cast<size_t>(now);
    } else if (errno != EAGAIN) {
      return false;
    } else {
      pollfd waiting{socket_, POLLIN | POLLOUT, 0};
      if (poll(&waiting, 1, kWaitMs) <= 0) return false;
    }
  }
  return sent == bytes.size();
}

bool RawHttp2::receives(const std::string& text) {
  while (received_.find(text) == std::string::npos) {
    if (!read_some(kWaitMs)) return received_.find(text) != std::string::npos;
  }
  return true;
}

bool RawHttp2::is_closed_by_peer() {
  while (read_some(kWaitMs)) continue;
  return at_end_;
}

}  // namespace collect::e2e
