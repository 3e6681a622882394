// A program of another user that listens where a collector is expected, and counts what comes. It
// ends with the object.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>

#include "tests/fakes/machine/other_user.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::fakes {

class ForeignListener {
 public:
  enum class Accepts {
    kNever,
    kAlways,
    kOnce,           // and listens no more then: its port is free
    kOnceAndCloses,  // that too
  };

  explicit ForeignListener(const SocketAddress& address, Accepts accepts = Accepts::kAlways,
                           uid_t uid = kOtherUid) {
    void* const shared =
        ::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) ::abort();
    seen_ = new (shared) Seen;
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    user_ = std::make_unique<OtherUser>([&] { return serve(address, accepts, ready[1]); }, uid);
    ::close(ready[1]);
    EXPECT_EQ(::read(ready[0], &port_, sizeof port_), ssize_t{sizeof port_})
        << "the child could not listen";
    ::close(ready[0]);
  }
  ~ForeignListener() {
    user_.reset();
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

  int serve(const SocketAddress& address, Accepts accepts, int ready) {
    const int on = 1;
    const int listener = ::socket(address.raw.ss_family, SOCK_STREAM, 0);
    if (address.raw.ss_family != AF_UNIX) {
      ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (::bind(listener, address.get(), address.bytes) != 0) return 2;
    if (::listen(listener, 64) != 0) return 3;
    sockaddr_in6 bound{};
    socklen_t bytes = sizeof bound;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bytes);
    const uint16_t port = ntohs(bound.sin6_port);  // at the same place in sockaddr_in
    if (::write(ready, &port, sizeof port) != ssize_t{sizeof port}) return 4;
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
    return 0;
  }

  Seen* seen_ = nullptr;
  std::unique_ptr<OtherUser> user_;
  uint16_t port_ = 0;
};

}  // namespace collect::fakes
