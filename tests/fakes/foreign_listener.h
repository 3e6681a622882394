// A program of another user that listens where a collector is expected: a forked child that has
// changed its uid, and counts what comes. It ends with the object.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

namespace collect::fakes {

inline constexpr uid_t kForeignUid = 65'534;

struct SocketAddress {
  sockaddr_storage raw{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

inline SocketAddress tcp4(in_addr_t host, uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(host);
  SocketAddress address{{}, sizeof v4};
  std::memcpy(&address.raw, &v4, sizeof v4);
  return address;
}

inline SocketAddress tcp6(const in6_addr& host, uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = host;
  SocketAddress address{{}, sizeof v6};
  std::memcpy(&address.raw, &v6, sizeof v6);
  return address;
}

// A path; or an abstract name, after a zero byte.
inline SocketAddress unix_name(const std::string& name) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  EXPECT_LT(name.size(), sizeof local.sun_path);
  std::memcpy(local.sun_path, name.data(), name.size());
  const size_t end = name.starts_with('/') ? 1 : 0;
  SocketAddress address{
      {}, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + end)};
  std::memcpy(&address.raw, &local, sizeof local);
  return address;
}

class ForeignListener {
 public:
  enum class Accepts {
    kNever,
    kAlways,
    kOnce,           // and listens no more then: its port is free
    kOnceAndCloses,  // that too
  };

  explicit ForeignListener(const SocketAddress& address, Accepts accepts = Accepts::kAlways,
                           uid_t uid = kForeignUid) {
    void* const shared =
        ::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) ::abort();
    seen_ = new (shared) Seen;
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      if (uid != ::getuid() &&
          (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0)) {
        ::_exit(1);
      }
      serve(address, accepts, ready[1]);
    }
    ::close(ready[1]);
    EXPECT_EQ(::read(ready[0], &port_, sizeof port_), ssize_t{sizeof port_})
        << "the child could not listen";
    ::close(ready[0]);
  }
  ~ForeignListener() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::munmap(seen_, sizeof(Seen));
  }
  ForeignListener(const ForeignListener&) = delete;
  ForeignListener& operator=(const ForeignListener&) = delete;

  uint16_t port() const { return port_; }
  int accepted() const { return seen_->accepted; }
  int ended() const { return seen_->ended; }  // of those: the peer closed
  uint64_t bytes() const { return seen_->bytes; }

 private:
  struct Seen {
    std::atomic<int> accepted{0};
    std::atomic<int> ended{0};
    std::atomic<uint64_t> bytes{0};
  };

  [[noreturn]] void serve(const SocketAddress& address, Accepts accepts, int ready) {
    const int on = 1;
    const int listener = ::socket(address.raw.ss_family, SOCK_STREAM, 0);
    if (address.raw.ss_family != AF_UNIX) {
      ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (::bind(listener, address.get(), address.bytes) != 0) ::_exit(2);
    if (::listen(listener, 64) != 0) ::_exit(3);
    sockaddr_in6 bound{};
    socklen_t bytes = sizeof bound;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bytes);
    const uint16_t port = ntohs(bound.sin6_port);  // at the same place in sockaddr_in
    if (::write(ready, &port, sizeof port) != ssize_t{sizeof port}) ::_exit(4);
    while (accepts == Accepts::kNever) ::pause();
    constexpr size_t kMost = 64;
    pollfd polled[kMost] = {{listener, POLLIN, 0}};
    for (size_t count = 1; ::poll(polled, count, -1) > 0;) {
      for (size_t i = 1; i < count; ++i) {
        if (polled[i].fd < 0 || polled[i].revents == 0) continue;
        char some[4096];
        const ssize_t got = ::read(polled[i].fd, some, sizeof some);
        if (got > 0) {
          seen_->bytes += static_cast<uint64_t>(got);
          continue;
        }
        ::close(polled[i].fd);
        polled[i].fd = -1;
        ++seen_->ended;
      }
      if (polled[0].revents == 0 || count == kMost) continue;
      polled[count++] = {::accept(listener, nullptr, nullptr), POLLIN, 0};
      if (accepts != Accepts::kAlways) {
        ::close(listener);
        polled[0].fd = -1;
      }
      if (accepts == Accepts::kOnceAndCloses) ::close(polled[1].fd);
      ++seen_->accepted;
      while (accepts == Accepts::kOnceAndCloses) ::pause();
    }
    ::_exit(0);
  }

  Seen* seen_ = nullptr;
  pid_t child_ = -1;
  uint16_t port_ = 0;
};

}  // namespace collect::fakes
