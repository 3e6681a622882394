// A connection that another user of this machine holds: a forked child, which has changed its uid
// first, connects and keeps it until the object goes.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace collect::principal {

inline constexpr uid_t kNobody = 65'534;

struct TestAddress {
  sockaddr_storage raw{};
  socklen_t bytes = 0;
};

inline TestAddress loopback_v4(uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TestAddress address{{}, sizeof v4};
  std::memcpy(&address.raw, &v4, sizeof v4);
  return address;
}

inline TestAddress loopback_v6(uint16_t port, bool is_mapped_v4) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (is_mapped_v4) {
    v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
    v6.sin6_addr.s6_addr[12] = 127;
    v6.sin6_addr.s6_addr[15] = 1;
  } else {
    v6.sin6_addr = in6addr_loopback;
  }
  TestAddress address{{}, sizeof v6};
  std::memcpy(&address.raw, &v6, sizeof v6);
  return address;
}

inline TestAddress abstract_name(const std::string& name) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path + 1, name.data(), name.size());
  TestAddress address{{},
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
  std::memcpy(&address.raw, &local, sizeof local);
  return address;
}

class TestListener {
 public:
  explicit TestListener(const TestAddress& address) {
    fd_ = ::socket(address.raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address.raw), address.bytes), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
  }
  ~TestListener() { ::close(fd_); }
  uint16_t port() const {
    sockaddr_in6 bound{};
    socklen_t bytes = sizeof bound;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &bytes);
    return ntohs(bound.sin6_port);  // at the same place in sockaddr_in
  }
  int accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int fd_ = -1;
};

enum class Then { kKeep, kEndSending, kClose };

class OtherUser {
 public:
  OtherUser(uid_t uid, const TestAddress& to, Then then = Then::kKeep) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      if (uid != ::getuid() && ::setresuid(uid, uid, uid) != 0) ::_exit(1);
      const int fd = ::socket(to.raw.ss_family, SOCK_STREAM, 0);
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&to.raw), to.bytes) != 0) ::_exit(1);
      if (then == Then::kEndSending) ::shutdown(fd, SHUT_WR);
      if (then == Then::kClose) ::close(fd);
      if (::write(ready[1], "", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the child could not connect";
    ::close(ready[0]);
  }
  ~OtherUser() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  pid_t child_ = -1;
};

}  // namespace collect::principal
