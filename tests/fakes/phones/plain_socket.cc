#include "tests/fakes/phones/plain_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace collect::fakes {

bool read_exactly(int fd, char* out, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::recv(fd, out + done, size - done, 0);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

bool send_all(int fd, const char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t sent = ::send(fd, data + done, size - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

int connect_abstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0) return fd;
  ::close(fd);
  return -1;
}

int connect_to_loopback(uint16_t port) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) return fd;
  ::close(fd);
  return -1;
}

void announce_device(uint16_t server, uint16_t device) {
  const int fd = connect_to_loopback(server);
  if (fd < 0) return;
  const std::string text = "host:emulator:" + std::to_string(device);
  char length[8];
  std::snprintf(length, sizeof length, "%04zx", text.size());
  const std::string request = length + text;
  char answer[64];
  if (send_all(fd, request.data(), request.size())) (void)::recv(fd, answer, sizeof answer, 0);
  ::close(fd);
}

int listen_on_loopback(uint16_t* port, int backlog) {
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(*port);
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof here;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&here), length) != 0 ||
      ::listen(listener, backlog) != 0) {
    std::perror("a fake's listener");
    std::abort();
  }
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &length);
  *port = ntohs(here.sin_port);
  return listener;
}

}  // namespace collect::fakes
